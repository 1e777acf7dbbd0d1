//! The mounts of the sessions. The first listing needs a mount before there is a session; the first session takes that
//! one over, so that a program with one agent mounts its modules once.

use std::{collections::HashMap, sync::Arc};

use parking_lot::Mutex;
use tokio::{sync::OnceCell, task::JoinHandle};
use toolpost_model::{SessionId, SourceFeed, SourceNotice};

use super::{RustModulesState, mounted::MountedSet};

type RustMountCell = Arc<OnceCell<Arc<MountedSet>>>;

#[derive(Default)]
pub(super) struct RustModuleMounts {
    /// The mount for the first listing.
    first: OnceCell<Arc<MountedSet>>,
    state: Mutex<RustMountTableState>,
}

#[derive(Default)]
struct RustMountTableState {
    /// A session took the first mount.
    is_first_taken: bool,
    open: HashMap<SessionId, RustMountCell>,
    ending: Vec<JoinHandle<Vec<String>>>,
    feed: Option<SourceFeed>,
}

impl RustModuleMounts {
    /// The mount for listing tools.
    pub(super) async fn first(&self, set: &RustModulesState) -> Arc<MountedSet> {
        Arc::clone(
            self.first
                .get_or_init(|| async { Arc::new(MountedSet::mount(set).await) })
                .await,
        )
    }

    /// The mount of a session, made if there is none.
    pub(super) async fn of(&self, session: &SessionId, set: &RustModulesState) -> Arc<MountedSet> {
        let cell = Arc::clone(self.state.lock().open.entry(session.clone()).or_default());
        let make = || async {
            let is_taken = self.state.lock().is_first_taken;
            let first = if is_taken {
                None
            } else {
                Some(self.first(set).await)
            };
            // Several sessions may get here with the same first mount. The flag is replaced under the lock, so only
            // one of them takes that mount, and the others make their own.
            let mounted = match first
                .filter(|_| !std::mem::replace(&mut self.state.lock().is_first_taken, true))
            {
                Some(first) => first,
                None => Arc::new(MountedSet::mount(set).await),
            };
            mounted.adopt(session);
            mounted
        };
        Arc::clone(cell.get_or_init(make).await)
    }

    /// The mount of a session, if there is one.
    pub(super) fn known(&self, session: &SessionId) -> Option<Arc<MountedSet>> {
        self.state
            .lock()
            .open
            .get(session)
            .and_then(|cell| cell.get().cloned())
    }

    /// Whether an event has a handler in any mount.
    pub(super) fn concerns(&self, event: &str) -> bool {
        let concerned = |set: &Arc<MountedSet>| set.coordinator().hooks().concerns(event);
        self.first.get().is_some_and(concerned)
            || self
                .state
                .lock()
                .open
                .values()
                .filter_map(|cell| cell.get())
                .any(concerned)
    }

    /// Whether a module that should look at calls is missing in any mount, or may be missing because nothing is
    /// mounted yet.
    pub(super) fn lacks_hooks(&self) -> bool {
        self.first.get().is_none_or(|set| set.lacks_hooks())
            || self
                .state
                .lock()
                .open
                .values()
                .filter_map(|cell| cell.get())
                .any(|set| set.lacks_hooks())
    }

    /// Connects the feed for notices to the operator.
    pub(super) fn connect(&self, feed: SourceFeed) {
        self.state.lock().feed = Some(feed);
    }

    /// Ends a session: its mount is cleaned up in the background.
    pub(super) fn close(&self, session: &SessionId) {
        let mut state = self.state.lock();
        let Some(set) = state
            .open
            .remove(session)
            .and_then(|cell| cell.get().cloned())
        else {
            return;
        };
        state.ending.retain(|task| !task.is_finished());
        let feed = state.feed.clone();
        state.ending.push(tokio::spawn(async move {
            let failures = set.end().await;
            for failure in &failures {
                let line = format!("a module did not clean up: {failure}");
                feed.iter()
                    .for_each(|feed| feed.notify(SourceNotice::Log(line.clone())));
            }
            failures
        }));
    }

    /// Waits for every cleanup, and cleans up the mount that no session took.
    pub(super) async fn finish(&self) -> Vec<String> {
        let (ending, unused) = {
            let mut state = self.state.lock();
            let unused = !std::mem::replace(&mut state.is_first_taken, true);
            (std::mem::take(&mut state.ending), unused)
        };
        let mut failures = Vec::new();
        for task in ending {
            match task.await {
                Ok(failed) => failures.extend(failed),
                Err(error) => failures.push(format!("a cleanup did not finish: {error}")),
            }
        }
        if let Some(set) = self.first.get().filter(|_| unused) {
            failures.extend(set.end().await);
        }
        failures
    }
}
