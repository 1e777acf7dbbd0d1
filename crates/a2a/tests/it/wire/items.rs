//! What is written in each dialect, and what real peers wrote.

use serde_json::{Map, Value, json};
use toolpost_a2a::wire::{
    A2aDialect, Artifact, ArtifactUpdate, Message, MessageRole, Part, PartContent, SendAnswer,
    StatusUpdate, StreamItem, Task, TaskPage, TaskState, TaskStatus,
};
use toolpost_a2a::{CANONICAL_URI, ToolEvent};

pub(super) fn task() -> Task {
    let call = json!({ "type": "tool-call", "toolCallId": "c1", "toolName": "add", "input": { "a": 2, "b": 3 } });
    let asked = Message {
        role: MessageRole::User,
        ..Message::agent("m1", vec![Part::data(call)])
    };
    let event = ToolEvent::Result {
        tool_call_id: "c1".to_owned(),
        tool_name: "add".to_owned(),
        input: None,
        output: json!({ "sum": 5 }),
        duration_ms: Some(1),
    };
    let told = Message::agent("m2", vec![Part::event(&event)])
        .within("t1", "x1")
        .with_tool_events();
    let mut result = Artifact::new("c1", vec![Part::data(json!(5)), Part::text("five")]);
    result.name = Some("add".to_owned());
    Task {
        id: "t1".to_owned(),
        context_id: "x1".to_owned(),
        status: status(TaskState::Completed, None),
        artifacts: vec![result],
        history: vec![asked, told],
        metadata: None,
    }
}

fn status(state: TaskState, message: Option<Message>) -> TaskStatus {
    TaskStatus {
        state,
        message,
        timestamp: Some("2026-11-15T19:29:16.292Z".to_owned()),
    }
}

fn file(content: PartContent) -> Part {
    Part {
        content,
        media_type: Some("image/png".to_owned()),
        filename: Some("plot.png".to_owned()),
        metadata: Some(Map::from_iter([("page".to_owned(), json!(1))])),
    }
}

#[test]
fn a_task_in_each_dialect() {
    insta::assert_json_snapshot!(
        "task_0_3",
        SendAnswer::Task(task()).to_value(A2aDialect::V0_3)
    );
    insta::assert_json_snapshot!(
        "task_1_0",
        SendAnswer::Task(task()).to_value(A2aDialect::V1_0)
    );
}

#[test]
fn the_items_of_a_stream_in_each_dialect() {
    let question = Message::agent("m3", vec![Part::text("may it?")]).within("t1", "x1");
    let items = [
        StreamItem::Message(Message::agent(
            "m0",
            vec![file(PartContent::Raw("AAEC".to_owned()))],
        )),
        StreamItem::Status(StatusUpdate {
            task_id: "t1".to_owned(),
            context_id: "x1".to_owned(),
            status: status(TaskState::InputRequired, Some(question)),
            last: false,
            metadata: None,
        }),
        StreamItem::Artifact(ArtifactUpdate {
            task_id: "t1".to_owned(),
            context_id: "x1".to_owned(),
            artifact: Artifact::new(
                "c1",
                vec![file(PartContent::Url("https://example.com/a".to_owned()))],
            ),
            append: false,
            last_chunk: true,
            metadata: None,
        }),
        StreamItem::Status(StatusUpdate {
            task_id: "t1".to_owned(),
            context_id: "x1".to_owned(),
            status: status(TaskState::Failed, None),
            last: true,
            metadata: None,
        }),
    ];
    let written = |dialect| {
        items
            .iter()
            .map(|item| item.to_value(dialect))
            .collect::<Vec<Value>>()
    };
    insta::assert_json_snapshot!("items_0_3", written(A2aDialect::V0_3));
    insta::assert_json_snapshot!("items_1_0", written(A2aDialect::V1_0));
}

