//! What a user's message asks for: tool calls, or the answer to a question.

use std::collections::HashSet;

use serde_json::{Value, json};
use toolpost_a2a::wire::{Content, ErrorCode, Message, Part, Refusal};
use toolpost_model::{ApprovalScope, InvocationId, Verdict};

/// The most calls of one message.
const MOST_CALLS: usize = 64;
/// The longest id of a message or of a call in it, in bytes: both stand in every record of the call.
const LONGEST_ID: usize = 256;
/// The longest name of a tool, in bytes. No tool has one as long.
const LONGEST_NAME: usize = 512;
/// The longest reason that goes with an answer, in characters.
const LONGEST_REASON: usize = 2_000;

/// One call that a message asks for.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct AskedCall {
    pub(super) tool_call_id: String,
    pub(super) tool: String,
    pub(super) input: Value,
}

/// What a message asks for.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Asked {
    pub(super) calls: Vec<AskedCall>,
    /// It speaks the vocabulary of tool events itself.
    pub(super) speaks_events: bool,
}

pub(super) fn invalid(message: impl Into<String>) -> Refusal {
    Refusal::new(ErrorCode::InvalidParams, message)
}

/// The calls in a message, in their order. Parts that are no calls are left aside.
pub(super) fn calls(message: &Message) -> Result<Asked, Refusal> {
    if message.message_id.len() > LONGEST_ID {
        return Err(invalid(format!("`messageId` is longer than {LONGEST_ID} bytes")));
    }
    let mut asked = Asked { calls: Vec::new(), speaks_events: false };
    let mut taken = HashSet::new();
    for part in &message.parts {
        let Some((call, speaks_events)) = call(part) else { continue };
        if asked.calls.len() == MOST_CALLS {
            return Err(invalid(format!("a message can hold up to {MOST_CALLS} tool calls")));
        }
        let mut call = call?;
        asked.speaks_events |= speaks_events;
        // Made of the place, so that the same message sent again asks for the same calls.
        if call.tool_call_id.is_empty() {
            call.tool_call_id = format!("call-{}", asked.calls.len() + 1);
        }
        let given = call.tool_call_id.clone();
        let mut next = 2;
        while !taken.insert(call.tool_call_id.clone()) {
            call.tool_call_id = format!("{given}-{next}");
            next += 1;
        }
        asked.calls.push(call);
    }
    Ok(asked)
}

/// The call in a part, if it is one, and whether it is written as a tool event.
fn call(part: &Part) -> Option<(Result<AskedCall, Refusal>, bool)> {
    let Some(Value::Object(mut data)) = part.narrowed_data() else { return None };
    let adk = part.metadata.as_ref().and_then(|metadata| metadata.get("adk_type")).and_then(Value::as_str);
    let kind = data.get("type").and_then(Value::as_str);
    let is_event = matches!(kind, Some("tool-call" | "tool-input-available"));
    if !is_event && adk != Some("function_call") {
        return None;
    }
    let text = |data: &serde_json::Map<String, Value>, names: [&str; 2]| {
        let found = names.iter().find_map(|name| data.get(*name).and_then(Value::as_str));
        found.unwrap_or_default().to_owned()
    };
    let (tool_call_id, tool) = (text(&data, ["toolCallId", "id"]), text(&data, ["toolName", "name"]));
    let read = if tool.is_empty() {
        Err(invalid("a tool call must name its tool as `toolName`"))
    } else if tool.len() > LONGEST_NAME {
        Err(invalid(format!("`toolName` is longer than {LONGEST_NAME} bytes")))
    } else if tool_call_id.len() > LONGEST_ID {
        Err(invalid(format!("`toolCallId` is longer than {LONGEST_ID} bytes")))
    } else {
        let input = data.remove("input").or_else(|| data.remove("args")).unwrap_or_else(|| json!({}));
        Ok(AskedCall { tool_call_id, tool, input })
    };
    Some((read, is_event))
}

/// The answer to a question.
#[derive(Debug, PartialEq)]
pub(super) struct Answer {
    /// Which question, where the message says.
    pub(super) question: Option<InvocationId>,
    pub(super) verdict: Verdict,
}

/// The answer in a message: a data part, or a word.
pub(super) fn answer(message: &Message) -> Result<Answer, Refusal> {
    for part in &message.parts {
        match &part.content {
            Content::Data(data) if data["type"] == "tool-approval-response" => return response(data),
            Content::Text(text) => {
                if let Some(verdict) = in_a_word(text) {
                    return Ok(Answer { question: None, verdict });
                }
            }
            Content::Data(_) | Content::Raw(_) | Content::Url(_) => {}
        }
    }
    Err(invalid(
        "this task waits for an answer: send `approve` or `reject` as text, or a data part such as \
         {\"type\":\"tool-approval-response\",\"approved\":true}",
    ))
}

