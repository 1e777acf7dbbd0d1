//! What holds for every stream.

use proptest::{collection::vec, prelude::*, sample::Index};
use serde_json::{Value, json};
use toolpost_a2a::{Receiver, ReceiverOptions, ToolCallPart};

fn received(lines: &[Value]) -> Vec<ToolCallPart> {
    let mut receiver = Receiver::new(ReceiverOptions::default());
    for line in lines {
        receiver.receive_value(line);
    }
    receiver.into_parts()
}

/// A few values of every kind, some that look like one another.
fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        (0_u8..4).prop_map(|n| json!(f64::from(n))),
        "[a-z\"\\\\{}\\[\\]:, äß😀\n]{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            vec(("[a-c]{1,2}", inner), 0..4).prop_map(|members| members.into_iter().collect()),
        ]
    })
}

/// The events of one call as a peer may send them: perhaps a start with pieces, the call, results so far, the end.
fn any_call() -> impl Strategy<Value = Vec<Value>> {
    let parts = (
        any_value(),
        vec(any::<Index>(), 0..4),
        any_value(),
        any::<[bool; 5]>(),
        0_u32..9,
    );
    parts.prop_map(
        |(input, cuts, output, [pieces, whole, early, ends, fails], duration)| {
            let mut events = Vec::new();
            if pieces {
                events.push(json!({ "type": "tool-input-start", "toolName": "t" }));
                for piece in cut(&input.to_string(), &cuts) {
                    events.push(json!({ "type": "tool-input-delta", "inputTextDelta": piece }));
                }
            }
            if whole {
                events.push(json!({ "type": "tool-call", "toolName": "t", "input": input }));
            }
            if early {
                events.push(json!({ "type": "tool-result", "output": 0, "preliminary": true }));
            }
            if ends && fails {
                events
                    .push(json!({ "type": "tool-error", "error": output, "durationMs": duration }));
            } else if ends {
                events.push(
                    json!({ "type": "tool-result", "output": output, "durationMs": duration }),
                );
            }
            events
        },
    )
}

fn cut(text: &str, cuts: &[Index]) -> Vec<String> {
    let chars: Vec<char> = text.chars().collect();
    let mut places: Vec<usize> = cuts.iter().map(|cut| cut.index(chars.len() + 1)).collect();
    places.extend([0, chars.len()]);
    places.sort_unstable();
    places
        .windows(2)
        .map(|pair| chars[pair[0]..pair[1]].iter().collect())
        .collect()
}

/// Several calls with ids of their own.
fn several_calls() -> impl Strategy<Value = Vec<Vec<Value>>> {
    vec(any_call(), 1..5).prop_map(|calls| {
        let named = |(number, events): (usize, Vec<Value>)| {
            let with_id = |mut event: Value| {
                event["toolCallId"] = json!(format!("c{number}"));
                event
            };
            events.into_iter().map(with_id).collect()
        };
        calls.into_iter().enumerate().map(named).collect()
    })
}

/// All events, each call's in their order, the calls mixed.
fn mixed(calls: &[Vec<Value>], order: &[Index]) -> Vec<Value> {
    let mut left: Vec<_> = calls
        .iter()
        .map(|events| events.iter().peekable())
        .collect();
    let mut lines = Vec::new();
    let mut order = order.iter().cycle();
    loop {
        left.retain_mut(|events| events.peek().is_some());
        let (Some(at), false) = (order.next(), left.is_empty()) else {
            return lines;
        };
        let at = at.index(left.len());
        lines.extend(left[at].next().cloned());
    }
}

