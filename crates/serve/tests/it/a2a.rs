//! The A2A face from outside: both dialects over JSON-RPC, REST, and what becomes of tasks.

mod approvals;
mod card;
mod errors;
mod restarts;
mod sending;
mod tasks;

use serde_json::{Value, json};
use toolpost_model::EffectClass;
use toolpost_testkit::MockNativeTool;

use super::{
    client::{Connection, Request},
    running::{Place, Running},
};

const URI: &str = "https://mentionable.dev/ns/a2a-tool-events/v0.1";

/// A dialect's own words, so that a test can be told for both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Dialect {
    Older,
    Newer,
}

impl Dialect {
    const BOTH: [Self; 2] = [Self::Older, Self::Newer];

    fn method(self, name: &str) -> &'static str {
        match (self, name) {
            (Self::Older, "send") => "message/send",
            (Self::Older, "stream") => "message/stream",
            (Self::Older, "get") => "tasks/get",
            (Self::Older, "cancel") => "tasks/cancel",
            (Self::Older, "subscribe") => "tasks/resubscribe",
            (Self::Newer, "send") => "SendMessage",
            (Self::Newer, "stream") => "SendStreamingMessage",
            (Self::Newer, "get") => "GetTask",
            (Self::Newer, "cancel") => "CancelTask",
            (Self::Newer, "subscribe") => "SubscribeToTask",
            (Self::Newer, "list") => "ListTasks",
            (dialect, other) => panic!("{dialect:?} has no `{other}`"),
        }
    }

    fn state(self, word: &str) -> String {
        match self {
            Self::Older => word.to_owned(),
            Self::Newer => format!("TASK_STATE_{}", word.replace('-', "_").to_uppercase()),
        }
    }

    fn message(self, id: &str, parts: &[Value]) -> Value {
        match self {
            Self::Older => {
                json!({ "kind": "message", "messageId": id, "role": "user", "parts": parts })
            }
            Self::Newer => json!({ "messageId": id, "role": "ROLE_USER", "parts": parts }),
        }
    }

    fn data(self, data: &Value) -> Value {
        match self {
            Self::Older => json!({ "kind": "data", "data": data }),
            Self::Newer => json!({ "data": data }),
        }
    }

    fn call(self, id: &str, tool: &str, input: &Value) -> Value {
        self.data(
            &json!({ "type": "tool-call", "toolCallId": id, "toolName": tool, "input": input }),
        )
    }

    /// The task in an answer to a send.
    fn task(self, result: &Value) -> Value {
        match self {
            Self::Older => {
                assert_eq!(result["kind"], "task", "{result}");
                result.clone()
            }
            Self::Newer => {
                assert!(result.get("kind").is_none(), "{result}");
                result["task"].clone()
            }
        }
    }

    /// A stream item's member and body, and whether it says that it is the last.
    fn item(self, result: &Value) -> (String, Value) {
        match self {
            Self::Older => (result["kind"].as_str().unwrap().to_owned(), result.clone()),
            Self::Newer => {
                let (name, body) = result.as_object().unwrap().iter().next().unwrap();
                let name = match name.as_str() {
                    "statusUpdate" => "status-update",
                    "artifactUpdate" => "artifact-update",
                    other => other,
                };
                (name.to_owned(), body.clone())
            }
        }
    }
}

fn rpc(method: &str, params: &Value) -> Request {
    let body = json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params });
    Request::post("/a2a", body.to_string())
}

/// The result of a request that is done.
async fn result(server: &Running, request: Request) -> Value {
    let told = server.send(request).await;
    assert_eq!(told.status(), 200, "{told:?}");
    let told = told.json();
    assert_eq!(
        (&told["jsonrpc"], &told["id"]),
        (&json!("2.0"), &json!(7)),
        "{told}"
    );
    assert!(told.get("error").is_none(), "{told}");
    told["result"].clone()
}

/// The code of a request that is not.
async fn refused(server: &Running, request: Request) -> i64 {
    let told = server.send(request).await;
    assert_eq!(told.status(), 200, "{told:?}");
    let told = told.json();
    assert!(told.get("result").is_none(), "{told}");
    assert!(
        !told["error"]["message"].as_str().unwrap().is_empty(),
        "{told}"
    );
    told["error"]["code"].as_i64().unwrap()
}

/// The results of the frames of a stream, up to its end.
async fn items(stream: &mut Connection) -> Vec<Value> {
    let mut items = Vec::new();
    while let Some(mut item) = stream.data().await {
        assert_eq!(
            (&item["jsonrpc"], &item["id"]),
            (&json!("2.0"), &json!(7)),
            "{item}"
        );
        items.push(item["result"].take());
    }
    items
}

/// The tool events in messages, as their types.
fn events(messages: &Value) -> Vec<String> {
    let parts = messages
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|message| message["parts"].as_array().unwrap());
    parts
        .filter_map(|part| part["data"]["type"].as_str())
        .map(str::to_owned)
        .collect()
}

fn add() -> MockNativeTool {
    MockNativeTool::named("demo.add")
        .class(EffectClass::Read)
        .output(json!({ "sum": 5 }))
        .schema(json!({
            "type": "object",
            "properties": { "a": { "type": "integer" }, "b": { "type": "integer" } },
            "required": ["a"], "additionalProperties": false
        }))
}

async fn serve(tool: &MockNativeTool) -> Running {
    let tool = tool.clone();
    Place::without_native_tools()
        .start_with(|builder| builder.tool(tool))
        .await
}