fn response(data: &Value) -> Result<Answer, Refusal> {
    let question = match &data["approvalId"] {
        Value::Null => None,
        Value::String(id) => {
            let bad = |_| invalid("`approvalId` is not the id of a question");
            Some(id.parse::<InvocationId>().map_err(bad)?)
        }
        _ => return Err(invalid("`approvalId` must be a text")),
    };
    let reason = match &data["reason"] {
        Value::String(reason) => Some(reason.chars().take(LONGEST_REASON).collect()),
        _ => None,
    };
    match data["approved"].as_bool() {
        Some(true) => Ok(Answer { question, verdict: allowed() }),
        Some(false) => Ok(Answer { question, verdict: Verdict::Deny { feedback: reason } }),
        None => Err(invalid("`approved` must be true or false")),
    }
}

fn in_a_word(text: &str) -> Option<Verdict> {
    let word = text.trim().trim_end_matches(['.', '!']).to_ascii_lowercase();
    match word.as_str() {
        "approve" | "approved" | "allow" | "yes" => Some(allowed()),
        "reject" | "rejected" | "deny" | "no" => Some(Verdict::Deny { feedback: None }),
        _ => None,
    }
}

fn allowed() -> Verdict {
    Verdict::Allow { scope: ApprovalScope::Once, rule: None, valid_for_seconds: None, arguments: None }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use toolpost_a2a::wire::Message;
    use toolpost_model::Verdict;

    use super::{answer, calls};

    fn message(parts: &Value) -> Message {
        Message::read(&json!({ "messageId": "m", "role": "user", "parts": parts })).unwrap()
    }

    #[test]
    fn calls_are_read_in_every_spelling_and_get_ids_of_their_own() {
        let asked = calls(&message(&json!([
            { "text": "please" },
            { "data": { "type": "tool-call", "toolCallId": "a", "toolName": "add", "input": { "n": 2.0 } } },
            { "kind": "data", "data": { "type": "tool-input-available", "id": "a", "toolName": "add", "args": [1] } },
            { "data": { "type": "tool-call", "toolName": "now" } },
            { "data": { "id": "f", "name": "fetch", "args": {} }, "metadata": { "adk_type": "function_call" } },
            { "data": { "type": "tool-result", "toolCallId": "z", "output": 1 } },
            { "data": [1, 2] },
        ])))
        .unwrap();
        let told: Vec<_> = asked
            .calls
            .iter()
            .map(|call| (call.tool_call_id.as_str(), call.tool.as_str(), call.input.to_string()))
            .collect();
        let expected = [
            ("a", "add", r#"{"n":2}"#),
            ("a-2", "add", "[1]"),
            ("call-3", "now", "{}"),
            ("f", "fetch", "{}"),
        ];
        assert_eq!(told, expected.map(|(id, tool, input)| (id, tool, input.to_owned())));
        assert!(asked.speaks_events);
    }

    #[test]
    fn what_cannot_be_meant_is_refused() {
        for parts in [
            json!([{ "data": { "type": "tool-call", "toolCallId": "a" } }]),
            json!([{ "data": { "type": "tool-call", "toolCallId": "a", "toolName": 5 } }]),
            json!([{ "data": { "type": "tool-call", "toolCallId": "x".repeat(257), "toolName": "t" } }]),
            Value::Array(vec![json!({ "data": { "type": "tool-call", "toolName": "t" } }); 65]),
        ] {
            assert!(calls(&message(&parts)).is_err(), "{parts}");
        }
        assert_eq!(calls(&message(&json!([{ "text": "hello" }]))).unwrap().calls, []);
    }

    #[test]
    fn answers_are_words_or_data() {
        let check = |part: Value, allowed: Option<bool>| {
            let read = answer(&message(&json!([part])));
            let told = read.ok().map(|answer| matches!(answer.verdict, Verdict::Allow { .. }));
            assert_eq!(told, allowed, "{part}");
        };
        check(json!({ "text": " Yes. " }), Some(true));
        check(json!({ "text": "deny" }), Some(false));
        check(json!({ "text": "yes, but later" }), None);
        check(json!({ "data": { "type": "tool-approval-response", "approved": true } }), Some(true));
        check(
            json!({ "data": { "type": "tool-approval-response", "approved": false, "reason": "r" } }),
            Some(false),
        );
        check(json!({ "data": { "type": "tool-approval-response", "approved": "true" } }), None);
        check(
            json!({ "data": { "type": "tool-approval-response", "approved": true, "approvalId": "x" } }),
            None,
        );
    }
}
