//! MCP: tools for every client of the Model Context Protocol, over HTTP at `/mcp` and over pipes.
//!
//! One endpoint serves two eras of the protocol. Up to 2025-11-25 a client performs a handshake and has a session;
//! since 2026-07-28 each request is complete in itself. Requests of both eras are read into one type,
//! [`asked::McpRequest`], and answered by the same functions; an [`exchange::McpExchange`] carries the messages before
//! the answer. Only this module defines the protocol's words.

mod approving;
mod artifacts;
mod asked;
mod bridge;
mod calling;
mod companions;
mod deferral;
mod exchange;
mod fault;
mod headers;
mod http;
mod listing;
mod meta;
mod news;
mod offers;
mod opening;
mod peer;
mod relayed;
mod result;
mod rounds;
mod seal;
mod sessions;
mod stdio;
mod subscriptions;
mod version;
mod wire;

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use serde_json::{Map, Value, json};
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;
use toolpost_core::Host;

pub(crate) use http::routes;
pub(crate) use relayed::McpRelay;
pub(crate) use stdio::{converse, write_lines};

use crate::streams::OpenStreams;
use asked::{McpMethod, McpRequest};
use companions::CompanionListKind;
use exchange::{ExchangeOutlet, ExchangeResult};
use fault::McpFault;
use listing::ToolListCache;
use offers::AddressClashes;
use peer::McpPeer;
use rounds::WaitingRounds;
use sessions::McpHttpSessions;
use subscriptions::ResourceSubscriptions;
use wire::McpReply;

/// The interval of the search for idle sessions and waiting requests.
const SWEEP_EVERY: Duration = Duration::from_secs(10);

#[derive(Clone, Copy, Debug)]
pub(crate) struct McpFaceSettings {
    /// The longest message, in bytes.
    pub(crate) message_limit: usize,
    /// The time that a call waits for approval before its caller gets `approval_pending`.
    pub(crate) approval_wait: Duration,
}

pub(crate) struct McpServerFace {
    host: Host,
    settings: McpFaceSettings,
    sessions: McpHttpSessions,
    rounds: WaitingRounds,
    lists: ToolListCache,
    subscriptions: ResourceSubscriptions,
    clashes: AddressClashes,
    streams: OpenStreams,
    /// Ends the streams that have no end of their own.
    closing: CancellationToken,
}

impl McpServerFace {
    pub(crate) fn new(
        host: Host,
        settings: McpFaceSettings,
        streams: OpenStreams,
        closing: CancellationToken,
    ) -> Arc<Self> {
        Arc::new(Self {
            host,
            settings,
            sessions: McpHttpSessions::default(),
            rounds: WaitingRounds::default(),
            lists: ToolListCache::default(),
            subscriptions: ResourceSubscriptions::default(),
            clashes: AddressClashes::default(),
            streams,
            closing,
        })
    }

    /// Ends every stream. Called after the last call of the host.
    pub(crate) fn close(&self) {
        self.sessions.close_all();
    }

    /// The fault without secrets: its text may repeat parts of the request.
    fn tellable(&self, mut fault: McpFault) -> McpFault {
        fault.message = self.host.redacted(&fault.message).into_owned();
        fault
    }
}

/// Removes idle sessions and waiting requests. Ends with the face.
pub(crate) async fn tend(face: Weak<McpServerFace>) {
    let mut sweeps = interval(SWEEP_EVERY);
    sweeps.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        sweeps.tick().await;
        let Some(face) = face.upgrade() else { return };
        for stay in face.sessions.sweep(face.host.limits().session_idle) {
            // In its own tokio task, because a slow source must not delay the others.
            let face = Arc::clone(&face);
            tokio::spawn(async move { sessions::end(&face, &stay).await });
        }
        face.rounds.sweep();
    }
}

/// Answers a request. Requests of both eras and all transports are dispatched to their methods here.
async fn answer(peer: McpPeer, asked: McpRequest, outlet: ExchangeOutlet) -> ExchangeResult {
    match asked.method {
        McpMethod::CallTool => calling::call(&peer, asked, &outlet).await,
        McpMethod::ListTools => listing::list(&peer, asked.cursor.as_deref()),
        McpMethod::Ping => Ok(McpReply::Text("{}".to_owned())),
        McpMethod::Discover => Ok(discover(&peer)),
        McpMethod::ListResources => {
            companions::list(&peer, CompanionListKind::Resources, asked.cursor.as_deref())
        }
        McpMethod::ListTemplates => {
            companions::list(&peer, CompanionListKind::Templates, asked.cursor.as_deref())
        }
        McpMethod::ListPrompts => {
            companions::list(&peer, CompanionListKind::Prompts, asked.cursor.as_deref())
        }
        McpMethod::ReadResource => companions::read(&peer, asked, &outlet).await,
        McpMethod::GetPrompt => companions::prompt(&peer, asked, &outlet).await,
        McpMethod::Complete => companions::complete(&peer, asked, &outlet).await,
        McpMethod::SetLevel => set_level(&peer, &asked),
        McpMethod::Subscribe | McpMethod::Unsubscribe => subscribe(&peer, &asked, &outlet).await,
        McpMethod::Initialize => Err(McpFault::invalid_request(
            "the session is already initialized",
        )),
        // `Listen` needs the request's id, so its transport answers it.
        McpMethod::Listen | McpMethod::Other => Err(McpFault::no_such_method("")),
    }
}

