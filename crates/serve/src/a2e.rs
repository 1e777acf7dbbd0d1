//! A2E: tools for agents that use the agent-to-environment protocol, over HTTP with server-sent events, over stdio, and
//! in the same process.
//!
//! One `A2eConversation` is the session of one agent on any transport. It authenticates the agent, passes messages to
//! the [`A2eCapability`] that handles them, and has an outbox for messages to the agent. The transports only convert
//! between bytes and messages, with `toolpost_a2e::codec`.

mod audit;
mod capability;
mod conversation;
mod http;
mod in_process;
mod outbox;
mod plugin_messages;
mod relayed;
mod sessions;
mod stdio;
mod tools;
mod transport;
mod wire;

use std::{
    collections::HashMap,
    sync::{
        Arc, Weak,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use toolpost_core::{Host, RecordedResult};
use toolpost_model::SessionId;
use toolpost_modules::LoadedPlugin;
use uuid::Uuid;

pub(crate) use audit::A2eAuditFile;
pub(crate) use capability::definition;
pub use capability::{A2eCapability, A2ePeer, CapabilityAnswer, CapabilityResponse};
pub(crate) use http::{ROUTES, routes, tend};
pub use in_process::connect;
pub(crate) use in_process::link;
pub(crate) use plugin_messages::FacePluginPort;
pub(crate) use relayed::A2eRelay;
pub(crate) use stdio::{InputLine, converse, converse_joined, read_lines};

use crate::streams::OpenStreams;
use capability::CapabilityRegistry;
use conversation::A2eConversation;
use sessions::A2eHttpSessions;
use tools::ToolsCapability;

#[derive(Default)]
pub(crate) struct A2eFaceSettings {
    /// The host's name, if its operator set one.
    pub(crate) host_id: Option<String>,
    /// Whether to refuse messages of capabilities that were not negotiated.
    pub(crate) require_negotiated: bool,
    /// The most concurrent calls of a session.
    pub(crate) max_parallel: usize,
    /// The longest message, in bytes.
    pub(crate) message_limit: usize,
    /// The file that gets each request and its end.
    pub(crate) audit: A2eAuditFile,
    /// The time before the start during which no host used the data directory, if it is known.
    pub(crate) unattended: Option<Duration>,
    /// The entry of the host's own tools in the handshake. `None`: only plugins provide tools.
    pub(crate) tools: Option<ToolsEntry>,
    /// The plugins of an A2E host file, in its order.
    pub(crate) plugins: Vec<LoadedPlugin>,
    /// The counter of open HTTP streams.
    pub(crate) streams: Option<OpenStreams>,
}

/// The entry of the native tools in the registry.
#[derive(Clone)]
pub(crate) struct ToolsEntry {
    pub(crate) plugin: String,
    pub(crate) priority: i32,
    pub(crate) exclusive: bool,
}

impl Default for ToolsEntry {
    fn default() -> Self {
        Self {
            plugin: "toolpost".to_owned(),
            priority: 0,
            exclusive: false,
        }
    }
}

pub(crate) struct A2eServerFace {
    host: Host,
    registry: CapabilityRegistry,
    settings: A2eFaceSettings,
    /// Distinguishes event ids of this run of the host from those of other runs.
    epoch: String,
    since: Instant,
    /// The time before the start without a host.
    away: Duration,
    conversations: AtomicU64,
    sessions: A2eHttpSessions,
    /// The conversations of admitted agents, by the session id on record.
    by_session: Mutex<HashMap<SessionId, Weak<A2eConversation>>>,
}

impl A2eServerFace {
    /// At equal priority, `capabilities` come before the host's own tools.
    pub(crate) fn new(
        host: Host,
        settings: A2eFaceSettings,
        capabilities: Vec<Arc<dyn A2eCapability>>,
    ) -> Arc<Self> {
        let ToolsEntry {
            plugin,
            priority,
            exclusive,
        } = settings.tools.clone().unwrap_or_default();
        let tools = Arc::new(ToolsCapability {
            plugin,
            priority,
            exclusive,
            is_entry: settings.tools.is_some(),
        });
        let away = host
            .away_for()
            .min(settings.unattended.unwrap_or(Duration::MAX));
        let epoch = Uuid::new_v4().simple().to_string().split_off(24);
        let registry = CapabilityRegistry::new(capabilities, tools, &settings.plugins);
        Arc::new(Self {
            host,
            registry,
            settings,
            epoch,
            since: Instant::now(),
            away,
            conversations: AtomicU64::new(0),
            sessions: A2eHttpSessions::default(),
            by_session: Mutex::default(),
        })
    }

    pub(crate) fn plugins(&self) -> &[LoadedPlugin] {
        &self.settings.plugins
    }

    fn is_of_plugin(&self, answer: &RecordedResult) -> bool {
        let tool = answer.result().tool_id.as_ref();
        tool.is_some_and(|id| {
            self.plugins()
                .iter()
                .any(|plugin| plugin.name == id.namespace())
        })
    }

    /// Adds the conversation of an admitted agent.
    fn know(&self, session: &SessionId, conversation: &Arc<A2eConversation>) {
        let mut known = self.by_session.lock();
        known.retain(|_, conversation| conversation.strong_count() > 0);
        known.insert(session.clone(), Arc::downgrade(conversation));
    }

    /// The conversation of a session's agent, if it is connected.
    fn conversation_of(&self, session: &SessionId) -> Option<Arc<A2eConversation>> {
        self.by_session.lock().get(session)?.upgrade()
    }

    /// The first number of the next conversation.
    fn next_numbers(&self) -> u64 {
        self.conversations.fetch_add(1, Ordering::Relaxed) << 32
    }

    /// Ends every stream after its reader has received the pending messages. Called after the last call of the host.
    pub(crate) fn close(&self) {
        self.sessions.close_all();
        self.settings.audit.close();
    }
}
