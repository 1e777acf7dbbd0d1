//! A2E beside floors of its own: over HTTP, over pipes, in the same process, and with many sessions and tools.

mod direct;
mod floor;
mod forgetful;
mod host;
mod http;
mod latency;
mod listing;
mod open_sessions;
mod soak;
mod stdio;
mod wire;

pub(crate) use floor::{echo_lines, router as floor};
pub(crate) use host::{converse, serve};
pub(crate) use soak::run as soak;

/// The parts; each can be run by itself as `a2e-<name>`.
const PARTS: [&str; 6] = ["http", "stdio", "direct", "sessions", "list", "events"];

pub(crate) async fn run() -> anyhow::Result<()> {
    for part in PARTS {
        run_part(part).await?;
    }
    Ok(())
}

/// `false`: there is no such part.
pub(crate) async fn run_part(part: &str) -> anyhow::Result<bool> {
    match part {
        "http" => http::run().await?,
        "stdio" => stdio::run().await?,
        "direct" => direct::run().await?,
        "sessions" => open_sessions::run().await?,
        "list" => listing::run().await?,
        "events" => latency::run().await?,
        _ => return Ok(false),
    }
    Ok(true)
}

/// A server to measure, and the messages for it.
#[derive(Clone, Copy)]
struct Contender<'a> {
    address: &'a str,
    /// The message with an id of sixteen characters.
    message: fn(&str) -> String,
    /// The text before that id in the answer.
    key: &'static str,
    /// A text that every good answer contains: a refusal would be quick, and is no call.
    good: &'static str,
}

impl<'a> Contender<'a> {
    /// The floor echoes the message, so the id is in the same place.
    fn floor(address: &'a str) -> Self {
        Self {
            address,
            message: echo,
            key: r#""id":""#,
            good: r#""type":"tool/call/req""#,
        }
    }

    fn echo(address: &'a str) -> Self {
        Self {
            address,
            message: echo,
            key: r#""req_id":""#,
            good: ECHOED,
        }
    }
}

const ECHOED: &str = r#""success":true"#;
const ANSWERED_AT_ONCE: &str = r#""type":"test/echo/resp""#;

fn echo(id: &str) -> String {
    let arguments = crate::over_http::BODY;
    format!(r#"{{"type":"tool/call/req","id":"{id}","tool_name":"echo","arguments":{arguments}}}"#)
}

fn at_once(id: &str) -> String {
    let arguments = crate::over_http::BODY;
    format!(r#"{{"type":"test/echo/req","id":"{id}","arguments":{arguments}}}"#)
}

/// The beginning of the call of the tool that sends the time.
const TICKS: &str = r#"{"type":"tool/call/req","id":"ticks""#;
