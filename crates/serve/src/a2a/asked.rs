//! The content of a user's message: tool calls, or an answer to a question.

use std::collections::HashSet;

use serde_json::{Value, json};
use toolpost_a2a::wire::{A2aRefusal, ErrorCode, Message, Part, PartContent};
use toolpost_model::{ApprovalScope, InvocationId, Verdict};

const MOST_CALLS: usize = 64;
/// The longest id of a message or of a call, in bytes: every record of the call contains both.
const LONGEST_ID: usize = 256;
/// The longest name of a tool, in bytes. No tool has a longer one.
const LONGEST_NAME: usize = 512;
/// The longest reason of an answer, in characters.
const LONGEST_REASON: usize = 2_000;

#[derive(Clone, Debug, PartialEq)]
pub(super) struct AskedCall {
    pub(super) tool_call_id: String,
    pub(super) tool: String,
    pub(super) input: Value,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct MessageCalls {
    pub(super) calls: Vec<AskedCall>,
    /// Whether the message uses the vocabulary of tool events itself.
    pub(super) speaks_events: bool,
}

pub(super) fn invalid(message: impl Into<String>) -> A2aRefusal {
    A2aRefusal::new(ErrorCode::InvalidParams, message)
}

/// The calls of a message in their order. Other parts are ignored. `shown` redacts ids; ids that are equal after
/// redaction are made distinct.
pub(super) fn calls(
    message: &Message,
    shown: impl Fn(&str) -> String,
) -> Result<MessageCalls, A2aRefusal> {
    if message.message_id.len() > LONGEST_ID {
        return Err(invalid(format!(
            "`messageId` is longer than {LONGEST_ID} bytes"
        )));
    }
    let mut asked = MessageCalls {
        calls: Vec::new(),
        speaks_events: false,
    };
    for part in &message.parts {
        let Some((call, speaks_events)) = call(part) else {
            continue;
        };
        if asked.calls.len() == MOST_CALLS {
            return Err(invalid(format!(
                "a message can hold up to {MOST_CALLS} tool calls"
            )));
        }
        let mut call = call?;
        call.tool_call_id = shown(&call.tool_call_id);
        asked.speaks_events |= speaks_events;
        asked.calls.push(call);
    }
    tell_apart(&mut asked.calls);
    Ok(asked)
}

/// Gives every call a unique id. The first call with an id keeps it, and no other call gets it. New ids depend only on
/// ids and positions, so that a repeated message asks for the same calls.
fn tell_apart(calls: &mut [AskedCall]) {
    let given: HashSet<String> = calls.iter().map(|call| call.tool_call_id.clone()).collect();
    let mut taken = HashSet::new();
    for (place, call) in calls.iter_mut().enumerate() {
        let is_given = !call.tool_call_id.is_empty();
        if is_given && taken.insert(call.tool_call_id.clone()) {
            continue;
        }
        let wished = if is_given {
            call.tool_call_id.clone()
        } else {
            format!("call-{}", place + 1)
        };
        let mut id = if is_given {
            format!("{wished}-2")
        } else {
            wished.clone()
        };
        let mut next = 2;
        while given.contains(&id) || !taken.insert(id.clone()) {
            id = format!("{wished}-{next}");
            next += 1;
        }
        call.tool_call_id = id;
    }
}

/// The call in a part, if there is one, and whether it is written as a tool event.
fn call(part: &Part) -> Option<(Result<AskedCall, A2aRefusal>, bool)> {
    let Some(Value::Object(mut data)) = part.narrowed_data() else {
        return None;
    };
    let adk = part
        .metadata
        .as_ref()
        .and_then(|metadata| metadata.get("adk_type"))
        .and_then(Value::as_str);
    let kind = data.get("type").and_then(Value::as_str);
    let is_event = matches!(kind, Some("tool-call" | "tool-input-available"));
    if !is_event && adk != Some("function_call") {
        return None;
    }
    let text = |data: &serde_json::Map<String, Value>, names: [&str; 2]| {
        let found = names
            .iter()
            .find_map(|name| data.get(*name).and_then(Value::as_str));
        found.unwrap_or_default().to_owned()
    };
    let tool_call_id = text(&data, ["toolCallId", "id"]);
    let tool = text(&data, ["toolName", "name"]);
    let read = if tool.is_empty() {
        Err(invalid("a tool call must name its tool as `toolName`"))
    } else if tool.len() > LONGEST_NAME {
        Err(invalid(format!(
            "`toolName` is longer than {LONGEST_NAME} bytes"
        )))
    } else if tool_call_id.len() > LONGEST_ID {
        Err(invalid(format!(
            "`toolCallId` is longer than {LONGEST_ID} bytes"
        )))
    } else {
        let input = data
            .remove("input")
            .or_else(|| data.remove("args"))
            .unwrap_or_else(|| json!({}));
        Ok(AskedCall {
            tool_call_id,
            tool,
            input,
        })
    };
    Some((read, is_event))
}

#[derive(Debug, PartialEq)]
pub(super) struct MessageVerdict {
    /// The question, if the message names one.
    pub(super) question: Option<InvocationId>,
    pub(super) verdict: Verdict,
}

/// Reads the answer in a message: a data part, or a word. The message must contain nothing else, because other text
/// could mean the opposite. If it contains two answers, both must agree.
pub(super) fn answer(message: &Message) -> Result<MessageVerdict, A2aRefusal> {
    let mut agreed: Option<MessageVerdict> = None;
    for part in &message.parts {
        let said = match &part.content {
            PartContent::Data(data) if data["type"] == "tool-approval-response" => response(data)?,
            PartContent::Text(text) if text.trim().is_empty() => continue,
            PartContent::Text(text) => match in_a_word(text) {
                Some(verdict) => MessageVerdict {
                    question: None,
                    verdict,
                },
                None => return Err(unclear()),
            },
            PartContent::Data(_) | PartContent::Raw(_) | PartContent::Url(_) => {
                return Err(unclear());
            }
        };
        agreed = Some(match agreed {
            None => said,
            Some(earlier) => earlier.and(said)?,
        });
    }
    agreed.ok_or_else(unclear)
}

fn unclear() -> A2aRefusal {
    invalid(
        "this task waits for an answer: send `approve` or `reject` as the whole text, or only a data part such \
         as {\"type\":\"tool-approval-response\",\"approved\":true}",
    )
}

impl MessageVerdict {
    /// Combines two answers about the same question that agree.
    fn and(self, other: Self) -> Result<Self, A2aRefusal> {
        let question = match (self.question, other.question) {
            (Some(one), Some(another)) if one != another => {
                return Err(invalid(
                    "this message answers two questions; send a message for each",
                ));
            }
            (one, another) => one.or(another),
        };
        let verdict = match (self.verdict, other.verdict) {
            (Verdict::Deny { feedback: one }, Verdict::Deny { feedback: another }) => {
                Verdict::Deny {
                    feedback: one.or(another),
                }
            }
            (verdict @ Verdict::Allow { .. }, Verdict::Allow { .. }) => verdict,
            (Verdict::Allow { .. }, Verdict::Deny { .. })
            | (Verdict::Deny { .. }, Verdict::Allow { .. }) => {
                return Err(invalid(
                    "this message both approves and rejects; nothing was decided",
                ));
            }
        };
        Ok(Self { question, verdict })
    }
}

fn response(data: &Value) -> Result<MessageVerdict, A2aRefusal> {
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
        Some(true) => Ok(MessageVerdict {
            question,
            verdict: allowed(),
        }),
        Some(false) => Ok(MessageVerdict {
            question,
            verdict: Verdict::Deny { feedback: reason },
        }),
        None => Err(invalid("`approved` must be true or false")),
    }
}

