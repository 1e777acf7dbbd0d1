//! A session: one agent's stay. Holds what it discovered, the sources opened for it, and the calls that are
//! under way under the caller's own request ids.

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

/// One agent's stay.
pub struct Session {
    scope: SessionScope,
    /// A mark of the credential it was opened with.
    credential: Option<String>,
    request: SurfaceRequest,
    /// The largest text of a result that its caller wants to see whole.
    inline_chars: Option<usize>,
    /// Deferred tools that were shown here and may be called.
    discovered: Mutex<HashSet<ToolId>>,
    surface: Mutex<Option<(u64, Arc<Surface>)>>,
    opened: Box<[OnceCell<Arc<dyn SourceSession>>]>,
    /// Calls under way with an id of the caller's own.
    pub(crate) requests: SessionRequests,
    rules: Mutex<SessionRules>,
    /// Calls that belong together.
    pub(crate) batches: SessionBatches,
    pub(crate) life: SessionLife,
}

/// Whether a session is in use, idle or ended.
pub(crate) struct SessionLife {
    /// Calls that run here, and faces that hold the session open.
    pub(crate) running: AtomicUsize,
    last_used: Mutex<Instant>,
    is_ended: AtomicBool,
}

/// What people who approved calls said for the whole session.
#[derive(Default)]
struct SessionRules {
    rules: Vec<Rule>,
    /// The host's engine with these rules, and which one of the host's it was made from.
    engine: Option<(u64, Arc<dyn PolicyEngine>)>,
}

/// A session that was told more rules than this forgets the oldest ones.
const MAX_RULES: usize = 256;

/// Where a session comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SessionOrigin {
    /// Opened in this host's life, under an id that was never used.
    Opened,
    /// Perhaps in an earlier one.
    Earlier,
}

/// Keeps a session in memory while somebody is connected to it.
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
        // Which tools are seen does not depend on it.
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

    /// Whose it is.
    pub fn principal(&self) -> &Principal {
        &self.scope.principal
    }

    /// What it asks of a surface.
    pub fn surface_request(&self) -> &SurfaceRequest {
        &self.request
    }

    /// The largest text of a result that its caller wants to see whole, where it said so.
    pub fn inline_chars(&self) -> Option<usize> {
        self.inline_chars
    }

    /// The surface, rebuilt when `generation` moved on.
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

    /// The engine that decides here: the host's own where nobody said anything for this session.
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

    /// Lets the session call these.
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

    /// Keeps the session in memory until the guard is dropped, however long nothing is called.
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

    /// Whether it was closed: nothing runs in it any more, whoever still holds it.
    pub fn is_ended(&self) -> bool {
        self.life.is_ended.load(Ordering::SeqCst)
    }

    /// Closes it for new calls, for good. What runs is told to stop, and then its sources are closed.
    pub(crate) fn end(&self) {
        self.life.is_ended.store(true, Ordering::SeqCst);
    }

    /// Ends what the sources still run for this session.
    pub(crate) fn close(&self) {
        for source in self.opened.iter().filter_map(OnceCell::get) {
            source.close();
        }
    }
}
