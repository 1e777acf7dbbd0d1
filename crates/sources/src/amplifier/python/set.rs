//! A set of modules that runs: its processes, and the sessions that are mounted in them.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak},
    time::{Duration, Instant},
};

use serde_json::{Map, Value};
use tokio::sync::mpsc;
use toolpost_amplifier::LoadFailure;
use toolpost_model::{SessionId, SourceFeed, SourceNotice, ToolFailure};

use super::{
    CoreInUse, Isolation, PythonParts,
    listing::Listing,
    process::{Blueprint, Bridge, NoAnswer, NotStarted, Told},
    protocol::{Inspected, Listed, Order, Unmounted},
    seat::{Mounted, Seat},
};
use crate::native::Children;

/// The pause before a process is started again that did nothing but end; each later one is twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// Sessions that only hooks know are not told to end; of those, so many are kept.
const MOST_UNOPENED: usize = 64;

/// A set of modules.
pub(super) struct ModuleSet {
    pub(super) name: String,
    pub(super) blueprint: Blueprint,
    me: Weak<Self>,
    listing: Mutex<Arc<Listing>>,
    /// A mount whose tools are not what was listed.
    changed: Mutex<Option<Mounted>>,
    core: Mutex<Option<CoreInUse>>,
    feed: OnceLock<SourceFeed>,
    seats: Mutex<HashMap<SessionId, Arc<Seat>>>,
    /// The process that sessions share.
    shared: tokio::sync::Mutex<Shared>,
    /// The mount that was made to list the tools, until a session takes it.
    spare: Mutex<Option<Mounted>>,
}

#[derive(Default)]
struct Shared {
    bridge: Option<Arc<Bridge>>,
    /// How often in a row a process ended before it did anything.
    in_vain: u32,
    last_start: Option<Instant>,
}

impl ModuleSet {
    /// Starts a process and mounts the modules in it.
    pub(super) async fn start(parts: PythonParts) -> Arc<Self> {
        let PythonParts { name, modules, settings, workspace, launcher, children } = parts;
        let children = Children::new(Some(launcher), children, workspace);
        let set = Arc::new_cyclic(|me| Self {
            name,
            blueprint: Blueprint { children, modules, settings },
            me: Weak::clone(me),
            listing: Mutex::default(),
            changed: Mutex::default(),
            core: Mutex::default(),
            feed: OnceLock::new(),
            seats: Mutex::default(),
            shared: tokio::sync::Mutex::default(),
            spare: Mutex::default(),
        });
        if set.blueprint.modules.is_empty() {
            return set;
        }
        let listing = match set.first_mount().await {
            Ok((mounted, listing)) => {
                *lock(&set.spare) = Some(mounted);
                listing
            }
            Err(failure) => Listing::without(&set.blueprint.modules, &failure.message),
        };
        *lock(&set.listing) = Arc::new(listing);
        set
    }

    async fn first_mount(&self) -> Result<(Mounted, Listing), ToolFailure> {
        let bridge = self.bridge().await?;
        self.mount(bridge, "toolpost", &Map::new()).await
    }