fn in_a_word(text: &str) -> Option<Verdict> {
    let word = text
        .trim()
        .trim_end_matches(['.', '!'])
        .to_ascii_lowercase();
    match word.as_str() {
        "approve" | "approved" | "allow" | "yes" => Some(allowed()),
        "reject" | "rejected" | "deny" | "no" => Some(Verdict::Deny { feedback: None }),
        _ => None,
    }
}

fn allowed() -> Verdict {
    Verdict::Allow {
        scope: ApprovalScope::Once,
        rule: None,
        valid_for_seconds: None,
        arguments: None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use toolpost_a2a::wire::Message;
    use toolpost_model::Verdict;

    use super::{A2aRefusal, MessageCalls, answer};

    fn calls(message: &Message) -> Result<MessageCalls, A2aRefusal> {
        super::calls(message, |id| id.replace("secret", "[hidden]"))
    }

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
            .map(|call| {
                (
                    call.tool_call_id.as_str(),
                    call.tool.as_str(),
                    call.input.to_string(),
                )
            })
            .collect();
        let expected = [
            ("a", "add", r#"{"n":2}"#),
            ("a-2", "add", "[1]"),
            ("call-3", "now", "{}"),
            ("f", "fetch", "{}"),
        ];
        assert_eq!(
            told,
            expected.map(|(id, tool, input)| (id, tool, input.to_owned()))
        );
        assert!(asked.speaks_events);
    }

    #[test]
    fn ids_that_were_given_are_kept_and_the_others_are_made_around_them() {
        let check = |given: &[&str], expected: &[&str]| {
            let part = |id: &&str| json!({ "data": { "type": "tool-call", "toolCallId": id, "toolName": "t" } });
            let asked = calls(&message(&given.iter().map(part).collect())).unwrap();
            let ids: Vec<_> = asked
                .calls
                .iter()
                .map(|call| call.tool_call_id.as_str())
                .collect();
            assert_eq!(ids, expected, "{given:?}");
        };
        check(&["a", "a", "a-2"], &["a", "a-3", "a-2"]);
        check(&["a", "a", "a"], &["a", "a-2", "a-3"]);
        check(&["", "call-1", ""], &["call-1-2", "call-1", "call-3"]);
        check(&["[hidden]", "secret"], &["[hidden]", "[hidden]-2"]);
    }

    #[test]
    fn what_cannot_be_meant_is_refused() {
        for parts in [
            json!([{ "data": { "type": "tool-call", "toolCallId": "a" } }]),
            json!([{ "data": { "type": "tool-call", "toolCallId": "a", "toolName": 5 } }]),
            json!([{ "data": { "type": "tool-call", "toolCallId": "x".repeat(257), "toolName": "t" } }]),
            Value::Array(vec![
                json!({ "data": { "type": "tool-call", "toolName": "t" } });
                65
            ]),
        ] {
            assert!(calls(&message(&parts)).is_err(), "{parts}");
        }
        assert_eq!(
            calls(&message(&json!([{ "text": "hello" }])))
                .unwrap()
                .calls,
            []
        );
    }

    #[test]
    fn answers_are_words_or_data() {
        let told = |parts: &Value| {
            let read = answer(&message(parts)).ok();
            read.map(|answer| matches!(answer.verdict, Verdict::Allow { .. }))
        };
        let check = |part: Value, allowed: Option<bool>| {
            assert_eq!(told(&json!([part])), allowed, "{part}");
            assert_eq!(told(&json!([part, part])), allowed, "said twice: {part}");
            assert_eq!(
                told(&json!([part, { "text": "wait" }])),
                None,
                "with more beside it: {part}"
            );
            assert_eq!(
                told(&json!([part, { "data": { "type": "tool-call" } }])),
                None,
                "{part}"
            );
        };
        let data = |approved: bool| json!({ "data": { "type": "tool-approval-response", "approved": approved } });
        for (one, other) in [
            (json!({ "text": "yes" }), data(false)),
            (json!({ "text": "no" }), data(true)),
            (json!({ "text": "yes" }), json!({ "text": "no" })),
            (data(true), data(false)),
        ] {
            assert_eq!(told(&json!([one, other])), None, "{one} {other}");
            assert_eq!(told(&json!([other, one])), None, "{other} {one}");
        }
        assert_eq!(
            told(&json!([{ "text": "no" }, data(false), { "text": " " }])),
            Some(false)
        );
        check(json!({ "text": " Yes. " }), Some(true));
        check(json!({ "text": "deny" }), Some(false));
        check(json!({ "text": "yes, but later" }), None);
        check(
            json!({ "data": { "type": "tool-approval-response", "approved": true } }),
            Some(true),
        );
        check(
            json!({ "data": { "type": "tool-approval-response", "approved": false, "reason": "r" } }),
            Some(false),
        );
        check(
            json!({ "data": { "type": "tool-approval-response", "approved": "true" } }),
            None,
        );
        check(
            json!({ "data": { "type": "tool-approval-response", "approved": true, "approvalId": "x" } }),
            None,
        );
    }
}
