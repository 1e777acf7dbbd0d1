//! Editing the arguments of a call before it is allowed, in the user's own editor.

use serde_json::Value;
use toolpost_model::{ApprovalScope, ArgumentChange, PermissionRequest, Verdict};

use super::desk::{ApprovalDesk, VerdictRefusal, VerdictRefusalKind};
use crate::{
    environment::{self, ControllingTerminal, TerminalInput},
    terminal::{printable, spelled_out},
};

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ArgumentEditOutcome {
    /// The call was allowed with other arguments; the outcome of the question.
    Allowed(Value),
    /// The question is still open.
    Kept,
}

/// Lets the user edit the arguments until the host accepts them or the user gives up: by leaving them unchanged, by an
/// empty file, or by declining another try. Without a terminal there is one try.
pub(crate) async fn edit(
    desk: &mut ApprovalDesk,
    mut tty: Option<&mut ControllingTerminal>,
    question: &PermissionRequest,
) -> anyhow::Result<ArgumentEditOutcome> {
    if question.redacted {
        anyhow::bail!(
            "sensitive values of this call are not shown, so its arguments cannot be edited"
        );
    }
    let mut text = format!("{:#}\n", question.arguments);
    loop {
        text = environment::edit(text).await?;
        let problem = match read(&text, &question.arguments) {
            EditedArguments::Unchanged => return Ok(ArgumentEditOutcome::Kept),
            EditedArguments::Wrong(problem) => anyhow::anyhow!(problem),
            EditedArguments::Changed(arguments) => {
                let verdict = Verdict::Allow {
                    scope: ApprovalScope::Once,
                    rule: None,
                    valid_for_seconds: None,
                    arguments: Some(arguments),
                };
                match desk.decide(question.ask_id, verdict).await {
                    Ok(decided) => return Ok(ArgumentEditOutcome::Allowed(decided)),
                    Err(error) if is_about_arguments(&error) => error,
                    Err(error) => return Err(error),
                }
            }
        };
        let Some(tty) = tty.as_deref_mut() else {
            return Err(problem);
        };
        tty.write_text(&format!(
            "{}\nedit again? [Y/n] ",
            printable(&problem.to_string())
        ))
        .await?;
        match tty.read_line().await? {
            TerminalInput::Line(line) if !line.to_ascii_lowercase().starts_with('n') => {}
            TerminalInput::Line(_) | TerminalInput::Nothing => {
                return Ok(ArgumentEditOutcome::Kept);
            }
        }
    }
}

fn is_about_arguments(error: &anyhow::Error) -> bool {
    error
        .downcast_ref::<VerdictRefusal>()
        .is_some_and(|refusal| refusal.kind == VerdictRefusalKind::BadArguments)
}

#[derive(Debug, PartialEq)]
enum EditedArguments {
    Unchanged,
    Wrong(String),
    Changed(Value),
}

fn read(text: &str, before: &Value) -> EditedArguments {
    if text.trim().is_empty() {
        return EditedArguments::Unchanged;
    }
    match serde_json::from_str::<Value>(text) {
        Err(error) => EditedArguments::Wrong(format!("the arguments are not JSON: {error}")),
        Ok(same) if same == *before => EditedArguments::Unchanged,
        Ok(arguments) if arguments.is_object() => EditedArguments::Changed(arguments),
        Ok(_) => EditedArguments::Wrong("the arguments must be one JSON object".to_owned()),
    }
}

/// The changed arguments in an answer, one line each.
pub(crate) fn changes(decided: &Value) -> Vec<String> {
    let changes: Vec<ArgumentChange> =
        serde_json::from_value(decided["decided"]["changed_arguments"].clone()).unwrap_or_default();
    changes
        .iter()
        .map(|change| spelled_out(&change.to_string()))
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{EditedArguments, read};

    #[test]
    fn an_edit_is_one_object_that_differs() {
        let before = json!({ "command": "git push origin mian" });
        for (text, expected) in [
            ("", EditedArguments::Unchanged),
            (" \n", EditedArguments::Unchanged),
            (
                r#"{ "command":"git push origin mian" }"#,
                EditedArguments::Unchanged,
            ),
            (
                r#"{"command":"git push origin main"}"#,
                EditedArguments::Changed(json!({ "command": "git push origin main" })),
            ),
            (
                "[]",
                EditedArguments::Wrong("the arguments must be one JSON object".to_owned()),
            ),
        ] {
            assert_eq!(read(text, &before), expected, "{text}");
        }
        assert!(
            matches!(read("{", &before), EditedArguments::Wrong(why) if why.starts_with("the arguments are not JSON"))
        );
    }
}
