//! A session: one agent's stay. Holds what it discovered, the sources opened for it, and the calls that are
//! under way under the caller's own request ids.

use std::{
    collections::{HashMap, HashSet},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use tokio::sync::{OnceCell, watch};
use toolpost_model::{
    Principal, RequestId, SessionId, SessionScope, Source, SourceError, SourceSession, SurfaceRequest, ToolId,
};

use crate::{call::Answer, catalog::Surface, flow::invocation::LiveCall, port::SourceIndex};

/// One agent's stay.
pub struct Session {
    scope: SessionScope,
    request: SurfaceRequest,
    /// Deferred tools that were shown here and may be called.
    discovered: Mutex<HashSet<ToolId>>,
    surface: Mutex<Option<(u64, Arc<Surface>)>>,
    opened: Box<[OnceCell<Arc<dyn SourceSession>>]>,
    requests: Mutex<HashMap<RequestId, UnderWay>>,
    pub(crate) running: AtomicUsize,
    last_used: Mutex<Instant>,
}

/// A call under way that a repeat of its request can wait for.
#[derive(Clone)]
pub(crate) struct UnderWay {
    pub(crate) digest: [u8; 32],
    pub(crate) live: Arc<LiveCall>,
    pub(crate) answer: watch::Receiver<Option<Arc<Answer>>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Session {
    pub(crate) fn new(
        id: SessionId,
        principal: Principal,
        mut request: SurfaceRequest,
        sources: usize,
    ) -> Self {
        request.role = principal.role;
        Self {
            scope: SessionScope { session_id: id, principal },
            request,
            discovered: Mutex::default(),
            surface: Mutex::default(),
            opened: (0..sources).map(|_| OnceCell::new()).collect(),
            requests: Mutex::default(),
            running: AtomicUsize::new(0),
            last_used: Mutex::new(Instant::now()),
        }
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

    /// The surface, rebuilt when `generation` moved on.
    pub(crate) fn surface(&self, generation: u64, build: impl FnOnce() -> Arc<Surface>) -> Arc<Surface> {
        let mut kept = lock(&self.surface);
        match &*kept {
            Some((of, surface)) if *of == generation => Arc::clone(surface),
            _ => {
                let surface = build();
                *kept = Some((generation, Arc::clone(&surface)));
                surface
            }
        }
    }

    pub(crate) fn discover(&self, tools: impl Iterator<Item = ToolId>) {
        lock(&self.discovered).extend(tools);
    }

    pub(crate) fn has_discovered(&self, tool: &ToolId) -> bool {
        lock(&self.discovered).contains(tool)
    }

    pub(crate) async fn open(
        &self,
        index: SourceIndex,
        source: &dyn Source,
    ) -> Result<Arc<dyn SourceSession>, SourceError> {
        let cell = &self.opened[index.0];
        cell.get_or_try_init(|| source.open(&self.scope)).await.cloned()
    }

    /// Takes the request id for a new call, or tells of the call that has it.
    pub(crate) fn claim(&self, id: &RequestId, call: UnderWay) -> Option<UnderWay> {
        let mut requests = lock(&self.requests);
        match requests.get(id) {
            Some(earlier) => Some(earlier.clone()),
            None => {
                requests.insert(id.clone(), call);
                None
            }
        }
    }

    pub(crate) fn release(&self, id: &RequestId) {
        lock(&self.requests).remove(id);
    }

    pub(crate) fn touch(&self) {
        *lock(&self.last_used) = Instant::now();
    }

    pub(crate) fn idle_time(&self) -> Duration {
        lock(&self.last_used).elapsed()
    }

    pub(crate) fn is_idle_for(&self, time: Duration) -> bool {
        self.running.load(Ordering::Relaxed) == 0 && self.idle_time() >= time
    }

    /// Ends what the sources still run for this session.
    pub(crate) fn close(&self) {
        for source in self.opened.iter().filter_map(OnceCell::get) {
            source.close();
        }
    }
}
