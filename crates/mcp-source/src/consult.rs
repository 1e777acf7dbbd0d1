//! Questions of a server, put to the caller of the call.

use std::collections::{BTreeMap, btree_map::Entry};

use serde_json::{Map, Value, json};
use toolpost_model::{CallContext, ConsultError, ConsultKind, ConsultQuestion};

use super::clean;

/// JSON-RPC's code for a method that is not supported.
const METHOD_NOT_FOUND: i32 = -32601;
/// MCP's documents use this code when a person rejects a sampling request.
const REJECTED: i32 = -1;
/// The `_meta` key of a form that names the asking server. The host's own forms do not set it. It overwrites the
/// server's own value, so that a server cannot pose as the host or as another server.
const ASKED_BY: &str = "toolpost/asked_by";

/// The answer to a question of a server.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum UpstreamQuestionAnswer {
    /// The result.
    Value(Value),
    /// An error.
    Refused { code: i32, message: String },
}

/// The kind of a server's request. `None`: the host does not put such a request to callers.
pub(super) fn kind_of(method: &str, params: &Value) -> Option<ConsultKind> {
    match method {
        "elicitation/create" if params["mode"] == "url" => Some(ConsultKind::UrlElicitation),
        "elicitation/create" => Some(ConsultKind::Elicitation),
        "sampling/createMessage" => Some(ConsultKind::Sampling),
        "roots/list" => Some(ConsultKind::Roots),
        _ => None,
    }
}

/// Puts one question to the caller.
pub(super) async fn ask(
    call: &CallContext,
    server: &str,
    kind: ConsultKind,
    params: Value,
) -> UpstreamQuestionAnswer {
    let question = question(server, "1".to_owned(), kind, params);
    match call.consult(vec![question]).await {
        Ok(replies) => match replies.into_iter().next() {
            Some(reply) => UpstreamQuestionAnswer::Value(reply.value),
            None => unanswered(kind, &ConsultError::TimedOut),
        },
        Err(error) => unanswered(kind, &error),
    }
}

/// Answers all questions of an `input_required` result, by key. `Err`: one cannot be answered, and `inputResponses`
/// has no form for an error.
pub(super) async fn ask_all(
    call: &CallContext,
    server: &str,
    requests: &Map<String, Value>,
) -> Result<BTreeMap<String, Value>, String> {
    let answered = call.consultable();
    let mut questions = Vec::new();
    let mut answers = BTreeMap::new();
    for (key, request) in requests {
        let method = request["method"].as_str().unwrap_or_default();
        let Some(kind) = kind_of(method, &request["params"]) else {
            return Err(format!(
                "it asks for `{}`, which this host does not support",
                clean::line(method, 100)
            ));
        };
        if answered.includes(kind) {
            questions.push(question(
                server,
                key.clone(),
                kind,
                request["params"].clone(),
            ));
        } else {
            let said = settled(unanswered(kind, &ConsultError::Unsupported(kind)));
            if said.is_err() {
                // The question is put nevertheless, and refused at once, so that the face can note the kind that its
                // caller lacks.
                let _ = call
                    .consult(vec![question(
                        server,
                        key.clone(),
                        kind,
                        request["params"].clone(),
                    )])
                    .await;
            }
            answers.insert(key.clone(), said?);
        }
    }
    let kinds: BTreeMap<String, ConsultKind> = questions
        .iter()
        .map(|question| (question.key.clone(), question.kind))
        .collect();
    if questions.is_empty() {
        return Ok(answers);
    }
    match call.consult(questions).await {
        Ok(replies) => {
            answers.extend(replies.into_iter().map(|reply| (reply.key, reply.value)));
            for (key, kind) in kinds {
                if let Entry::Vacant(place) = answers.entry(key) {
                    place.insert(settled(unanswered(kind, &ConsultError::TimedOut))?);
                }
            }
        }
        Err(error) => {
            for (key, kind) in kinds {
                answers.insert(key, settled(unanswered(kind, &error))?);
            }
        }
    }
    Ok(answers)
}

fn settled(answered: UpstreamQuestionAnswer) -> Result<Value, String> {
    match answered {
        UpstreamQuestionAnswer::Value(value) => Ok(value),
        UpstreamQuestionAnswer::Refused { message, .. } => Err(message),
    }
}

fn question(server: &str, key: String, kind: ConsultKind, mut params: Value) -> ConsultQuestion {
    if params.is_null() {
        params = json!({});
    }
    // People and models read the question, so hidden characters are removed.
    clean::value(&mut params);
    if let (ConsultKind::Elicitation | ConsultKind::UrlElicitation, Value::Object(fields)) =
        (kind, &mut params)
    {
        let meta = fields.entry("_meta").or_insert_with(|| json!({}));
        if !meta.is_object() {
            *meta = json!({});
        }
        meta[ASKED_BY] = Value::String(server.to_owned());
    }
    ConsultQuestion { key, kind, params }
}

/// The answer to a server if the caller gave none. A form that no person saw counts as dismissed, not as declined.
fn unanswered(kind: ConsultKind, error: &ConsultError) -> UpstreamQuestionAnswer {
    match (kind, error) {
        (ConsultKind::Elicitation | ConsultKind::UrlElicitation, ConsultError::Refused(_)) => {
            UpstreamQuestionAnswer::Value(json!({ "action": "decline" }))
        }
        (ConsultKind::Elicitation | ConsultKind::UrlElicitation, _) => {
            UpstreamQuestionAnswer::Value(json!({ "action": "cancel" }))
        }
        (
            ConsultKind::Sampling | ConsultKind::Roots,
            ConsultError::Unsupported(_) | ConsultError::Nobody,
        ) => UpstreamQuestionAnswer::Refused {
            code: METHOD_NOT_FOUND,
            message: error.to_string(),
        },
        (
            ConsultKind::Sampling | ConsultKind::Roots,
            ConsultError::Canceled | ConsultError::TimedOut | ConsultError::Refused(_),
        ) => UpstreamQuestionAnswer::Refused {
            code: REJECTED,
            message: error.to_string(),
        },
    }
}
