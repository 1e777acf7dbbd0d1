//! Asks an operator for approval through the operator's own client. Agents are never asked this way: their client can
//! be a program that answers by itself, no field of the protocol tells that apart from a person, and the caller of a
//! call must not approve it. The token decides, not the client's claim.

use std::sync::Arc;

use serde_json::{Value, json};
use toolpost_core::ApprovalError;
use toolpost_model::{
    ApprovalScope, ConsultKind, ConsultQuestion, InvocationId, PermissionRequest, Verdict, visible,
    visible_line,
};

use super::{bridge::ConsultBridge, peer::McpPeer};

/// The longest part of the arguments in the question, in characters.
const LONGEST_SHOWN: usize = 4_000;
/// The longest reason of an answer, in characters.
const LONGEST_REASON: usize = 2_000;
const KEY: &str = "approval";

/// Asks the operator in the client, passes the answer to the host, and returns whether the question is decided. Without
/// an answer the question stays open for other operators.
pub(super) async fn ask(peer: McpPeer, bridge: Arc<ConsultBridge>, id: InvocationId) -> bool {
    let Some(request) = peer.face.host.approval(id) else {
        return false;
    };
    let question = ConsultQuestion {
        key: KEY.to_owned(),
        kind: ConsultKind::Elicitation,
        params: form(&request),
    };
    let answer = match bridge.ask(vec![question]).await {
        Ok(answers) => answers.into_iter().find(|answer| answer.key == KEY),
        Err(error) => {
            tracing::info!(%error, question = %id, "an operator could not be asked through the client");
            None
        }
    };
    let Some(verdict) = answer.and_then(|answer| verdict(&answer.value)) else {
        return false;
    };
    match peer.face.host.decide(id, verdict, peer.principal()).await {
        // Another operator answered first.
        Ok(_) | Err(ApprovalError::AlreadyDecided { .. }) => true,
        Err(error) => {
            tracing::warn!(%error, question = %id, "an operator's answer does not count");
            false
        }
    }
}

/// The most files that are listed by name.
const FILES_SHOWN: usize = 8;

fn form(request: &PermissionRequest) -> Value {
    let message = message(request);
    json!({
        "mode": "form",
        "message": message,
        "requestedSchema": {
            "type": "object",
            "properties": {
                "decision": {
                    "type": "string",
                    "title": "Decision",
                    "description": "Whether this one call may run",
                    "enum": ["allow", "deny"],
                },
                "reason": {
                    "type": "string",
                    "title": "Reason",
                    "description": "The reason or an alternative; the model reads it",
                },
            },
            "required": ["decision"],
        },
    })
}

/// The text of the question. Invisible characters in the texts of the call are written out.
fn message(request: &PermissionRequest) -> String {
    let shown = serde_json::to_string_pretty(&request.arguments).unwrap_or_default();
    let shown = visible(&shown);
    let arguments: String = shown.chars().take(LONGEST_SHOWN).collect();
    let cut = if arguments.len() < shown.len() {
        "\n[the rest is not shown]"
    } else {
        ""
    };
    let commands = match request.commands.is_empty() {
        true => String::new(),
        false => format!("\nruns: {}", visible_line(&request.commands.join("; "))),
    };
    format!(
        "May `{}` run? {}\neffect: {}{commands}{}{}\nwhy this is asked: {}\narguments: {arguments}{cut}",
        visible_line(&request.tool),
        visible_line(&request.summary),
        request.effects.class,
        files(request),
        confinement(request),
        visible_line(&request.decision.reason.text),
    )
}

/// The files that the answer covers, and those that changed since an earlier answer.
fn files(request: &PermissionRequest) -> String {
    let more = request.programs.len().saturating_sub(FILES_SHOWN);
    let mut told: String = request
        .programs
        .iter()
        .take(FILES_SHOWN)
        .map(|file| format!("\nfile: {} ({})", visible_line(&file.name), file.content))
        .collect();
    if more > 0 {
        told.push_str(&format!("\nand {more} more files"));
    }
    told.extend(
        request
            .changed_programs
            .iter()
            .map(|change| format!("\nchanged since it was asked before: {change}")),
    );
    told
}

/// The confinement of the process, if the call starts one.
fn confinement(request: &PermissionRequest) -> String {
    request
        .sandbox
        .as_ref()
        .map(|plan| format!("\nsandbox: {plan}"))
        .unwrap_or_default()
}

/// The verdict of an answer. `None`: the question was dismissed. Only the exact word allows the call.
fn verdict(answer: &Value) -> Option<Verdict> {
    let content = &answer["content"];
    let reason = content["reason"]
        .as_str()
        .filter(|reason| !reason.trim().is_empty());
    let feedback = reason.map(|reason| reason.chars().take(LONGEST_REASON).collect());
    match (answer["action"].as_str(), content["decision"].as_str()) {
        (Some("accept"), Some("allow")) => Some(Verdict::Allow {
            scope: ApprovalScope::Once,
            rule: None,
            valid_for_seconds: None,
            arguments: None,
        }),
        (Some("accept" | "decline"), _) => Some(Verdict::Deny { feedback }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use toolpost_model::Verdict;

    use super::verdict;

    #[test]
    fn only_the_very_word_allows() {
        for (answer, expected) in [
            (
                json!({ "action": "accept", "content": { "decision": "allow" } }),
                Some(true),
            ),
            (
                json!({ "action": "accept", "content": { "decision": "deny", "reason": "no" } }),
                Some(false),
            ),
            (
                json!({ "action": "accept", "content": { "decision": "Allow" } }),
                Some(false),
            ),
            (
                json!({ "action": "accept", "content": { "decision": true } }),
                Some(false),
            ),
            (json!({ "action": "accept" }), Some(false)),
            (
                json!({ "action": "decline", "content": { "decision": "allow" } }),
                Some(false),
            ),
            (
                json!({ "action": "cancel", "content": { "decision": "allow" } }),
                None,
            ),
            (json!({ "content": { "decision": "allow" } }), None),
            (json!("allow"), None),
        ] {
            let read = verdict(&answer).map(|verdict| matches!(verdict, Verdict::Allow { .. }));
            assert_eq!(read, expected, "{answer}");
        }
    }
}
