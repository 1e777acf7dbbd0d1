//! A session: the discovered tools, the opened sources and the calls under way of one agent.

use std::{
    collections::HashSet,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use tokio::sync::OnceCell;
use toolpost_model::{
    Principal, Rule, SessionId, SessionScope, Source, SourceError, SourceSession, SurfaceRequest,
    ToolId,
};

use crate::{
    catalog::Surface, host::InForce, invocation::SessionRequests, permission::PolicyEngine,
    port::SourceIndex, scheduling::batch::SessionBatches,
};

/// A span of calls of one principal with one surface.
pub struct Session {
    scope: SessionScope,
    /// A fingerprint of the credential that opened the session.
    credential: Option<String>,
    request: SurfaceRequest,
    /// The largest result text that the caller accepts inline.
    inline_chars: Option<usize>,
    /// Deferred tools that this session discovered and may call.
    discovered: Mutex<HashSet<ToolId>>,
    surface: Mutex<Option<(u64, Arc<Surface>)>>,
    opened: Box<[OnceCell<Arc<dyn SourceSession>>]>,
    /// Calls under way that carry a request id of the caller.
    pub(crate) requests: SessionRequests,
    rules: Mutex<SessionRules>,
    /// The batches of this session.
    pub(crate) batches: SessionBatches,
    pub(crate) life: SessionLife,
}

pub(crate) struct SessionLife {
    /// Running calls, plus the guards of connected faces.
    pub(crate) running: AtomicUsize,
    last_used: Mutex<Instant>,
    is_ended: AtomicBool,
}

/// The rules that operators approved for this session.
#[derive(Default)]
struct SessionRules {
    rules: Vec<Rule>,
    /// The engine with these rules, and the generation of the host's engine that it extends.
    engine: Option<(u64, Arc<dyn PolicyEngine>)>,
}

/// The largest number of session rules. A further rule replaces the oldest.
const MAX_RULES: usize = 256;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SessionOrigin {
    /// Opened in this host's life, under a new id.
    Opened,
    /// Opened in this life or an earlier one, so records of the session may exist.
    Earlier,
}

/// Keeps a session in memory while a client is connected to it.
pub struct SessionGuard(Arc<Session>);

impl Drop for SessionGuard {
    fn drop(&mut self) {
        self.0.touch();
        self.0.life.running.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Session {
    pub(crate) fn new(
        id: SessionId,
        principal: Principal,
        mut request: SurfaceRequest,
        sources: usize,
        origin: SessionOrigin,
    ) -> Self {
        request.role = principal.role;
        // Taken out of the request because it does not change the choice of tools.
        let inline_chars = request.inline_chars.take();
        Self {
            scope: SessionScope {
                session_id: id,
                principal,
            },
            credential: None,
            request,
            inline_chars,
            discovered: Mutex::default(),
            surface: Mutex::default(),
            opened: (0..sources).map(|_| OnceCell::new()).collect(),
            requests: SessionRequests::of(origin),
            rules: Mutex::default(),
            batches: SessionBatches::default(),
            life: SessionLife {
                running: AtomicUsize::new(0),
                last_used: Mutex::new(Instant::now()),
                is_ended: AtomicBool::new(false),
            },
        }
    }

    pub(crate) fn with_credential(mut self, credential: Option<String>) -> Self {
        self.credential = credential;
        self
    }

    pub(crate) fn credential(&self) -> Option<&str> {
        self.credential.as_deref()
    }

    /// The session's id.
    pub fn id(&self) -> &SessionId {
        &self.scope.session_id
    }

    /// The principal that opened the session.
    pub fn principal(&self) -> &Principal {
        &self.scope.principal
    }

    /// The surface that the session requested.
    pub fn surface_request(&self) -> &SurfaceRequest {
        &self.request
    }

    /// The largest result text that the caller accepts inline, if the caller set one.
    pub fn inline_chars(&self) -> Option<usize> {
        self.inline_chars
    }

    /// The surface, rebuilt when `generation` changed.
    pub(crate) fn surface(
        &self,
        generation: u64,
        build: impl FnOnce() -> Arc<Surface>,
    ) -> Arc<Surface> {
        let mut kept = self.surface.lock();
        match &*kept {
            Some((of, surface)) if *of == generation => Arc::clone(surface),
            _ => {
                let surface = build();
                *kept = Some((generation, Arc::clone(&surface)));
                surface
            }
        }
    }

    /// The engine for calls of this session. Without session rules it is the host's engine.
    pub(crate) fn engine(&self, host: &InForce) -> Arc<dyn PolicyEngine> {
        let mut own = self.rules.lock();
        if own.rules.is_empty() {
            return Arc::clone(&host.engine);
        }
        match &own.engine {
            Some((of, engine)) if *of == host.generation => Arc::clone(engine),
            _ => {
                let engine = host
                    .engine
                    .with_rules(&own.rules)
                    .unwrap_or_else(|| Arc::clone(&host.engine));
                own.engine = Some((host.generation, Arc::clone(&engine)));
                engine
            }
        }
    }

    /// Adds a rule for as long as the session is in memory.
    pub(crate) fn add_rule(&self, rule: Rule) {
        let mut own = self.rules.lock();
        let line = rule.to_string();
        own.rules.retain(|kept| kept.to_string() != line);
        if own.rules.len() >= MAX_RULES {
            own.rules.remove(0);
        }
        own.rules.push(rule);
        own.engine = None;
    }

    /// Marks deferred tools as discovered, so that the session may call them.
    pub(crate) fn discover(&self, tools: Vec<ToolId>) {
        self.discovered.lock().extend(tools);
    }

    pub(crate) fn has_discovered(&self, tool: &ToolId) -> bool {
        self.discovered.lock().contains(tool)
    }

    pub(crate) async fn open(
        &self,
        index: SourceIndex,
        source: &dyn Source,
    ) -> Result<Arc<dyn SourceSession>, SourceError> {
        let cell = &self.opened[index.0];
        cell.get_or_try_init(|| source.open(&self.scope))
            .await
            .cloned()
    }

    /// Keeps the session in memory until the guard is dropped, even if the session is idle.
    pub fn stay(self: &Arc<Self>) -> SessionGuard {
        self.life.running.fetch_add(1, Ordering::Relaxed);
        SessionGuard(Arc::clone(self))
    }

    pub(crate) fn touch(&self) {
        *self.life.last_used.lock() = Instant::now();
    }

    pub(crate) fn idle_time(&self) -> Duration {
        self.life.last_used.lock().elapsed()
    }

    pub(crate) fn is_idle_for(&self, time: Duration) -> bool {
        self.life.running.load(Ordering::Relaxed) == 0 && self.idle_time() >= time
    }

    /// Whether the session was closed. A closed session runs no calls, even while references to it exist.
    pub fn is_ended(&self) -> bool {
        self.life.is_ended.load(Ordering::SeqCst)
    }

    /// Closes the session for new calls, permanently. The host then cancels its running calls and closes its sources.
    pub(crate) fn end(&self) {
        self.life.is_ended.store(true, Ordering::SeqCst);
    }

    /// Closes the source sessions, which ends the processes that they run for this session.
    pub(crate) fn close(&self) {
        for source in self.opened.iter().filter_map(OnceCell::get) {
            source.close();
        }
    }
}
