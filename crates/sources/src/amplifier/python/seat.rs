//! A session's place: its own mount of every module, made anew where its process is gone.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Instant,
};

use serde_json::{Map, Value};
use toolpost_model::{SessionId, ToolFailure};

use super::{
    process::Bridge,
    protocol::Order,
    set::{ModuleSet, lock},
};

/// A mount in a process.
#[derive(Clone)]
pub(super) struct Mounted {
    pub(super) bridge: Arc<Bridge>,
    pub(super) mount: u64,
}

impl Mounted {
    /// Numbers are never used twice, whichever process a mount is in.
    pub(super) fn next_number() -> u64 {
        static NUMBERS: AtomicU64 = AtomicU64::new(1);
        NUMBERS.fetch_add(1, Ordering::Relaxed)
    }
}

/// A session's place.
pub(super) struct Seat {
    session: SessionId,
    /// Held while the session is being mounted, so that this happens once.
    mounting: tokio::sync::Mutex<()>,
    mounted: Mutex<Option<Mounted>>,
    /// The host opened it and will close it; one that only hooks use is closed by nobody.
    opened: AtomicBool,
    used: Mutex<Instant>,
    /// Data that modules registered, for the next mount.
    capabilities: Mutex<Map<String, Value>>,
}

impl Seat {
    pub(super) fn new(session: SessionId) -> Self {
        Self {
            session,
            mounting: tokio::sync::Mutex::default(),
            mounted: Mutex::default(),
            opened: AtomicBool::default(),
            used: Mutex::new(Instant::now()),
            capabilities: Mutex::default(),
        }
    }

    /// The session's mount; made where there is none, or none any more.
    pub(super) async fn mounted(&self, set: &ModuleSet) -> Result<Mounted, ToolFailure> {
        if let Some(mounted) = self.current() {
            return Ok(mounted);
        }
        let _mounting = self.mounting.lock().await;
        if let Some(mounted) = self.current() {
            return Ok(mounted);
        }
        let mounted = match set.take_spare() {
            Some(spare) => {
                spare.bridge.tell(Order::Adopt { mount: spare.mount, session: self.session.as_str() });
                spare
            }
            None => {
                let remembered = lock(&self.capabilities).clone();
                let bridge = set.bridge().await?;
                set.mount(bridge, self.session.as_str(), &remembered).await?.0
            }
        };
        *lock(&self.mounted) = Some(mounted.clone());
        Ok(mounted)
    }

    /// The mount, where it stands.
    pub(super) fn current(&self) -> Option<Mounted> {
        lock(&self.mounted).clone().filter(|mounted| mounted.bridge.gone().is_none())
    }

    /// Takes the mount away, for good.
    pub(super) async fn take(&self) -> Option<Mounted> {
        let _mounting = self.mounting.lock().await;
        let mounted = lock(&self.mounted).take();
        mounted.filter(|mounted| mounted.bridge.gone().is_none())
    }

    pub(super) fn open(&self) {
        self.opened.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_opened(&self) -> bool {
        self.opened.load(Ordering::Relaxed)
    }

    pub(super) fn touch(&self) {
        *lock(&self.used) = Instant::now();
    }

    pub(super) fn last_used(&self) -> Instant {
        *lock(&self.used)
    }

    /// Remembers what a module of this session's mount registered.
    pub(super) fn remember(&self, mount: u64, name: &str, value: &Value) {
        if self.current().is_some_and(|mounted| mounted.mount == mount) {
            lock(&self.capabilities).insert(name.to_owned(), value.clone());
        }
    }
}
