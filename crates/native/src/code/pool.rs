//! The worker processes. From its first run on a worker belongs to one session, because code of that session may have
//! changed its memory. Keeping it only saves the start of a process for the session's next run.

use std::{
    collections::HashMap,
    io,
    path::PathBuf,
    sync::{Arc, Weak},
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use tokio::{
    runtime::Handle,
    sync::{OwnedSemaphorePermit, Semaphore},
};
use toolpost_model::SessionId;

use super::worker_process::WorkerProcess;

/// The most workers that run code at the same time.
const AT_ONCE: usize = 32;
/// The most workers that wait for their session's next run. A caller may open many sessions and run code once in each.
const MOST_IDLE: usize = 8;
/// How long a worker waits for its session's next run.
const IDLE: Duration = Duration::from_secs(120);
/// The time between two sweeps for idle workers.
const SWEEP: Duration = Duration::from_secs(30);

/// Whether a worker is kept ready for the next session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SpareWorker {
    Ready,
    None,
}

/// The workers of a host.
#[derive(Clone)]
pub(super) struct CodeWorkerPool(Arc<CodePoolCore>);

struct CodePoolCore {
    program: PathBuf,
    memory: u64,
    wanted: SpareWorker,
    state: Mutex<CodePoolState>,
    permits: Arc<Semaphore>,
}

#[derive(Default)]
struct CodePoolState {
    /// A worker that is locked down and has no session yet.
    spare: Option<WorkerProcess>,
    /// At most one worker per session.
    idle: HashMap<SessionId, IdleWorker>,
    refilling: bool,
    sweeping: bool,
}

struct IdleWorker {
    worker: WorkerProcess,
    since: Instant,
}

/// A worker for one run. Dropping it kills the worker; [`WorkerLease::give_back`] keeps it for the session.
pub(super) struct WorkerLease {
    pub(super) worker: WorkerProcess,
    session: SessionId,
    pool: CodeWorkerPool,
    _permit: OwnedSemaphorePermit,
}

impl CodeWorkerPool {
    pub(super) fn new(program: PathBuf, memory: u64, wanted: SpareWorker) -> Self {
        let permits = Arc::new(Semaphore::new(AT_ONCE));
        let pool = Self(Arc::new(CodePoolCore {
            program,
            memory,
            wanted,
            state: Mutex::default(),
            permits,
        }));
        pool.refill();
        pool
    }

    /// A worker for a run of this session: its idle one, the spare one, or a new one.
    pub(super) async fn take(&self, session: &SessionId) -> io::Result<WorkerLease> {
        let permit = Arc::clone(&self.0.permits)
            .acquire_owned()
            .await
            .map_err(io::Error::other)?;
        let found = self.0.found(session);
        let worker = match found {
            Some(worker) => worker,
            None => WorkerProcess::start(&self.0.program, self.0.memory)?,
        };
        Ok(WorkerLease {
            worker,
            session: session.clone(),
            pool: self.clone(),
            _permit: permit,
        })
    }

    /// Starts the spare worker if there is none, so that the first run of the next session begins at once. Without a
    /// runtime nothing can wait for it to be ready; the first run calls this again.
    fn refill(&self) {
        let Ok(runtime) = Handle::try_current() else {
            return;
        };
        if self.0.wanted == SpareWorker::None {
            return;
        }
        {
            let mut state = self.0.state.lock();
            if state.refilling || state.spare.is_some() {
                return;
            }
            state.refilling = true;
        }
        let pool = Arc::downgrade(&self.0);
        runtime.spawn(async move {
            let Some((program, memory)) = pool
                .upgrade()
                .map(|pool| (pool.program.clone(), pool.memory))
            else {
                return;
            };
            let mut started = WorkerProcess::start(&program, memory).ok();
            if let Some(worker) = &mut started
                && worker.wire.ready().await.is_err()
            {
                started = None;
            }
            if let Some(pool) = pool.upgrade() {
                let mut state = pool.state.lock();
                state.refilling = false;
                state.spare = started;
            }
        });
    }

    /// Ends the session's worker.
    pub(super) fn close(&self, session: &SessionId) {
        let closed = self.0.state.lock().idle.remove(session);
        drop(closed);
    }

    fn keep(&self, session: SessionId, worker: WorkerProcess) {
        let surplus = {
            let mut state = self.0.state.lock();
            if !state.sweeping {
                state.sweeping = true;
                tokio::spawn(sweep(Arc::downgrade(&self.0)));
            }
            let longest = (state.idle.len() >= MOST_IDLE).then(|| {
                let idle = state.idle.iter();
                idle.min_by_key(|(_, idle)| idle.since)
                    .map(|(session, _)| session.clone())
            });
            let longest = longest
                .flatten()
                .and_then(|session| state.idle.remove(&session));
            let former = state.idle.insert(
                session,
                IdleWorker {
                    worker,
                    since: Instant::now(),
                },
            );
            [longest, former]
        };
        // Dropping a worker kills a process, which must not happen under the lock.
        drop(surplus);
    }
}

impl CodePoolCore {
    fn found(&self, session: &SessionId) -> Option<WorkerProcess> {
        let (own, spare) = {
            let mut state = self.state.lock();
            let own = state.idle.remove(session).map(|idle| idle.worker);
            let spare = if own.is_none() {
                state.spare.take()
            } else {
                None
            };
            (own, spare)
        };
        own.or(spare)
            .and_then(|mut worker| worker.is_alive().then_some(worker))
    }
}

impl WorkerLease {
    /// Returns a healthy worker after its run, for the session's next run.
    pub(super) fn give_back(self) {
        let Self {
            worker,
            session,
            pool,
            ..
        } = self;
        pool.keep(session, worker);
        pool.refill();
    }

    /// Takes a worker that must not be used again.
    pub(super) fn into_worker(self) -> WorkerProcess {
        let Self { worker, pool, .. } = self;
        pool.refill();
        worker
    }
}

async fn sweep(pool: Weak<CodePoolCore>) {
    loop {
        tokio::time::sleep(SWEEP).await;
        let Some(pool) = pool.upgrade() else { return };
        let mut state = pool.state.lock();
        state.idle.retain(|_, idle| idle.since.elapsed() < IDLE);
        if state.idle.is_empty() {
            state.sweeping = false;
            return;
        }
    }
}
