//! A program as authority: it reads the question as one line of JSON and answers with an exit code and JSON.

use std::sync::Arc;

use serde::Deserialize;
use toolpost_core::{AuthorityAnswer, AuthorityFault, AuthorityQuestion};
use toolpost_model::Behavior;

use super::AuthorityProblem;
use crate::{
    children::Children,
    hook::{
        answer::{HookProgramReply, spoken},
        process::HookProcessOutput,
        program::{AskedProgram, ProgramDeclaration},
    },
};

/// How much of an invalid answer an error message quotes.
const QUOTED: usize = 200;

/// The program of a declaration.
pub(super) fn asked(
    program: ProgramDeclaration,
    children: Arc<Children>,
) -> Result<AskedProgram, AuthorityProblem> {
    match program.names_program() {
        true => Ok(AskedProgram::new(program, children)?),
        false => Err(AuthorityProblem::NoProgram),
    }
}

/// Sends a question to a program.
pub(super) async fn ask(
    program: &AskedProgram,
    question: &AuthorityQuestion<'_>,
) -> Result<AuthorityAnswer, AuthorityFault> {
    let mut input = question.to_json().to_string().into_bytes();
    input.push(b'\n');
    let ran = program
        .run(input)
        .await
        .map_err(|error| AuthorityFault(error.0))?;
    read(&ran)
}

/// The JSON answer. An unknown key is an error, so that a misspelled key does not count as a decision.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ProgramAnswer {
    decision: Behavior,
    #[serde(default)]
    reason: Option<String>,
}

fn read(ran: &HookProcessOutput) -> Result<AuthorityAnswer, AuthorityFault> {
    let text = match spoken(ran).map_err(|error| AuthorityFault(error.0))? {
        HookProgramReply::Objected(reason) => {
            let reason = (!reason.is_empty()).then(|| reason.to_owned());
            return Ok(AuthorityAnswer {
                behavior: Behavior::Deny,
                reason,
            });
        }
        HookProgramReply::Answered(text) => text,
    };
    if text.is_empty() {
        return Err(AuthorityFault("it ended without a decision".to_owned()));
    }
    let answer: ProgramAnswer = serde_json::from_str(text).map_err(|error| {
        let head: String = text.chars().take(QUOTED).collect();
        AuthorityFault(format!("its answer cannot be read: {error}: {head}"))
    })?;
    Ok(AuthorityAnswer {
        behavior: answer.decision,
        reason: answer.reason,
    })
}

#[cfg(test)]
mod tests {
    use toolpost_core::AuthorityAnswer;
    use toolpost_model::Behavior;
    use toolpost_sandbox::CommandExit;

    use super::{HookProcessOutput, read};

    fn ran(code: i32, stdout: &str, stderr: &str) -> HookProcessOutput {
        let ended = CommandExit {
            code: Some(code),
            signal: None,
            out_of_memory: false,
        };
        HookProcessOutput {
            ended,
            stdout: stdout.into(),
            stderr: stderr.into(),
        }
    }

    #[test]
    fn an_answer_is_a_decision_with_a_reason_or_exit_code_2() {
        let answer = |behavior, reason: Option<&str>| AuthorityAnswer {
            behavior,
            reason: reason.map(str::to_owned),
        };
        for (code, stdout, stderr, expected) in [
            (
                0,
                r#"{"decision":"allow"}"#,
                "chatter",
                answer(Behavior::Allow, None),
            ),
            (
                0,
                r#"{"decision":"ask","reason":"new host"}"#,
                "",
                answer(Behavior::Ask, Some("new host")),
            ),
            (
                0,
                " {\"decision\":\"deny\"} \n",
                "",
                answer(Behavior::Deny, None),
            ),
            (
                2,
                r#"{"decision":"allow"}"#,
                "not today\n",
                answer(Behavior::Deny, Some("not today")),
            ),
            (2, "", "", answer(Behavior::Deny, None)),
        ] {
            assert_eq!(
                read(&ran(code, stdout, stderr)).unwrap(),
                expected,
                "{code} {stdout}"
            );
        }
    }

    #[test]
    fn everything_else_is_no_decision() {
        for (code, stdout, part) in [
            (0, "", "without a decision"),
            (0, " \n", "without a decision"),
            (0, "{}", "missing field `decision`"),
            (0, "allow", "cannot be read"),
            (0, "true", "cannot be read"),
            (0, r#"{"decision":"yes"}"#, "unknown variant `yes`"),
            (
                0,
                r#"{"decision":"deny","decision":"allow"}"#,
                "duplicate field",
            ),
            (
                0,
                r#"{"decision":"allow","allow":false}"#,
                "unknown field `allow`",
            ),
            (
                0,
                r#"{"decision":"allow"} {"decision":"deny"}"#,
                "cannot be read",
            ),
            (1, r#"{"decision":"allow"}"#, "it ended with exit code 1"),
            (127, "", "it ended with exit code 127"),
        ] {
            let fault = read(&ran(code, stdout, "")).unwrap_err();
            assert!(fault.0.contains(part), "{stdout}: {fault}");
        }
    }
}
