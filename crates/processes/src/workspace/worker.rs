//! Runs the blocking work of the file tools, and stops it when its result is no longer needed.
//!
//! Every file operation goes through [`on_worker`], on a few threads of the workspace. Tokio's blocking pool could do
//! the work, but other code shares its threads, so they cannot be confined for good. These threads can, as a second
//! wall behind the path rules.

use std::{
    collections::VecDeque,
    ffi::OsString,
    io,
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Instant,
};

use cap_std::fs::Dir;
use parking_lot::{Condvar, Mutex};
use tokio::sync::{Semaphore, oneshot};
use toolpost_model::{CallContext, ErrorClass, ResourceAccess, ToolFailure, ToolProgress};

use super::{
    PlaceCaution, PlaceEffect, PlaceWarning, Workspace, WorkspaceRoot,
    failure::PathError,
    locate::{PathTarget, ReadableTarget},
    named::{ExistingPathEntry, cautions_beneath},
};

/// The most threads of one workspace. Disks gain nothing from more, and a hung network mount does not block other
/// pools.
const THREADS: usize = 8;

/// Runs blocking work on a worker thread.
pub async fn on_worker<T, W>(
    workspace: &Workspace,
    context: CallContext,
    work: W,
) -> Result<T, ToolFailure>
where
    T: Send + 'static,
    W: FnOnce(&StopSign) -> Result<T, ToolFailure> + Send + 'static,
{
    let abandoned = Arc::new(AtomicBool::new(false));
    let _set_when_dropped = AbandonFlag(abandoned.clone());
    let stop = StopSign {
        has_path_rules: context.has_path_rules(),
        context,
        abandoned,
    };
    let workers = workspace.workers();
    // If all threads are busy, the call waits for a permit and not in the queue. If its future is dropped while it
    // waits, nothing remains of it; a queued job would remain with its context and run before the jobs of other
    // callers. The job owns the permit until it ends, even if its caller is gone by then, so the queue never has more
    // jobs than there can be threads.
    let place = workers.places.clone().acquire_owned().await;
    let place = place.map_err(|_| worker_stopped("was shut down"))?;
    let (answer, result) = oneshot::channel();
    let job = move || {
        let _until_the_end = place;
        if !stop.abandoned.load(Ordering::Relaxed) {
            let _ = answer.send(work(&stop));
        }
    };
    workers.run(Box::new(job))?;
    result
        .await
        .unwrap_or_else(|_| Err(worker_stopped("panicked")))
}

fn worker_stopped(what: &str) -> ToolFailure {
    ToolFailure::new(format!("the file worker {what} before it was done")).code("worker_stopped")
}

/// The threads of one workspace. They are started when needed and end when this is dropped. The stop sign of their
/// present work ends it.
pub(crate) struct FileWorkers {
    shared: Arc<FileWorkerPool>,
    /// One permit per possible thread, so that the queue is never longer than that.
    places: Arc<Semaphore>,
}

struct FileWorkerPool {
    roots: Vec<Arc<WorkspaceRoot>>,
    queue: Mutex<FileJobQueue>,
    wake: Condvar,
}

#[derive(Default)]
struct FileJobQueue {
    jobs: VecDeque<FileJob>,
    threads: usize,
    idle: usize,
    closed: bool,
}

type FileJob = Box<dyn FnOnce() + Send>;

impl FileWorkers {
    pub(super) fn new(roots: Vec<Arc<WorkspaceRoot>>) -> Self {
        let shared = FileWorkerPool {
            roots,
            queue: Mutex::default(),
            wake: Condvar::new(),
        };
        Self {
            shared: Arc::new(shared),
            places: Arc::new(Semaphore::new(THREADS)),
        }
    }

    fn run(&self, job: FileJob) -> Result<(), ToolFailure> {
        let mut queue = self.shared.queue.lock();
        queue.jobs.push_back(job);
        if queue.jobs.len() > queue.idle && queue.threads < THREADS {
            match self.start() {
                Ok(()) => queue.threads += 1,
                // One of the running threads takes the job later.
                Err(_) if queue.threads > 0 => {}
                Err(error) => {
                    queue.jobs.pop_back();
                    let message = format!("no thread could be started to work on files: {error}");
                    return Err(ToolFailure::new(message).code("worker_stopped").untouched());
                }
            }
        }
        drop(queue);
        self.shared.wake.notify_one();
        Ok(())
    }