/// The same value written otherwise: members from last to first, spaces, whole numbers as floats where they are exact.
fn backwards(value: &Value) -> String {
    match value {
        Value::Object(members) => {
            let members: Vec<String> = members
                .iter()
                .rev()
                .map(|(name, value)| format!("{:?} : {}", name, backwards(value)))
                .collect();
            format!("{{ {} }}", members.join(" ,"))
        }
        Value::Array(values) => {
            let values: Vec<String> = values.iter().map(backwards).collect();
            format!("[ {}]", values.join(", "))
        }
        Value::Number(number) if number.as_u64().is_some_and(|number| number < 1 << 53) => {
            format!("{number}.0")
        }
        Value::String(text) => {
            let units: Vec<String> = text
                .encode_utf16()
                .map(|unit| format!("\\u{unit:04x}"))
                .collect();
            format!("\"{}\"", units.concat())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.to_string(),
    }
}

/// Whole floats as integers.
fn narrowed(value: &Value) -> Value {
    match value {
        Value::Object(members) => members
            .iter()
            .map(|(name, value)| (name.clone(), narrowed(value)))
            .collect::<serde_json::Map<_, _>>()
            .into(),
        Value::Array(values) => values.iter().map(narrowed).collect(),
        Value::Number(number) => match number.as_f64() {
            Some(float) if number.is_f64() && float.fract() == 0.0 => json!(float as i64),
            Some(_) | None => value.clone(),
        },
        Value::Null | Value::Bool(_) | Value::String(_) => value.clone(),
    }
}

fn order() -> impl Strategy<Value = Vec<Index>> {
    vec(any::<Index>(), 1..40)
}

proptest! {
    #[test]
    fn calls_do_not_disturb_one_another(calls in several_calls(), order in order()) {
        let mut together = received(&mixed(&calls, &order));
        let mut alone: Vec<ToolCallPart> = calls.iter().flat_map(|events| received(events)).collect();
        together.sort_by(|one, other| one.id.cmp(&other.id));
        alone.sort_by(|one, other| one.id.cmp(&other.id));
        prop_assert_eq!(together, alone);
    }

    #[test]
    fn a_replay_changes_nothing(calls in several_calls(), order in order()) {
        let lines = mixed(&calls, &order);
        let twice: Vec<Value> = lines.iter().chain(&lines).cloned().collect();
        prop_assert_eq!(received(&twice), received(&lines));
    }

    #[test]
    fn a_replay_of_whole_calls_changes_nothing_though_their_id_is_reused(
        inputs in vec((any_value(), any_value()), 1..6),
    ) {
        let mut seen = Vec::new();
        let mut lines = Vec::new();
        for (input, output) in inputs {
            // The same input under the same id is the same call by definition.
            if !seen.contains(&input) {
                lines.push(json!({ "type": "tool-call", "toolCallId": "call_0", "toolName": "t", "input": input }));
                lines.push(json!({ "type": "tool-result", "toolCallId": "call_0", "output": output }));
                seen.push(input);
            }
        }
        let twice: Vec<Value> = lines.iter().chain(&lines).cloned().collect();
        prop_assert_eq!(received(&twice), received(&lines));
    }

    #[test]
    fn a_call_under_an_ended_id_is_a_replay_exactly_if_it_says_the_same(
        (first, second) in (any_value(), any_value()),
        repeated in any::<bool>(),
    ) {
        let second = if repeated { backwards(&first) } else { second.to_string() };
        let mut receiver = Receiver::default();
        receiver.receive_value(&json!({ "type": "tool-call", "toolCallId": "c", "toolName": "t", "input": first }));
        receiver.receive_value(&json!({ "type": "tool-result", "toolCallId": "c", "output": 1 }));
        let again = format!(r#"{{"type":"tool-call","toolCallId":"c","toolName":"t","input":{second}}}"#);
        receiver.receive(&again).unwrap();
        let same = narrowed(&first) == narrowed(&serde_json::from_str(&second).unwrap());
        prop_assert_eq!(receiver.held(), if same { 1 } else { 2 });
    }

    #[test]
    fn it_does_not_matter_where_pieces_are_cut(input in any_value(), cuts in vec(any::<Index>(), 0..12)) {
        let text = input.to_string();
        let piece = |text: String| json!({ "type": "tool-call-delta", "toolCallId": "c", "argsTextDelta": text });
        let whole = received(&[piece(text.clone())]);
        let pieces: Vec<Value> = cut(&text, &cuts).into_iter().map(piece).collect();
        prop_assert_eq!(&received(&pieces), &whole);
        let shown = if input.is_object() || input.is_array() { input } else { Value::String(text) };
        prop_assert_eq!(whole[0].args.to_value(), shown);
    }

    #[test]
    fn taking_calls_out_as_they_end_gives_the_same_calls(calls in several_calls(), order in order()) {
        let lines = mixed(&calls, &order);
        let mut receiver = Receiver::default();
        let mut parts = Vec::new();
        for line in &lines {
            receiver.receive_value(line);
            parts.extend(receiver.take_ended());
        }
        parts.extend(receiver.parts());
        parts.sort_by_key(|(key, _)| *key);
        let parts: Vec<ToolCallPart> = parts.into_iter().map(|(_, part)| part).collect();
        prop_assert_eq!(parts, received(&lines));
    }

    #[test]
    fn any_json_is_taken_without_harm(value in any_json_with_our_names()) {
        let mut receiver = Receiver::default();
        receiver.receive_value(&value);
        receiver.receive_value(&value);
        for (key, part) in receiver.parts() {
            prop_assert!(!part.id.is_empty());
            prop_assert!(part.result.is_none() || part.error.is_none());
            prop_assert!(receiver.part(key).is_some());
        }
        receiver.take_ended();
    }

    #[test]
    fn any_text_is_taken_without_harm(text in "[\\PC\n]{0,64}") {
        let mut receiver = Receiver::default();
        let _ = receiver.receive(&text);
        let _ = receiver.receive_v4(&text);
        let _ = receiver.receive_v4(&format!("9:{text}"));
    }
}

/// Values whose members have the names that a receiver looks for.
fn any_json_with_our_names() -> impl Strategy<Value = Value> {
    const NAMES: &[&str] = &[
        "type",
        "toolCallId",
        "id",
        "toolName",
        "input",
        "args",
        "output",
        "result",
        "error",
        "errorText",
        "delta",
        "inputTextDelta",
        "durationMs",
        "startedAt",
        "preliminary",
        "isError",
        "approvalId",
        "approved",
        "reason",
        "toolCall",
        "kind",
        "data",
        "metadata",
        "text",
        "parts",
        "role",
        "messageId",
        "taskId",
        "status",
        "message",
        "history",
        "artifacts",
        "artifact",
        "task",
        "tasks",
        "statusUpdate",
        "artifactUpdate",
        "jsonrpc",
        "adk_type",
        "https://mentionable.dev/ns/a2a-tool-events/v0.1",
    ];
    const TEXTS: &[&str] = &[
        "tool-call",
        "tool-result",
        "tool-error",
        "tool-input-start",
        "tool-input-delta",
        "tool-output-denied",
        "tool-approval-request",
        "tool-approval-response",
        "reset-step",
        "start-step",
        "agent",
        "user",
        "c1",
        "",
        "2.0",
        "function_call",
        "function_response",
        "{\"a\":1}",
    ];
    let leaf = prop_oneof![
        3 => proptest::sample::select(TEXTS).prop_map(Value::from),
        1 => any_value(),
    ];
    leaf.prop_recursive(6, 64, 8, |inner| {
        prop_oneof![
            1 => vec(inner.clone(), 0..4).prop_map(Value::from),
            4 => vec((proptest::sample::select(NAMES), inner), 0..8)
                .prop_map(|members| members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()),
        ]
    })
}