fn set_level(peer: &McpPeer, asked: &McpRequest) -> ExchangeResult {
    let level = asked
        .level
        .ok_or_else(|| McpFault::invalid_params("`level` is missing"))?;
    if let Some(stay) = &peer.stay {
        stay.set_level(level);
    }
    Ok(McpReply::Text("{}".to_owned()))
}

async fn subscribe(peer: &McpPeer, asked: &McpRequest, outlet: &ExchangeOutlet) -> ExchangeResult {
    let uri = asked.uri()?;
    match asked.method == McpMethod::Subscribe {
        true => subscriptions::subscribe(peer, uri, outlet).await?,
        false => subscriptions::unsubscribe(peer, uri, outlet).await?,
    }
    Ok(McpReply::Text("{}".to_owned()))
}

/// The capabilities that this host can serve now.
fn capabilities(peer: &McpPeer) -> Value {
    let abilities = companions::abilities(peer);
    let mut told = json!({
        "tools": { "listChanged": true },
        "resources": { "listChanged": true, "subscribe": abilities.subscriptions },
        "logging": {},
    });
    if abilities.prompts {
        told["prompts"] = json!({ "listChanged": true });
    }
    if abilities.completions {
        told["completions"] = json!({});
    }
    told
}

/// Hints for a model before its first call.
const INSTRUCTIONS: &str = "Every call passes this host's rules and is on record. A call that needs approval answers \
    `approval_pending` until an operator has decided; send it again with the same arguments then. Results that are too \
    large to show are linked as resources and can be read in parts.";

fn discover(peer: &McpPeer) -> McpReply {
    let told = json!({
        "supportedVersions": version::supported(),
        "capabilities": capabilities(peer),
        "instructions": INSTRUCTIONS,
    });
    McpReply::Text(wire::json(&cached(told, peer, listing::FRESH_FOR_MS)))
}

/// The answer to a handshake.
fn welcome(peer: &McpPeer) -> McpReply {
    McpReply::Text(wire::json(&json!({
        "protocolVersion": peer.version.as_str(),
        "capabilities": capabilities(peer),
        "serverInfo": result::THIS_SERVER,
        "instructions": INSTRUCTIONS,
    })))
}

/// The fields of every result in the stateless era, as the end of an object; with the time to live if the result can be
/// cached. A result depends on the caller's surface, so it must not be cached for other callers.
fn fields(fresh_for_ms: Option<u64>) -> String {
    let kept = fresh_for_ms
        .map(|ms| format!(r#""ttlMs":{ms},"cacheScope":"private","#))
        .unwrap_or_default();
    let meta = json!({ result::SERVER_INFO: result::THIS_SERVER });
    format!(r#""resultType":"complete",{kept}"_meta":{meta}"#)
}

/// Completes a result in the form of the client's era.
fn complete(mut told: Value, peer: &McpPeer) -> Value {
    let Some(object) = told.as_object_mut() else {
        return told;
    };
    if !peer.is_modern() {
        ["resultType", "ttlMs", "cacheScope"]
            .iter()
            .for_each(|key| drop(object.remove(*key)));
        return told;
    }
    object.insert("resultType".to_owned(), json!("complete"));
    let meta = object
        .entry("_meta")
        .or_insert_with(|| Value::Object(Map::new()));
    if let Some(meta) = meta.as_object_mut() {
        meta.insert(result::SERVER_INFO.to_owned(), json!(result::THIS_SERVER));
    }
    told
}

/// Completes a result that can be cached. The time to live of its source takes precedence.
fn cached(told: Value, peer: &McpPeer, fresh_for_ms: u64) -> Value {
    let mut told = complete(told, peer);
    if let (true, Some(object)) = (peer.is_modern(), told.as_object_mut()) {
        if !object.get("ttlMs").is_some_and(Value::is_u64) {
            object.insert("ttlMs".to_owned(), json!(fresh_for_ms));
        }
        object.insert("cacheScope".to_owned(), json!("private"));
    }
    told
}
