//! A link to a server, for all sessions or for one. It connects when a call needs it, and again after a loss.
//!
//! The pause between attempts grows with each failure. A call does not wait for the end of the pause: it causes an
//! attempt of its own, at most one a second, and otherwise fails at once with the time of the next attempt.

use std::{
    hash::{BuildHasher as _, RandomState},
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use toolpost_model::{ErrorClass, SessionId, SourceState, ToolFailure};
use toolpost_processes::PathGuards;

use super::{
    McpStartPolicy,
    binding::ServedCallers,
    desk::UpstreamNotice,
    live::{InUse, LiveUpstream},
    server::McpUpstream,
    watched::WatchedResources,
};

/// The pause after the first failure; each later one is twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// Calls cause at most one attempt in this time.
const BETWEEN_TRIES: Duration = Duration::from_secs(1);

pub(super) struct UpstreamLink {
    me: Weak<Self>,
    server: Weak<McpUpstream>,
    state: Arc<tokio::sync::Mutex<UpstreamLinkState>>,
    shown: Mutex<UpstreamLinkStatus>,
    trying: AtomicBool,
    /// The connection of `state`, for readers that cannot wait for its lock.
    current: Mutex<Weak<LiveUpstream>>,
    /// The callers that it serves.
    pub(super) audience: ServedCallers,
    /// The subscriptions, which outlast a connection.
    pub(super) watched: WatchedResources,
}

#[derive(Default)]
struct UpstreamLinkState {
    live: Option<Arc<LiveUpstream>>,
    /// Failures in a row.
    failures: u32,
    last_try: Option<Instant>,
    next_try: Option<Instant>,
    /// Why the last try failed, or the last connection ended.
    last: Option<ToolFailure>,
    closed: bool,
    started: bool,
}

/// Whether a caller gets a program that is outdated and cannot restart because calls run in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OutdatedProgram {
    /// The program is used: by the host itself, by a caller from whom rules hide nothing, or for a call that was
    /// decided with this caution.
    Tolerated,
    /// The call fails.
    Refused,
}

/// The state for health reports, readable without the lock of `state`.
#[derive(Clone, Debug)]
pub(super) struct UpstreamLinkStatus {
    pub(super) state: SourceState,
    pub(super) message: Option<String>,
    pub(super) restarts: u64,
}

impl UpstreamLink {
    pub(super) fn new(server: Weak<McpUpstream>) -> Arc<Self> {
        Arc::new_cyclic(|me| Self {
            me: Weak::clone(me),
            server,
            state: Arc::default(),
            shown: Mutex::new(UpstreamLinkStatus {
                state: SourceState::Idle,
                message: None,
                restarts: 0,
            }),
            trying: AtomicBool::new(false),
            current: Mutex::default(),
            audience: ServedCallers::default(),
            watched: WatchedResources::default(),
        })
    }

    pub(super) fn shown(&self) -> UpstreamLinkStatus {
        self.shown.lock().clone()
    }

    fn show(&self, state: SourceState, message: Option<String>) {
        let mut shown = self.shown.lock();
        (shown.state, shown.message) = (state, message);
    }

    /// The connection, if one is open.
    pub(super) async fn open(&self) -> Option<Arc<LiveUpstream>> {
        self.state
            .lock()
            .await
            .live
            .clone()
            .filter(|live| live.is_open())
    }

    /// The connection, if calls use it now.
    pub(super) fn busy(&self) -> Option<Arc<LiveUpstream>> {
        let current = self.current.lock().upgrade();
        current.filter(|live| live.is_open() && live.is_busy())
    }

    /// Compares the guards of the program with the paths that rules hide now.
    pub(super) async fn compare_guards(&self, live: &LiveUpstream) {
        let Some(server) = self.server.upgrade() else {
            return;
        };
        // An error needs no handling here: `live` searches again, and the call fails with the reason.
        if let Ok(guards) = server.guards(&self.audience).await {
            live.outdated
                .store(!live.guards.is_same(&guards), Ordering::Release);
        }
    }

