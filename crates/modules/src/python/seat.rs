//! A session's place: its own mount of every module, made anew where its process is gone.

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
    /// What this mount brought. Another one of the same modules may have brought something else.
    pub(super) listing: Arc<ModuleSetListing>,
}

impl SessionMount {
    /// Numbers are never used twice, whichever process a mount is in.
    pub(super) fn next_number() -> u64 {
        static NUMBERS: AtomicU64 = AtomicU64::new(1);
        NUMBERS.fetch_add(1, Ordering::Relaxed)
    }
}

type MountFuture = Shared<BoxFuture<'static, Result<SessionMount, ToolFailure>>>;

/// A session's place.
pub(super) struct SessionMountKeeper {
    session: SessionId,
    /// The mount that is being made. It belongs to no call, so a call that is stopped meanwhile leaves it to the next.
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

    /// The session's mount; made where there is none, or none any more.
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

    /// The mount that is being made, begun where nobody has. `Err`: it is made already.
    fn under_way(self: &Arc<Self>, set: &Arc<ModuleSet>) -> Result<MountFuture, SessionMount> {
        let mut mounting = self.mounting.lock();
        // Looked at under the lock: whoever made one has put it there before it was let go of.
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

    /// The mount, where it stands.
    pub(super) fn current(&self) -> Option<SessionMount> {
        self.mounted
            .lock()
            .clone()
            .filter(|mounted| mounted.bridge.gone().is_none())
    }

    /// Takes the mount away, for good. One that is being made is waited for, so that it is not left behind.
    pub(super) async fn take(&self) -> Option<SessionMount> {
        self.closed.store(true, Ordering::Release);
        let mounting = self.mounting.lock().clone();
        if let Some(mounting) = mounting {
            let _ = mounting.await;
        }
        let mounted = self.mounted.lock().take();
        mounted.filter(|mounted| mounted.bridge.gone().is_none())
    }

    /// Takes in what a mount has now, if it is this session's. Which events its modules should hear stays what it was
    /// when they were mounted: a handler that is gone is missed.
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

    /// Remembers what a module of this session's mount registered.
    pub(super) fn remember(&self, mount: u64, name: &str, value: &Value) {
        if self.current().is_some_and(|mounted| mounted.mount == mount) {
            self.capabilities
                .lock()
                .insert(name.to_owned(), value.clone());
        }
    }
}
