//! Agrees on a revision with a server. A server without sessions answers `server/discover`. An older server refuses it
//! or stays silent, and then gets `initialize`.

use std::{sync::Arc, time::Duration};

use serde_json::{Map, Value, json};

use super::{
    super::{McpProtocolEra, clean::shortened},
    CLOSED, LONGEST, McpConnectError, McpRequestError, UpstreamDescription, UpstreamTransport,
    UpstreamWire,
    message::{HostMessage, object},
};

/// The first revision without sessions.
pub(super) const STATELESS: &str = "2026-07-28";
const SESSIONS: &str = "2025-11-25";
/// How long a server of unknown revision may take to answer `server/discover`.
const PROBE: Duration = Duration::from_secs(10);
/// Error codes that only servers without sessions use: wrong headers, a missing capability, another revision. After
/// one of them `initialize` is not tried, because its failure would hide the real error.
const NEWER: [i32; 3] = [-32020, -32021, -32022];

/// The `_meta` of each request to a server without sessions.
fn context() -> Map<String, Value> {
    object([
        ("io.modelcontextprotocol/protocolVersion", STATELESS.into()),
        ("io.modelcontextprotocol/clientInfo", host()),
        ("io.modelcontextprotocol/clientCapabilities", offer()),
    ])
}

fn host() -> Value {
    json!({ "name": "toolpost", "version": env!("CARGO_PKG_VERSION") })
}

/// The capabilities that the host offers to servers.
fn offer() -> Value {
    json!({ "roots": {}, "sampling": {}, "elicitation": { "form": {}, "url": {} } })
}

/// Performs the handshake, and sets the revision of later requests.
pub(super) async fn shake(
    wire: &Arc<UpstreamWire>,
    era: McpProtocolEra,
) -> Result<UpstreamDescription, McpConnectError> {
    let mut step = "discover";
    let discovered = match era {
        McpProtocolEra::Sessions => None,
        McpProtocolEra::Stateless => Some(discover(wire).await),
        McpProtocolEra::Auto => match tokio::time::timeout(PROBE, discover(wire)).await {
            Ok(Err(McpRequestError::Remote { code, .. })) if !NEWER.contains(&code) => None,
            discovered => discovered.ok(),
        },
    };
    let described = match discovered {
        Some(described) => described,
        None => {
            step = "initialize";
            initialize(wire).await
        }
    };
    let description = described.map_err(|error| not_connected(wire, step, error))?;
    let context = if description.stateless {
        context()
    } else {
        Map::new()
    };
    let _ = wire.context.set(context);
    Ok(description)
}

async fn discover(wire: &Arc<UpstreamWire>) -> Result<UpstreamDescription, McpRequestError> {
    wire.agree(Some(STATELESS));
    let asked = wire.request("server/discover", Map::new(), context(), None, None);
    let mut answer = asked.await?;
    let versions = answer["supportedVersions"].as_array();
    if !versions.is_some_and(|versions| versions.iter().any(|version| version == STATELESS)) {
        return Err(unreadable(format!(
            "it does not support {STATELESS}: {answer}"
        )));
    }
    describe(true, answer["capabilities"].take())
}

async fn initialize(wire: &Arc<UpstreamWire>) -> Result<UpstreamDescription, McpRequestError> {
    wire.agree(None);
    let params = object([
        ("protocolVersion", SESSIONS.into()),
        ("capabilities", offer()),
        ("clientInfo", host()),
    ]);
    let asked = wire.request("initialize", params, Map::new(), None, None);
    let mut answer = asked.await?;
    let Some(version) = answer["protocolVersion"].as_str() else {
        return Err(unreadable(format!(
            "its answer has no `protocolVersion`: {answer}"
        )));
    };
    wire.agree(Some(version));
    match wire.send(HostMessage::initialized()).await {
        // A notification has no answer, so an error in response to it is ignored.
        Ok(()) | Err(McpRequestError::Remote { .. }) => {}
        Err(error) => return Err(error),
    }
    let is_stateless = version >= STATELESS;
    describe(is_stateless, answer["capabilities"].take())
}

fn describe(stateless: bool, capabilities: Value) -> Result<UpstreamDescription, McpRequestError> {
    let Value::Object(mut capabilities) = capabilities else {
        return Err(unreadable("its answer has no `capabilities`".to_owned()));
    };
    capabilities.retain(|_, capability| !capability.is_null());
    Ok(UpstreamDescription {
        stateless,
        capabilities: capabilities.into(),
    })
}

fn unreadable(why: String) -> McpRequestError {
    McpRequestError::Unreadable(why)
}

fn not_connected(wire: &UpstreamWire, step: &str, error: McpRequestError) -> McpConnectError {
    // For a program, the task that keeps the process reports the end, with the exit code.
    let is_end = |why: &str| why == CLOSED || matches!(wire.transport, UpstreamTransport::Pipes(_));
    let why = match error {
        McpRequestError::Unauthorized(_) => {
            return McpConnectError::Unauthorized("it requires a token (HTTP 401)".to_owned());
        }
        McpRequestError::Remote { message, .. } => format!("it answered: {message}"),
        McpRequestError::Unreadable(why) => format!("unexpected server response: {why}"),
        McpRequestError::Lost(why) if is_end(&why) => format!("connection closed: {step} response"),
        error @ (McpRequestError::Lost(_)
        | McpRequestError::Unsent(_)
        | McpRequestError::Busy { .. }) => error.to_string(),
    };
    match why.contains("HTTP 401") || why.contains("HTTP 403") {
        true => McpConnectError::Unauthorized(shortened(&why, LONGEST)),
        false => McpConnectError::Handshake(shortened(&why, LONGEST)),
    }
}
