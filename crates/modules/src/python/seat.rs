//! The mount of a session, with every module, made anew after its process ended.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

use futures_util::{FutureExt as _, future::Shared};
use parking_lot::Mutex;
use serde_json::{Map, Value};
use toolpost_model::{BoxFuture, ErrorClass, SessionId, ToolFailure};

use super::{
    listing::ModuleSetListing, process::BridgeProcess, protocol::BridgeOrder, set::ModuleSet,
};

/// A mount in a process.
#[derive(Clone)]
pub(super) struct SessionMount {
    pub(super) bridge: Arc<BridgeProcess>,
    pub(super) mount: u64,
    /// The contributions of this mount. Another mount of the same modules may list others.
    pub(super) listing: Arc<ModuleSetListing>,
}

impl SessionMount {
    /// Mount numbers are unique over all processes.
    pub(super) fn next_number() -> u64 {
        static NUMBERS: AtomicU64 = AtomicU64::new(1);
        NUMBERS.fetch_add(1, Ordering::Relaxed)
    }
}

type MountFuture = Shared<BoxFuture<'static, Result<SessionMount, ToolFailure>>>;

/// Keeps the mount of a session.
pub(super) struct SessionMountKeeper {
    session: SessionId,
    /// The mount in progress. It belongs to no call, so that a canceled call leaves it to the next one.
    mounting: Mutex<Option<MountFuture>>,
    mounted: Mutex<Option<SessionMount>>,
    closed: AtomicBool,
    /// Data that modules registered, for the next mount.
    capabilities: Mutex<Map<String, Value>>,
}

impl SessionMountKeeper {
    pub(super) fn new(session: SessionId) -> Self {
        Self {
            session,
            mounting: Mutex::default(),
            mounted: Mutex::default(),
            closed: AtomicBool::default(),
            capabilities: Mutex::default(),
        }
    }

    /// The session's mount, made if there is none or its process ended.
    pub(super) async fn mounted(
        self: &Arc<Self>,
        set: &Arc<ModuleSet>,
    ) -> Result<SessionMount, ToolFailure> {
        if let Some(mounted) = self.current() {
            return Ok(mounted);
        }
        match self.under_way(set) {
            Ok(mounting) => mounting.await,
            Err(mounted) => Ok(mounted),
        }
    }

    /// The mount in progress; starts one if there is none. `Err`: the mount exists already.
    fn under_way(self: &Arc<Self>, set: &Arc<ModuleSet>) -> Result<MountFuture, SessionMount> {
        let mut mounting = self.mounting.lock();
        // Lock order: `mounting` before `mounted`. The task below stores the finished mount before it clears
        // `mounting`, and takes the two locks one after the other. So a caller that holds `mounting` finds either the
        // mount or its future, and never starts a second mount of the session. The task cannot clear `mounting` before
        // it is set below, since this lock is held until then.
        if let Some(mounted) = self.current() {
            return Err(mounted);
        }
        if let Some(mounting) = &*mounting {
            return Ok(mounting.clone());
        }
        let seat = Arc::clone(self);
        let set = Arc::clone(set);
        let task = tokio::spawn(async move {
            let made = seat.make(&set).await;
            if let Ok(mounted) = &made {
                set.blueprint.outlet.assign(mounted.mount, &seat.session);
                *seat.mounted.lock() = Some(mounted.clone());
                set.tell_of_failures(mounted);
            }
            *seat.mounting.lock() = None;
            made
        });
        let made = async move {
            task.await
                .unwrap_or_else(|error| Err(ToolFailure::from(error)))
        };
        let begun = made.boxed().shared();
        *mounting = Some(begun.clone());
        Ok(begun)
    }

    async fn make(&self, set: &ModuleSet) -> Result<SessionMount, ToolFailure> {
        if self.closed.load(Ordering::Acquire) {
            return Err(ToolFailure::of(ErrorClass::Canceled, "the session has ended").untouched());
        }
        if let Some(spare) = set.take_spare() {
            spare.bridge.tell(BridgeOrder::Adopt {
                mount: spare.mount,
                session: self.session.as_str(),
            });
            return Ok(spare);
        }
        let remembered = self.capabilities.lock().clone();
        set.mount(self.session.as_str(), &remembered).await
    }

    /// The mount, if there is one.
    pub(super) fn current(&self) -> Option<SessionMount> {
        self.mounted
            .lock()
            .clone()
            .filter(|mounted| mounted.bridge.gone().is_none())
    }

    /// Takes the mount away for good.
    pub(super) async fn take(&self) -> Option<SessionMount> {
        // The flag comes first. A mount that begins after it fails, and one that began before it is in `mounting` and
        // is awaited. In the other order a mount could begin in between, and would stay in the process for good.
        self.closed.store(true, Ordering::Release);
        let mounting = self.mounting.lock().clone();
        if let Some(mounting) = mounting {
            let _ = mounting.await;
        }
        let mounted = self.mounted.lock().take();
        mounted.filter(|mounted| mounted.bridge.gone().is_none())
    }

    /// Updates the tools of a mount, if it is this session's. The expected events of its modules stay as they were
    /// when they were mounted, so that a lost handler is noticed.
    pub(super) fn relisted(&self, mount: u64, now: &ModuleSetListing) {
        if let Some(mounted) = self
            .mounted
            .lock()
            .as_mut()
            .filter(|mounted| mounted.mount == mount)
        {
            let events = mounted.listing.events.clone();
            mounted.listing = Arc::new(ModuleSetListing {
                events,
                ..now.clone()
            });
        }
    }

    /// Stores a value that a module of this session's mount registered.
    pub(super) fn remember(&self, mount: u64, name: &str, value: &Value) {
        if self.current().is_some_and(|mounted| mounted.mount == mount) {
            self.capabilities
                .lock()
                .insert(name.to_owned(), value.clone());
        }
    }
}