    async fn guards(&self) -> Result<PathGuards, ToolFailure> {
        match self.server.upgrade() {
            Some(server) => server.guards(&self.audience).await,
            None => Ok(PathGuards::default()),
        }
    }

    /// The open connection, counted as used. Connects if there is none, and restarts an idle program with outdated
    /// guards. If the caller gives up, the attempt continues.
    pub(super) async fn live(&self, outdated: OutdatedProgram) -> Result<InUse, ToolFailure> {
        let guards = self.guards().await;
        let mut state = Arc::clone(&self.state).lock_owned().await;
        if let Some(live) = state.live.as_ref().filter(|live| live.is_open()) {
            let is_same = live.guards.is_same(guards.as_ref().map_err(Clone::clone)?);
            match (is_same, live.is_busy(), outdated) {
                (true, _, _) | (false, true, OutdatedProgram::Tolerated) => {
                    return Ok(live.borrow());
                }
                (false, true, OutdatedProgram::Refused) => {
                    let outdated = self
                        .server
                        .upgrade()
                        .map(|server| server.outdated_meanwhile());
                    return Err(outdated.unwrap_or_else(not_yet));
                }
                (false, false, _) => {}
            }
        }
        if state.closed {
            return Err(
                ToolFailure::of(ErrorClass::Canceled, "the host is closing this server")
                    .untouched(),
            );
        }
        let Some(link) = self.me.upgrade() else {
            return Err(ToolFailure::of(ErrorClass::Canceled, "the session is closed").untouched());
        };
        let now = Instant::now();
        let recent = state
            .last_try
            .is_some_and(|last| now.duration_since(last) < BETWEEN_TRIES);
        if let Some(wait) = state
            .next_try
            .and_then(|next| next.checked_duration_since(now))
            .filter(|_| recent)
        {
            return Err(waiting(state.last.as_ref(), wait));
        }
        // The attempt runs in a task of its own, which owns the lock of `state`. A caller may give up at any time; the
        // calls that wait for the same lock then still get the connection that it began.
        let trying = tokio::spawn(async move {
            if let Some(outdated) = state.live.take().filter(|live| live.is_open()) {
                let why = "the path rules, or the files that they keep, changed";
                link.log(format!("it restarts: {why}"));
                outdated.end().await;
            }
            // Callers that left since the last start no longer count, so that there may be fewer guards.
            let guards = if link.audience.bind() {
                link.guards().await
            } else {
                guards
            };
            link.connect(state, guards).await
        });
        trying.await.unwrap_or_else(|error| {
            Err(ToolFailure::new(format!("connecting failed: {error}")).untouched())
        })
    }

    fn log(&self, line: String) {
        if let Some(server) = self.server.upgrade() {
            server.log(line);
        }
    }

    async fn connect(
        self: Arc<Self>,
        mut state: tokio::sync::OwnedMutexGuard<UpstreamLinkState>,
        guards: Result<PathGuards, ToolFailure>,
    ) -> Result<InUse, ToolFailure> {
        let Some(server) = self.server.upgrade() else {
            return Err(ToolFailure::of(ErrorClass::Canceled, "the host is closing").untouched());
        };
        state.last_try = Some(Instant::now());
        let again = std::mem::replace(&mut state.started, true);
        if again {
            self.shown.lock().restarts += 1;
        }
        self.show(SourceState::Starting, None);
        let started = match guards {
            Ok(guards) => server.start(&self.watched.addresses(), guards).await,
            Err(failure) => Err(failure),
        };
        match started {
            Ok(live) => {
                let live = Arc::new(live);
                state.live = Some(Arc::clone(&live));
                *self.current.lock() = Arc::downgrade(&live);
                state.next_try = None;
                self.show(SourceState::Ready, None);
                self.watch(&server, &live);
                live.listen(&self.watched.addresses());
                if again {
                    // The resources may have changed while there was no connection.
                    let watched = self.watched.addresses().into_iter();
                    watched.for_each(|uri| server.hear(UpstreamNotice::Updated(uri)));
                }
                // Counted while `state` is locked: `rest_after` takes the same lock, so that it cannot close the new
                // connection as idle before the call begins.
                Ok(live.borrow())
            }
            Err(failure) => {
                state.live = None;
                state.failures = state.failures.saturating_add(1);
                let wait = pause(state.failures);
                state.next_try = Some(Instant::now() + wait);
                self.show(SourceState::Failing, Some(failure.message.clone()));
                state.last = Some(failure.clone());
                Err(failure)
            }
        }
    }

