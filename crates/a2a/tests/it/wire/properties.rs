//! What holds for every message, sane or not.

use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use toolpost_a2a::wire::{
    A2aDialect, A2aRequest, Artifact, ArtifactUpdate, ListParams, Message, MessageRole, Part,
    PartContent, SendParams, StatusUpdate, StreamItem, Task, TaskParams, TaskState, TaskStatus,
};

/// Any JSON, with members that the readers look for.
pub(super) fn any_json() -> impl Strategy<Value = Value> {
    let name = prop_oneof![
        4 => prop::sample::select(vec![
            "kind", "task", "message", "statusUpdate", "artifactUpdate", "status", "state", "parts", "text", "data",
            "file", "bytes", "uri", "raw", "url", "metadata", "messageId", "role", "id", "taskId", "history",
            "artifact", "artifacts", "artifactId", "configuration", "blocking", "historyLength", "pageSize",
            "extensions", "params", "method", "jsonrpc", "data_part_compat", "value", "final",
        ]).prop_map(str::to_owned),
        1 => ".{0,4}",
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        (-100_000..100_000_i64).prop_map(|whole| json!(whole as f64)),
        prop::sample::select(vec![
            "2.0",
            "task",
            "message",
            "status-update",
            "artifact-update",
            "user",
            "working",
            ""
        ])
        .prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 64, 6, move |inner| {
        prop_oneof![
            vec(inner.clone(), 0..5).prop_map(Value::from),
            btree_map(name.clone(), inner, 0..6)
                .prop_map(|members| Value::Object(Map::from_iter(members))),
        ]
    })
}

fn metadata() -> impl Strategy<Value = Option<Map<String, Value>>> {
    option::of(btree_map("[a-z]{1,4}", any_json(), 1..3).prop_map(Map::from_iter))
}

fn texts() -> impl Strategy<Value = Vec<String>> {
    vec("[a-z]{1,6}", 0..3)
}

fn part() -> impl Strategy<Value = Part> {
    let plain = prop_oneof![
        ".{0,8}".prop_map(PartContent::Text),
        any_json().prop_map(PartContent::Data)
    ];
    let plain = (plain, metadata());
    let file = prop_oneof![
        "[A-Za-z0-9]{0,8}".prop_map(PartContent::Raw),
        "[a-z:/]{0,8}".prop_map(PartContent::Url)
    ];
    // 0.3 has a name and a type only of files, and metadata of a part beside them.
    let file = (
        file,
        option::of("[a-z]{1,4}/[a-z]{1,4}"),
        option::of("[a-z.]{1,6}"),
        metadata(),
    );
    prop_oneof![
        plain.prop_map(|(content, metadata)| Part {
            content,
            media_type: None,
            filename: None,
            metadata
        }),
        file.prop_map(|(content, media_type, filename, metadata)| Part {
            content,
            media_type,
            filename,
            metadata
        }),
    ]
}

fn message() -> impl Strategy<Value = Message> {
    let role = prop_oneof![Just(MessageRole::User), Just(MessageRole::Agent)];
    let ids = (option::of("[a-z]{1,4}"), option::of("[a-z]{1,4}"));
    (
        "[a-z]{1,8}",
        role,
        vec(part(), 0..4),
        ids,
        texts(),
        texts(),
        metadata(),
    )
        .prop_map(
            |(
                message_id,
                role,
                parts,
                (task_id, context_id),
                extensions,
                reference_task_ids,
                metadata,
            )| {
                Message {
                    message_id,
                    role,
                    parts,
                    task_id,
                    context_id,
                    extensions,
                    reference_task_ids,
                    metadata,
                }
            },
        )
}

fn status() -> impl Strategy<Value = TaskStatus> {
    let state = prop::sample::select(TaskState::ALL);
    (state, option::of(message()), option::of("[0-9TZ:.-]{1,24}")).prop_map(
        |(state, message, timestamp)| TaskStatus {
            state,
            message,
            timestamp,
        },
    )
}

fn artifact() -> impl Strategy<Value = Artifact> {
    (
        "[a-z]{1,4}",
        option::of("[a-z]{1,4}"),
        vec(part(), 0..3),
        texts(),
        metadata(),
    )
        .prop_map(
            |(artifact_id, name, parts, extensions, metadata)| Artifact {
                artifact_id,
                description: name.clone(),
                name,
                parts,
                extensions,
                metadata,
            },
        )
}

fn item() -> impl Strategy<Value = StreamItem> {
    let ids = || ("[a-z]{1,8}", "[a-z]{0,8}");
    let task = (
        ids(),
        status(),
        vec(artifact(), 0..3),
        vec(message(), 0..3),
        metadata(),
    );
    prop_oneof![
        message().prop_map(StreamItem::Message),
        task.prop_map(|((id, context_id), status, artifacts, history, metadata)| {
            StreamItem::Task(Task {
                id,
                context_id,
                status,
                artifacts,
                history,
                metadata,
            })
        }),
        (ids(), status(), any::<bool>(), metadata()).prop_map(
            |((task_id, context_id), status, last, metadata)| {
                StreamItem::Status(StatusUpdate {
                    task_id,
                    context_id,
                    status,
                    last,
                    metadata,
                })
            }
        ),
        (ids(), artifact(), any::<(bool, bool)>(), metadata()).prop_map(
            |((task_id, context_id), artifact, (append, last_chunk), metadata)| {
                StreamItem::Artifact(ArtifactUpdate {
                    task_id,
                    context_id,
                    artifact,
                    append,
                    last_chunk,
                    metadata,
                })
            }
        ),
    ]
}

/// Words that only one of the dialects has, outside of what peers put into data and metadata.
fn has_kind(value: &Value) -> bool {
    match value {
        Value::Object(members) => members.iter().any(|(name, value)| match name.as_str() {
            "data" | "metadata" => false,
            "kind" | "final" => true,
            _ => has_kind(value),
        }),
        Value::Array(items) => items.iter().any(has_kind),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

proptest! {
    #[test]
    fn what_is_written_in_a_dialect_is_read_again(item in item()) {
        let older = item.to_value(A2aDialect::V0_3);
        prop_assert!(has_kind(&older));
        prop_assert_eq!(&StreamItem::read(&older).unwrap(), &item);
        let newer = item.to_value(A2aDialect::V1_0);
        prop_assert!(!has_kind(&newer));
        // Only 0.3 says which update is the last.
        let read = match StreamItem::read(&newer).unwrap() {
            StreamItem::Status(update) => {
                let last = matches!(&item, StreamItem::Status(written) if written.last);
                StreamItem::Status(StatusUpdate { last, ..update })
            }
            other => other,
        };
        prop_assert_eq!(&read, &item);
    }

    #[test]
    fn nothing_that_a_peer_sends_breaks_a_reader(value in any_json()) {
        let _ = StreamItem::read(&value);
        let _ = Message::read(&value);
        let _ = Part::read(&value);
        let _ = Task::read(&value);
        let _ = Artifact::read(&value);
        let _ = A2aRequest::read(&value);
        for dialect in [A2aDialect::V0_3, A2aDialect::V1_0] {
            let _ = SendParams::read(&value, dialect);
        }
        let _ = TaskParams::read(&value);
        let _ = ListParams::read(&value);
    }

    #[test]
    fn a_version_is_read_or_refused(version in ".{0,12}", method in ".{0,12}") {
        let _ = A2aDialect::of_request(Some(&version), &method);
        prop_assert!(A2aDialect::of_request(None, &method).is_ok());
    }
}
