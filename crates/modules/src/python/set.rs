//! A running module set: its processes, and the sessions with mounts in them.

use std::{
    collections::HashMap,
    sync::{Arc, OnceLock, Weak},
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::mpsc;
use toolpost_amplifier::{LoadFailure, events};
use toolpost_model::{SessionId, SourceFeed, SourceNotice, ToolFailure, ToolId};
use toolpost_processes::Children;

use super::{
    CoreInUse, PluginPort, ProcessIsolation, PythonParts,
    listing::{BridgeToolAddress, ModuleSetListing},
    mounting::GivenUp,
    process::{
        BridgeExitKind, BridgeExitWatch, BridgeNotice, BridgeProcess, BridgeProcessTemplate,
        NoAnswer, NotStarted,
    },
    protocol::{
        BridgeInspectReply, BridgeMountReply, BridgeOrder, BridgeUnmountReply, FoundTool,
        FoundTools,
    },
    seat::{SessionMount, SessionMountKeeper},
};

/// The first pause before the restart of a process that ended before any work; it doubles each time.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// The most lines that wait for the feed.
const MOST_EARLY_LINES: usize = 200;
/// Within this time the plugins are not asked again for their tools.
const PLUGINS_AGAIN: Duration = Duration::from_millis(500);

pub(super) struct ModuleSet {
    pub(super) name: String,
    pub(super) blueprint: BridgeProcessTemplate,
    me: Weak<Self>,
    /// The contributions of the first mount, and every tool of later ones. The list only grows: a tool that one
    /// session loses is lost to that session alone.
    listing: Mutex<Arc<ModuleSetListing>>,
    pub(super) given_up: Mutex<GivenUp>,
    /// Mounts that reported a change of their tools.
    changed: Mutex<HashMap<u64, Weak<BridgeProcess>>>,
    core: Mutex<Option<CoreInUse>>,
    feed: OnceLock<SourceFeed>,
    /// Lines for the operator from before the feed is connected.
    early_lines: Mutex<Vec<String>>,
    /// When plugins were last asked for their tools.
    asked_plugins: Mutex<Option<Instant>>,
    seats: Mutex<HashMap<SessionId, Arc<SessionMountKeeper>>>,
    /// The shared process.
    shared: tokio::sync::Mutex<ModuleSetProcesses>,
    /// The mount that was made to list the tools, until a session takes it.
    spare: Mutex<Option<SessionMount>>,
}

#[derive(Default)]
struct ModuleSetProcesses {
    bridge: Option<Arc<BridgeProcess>>,
    /// The ends of all running processes.
    lives: Vec<BridgeExitWatch>,
    /// How many processes in a row ended before any work.
    in_vain: u32,
    last_start: Option<Instant>,
}

impl ModuleSet {
    /// Starts a process and mounts the modules in it.
    pub(super) async fn start(parts: PythonParts) -> Arc<Self> {
        let PythonParts {
            name,
            modules,
            settings,
            workspace,
            launcher,
            children,
        } = parts;
        let children = Children::new(Some(launcher), children, workspace);
        let set = Arc::new_cyclic(|me| Self {
            name,
            blueprint: BridgeProcessTemplate {
                children,
                modules,
                settings,
                outlet: Arc::default(),
            },
            me: Weak::clone(me),
            listing: Mutex::default(),
            given_up: Mutex::default(),
            changed: Mutex::default(),
            core: Mutex::default(),
            feed: OnceLock::new(),
            early_lines: Mutex::default(),
            asked_plugins: Mutex::default(),
            seats: Mutex::default(),
            shared: tokio::sync::Mutex::default(),
            spare: Mutex::default(),
        });
        if set.blueprint.modules.is_empty() {
            return set;
        }
        let listing = match set.first_mount().await {
            Ok(mounted) => {
                let listing = Arc::clone(&mounted.listing);
                *set.spare.lock() = Some(mounted);
                listing
            }
            Err(failure) => Arc::new(ModuleSetListing::without(
                &set.blueprint.modules,
                &failure.message,
            )),
        };
        *set.listing.lock() = listing;
        set
    }

    /// The process for a session's mount.
    pub(super) async fn bridge(&self) -> Result<Arc<BridgeProcess>, ToolFailure> {
        let mut shared = self.shared.lock().await;
        let alone = self.blueprint.settings.isolation == ProcessIsolation::Process;
        if let Some(bridge) = shared
            .bridge
            .as_ref()
            .filter(|bridge| bridge.gone().is_none())
        {
            return Ok(Arc::clone(bridge));
        }
        shared.count_deaths();
        let doubled = FIRST_PAUSE
            .saturating_mul(1 << shared.in_vain.min(10))
            .min(LONGEST_PAUSE);
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
        *self.core.lock() = Some(bridge.core.clone());
        shared.lives.push(bridge.life());
        // Under isolation per session, no other session may get this process.
        shared.bridge = Some(Arc::clone(&bridge)).filter(|_| !alone);
        Ok(bridge)
    }

    /// Handles the notices that belong to no single call.
    fn listen(
        &self,
        bridge: &Arc<BridgeProcess>,
        mut heard: mpsc::UnboundedReceiver<BridgeNotice>,
    ) {
        let set = Weak::clone(&self.me);
        let bridge = Arc::downgrade(bridge);
        tokio::spawn(async move {
            while let Some(told) = heard.recv().await {
                let (Some(set), Some(bridge)) = (set.upgrade(), bridge.upgrade()) else {
                    return;
                };
                set.hear(&bridge, told);
            }
        });
    }

    fn hear(&self, bridge: &Arc<BridgeProcess>, told: BridgeNotice) {
        match told {
            BridgeNotice::Line(line) => self.notify(SourceNotice::Log(line)),
            BridgeNotice::Tools { mount } => {
                self.changed.lock().insert(mount, Arc::downgrade(bridge));
                self.notify(SourceNotice::ToolsChanged);
            }
            BridgeNotice::Stuck { module } => {
                let because = format!("`{module}` blocks its event loop in a hook");
                let bridge = Arc::clone(bridge);
                tokio::spawn(async move { bridge.kill(because).await });
            }
            BridgeNotice::Capability { mount, name, value } => {
                let seats: Vec<Arc<SessionMountKeeper>> =
                    self.seats.lock().values().cloned().collect();
                for seat in seats {
                    seat.remember(mount, &name, &value);
                }
            }
        }
    }

    fn notify(&self, notice: SourceNotice) {
        match (self.feed.get(), notice) {
            (Some(feed), notice) => feed.notify(notice),
            // Modules print and log while they are imported, before the source feed is connected.
            (None, SourceNotice::Log(line)) => {
                let mut early = self.early_lines.lock();
                if early.len() < MOST_EARLY_LINES {
                    early.push(line);
                }
            }
            (
                None,
                SourceNotice::ToolsChanged
                | SourceNotice::ResourcesChanged
                | SourceNotice::PromptsChanged
                | SourceNotice::ResourceUpdated(_),
            ) => {}
        }
    }

    pub(super) fn connect(&self, feed: SourceFeed) {
        let _ = self.feed.set(feed);
        for line in std::mem::take(&mut *self.early_lines.lock()) {
            self.notify(SourceNotice::Log(line));
        }
    }

    /// The tools now.
    pub(super) async fn list(&self) -> Arc<ModuleSetListing> {
        let changed = std::mem::take(&mut *self.changed.lock());
        for (mount, bridge) in changed {
            let Some(bridge) = bridge.upgrade() else {
                continue;
            };
            let Ok(listed) = bridge
                .ask::<BridgeMountReply>(BridgeOrder::List { mount })
                .await
            else {
                continue;
            };
            let now = ModuleSetListing::of(&self.blueprint.modules, listed.modules);
            let mut listing = self.listing.lock();
            *listing = Arc::new(listing.grown(&now));
            drop(listing);
            let seats: Vec<Arc<SessionMountKeeper>> = self.seats.lock().values().cloned().collect();
            seats.iter().for_each(|seat| seat.relisted(mount, &now));
        }
        self.listing()
    }

    /// Sets the port for the plugins' own messages.
    pub(super) fn set_plugin_port(&self, port: Arc<dyn PluginPort>) {
        self.blueprint.outlet.set_port(port);
    }

    /// Whether a plugin brings tools, which may change at any time.
    pub(super) fn has_plugin_tools(&self) -> bool {
        let listing = self.listing();
        listing.plugins.iter().any(|plugin| {
            listing
                .places
                .values()
                .any(|place| place.module == plugin.name)
        })
    }

    /// A mount for requests with the same answer in all mounts.
    fn any_mount(&self) -> Option<SessionMount> {
        let spare = self
            .spare
            .lock()
            .clone()
            .filter(|spare| spare.bridge.gone().is_none());
        spare.or_else(|| self.seats.lock().values().find_map(|seat| seat.current()))
    }

    /// Asks the plugins for their tools again, with a minimum interval. Returns whether the list changed.
    pub(super) async fn ask_plugins_again(&self) -> bool {
        let is_due = {
            let mut asked = self.asked_plugins.lock();
            let is_due = asked.is_none_or(|at| at.elapsed() >= PLUGINS_AGAIN);
            if is_due {
                *asked = Some(Instant::now());
            }
            is_due
        };
        let Some(SessionMount { bridge, mount, .. }) = self.any_mount().filter(|_| is_due) else {
            return false;
        };
        let Ok(listed) = bridge
            .ask::<BridgeMountReply>(BridgeOrder::List { mount })
            .await
        else {
            return false;
        };
        let now = ModuleSetListing::of(&self.blueprint.modules, listed.modules);
        let mut listing = self.listing.lock();
        let renewed = listing.with_plugin_tools_of(&now);
        let written = |listing: &ModuleSetListing| {
            serde_json::to_string(&listing.declarations).unwrap_or_default()
        };
        let has_changed = written(&renewed) != written(&listing);
        if has_changed {
            *listing = Arc::new(renewed);
        }
        has_changed
    }

    /// The results of the plugins' searches, best first.
    pub(super) async fn search_plugins(&self, query: &str, limit: usize) -> Vec<ToolId> {
        let Some(SessionMount { bridge, mount, .. }) = self.any_mount() else {
            return Vec::new();
        };
        let order = BridgeOrder::Search {
            mount,
            query,
            tags: &[],
        };
        let Ok(FoundTools { tools }) = bridge.ask::<FoundTools>(order).await else {
            return Vec::new();
        };
        let listing = self.listing();
        let id = |found: &FoundTool| {
            let is_it = |place: &BridgeToolAddress| {
                place.module == found.module && place.tool == found.tool
            };
            listing
                .places
                .iter()
                .find(|(_, place)| is_it(place))
                .map(|(id, _)| id.clone())
        };
        tools.iter().filter_map(id).take(limit).collect()
    }

    /// The tools as they were last listed.
    pub(super) fn listing(&self) -> Arc<ModuleSetListing> {
        Arc::clone(&self.listing.lock())
    }

    /// The mount keeper of a session, made if there is none.
    pub(super) fn seat(&self, session: &SessionId) -> Arc<SessionMountKeeper> {
        let mut seats = self.seats.lock();
        let seat = seats
            .entry(session.clone())
            .or_insert_with(|| Arc::new(SessionMountKeeper::new(session.clone())));
        Arc::clone(seat)
    }

    /// Ends a session.
    pub(super) fn close(&self, session: &SessionId) {
        let seat = self.seats.lock().remove(session);
        if let Some(seat) = seat {
            self.leave(&seat);
        }
    }

    /// Cleans up after a session, in the background.
    fn leave(&self, seat: &Arc<SessionMountKeeper>) {
        let seat = Arc::clone(seat);
        let me = Weak::clone(&self.me);
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return;
        };
        runtime.spawn(async move {
            let Some(SessionMount { bridge, mount, .. }) = seat.take().await else {
                return;
            };
            if let Some(set) = me.upgrade() {
                set.blueprint.outlet.forget(mount);
            }
            let left = bridge
                .ask::<BridgeUnmountReply>(BridgeOrder::Unmount { mount })
                .await;
            bridge.end_mount(mount);
            if let Ok(left) = left
                && let Some(set) = me.upgrade()
            {
                left.problems
                    .into_iter()
                    .for_each(|line| set.notify(SourceNotice::Log(line)));
            }
        });
    }

    /// The mount that was made to list the tools, if it is still unused and alive.
    pub(super) fn take_spare(&self) -> Option<SessionMount> {
        self.spare
            .lock()
            .take()
            .filter(|spare| spare.bridge.gone().is_none())
    }

    /// Sends the failures to mount to the handlers of a new mount.
    pub(super) fn tell_of_failures(&self, mounted: &SessionMount) {
        let listing = &mounted.listing;
        let event = events::MODULE_LOAD_FAILED;
        if listing.hearing(event).is_empty() {
            return;
        }
        for failure in self
            .blueprint
            .settings
            .unloaded
            .iter()
            .chain(&listing.failures)
        {
            let data = events::module_load_failed(failure);
            mounted.bridge.tell(BridgeOrder::Tell {
                mount: mounted.mount,
                event,
                data: &data,
            });
        }
    }

    pub(super) fn core(&self) -> Option<CoreInUse> {
        self.core.lock().clone()
    }

    pub(super) fn failures(&self) -> Vec<LoadFailure> {
        self.listing().failures.clone()
    }

    /// Requests a report about the mount that was made for listing or, if a session has taken it, about a session's
    /// mount.
    pub(super) async fn inspect(&self, request: &Value) -> Result<Value, ToolFailure> {
        let spare = self.spare.lock().clone();
        let of_session = || self.seats.lock().values().find_map(|seat| seat.current());
        let Some(SessionMount { bridge, mount, .. }) = spare.or_else(of_session) else {
            return Err(ToolFailure::new(
                "the modules are not running, so there is no mount to inspect",
            ));
        };
        let answer = bridge
            .ask::<BridgeInspectReply>(BridgeOrder::Inspect { mount, request })
            .await;
        answer
            .map(|inspected| inspected.report)
            .map_err(NoAnswer::into_failure)
    }

    /// Sends an event to the handlers of a session, if it has any, without waiting.
    pub(super) fn tell_handlers(&self, session: &SessionId, event: &'static str, data: Value) {
        let seat = self.seats.lock().get(session).cloned();
        if let Some(SessionMount { bridge, mount, .. }) = seat.and_then(|seat| seat.current()) {
            bridge.tell(BridgeOrder::Tell {
                mount,
                event,
                data: &data,
            });
            return;
        }
        // The first call of a session may name a missing tool, and then the session has no mount yet.
        let (Some(set), true) = (self.me.upgrade(), event == events::TOOL_ERROR) else {
            return;
        };
        let (Ok(runtime), seat) = (tokio::runtime::Handle::try_current(), self.seat(session))
        else {
            return;
        };
        runtime.spawn(async move {
            if let Ok(SessionMount { bridge, mount, .. }) = seat.mounted(&set).await {
                bridge.tell(BridgeOrder::Tell {
                    mount,
                    event,
                    data: &data,
                });
            }
        });
    }
}

impl ModuleSetProcesses {
    /// Counts how processes ended. An end before any work makes the next pause longer.
    fn count_deaths(&mut self) {
        for life in std::mem::take(&mut self.lives) {
            match life.ending() {
                None => self.lives.push(life),
                Some(BridgeExitKind::InVain) => self.in_vain = self.in_vain.saturating_add(1),
                Some(BridgeExitKind::Proven) => self.in_vain = 0,
                Some(BridgeExitKind::Unwanted) => {}
            }
        }
    }
}