/// Lines that the official SDKs wrote, with shorter ids. Written again, they are the same.
#[test]
fn what_the_official_peers_write_is_what_is_written_here() {
    let check = |dialect: A2aDialect, line: Value| {
        let item = StreamItem::read(&line).unwrap();
        assert_eq!(item.to_value(dialect), line);
    };
    check(
        A2aDialect::V1_0,
        json!({ "task": { "id": "8e28", "contextId": "e516", "status": { "state": "TASK_STATE_SUBMITTED" },
            "history": [{ "messageId": "u1", "role": "ROLE_USER", "parts": [{ "data": {
                "toolCallId": "c1", "input": { "b": 3.0, "a": 2.0 }, "type": "tool-call", "toolName": "add" } }] }] } }),
    );
    check(
        A2aDialect::V1_0,
        json!({ "statusUpdate": { "taskId": "8e28", "contextId": "e516", "status": {
            "state": "TASK_STATE_WORKING", "timestamp": "2026-11-15T19:29:16.292807Z",
            "message": { "messageId": "b325", "role": "ROLE_AGENT", "extensions": [CANONICAL_URI], "parts": [{ "data": {
                "durationMs": 1.0, "output": { "sum": 5.0 }, "toolCallId": "c1", "toolName": "add",
                "type": "tool-result" } }] } } } }),
    );
    check(
        A2aDialect::V0_3,
        json!({ "contextId": "e745", "final": false, "kind": "status-update", "taskId": "f9d2", "status": {
            "state": "working", "timestamp": "2026-11-15T19:29:16.765456+00:00",
            "message": { "extensions": [CANONICAL_URI], "kind": "message", "messageId": "0711", "role": "agent",
                "taskId": "f9d2", "parts": [{ "kind": "data", "data": { "type": "tool-result", "toolCallId": "c1",
                    "toolName": "add", "output": { "sum": 5 }, "durationMs": 0 } }] } } }),
    );
}

#[test]
fn a_part_is_read_with_or_without_its_kind() {
    let check = |value: Value, content: PartContent| {
        assert_eq!(Part::read(&value).unwrap().content, content);
    };
    check(
        json!({ "kind": "text", "text": "a" }),
        PartContent::Text("a".to_owned()),
    );
    check(json!({ "text": "a" }), PartContent::Text("a".to_owned()));
    check(json!({ "text": "" }), PartContent::Text(String::new()));
    check(
        json!({ "kind": "data", "data": { "a": null } }),
        PartContent::Data(json!({ "a": null })),
    );
    check(json!({ "data": null }), PartContent::Data(Value::Null));
    check(
        json!({ "text": null, "data": [1] }),
        PartContent::Data(json!([1])),
    );
    check(
        json!({ "raw": "AA==" }),
        PartContent::Raw("AA==".to_owned()),
    );
    check(
        json!({ "kind": "file", "file": { "bytes": "AA==" } }),
        PartContent::Raw("AA==".to_owned()),
    );
    check(
        json!({ "kind": "file", "file": { "uri": "x:y" } }),
        PartContent::Url("x:y".to_owned()),
    );
    // As the official SDK of 1.0 puts a number to a peer of 0.3.
    let wrapped =
        json!({ "kind": "data", "data": { "value": 7 }, "metadata": { "data_part_compat": true } });
    check(wrapped.clone(), PartContent::Data(json!(7)));
    assert_eq!(
        Part::read(&wrapped).unwrap().to_value(A2aDialect::V0_3),
        wrapped
    );
    // A value of that shape that nobody marked is itself.
    check(
        json!({ "data": { "value": 7 } }),
        PartContent::Data(json!({ "value": 7 })),
    );
}

#[test]
fn what_cannot_be_read_is_told_by_its_place() {
    let check = |value: Value, message: &str| {
        assert_eq!(Message::read(&value).unwrap_err().to_string(), message);
    };
    check(json!([]), "`message` must be an object");
    check(
        json!({ "role": "user", "parts": [] }),
        "`message.messageId` must be a text that is not empty",
    );
    check(
        json!({ "messageId": "m", "parts": {} }),
        "`message.parts` must be a list",
    );
    check(
        json!({ "messageId": "m", "parts": [{ "text": "a" }, { "kind": "text" }] }),
        "`message.parts[1]` must hold `text`, `data`, `raw`, `url` or `file`",
    );
    check(
        json!({ "messageId": "m", "role": "system", "parts": [] }),
        "`message.role` must be `user` or `agent`, `ROLE_USER` or `ROLE_AGENT`",
    );
    check(
        json!({ "messageId": "m", "extensions": [1] }),
        "`message.extensions` must be a list of texts",
    );
}

#[test]
fn a_history_keeps_its_newest_messages() {
    let kept = |most| -> Vec<String> {
        task()
            .with_history(most)
            .history
            .into_iter()
            .map(|message| message.message_id)
            .collect()
    };
    let check = |most, ids: &[&str]| assert_eq!(kept(most), ids);
    check(None, &["m1", "m2"]);
    check(Some(u64::MAX), &["m1", "m2"]);
    check(Some(1), &["m2"]);
    check(Some(0), &[]);
}

#[test]
fn a_page_has_all_its_members_even_when_it_is_empty() {
    let page = TaskPage {
        tasks: Vec::new(),
        next_page_token: String::new(),
        page_size: 50,
        total_size: 0,
    };
    assert_eq!(
        page.to_value(),
        json!({ "tasks": [], "nextPageToken": "", "pageSize": 50, "totalSize": 0 })
    );
}