    fn start(&self) -> io::Result<()> {
        let shared = self.shared.clone();
        thread::Builder::new()
            .name("toolpost-files".to_owned())
            .spawn(move || shared.work())
            .map(|_| ())
    }
}

impl Drop for FileWorkers {
    fn drop(&mut self) {
        self.shared.queue.lock().closed = true;
        self.shared.wake.notify_all();
    }
}

impl std::fmt::Debug for FileWorkers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Workers")
            .field("threads", &self.shared.queue.lock().threads)
            .finish()
    }
}

impl FileWorkerPool {
    /// The loop of a thread.
    fn work(&self) {
        confine(&self.roots);
        while let Some(job) = self.next() {
            // The caller gets an error because the answer is missing; the thread goes on.
            let _ = catch_unwind(AssertUnwindSafe(job));
        }
    }

    fn next(&self) -> Option<FileJob> {
        let mut queue = self.queue.lock();
        loop {
            if let Some(job) = queue.jobs.pop_front() {
                return Some(job);
            }
            if queue.closed {
                queue.threads -= 1;
                return None;
            }
            queue.idle += 1;
            self.wake.wait(&mut queue);
            queue.idle -= 1;
        }
    }
}

/// Confines the calling thread to the roots for good. This is a second wall: without Landlock it is missing, and the
/// path rules still apply. It cannot close a read-only root inside of a writable one; there only the path rules apply.
fn confine(roots: &[Arc<WorkspaceRoot>]) {
    let root = |root: &Arc<WorkspaceRoot>| toolpost_sandbox::SandboxRoot {
        path: root.reachable_path(),
        access: root.access,
    };
    let roots: Vec<_> = roots.iter().map(root).collect();
    toolpost_sandbox::confine_thread(&roots);
}

/// Stops running work: the call was canceled, or its future was dropped at the deadline. A blocking thread does not
/// notice the drop by itself; without this sign a write could be committed after the caller was told that the call
/// timed out.
pub struct StopSign {
    context: CallContext,
    abandoned: Arc<AtomicBool>,
    /// Read once, because most calls have no path rules and a search checks every file.
    has_path_rules: bool,
}

/// The call was canceled.
#[derive(Debug, thiserror::Error)]
#[error("the call was canceled before anything was changed")]
pub struct CallStopError;

/// Why work ended early. The caller turns this into an error with the path.
#[derive(Debug)]
pub enum FileWorkInterruption {
    /// The call was canceled.
    Stopped(CallStopError),
    /// The system's error.
    Io(io::Error),
}

impl From<CallStopError> for FileWorkInterruption {
    fn from(stopped: CallStopError) -> Self {
        Self::Stopped(stopped)
    }
}

impl From<io::Error> for FileWorkInterruption {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl StopSign {
    /// Fails if the work should stop. Call it before every chunk and right before a change becomes visible.
    pub fn check(&self) -> Result<(), CallStopError> {
        match self.context.is_canceled() || self.abandoned.load(Ordering::Relaxed) {
            true => Err(CallStopError),
            false => Ok(()),
        }
    }

    /// Fails if `place` is protected and the decision did not cover that, because the name led to another place then.
    pub fn as_decided(
        &self,
        workspace: &Workspace,
        given: &str,
        place: &Path,
    ) -> Result<(), PathError> {
        let is_known = |warning: PlaceWarning| self.is_decided(workspace, place, warning.effect);
        match self.context.cautioned() || workspace.warning(place).is_none_or(is_known) {
            true => Ok(()),
            false => Err(PathError::Swapped {
                given: given.to_owned(),
            }),
        }
    }