    /// Mounts every module anew.
    pub(super) async fn mount(
        &self,
        bridge: Arc<Bridge>,
        session: &str,
        remembered: &Map<String, Value>,
    ) -> Result<(Mounted, Listing), ToolFailure> {
        let mount = Mounted::next_number();
        let workspace = self.blueprint.children.workspace().path().display().to_string();
        let mut capabilities = remembered.clone();
        capabilities.insert("session.working_dir".to_owned(), Value::String(workspace));
        let limit = self.blueprint.settings.mount_limit;
        let limit_ms = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX);
        let order = Order::Mount { mount, session, limit_ms, capabilities: &capabilities };
        let modules = u32::try_from(self.blueprint.modules.len()).unwrap_or(u32::MAX);
        // Each module has its time, and the bridge watches it; this is for a bridge that cannot.
        let whole = limit.saturating_mul(modules.saturating_mul(2)).saturating_add(limit);
        let listed: Listed = match tokio::time::timeout(whole, bridge.ask(order)).await {
            Ok(answer) => answer.map_err(|no| not_mounted(no))?,
            Err(_) => {
                bridge.kill("mounting the modules took too long".to_owned()).await;
                let message = "the modules could not be mounted in time";
                return Err(ToolFailure::new(message).code("mount_timeout").untouched());
            }
        };
        let listing = Listing::of(&self.blueprint.modules, listed.modules);
        Ok((Mounted { bridge, mount }, listing))
    }

    /// The process that a session's mount goes into.
    pub(super) async fn bridge(&self) -> Result<Arc<Bridge>, ToolFailure> {
        let mut shared = self.shared.lock().await;
        let alone = self.blueprint.settings.isolation == Isolation::Process;
        if let Some(bridge) = &shared.bridge {
            if bridge.gone().is_none() && !alone {
                return Ok(Arc::clone(bridge));
            }
            let in_vain = bridge.gone().is_some() && !bridge.ever_worked();
            shared.in_vain = if in_vain { shared.in_vain.saturating_add(1) } else { 0 };
        }
        let doubled = FIRST_PAUSE.saturating_mul(1 << shared.in_vain.min(10)).min(LONGEST_PAUSE);
        if let Some(last) = shared.last_start.filter(|_| shared.in_vain > 0) {
            tokio::time::sleep_until((last + doubled).into()).await;
        }
        shared.last_start = Some(Instant::now());
        let (told, heard) = mpsc::unbounded_channel();
        let bridge = match self.blueprint.start(told).await {
            Ok(bridge) => bridge,
            Err(NotStarted(failure)) => {
                shared.in_vain = shared.in_vain.saturating_add(1);
                return Err(failure);
            }
        };
        self.listen(&bridge, heard);
        *lock(&self.core) = Some(bridge.core.clone());
        // Where each session has its own, this one is only remembered for how it ends.
        shared.bridge = Some(Arc::clone(&bridge)).filter(|_| !alone);
        Ok(bridge)
    }

    /// Hears what concerns no single call.
    fn listen(&self, bridge: &Arc<Bridge>, mut heard: mpsc::UnboundedReceiver<Told>) {
        let (set, bridge) = (Weak::clone(&self.me), Arc::downgrade(bridge));
        tokio::spawn(async move {
            while let Some(told) = heard.recv().await {
                let (Some(set), Some(bridge)) = (set.upgrade(), bridge.upgrade()) else { return };
                set.hear(&bridge, told);
            }
        });
    }

    fn hear(&self, bridge: &Arc<Bridge>, told: Told) {
        match told {
            Told::Line(line) => self.notify(SourceNotice::Log(line)),
            Told::Tools { mount } => {
                *lock(&self.changed) = Some(Mounted { bridge: Arc::clone(bridge), mount });
                self.notify(SourceNotice::ToolsChanged);
            }
            Told::Stuck { module } => {
                let because = format!("`{module}` blocks its event loop in a hook");
                let bridge = Arc::clone(bridge);
                tokio::spawn(async move { bridge.kill(because).await });
            }
            Told::Capability { mount, name, value } => {
                let seats: Vec<Arc<Seat>> = lock(&self.seats).values().cloned().collect();
                for seat in seats {
                    seat.remember(mount, &name, &value);
                }
            }
        }
    }

    fn notify(&self, notice: SourceNotice) {
        if let Some(feed) = self.feed.get() {
            feed.notify(notice);
        }
    }

    pub(super) fn connect(&self, feed: SourceFeed) {
        let _ = self.feed.set(feed);
    }

    /// The tools now.
    pub(super) async fn list(&self) -> Arc<Listing> {
        let changed = lock(&self.changed).take();
        if let Some(Mounted { bridge, mount }) = changed
            && let Ok(listed) = bridge.ask::<Listed>(Order::List { mount }).await
        {
            *lock(&self.listing) = Arc::new(Listing::of(&self.blueprint.modules, listed.modules));
        }
        self.listing()
    }

    /// The tools as they were last listed.
    pub(super) fn listing(&self) -> Arc<Listing> {
        Arc::clone(&lock(&self.listing))
    }

    /// The seat of a session, made where it has none.
    pub(super) fn seat(&self, session: &SessionId) -> Arc<Seat> {
        let mut seats = lock(&self.seats);
        let seat = seats.entry(session.clone()).or_insert_with(|| Arc::new(Seat::new(session.clone())));
        let seat = Arc::clone(seat);
        seat.touch();
        if let Some(oldest) = oldest_unopened(&seats, session) {
            let left = seats.remove(&oldest);
            drop(seats);
            left.into_iter().for_each(|seat| self.leave(&seat));
        }
        seat
    }

    /// The session ended.
    pub(super) fn close(&self, session: &SessionId) {
        let seat = lock(&self.seats).remove(session);
        if let Some(seat) = seat {
            self.leave(&seat);
        }
    }

    /// Cleans up after a session, beside everything else.
    fn leave(&self, seat: &Arc<Seat>) {
        let (seat, me) = (Arc::clone(seat), Weak::clone(&self.me));
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        runtime.spawn(async move {
            let Some(Mounted { bridge, mount }) = seat.take().await else { return };
            if let Ok(left) = bridge.ask::<Unmounted>(Order::Unmount { mount }).await
                && let Some(set) = me.upgrade()
            {
                left.problems.into_iter().for_each(|line| set.notify(SourceNotice::Log(line)));
            }
        });
    }

    /// The mount that was made to list the tools, if nobody has it yet and it still stands.
    pub(super) fn take_spare(&self) -> Option<Mounted> {
        lock(&self.spare).take().filter(|spare| spare.bridge.gone().is_none())
    }

    pub(super) fn core(&self) -> Option<CoreInUse> {
        lock(&self.core).clone()
    }

    pub(super) fn failures(&self) -> Vec<LoadFailure> {
        self.listing().failures.clone()
    }

    /// Asks about the mount that was made to list the tools, or, once a session has taken that, about a session's.
    pub(super) async fn inspect(&self, request: &Value) -> Result<Value, ToolFailure> {
        let spare = lock(&self.spare).clone();
        let of_session = || lock(&self.seats).values().find_map(|seat| seat.current());
        let Some(Mounted { bridge, mount }) = spare.or_else(of_session) else {
            return Err(ToolFailure::new("there is no mount to look at: the modules are not running"));
        };
        let answer = bridge.ask::<Inspected>(Order::Inspect { mount, request }).await;
        answer.map(|inspected| inspected.report).map_err(NoAnswer::into_failure)
    }

    /// Tells the handlers of a session, if it has any, about something that no call waits for.
    pub(super) fn tell_handlers(&self, session: &SessionId, event: &str, data: &Value) {
        let seat = lock(&self.seats).get(session).cloned();
        if let Some(Mounted { bridge, mount }) = seat.and_then(|seat| seat.current()) {
            bridge.tell(Order::Tell { mount, event, data });
        }
    }
}

fn not_mounted(no: NoAnswer) -> ToolFailure {
    no.into_failure().code("not_mounted").untouched()
}

fn oldest_unopened(seats: &HashMap<SessionId, Arc<Seat>>, not: &SessionId) -> Option<SessionId> {
    let unopened = || seats.iter().filter(|(id, seat)| *id != not && !seat.is_opened());
    if unopened().count() < MOST_UNOPENED {
        return None;
    }
    unopened().min_by_key(|(_, seat)| seat.last_used()).map(|(id, _)| id.clone())
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
