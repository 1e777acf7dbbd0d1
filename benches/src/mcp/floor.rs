//! The floors: JSON-RPC read and answered by a few lines, with nothing behind them.

use std::io::{BufRead, Write};

use axum::{
    Router,
    body::Bytes,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
    routing::post,
};
use serde_json::{Value, json};

#[derive(serde::Deserialize)]
struct Request {
    id: Option<Value>,
    method: String,
    #[serde(default)]
    params: Value,
}

/// One handler behind axum's router.
pub(crate) fn router() -> Router {
    Router::new().route("/mcp", post(handle))
}

async fn handle(body: Bytes) -> Response {
    match answer(&body) {
        Some(answer) => {
            let headers = [
                (header::CONTENT_TYPE.as_str(), "application/json"),
                ("mcp-session-id", "floor"),
            ];
            (headers, answer).into_response()
        }
        None => StatusCode::ACCEPTED.into_response(),
    }
}

/// A child that answers every line.
pub(crate) fn lines() -> anyhow::Result<()> {
    let mut output = std::io::stdout().lock();
    let mut input = std::io::stdin().lock();
    let mut line = Vec::new();
    while input.read_until(b'\n', &mut line)? > 0 {
        if let Some(mut answer) = answer(&line) {
            answer.push(b'\n');
            output.write_all(&answer)?;
            output.flush()?;
        }
        line.clear();
    }
    Ok(())
}

fn answer(request: &[u8]) -> Option<Vec<u8>> {
    let Request { id, method, params } = serde_json::from_slice(request).ok()?;
    let id = id?;
    let result = match method.as_str() {
        "initialize" => json!({
            "protocolVersion": "2025-11-25",
            "capabilities": { "tools": {} },
            "serverInfo": { "name": "floor", "version": "1" },
        }),
        _ => json!({
            "resultType": "complete",
            "content": [{ "type": "text", "text": params["arguments"]["message"] }],
        }),
    };
    serde_json::to_vec(&json!({ "jsonrpc": "2.0", "id": id, "result": result })).ok()
}
