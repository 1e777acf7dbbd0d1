//! MCP from outside: both eras over real sockets, and over pipes.

mod asking;
mod calling;
mod deferring;
mod faults;
mod offering;
mod pipes;
mod serving;

use serde_json::{Value, json};
use toolpost_model::{
    ConsultKind, ConsultQuestion, EffectClass, FnTool, LogLevel, ToolFailure, ToolProgress,
};
use toolpost_serve::ServerBuilder;

use super::{
    client::{Connection, Request, Response},
    running::{Place, Running},
};

/// The two ways of speaking.
#[derive(Clone, Debug)]
enum Era {
    Session(String),
    Stateless,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nothing {}

/// Tools that do what clients must be able to follow.
fn tools(builder: ServerBuilder) -> ServerBuilder {
    let steps = FnTool::named("demo.steps")
        .unwrap()
        .class(EffectClass::Read)
        .run(|_: Nothing, call| async move {
            for done in [0, 50, 100] {
                call.progress(ToolProgress {
                    done: Some(done),
                    total: Some(100),
                    ..ToolProgress::default()
                });
            }
            call.log(LogLevel::Info, "half way");
            Ok::<_, ToolFailure>("done")
        });
    let asks = FnTool::named("demo.asks")
        .unwrap()
        .class(EffectClass::Read)
        .run(|_: Nothing, call| async move {
            let params = json!({ "message": "Who?", "requestedSchema": { "type": "object",
            "properties": { "name": { "type": "string" } }, "required": ["name"] } });
            let question = ConsultQuestion {
                key: "who".to_owned(),
                kind: ConsultKind::Elicitation,
                params,
            };
            let replies = call.consult(vec![question]).await?;
            let name = replies[0].value["content"]["name"]
                .as_str()
                .unwrap_or("nobody")
                .to_owned();
            call.progress(ToolProgress {
                done: Some(1),
                ..ToolProgress::default()
            });
            Ok::<_, ToolFailure>(format!("hello, {name}"))
        });
    builder.tool(steps).tool(asks)
}

fn meta(can: &Value) -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": can,
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
    })
}

fn posted(body: &Value) -> Request {
    Request::post("/mcp", body.to_string()).header("Accept", "application/json, text/event-stream")
}

/// Shakes hands and gives the session.
async fn begin(server: &Running, can: Value, token: Option<&str>) -> Era {
    let params = json!({ "protocolVersion": "2025-11-25", "capabilities": can,
                         "clientInfo": { "name": "test", "version": "1" } });
    let request =
        posted(&json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params }));
    let request = token.map_or(request.clone(), |token| request.bearer(token));
    let answer = server.send(request).await;
    assert_eq!(answer.json()["result"]["protocolVersion"], "2025-11-25");
    Era::Session(answer.head.header("mcp-session-id").unwrap().to_owned())
}

impl Era {
    /// A request in this era; in the stateless one the client says that it can do `can`.
    fn request(&self, id: &Value, method: &str, mut params: Value, can: &Value) -> Request {
        match self {
            Self::Session(session) => {
                let body =
                    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
                posted(&body)
                    .header("Mcp-Session-Id", session)
                    .header("MCP-Protocol-Version", "2025-11-25")
            }
            Self::Stateless => {
                let name = params["name"]
                    .as_str()
                    .or(params["uri"].as_str())
                    .map(str::to_owned);
                let mut said = meta(can);
                if let Some(more) = params["_meta"].as_object().cloned() {
                    said.as_object_mut().unwrap().extend(more);
                }
                params["_meta"] = said;
                let body =
                    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
                let request = posted(&body)
                    .header("MCP-Protocol-Version", "2026-07-28")
                    .header("Mcp-Method", method);
                name.map_or(request.clone(), |name| request.header("Mcp-Name", name))
            }
        }
    }

    async fn ask(&self, server: &Running, method: &str, params: Value) -> Response {
        server
            .send(self.request(&json!(7), method, params, &json!({})))
            .await
    }

    async fn call(&self, server: &Running, tool: &str, arguments: Value) -> Value {
        ended(
            &self
                .ask(
                    server,
                    "tools/call",
                    json!({ "name": tool, "arguments": arguments }),
                )
                .await,
        )
    }
}

/// The result of a request, whether or not something was said before it.
fn ended(answer: &Response) -> Value {
    let body = std::str::from_utf8(&answer.body).unwrap();
    let last = body.rsplit_once("data: ").map_or(body, |(_, last)| last);
    let message: Value = serde_json::from_str(last.trim()).unwrap();
    message["result"].clone()
}

/// The messages of a stream, the answer last.
async fn told(connection: &mut Connection) -> Vec<Value> {
    let head = connection.head().await;
    assert_eq!(
        head.header("content-type"),
        Some("text/event-stream"),
        "{head:?}"
    );
    let frames = connection.frames().await;
    frames
        .iter()
        .map(|frame| serde_json::from_str(&frame.data).unwrap())
        .collect()
}

async fn both(server: &Running) -> [Era; 2] {
    [begin(server, json!({}), None).await, Era::Stateless]
}