    /// Starts the tasks that handle the end of a connection and close it after `idle_stop`.
    fn watch(&self, server: &Arc<McpUpstream>, live: &Arc<LiveUpstream>) {
        let link = Weak::clone(&self.me);
        let desk = Arc::clone(&live.desk);
        let watched = Arc::downgrade(live);
        tokio::spawn(async move {
            let why = desk.left().await;
            let (Some(link), Some(live)) = (link.upgrade(), watched.upgrade()) else {
                return;
            };
            link.ended(&live, &why).await;
        });
        if let Some(limit) = server.settings.idle_stop {
            let link = Weak::clone(&self.me);
            let watched = Arc::downgrade(live);
            tokio::spawn(async move {
                loop {
                    let Some(idle) = watched
                        .upgrade()
                        .filter(|live| live.is_open())
                        .map(|live| live.idle())
                    else {
                        return;
                    };
                    if idle < limit {
                        tokio::time::sleep((limit - idle).max(Duration::from_millis(10))).await;
                        continue;
                    }
                    let Some(link) = link.upgrade() else { return };
                    if link.rest_after(limit).await {
                        return;
                    }
                    // Subscriptions keep the connection open, often for long, so the next check is a whole period
                    // later.
                    let is_watched = !link.watched.is_empty();
                    drop(link);
                    if is_watched {
                        tokio::time::sleep(limit.max(Duration::from_millis(10))).await;
                    }
                }
            });
        }
    }

    async fn ended(&self, live: &Arc<LiveUpstream>, why: &str) {
        let mut state = self.state.lock().await;
        if !state
            .live
            .as_ref()
            .is_some_and(|current| Arc::ptr_eq(current, live))
        {
            return;
        }
        state.live = None;
        if live.desk.is_closing() {
            return;
        }
        let proven = live.proven.load(Ordering::Relaxed);
        state.failures = if proven {
            0
        } else {
            state.failures.saturating_add(1)
        };
        // A server that forgot the session is reachable, so the host reconnects at once. If it forgets the next
        // session too, the pause applies; otherwise the host would reconnect without end.
        let at_once = proven || (live.desk.is_expired() && state.failures == 1);
        state.next_try = (!at_once).then(|| Instant::now() + pause(state.failures));
        let message = format!("the connection ended: {why}");
        state.last =
            Some(ToolFailure::of(ErrorClass::DependencyUnavailable, message.clone()).untouched());
        drop(state);
        let Some(server) = self.server.upgrade() else {
            return;
        };
        server.log(message.clone());
        // Subscriptions need the connection even if there are no calls.
        match server.settings.start == McpStartPolicy::Eager || !self.watched.is_empty() {
            true => {
                self.show(SourceState::Failing, Some(message));
                self.keep_trying();
            }
            false => self.show(SourceState::Idle, Some(message)),
        }
    }

    /// The failure of the last attempt, if a background task keeps trying. A listing does not wait in that case.
    pub(super) fn tried_beside(&self) -> Option<ToolFailure> {
        let is_trying = self.trying.load(Ordering::Acquire);
        is_trying.then(|| self.shown().message.map_or_else(not_yet, unreachable))
    }