    /// Like [`as_decided`](Self::as_decided), for a directory with everything in it, under each of its `places`.
    pub fn as_decided_beneath(
        &self,
        workspace: &Workspace,
        (given, named): (&str, &ExistingPathEntry),
        places: &[&Path],
    ) -> Result<(), PathError> {
        if self.context.cautioned() {
            return Ok(());
        }
        places
            .iter()
            .try_for_each(|place| self.as_decided(workspace, given, place))?;
        let inner = (&named.parent, named.name.as_os_str());
        let found = if named.is_directory() {
            cautions_beneath(workspace, inner, places)
        } else {
            Vec::new()
        };
        let is_known =
            |caution: &PlaceCaution| self.is_decided(workspace, &caution.place, caution.effect);
        match found.iter().all(is_known) {
            true => Ok(()),
            false => Err(PathError::Swapped {
                given: given.to_owned(),
            }),
        }
    }

    /// Whether the call was decided with a caution about this place.
    fn is_decided(&self, workspace: &Workspace, place: &Path, effect: PlaceEffect) -> bool {
        match effect {
            PlaceEffect::RunsCode => self.context.cautioned(),
            PlaceEffect::SteersAgents => self.context.cautioned_about(&workspace.absolute(place)),
        }
    }

    /// Whether rules close some paths to this call.
    pub fn has_path_rules(&self) -> bool {
        self.has_path_rules
    }

    /// Whether rules let the call use a place that it found.
    pub fn may(&self, workspace: &Workspace, place: &Path, access: ResourceAccess) -> bool {
        !self.has_path_rules || self.context.may_use(&workspace.absolute(place), access)
    }

    /// Whether a path that rules close to the call can be at a place or beneath it.
    pub fn may_meet_kept(&self, workspace: &Workspace, place: &Path) -> bool {
        let place = workspace.absolute(place);
        let meets = |kept: &PathBuf| kept.starts_with(&place) || place.starts_with(kept);
        self.has_path_rules && self.context.kept_places().iter().any(meets)
    }

    /// Fails if rules close `place` to the call. The decision covered the path as it was then; this covers the place
    /// that the name leads to now.
    pub fn require(
        &self,
        workspace: &Workspace,
        (given, place): (&str, &Path),
        access: ResourceAccess,
    ) -> Result<(), PathError> {
        match self.may(workspace, place, access) {
            true => Ok(()),
            false => Err(PathError::Kept {
                given: given.to_owned(),
            }),
        }
    }

    /// Resolves `given` to its real path and target, for a call that may read it.
    pub fn locate_readable(
        &self,
        workspace: &Workspace,
        given: &str,
    ) -> Result<(PathBuf, ReadableTarget), PathError> {
        let located = workspace.locate(&workspace.request(given)?)?;
        let place = (given, &*located.whole_path());
        self.require(workspace, place, ResourceAccess::Read)?;
        let path = located.path;
        match located.found {
            PathTarget::Directory(dir) => Ok((path, ReadableTarget::Directory(dir))),
            PathTarget::Entry { parent, name, stat } => {
                Ok((path, ReadableTarget::Entry { parent, name, stat }))
            }
            PathTarget::Missing { parent, rest } => {
                Err(self.not_found(workspace, given, (&parent, &path), &rest))
            }
        }
    }

    /// The error for `rest`, which is missing in `parent` at `at`. Suggests names that the call may read.
    pub fn not_found(
        &self,
        workspace: &Workspace,
        given: &str,
        parent_at: (&Dir, &Path),
        rest: &[OsString],
    ) -> PathError {
        PathError::not_found(given.to_owned(), parent_at, rest, |place| {
            self.may(workspace, place, ResourceAccess::Read)
        })
    }

    /// The deadline of the call.
    pub fn deadline(&self) -> Instant {
        self.context.deadline()
    }

    /// Reports the progress of the work.
    pub fn progress(&self, progress: ToolProgress) {
        self.context.progress(progress);
    }
}

impl CallStopError {
    /// The error as the failure of a call.
    pub fn into_failure(self) -> ToolFailure {
        ToolFailure::of(ErrorClass::Canceled, self.to_string()).untouched()
    }
}

struct AbandonFlag(Arc<AtomicBool>);

impl Drop for AbandonFlag {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
