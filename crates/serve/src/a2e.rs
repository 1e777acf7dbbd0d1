//! A2E: tools for agents that speak the agent-to-environment protocol, over HTTP with server-sent events, over
//! stdio, and in the same process.
//!
//! One `A2eConversation` is one agent's session, whatever it came over: it knows who
//! talks, hands messages to the [`A2eCapability`] that takes them, and has an outbox for what the agent is to hear.
//! The transports only carry: bytes to messages and back, in `toolpost_a2e::codec`.

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

/// How the face is set up.
#[derive(Default)]
pub(crate) struct A2eFaceSettings {
    /// The host's name, where its operator gave one.
    pub(crate) host_id: Option<String>,
    /// Refuse messages of a capability that was not negotiated.
    pub(crate) require_negotiated: bool,
    /// Calls of a session that run at the same time.
    pub(crate) max_parallel: usize,
    /// The longest message.
    pub(crate) message_limit: usize,
    /// Where each request and its end are noted, until the host ends.
    pub(crate) audit: A2eAuditFile,
    /// How long the data directory had been unattended at the start, where somebody knows.
    pub(crate) unattended: Option<Duration>,
    /// The entry of the host's own tools in the handshake. `None`: the tools are those of plugins.
    pub(crate) tools: Option<ToolsEntry>,
    /// The plugins of an A2E host file, in its order.
    pub(crate) plugins: Vec<LoadedPlugin>,
    /// Counts the streams over HTTP.
    pub(crate) streams: Option<OpenStreams>,
}

/// The built-in tools' entry in the registry.
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

/// What all sessions share.
pub(crate) struct A2eServerFace {
    host: Host,
    registry: CapabilityRegistry,
    settings: A2eFaceSettings,
    /// Tells the events of this life of the host from those of another.
    epoch: String,
    since: Instant,
    /// How long nobody was there before this.
    away: Duration,
    conversations: AtomicU64,
    sessions: A2eHttpSessions,
    /// Conversations of agents that came in, by the session in the host's records.
    by_session: Mutex<HashMap<SessionId, Weak<A2eConversation>>>,
}

impl A2eServerFace {
    /// `capabilities` come before the host's own tools where their priorities are equal.
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

    /// Whether the answer is that of a plugin's tool.
    fn is_of_plugin(&self, answer: &RecordedResult) -> bool {
        let tool = answer.result().tool_id.as_ref();
        tool.is_some_and(|id| {
            self.plugins()
                .iter()
                .any(|plugin| plugin.name == id.namespace())
        })
    }

    /// Remembers the conversation of an agent that came in.
    fn know(&self, session: &SessionId, conversation: &Arc<A2eConversation>) {
        let mut known = self.by_session.lock();
        known.retain(|_, conversation| conversation.strong_count() > 0);
        known.insert(session.clone(), Arc::downgrade(conversation));
    }

    /// The conversation of a session's agent, while there is one.
    fn conversation_of(&self, session: &SessionId) -> Option<Arc<A2eConversation>> {
        self.by_session.lock().get(session)?.upgrade()
    }

    /// Where the numbers of one more conversation begin.
    fn next_numbers(&self) -> u64 {
        self.conversations.fetch_add(1, Ordering::Relaxed) << 32
    }

    /// Lets every stream end once its reader has what is there. For the end of the host, after its last call.
    pub(crate) fn close(&self) {
        self.sessions.close_all();
        self.settings.audit.close();
    }
}