    /// Tries in the background until it is connected, and then reports changed tools.
    pub(super) fn keep_trying(&self) {
        if self.trying.swap(true, Ordering::AcqRel) {
            return;
        }
        let link = Weak::clone(&self.me);
        tokio::spawn(async move {
            loop {
                let Some(current) = link.upgrade() else {
                    return;
                };
                let next = current.state.lock().await.next_try;
                drop(current);
                if let Some(next) = next {
                    tokio::time::sleep_until(next.into()).await;
                }
                let Some(current) = link.upgrade() else {
                    return;
                };
                current.audience.bind();
                let guards = current.guards().await;
                let state = Arc::clone(&current.state).lock_owned().await;
                let connected = state.live.as_ref().is_some_and(|live| live.is_open());
                if state.closed
                    || connected
                    || Arc::clone(&current).connect(state, guards).await.is_ok()
                {
                    current.trying.store(false, Ordering::Release);
                    if let Some(server) = current.server.upgrade() {
                        server.tools_changed();
                    }
                    return;
                }
            }
        });
    }

    /// Removes the subscriptions of a session that ended.
    pub(super) async fn forget(&self, session: &SessionId) {
        let _turn = self.watched.turn().await;
        let unwanted = self.watched.forget(session);
        if unwanted.is_empty() {
            return;
        }
        let Some(live) = self.open().await else {
            return;
        };
        match live.connection.facts.stateless {
            true => live.want(&self.watched.addresses()),
            false => live.unsubscribe(&unwanted).await,
        }
    }

    /// Closes the connection until the next call.
    pub(super) async fn rest(&self) {
        self.rest_after(Duration::ZERO).await;
    }

    /// Closes the connection if no call used it for `limit` and it has no subscriptions. `false`: it stays open. A
    /// call is counted while `state` is locked, so a call that just began counts here.
    async fn rest_after(&self, limit: Duration) -> bool {
        let mut state = self.state.lock().await;
        let in_use = |live: &Arc<LiveUpstream>| {
            live.is_busy() || live.idle() < limit || !self.watched.is_empty()
        };
        if state.live.as_ref().is_some_and(in_use) {
            return false;
        }
        let live = state.live.take();
        if live.is_some() {
            self.show(SourceState::Idle, None);
        }
        drop(state);
        if let Some(live) = live {
            live.end().await;
        }
        true
    }

    /// Closes it for good.
    pub(super) async fn close(&self) {
        let mut state = self.state.lock().await;
        state.closed = true;
        let live = state.live.take();
        drop(state);
        self.show(SourceState::Stopped, None);
        if let Some(live) = live {
            live.end().await;
        }
    }

    /// Notes that a call was answered, and ends the pauses.
    pub(super) async fn works(&self, live: &LiveUpstream) {
        if !live.proven.load(Ordering::Relaxed) {
            let mut state = self.state.lock().await;
            (state.failures, state.next_try) = (0, None);
        }
        live.works();
    }
}

impl Drop for UpstreamLink {
    fn drop(&mut self) {
        // Tasks may still hold the connection. They let go of it when its router is closed.
        if let Ok(state) = self.state.try_lock()
            && let Some(live) = &state.live
        {
            live.desk.close();
        }
    }
}

/// The failure while a server has neither answered nor failed.
pub(super) fn not_yet() -> ToolFailure {
    unreachable("it has not answered yet; its tools are listed once it does".to_owned())
}

fn unreachable(message: String) -> ToolFailure {
    ToolFailure::of(ErrorClass::DependencyUnavailable, message)
        .code("server_unreachable")
        .untouched()
}

fn waiting(last: Option<&ToolFailure>, wait: Duration) -> ToolFailure {
    let millis = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX).max(1);
    let why = last.map_or("it cannot be reached", |failure| failure.message.as_str());
    let message =
        format!("the server cannot be reached; the host tries again in {millis} ms: {why}");
    unreachable(message).after_ms(millis)
}

/// The pause after so many failures: twice as long with each one, less a random part, so that servers that failed
/// together do not reconnect at the same moment.
pub(super) fn pause(failures: u32) -> Duration {
    let whole = FIRST_PAUSE
        .saturating_mul(1 << failures.saturating_sub(1).min(16))
        .min(LONGEST_PAUSE);
    let part = u32::try_from(RandomState::new().hash_one(failures) % 256).unwrap_or_default();
    whole - whole * part / 1024
}
