//! What the host sends, its own receiver reads: in both dialects, streamed, fetched and in the words of the AI SDK.

use serde_json::{Value, json};
use toolpost_a2a::{
    Receiver, ToolEvent, ToolEventError,
    ui_stream::UiStream,
    wire::{
        A2aDialect, Artifact, Message, MessageRole, Part, StatusUpdate, StreamItem, Task,
        TaskState, TaskStatus,
    },
};

use super::{flying, with};

fn events() -> [ToolEvent; 3] {
    let tool_call_id = "c1".to_owned();
    let tool_name = "add".to_owned();
    let input = json!({ "a": 2 });
    let id = tool_call_id.clone();
    let name = tool_name.clone();
    let started_at = Some("2026-11-15T19:29:16.292Z".to_owned());
    [
        ToolEvent::Call {
            tool_call_id,
            tool_name,
            input: Some(input.clone()),
            started_at,
        },
        ToolEvent::Result {
            tool_call_id: id,
            tool_name: name,
            input: Some(input.clone()),
            output: json!({ "sum": 5 }),
            duration_ms: Some(12),
        },
        ToolEvent::Error {
            tool_call_id: "c2".to_owned(),
            tool_name: "rm".to_owned(),
            input: Some(input),
            error: ToolEventError {
                message: "denied by a rule".to_owned(),
            },
            duration_ms: None,
        },
    ]
}

fn expected() -> Value {
    json!([
        with(
            flying("c1", "add", json!({ "a": 2 })),
            json!({ "result": { "sum": 5 }, "duration_ms": 12, "started_at": "2026-11-15T19:29:16.292Z" })
        ),
        with(
            flying("c2", "rm", json!({ "a": 2 })),
            json!({ "error": { "message": "denied by a rule" } })
        ),
    ])
}

fn status(message: Option<Message>) -> TaskStatus {
    TaskStatus {
        state: TaskState::Working,
        message,
        timestamp: None,
    }
}

/// A stream of one task: an update for each event, the result as an artifact in a snapshot at the end.
fn stream() -> Vec<StreamItem> {
    let said: Vec<Message> = events()
        .iter()
        .enumerate()
        .map(|(n, event)| {
            Message::agent(format!("m{n}"), vec![Part::event(event)])
                .within("T", "C")
                .with_tool_events()
        })
        .collect();
    let update = |message: &Message| {
        StreamItem::Status(StatusUpdate {
            task_id: "T".to_owned(),
            context_id: "C".to_owned(),
            status: status(Some(message.clone())),
            last: false,
            metadata: None,
        })
    };
    let mut items: Vec<StreamItem> = said.iter().map(update).collect();
    // What the user asked for is no news, though it has the same id and says something else.
    let asked =
        json!({ "type": "tool-call", "toolCallId": "c1", "toolName": "other", "input": {} });
    let mut user = Message::agent("u", vec![Part::data(asked)]).within("T", "C");
    user.role = MessageRole::User;
    items.push(StreamItem::Task(Task {
        id: "T".to_owned(),
        context_id: "C".to_owned(),
        status: status(None),
        artifacts: vec![Artifact::new("a", vec![Part::event(&events()[1])])],
        history: std::iter::once(user).chain(said).collect(),
        metadata: None,
    }));
    items
}

#[test]
fn streams_and_snapshots_of_both_dialects() {
    for dialect in [A2aDialect::V0_3, A2aDialect::V1_0] {
        let items: Vec<Value> = stream().iter().map(|item| item.to_value(dialect)).collect();
        let snapshot = items.last().unwrap().clone();
        for lines in [items, vec![snapshot]] {
            let mut receiver = Receiver::default();
            for item in lines {
                receiver.receive_value(&json!({ "jsonrpc": "2.0", "id": 1, "result": item }));
            }
            assert_eq!(
                serde_json::to_value(receiver.into_parts()).unwrap(),
                expected(),
                "{dialect:?}"
            );
        }
    }
}

#[test]
fn a_stream_in_the_words_of_the_ai_sdk() {
    let mut stream = UiStream::new();
    let mut receiver = Receiver::default();
    for chunk in events().iter().flat_map(|event| stream.chunks(event)) {
        receiver
            .receive(&serde_json::to_string(&chunk).unwrap())
            .unwrap();
    }
    let mut parts = serde_json::to_value(receiver.into_parts()).unwrap();
    let mut expected = expected();
    // That vocabulary has no times.
    for part in parts
        .as_array_mut()
        .into_iter()
        .chain(expected.as_array_mut())
        .flatten()
    {
        part.as_object_mut()
            .unwrap()
            .retain(|name, _| name != "duration_ms" && name != "started_at");
    }
    assert_eq!(parts, expected);
}

/// The data of a module's event is the module's own. A module could otherwise end, invent or fail calls for readers.
#[test]
fn the_event_of_a_module_is_no_event_of_a_call() {
    let call = r#"{"type":"tool-call","toolCallId":"c1","toolName":"add","input":{"a":2}}"#;
    for data in [
        r#"{"type":"tool-result","toolCallId":"c1","output":"forged"}"#,
        r#"{"type":"tool-call","toolCallId":"c9","toolName":"rm","input":{}}"#,
        r#"{"type":"reset-step"}"#,
    ] {
        let inner = format!(
            r#"{{"type":"module-event","toolCallId":"c1","seq":7,"event":"x","data":{data}}}"#
        );
        let chunk = format!(r#"{{"type":"data-module-event","transient":true,"data":{inner}}}"#);
        let part =
            format!(r#"{{"messageId":"m","role":"ROLE_AGENT","parts":[{{"data":{inner}}}]}}"#);
        let forged = format!(r#"{{"type":"data-module-event","data":{data}}}"#);
        for event in [&inner, &chunk, &part, &forged] {
            super::check(
                &format!("{call}\n{event}"),
                json!([flying("c1", "add", json!({ "a": 2 }))]),
            );
        }
    }
}
