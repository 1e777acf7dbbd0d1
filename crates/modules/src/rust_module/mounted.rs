//! The modules of a set, mounted for one session.

use std::{panic::AssertUnwindSafe, time::Duration};

use futures_util::FutureExt as _;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use toolpost_amplifier::{
    CancelSwitch, Coordinator, HookRegistry, LoadFailure, LoadReason, ModuleId, ModuleKind,
    MountState, events, mount,
};
use toolpost_model::SessionId;

use super::{RustModule, RustModulesState, asking};

/// Events that wait for slow handlers. Further events are dropped, since handlers must not delay calls.
const WAITING_EVENTS: usize = 1_024;

/// The time limit for mounting one module, and again for its notice that all are mounted.
const MOUNT_LIMIT: Duration = Duration::from_secs(30);
/// How long one cleanup may take.
const CLEANUP_LIMIT: Duration = Duration::from_secs(10);

/// The modules of a set, mounted for one session.
pub(super) struct MountedSet {
    coordinator: Coordinator,
    failures: Vec<LoadFailure>,
    declined: Vec<(ModuleId, ModuleKind)>,
    switch: CancelSwitch,
    told: mpsc::Sender<(&'static str, Value)>,
}

impl MountedSet {
    /// Mounts the modules one after another. A failure of one does not affect the others.
    pub(super) async fn mount(set: &RustModulesState) -> Self {
        let plan = set
            .modules
            .iter()
            .map(|module| (module.id.to_string(), json!(module.config)))
            .collect();
        let (coordinator, switch) = Coordinator::new(plan);
        for (name, value) in &set.capabilities {
            coordinator.register_capability(name, value.clone());
        }
        let mut failures = Vec::new();
        let mut declined = Vec::new();
        for RustModule {
            id,
            kind,
            module,
            config,
        } in &set.modules
        {
            let work = AssertUnwindSafe(mount(&coordinator, *kind, id, &**module, config.clone()))
                .catch_unwind();
            let message = match tokio::time::timeout(MOUNT_LIMIT, work).await {
                Ok(Ok(Ok(MountState::Mounted))) => {
                    if *kind == ModuleKind::Hook {
                        set.mounted_hooks.lock().insert(id.clone());
                    }
                    continue;
                }
                Ok(Ok(Ok(MountState::Declined))) if set.mounted_hooks.lock().contains(id) => {
                    "it declined, but was mounted for an earlier session".to_owned()
                }
                Ok(Ok(Ok(MountState::Declined))) => {
                    declined.push((id.clone(), *kind));
                    continue;
                }
                Ok(Ok(Err(failure))) => {
                    failures.push(failure);
                    continue;
                }
                Ok(Err(_)) => "it panicked while it was mounted".to_owned(),
                Err(_) => format!("mounting it took longer than {} s", MOUNT_LIMIT.as_secs()),
            };
            coordinator.for_module(id).withdraw().await;
            let reason = LoadReason::Unknown;
            failures.push(LoadFailure {
                module: id.clone(),
                kind: *kind,
                origin: None,
                reason,
                message,
            });
        }
        let (told, events) = mpsc::channel(WAITING_EVENTS);
        tokio::spawn(pass_on(
            events,
            coordinator.hooks().clone(),
            set.handler_limit,
        ));
        let set_mounted = Self {
            coordinator,
            failures,
            declined,
            switch,
            told,
        };
        set_mounted.say_ready(&set.modules).await;
        set_mounted
    }

    /// Notifies every module that all are mounted, and the handlers of the failures.
    async fn say_ready(&self, modules: &[RustModule]) {
        for failure in &self.failures {
            self.tell(
                events::MODULE_LOAD_FAILED,
                events::module_load_failed(failure),
            );
        }
        let is_mounted = |module: &&RustModule| {
            self.failures
                .iter()
                .all(|failure| failure.module != module.id)
                && self
                    .declined
                    .iter()
                    .all(|(declined, _)| *declined != module.id)
        };
        for module in modules.iter().filter(is_mounted) {
            let own = self.coordinator.for_module(&module.id);
            let work = AssertUnwindSafe(async { module.module.on_session_ready(own).await })
                .catch_unwind();
            let error = match tokio::time::timeout(MOUNT_LIMIT, work).await {
                Ok(Ok(Ok(()))) => continue,
                Ok(Ok(Err(error))) => error.to_string(),
                Ok(Err(_)) => "it panicked".to_owned(),
                Err(_) => format!("it took longer than {} s", MOUNT_LIMIT.as_secs()),
            };
            let data = json!({"module_id": module.id, "error": error});
            self.tell(events::MODULE_ON_SESSION_READY_FAILED, data);
        }
    }

    pub(super) fn coordinator(&self) -> &Coordinator {
        &self.coordinator
    }

    pub(super) fn failures(&self) -> &[LoadFailure] {
        &self.failures
    }

    /// The modules that declined.
    pub(super) fn declined(&self) -> &[(ModuleId, ModuleKind)] {
        &self.declined
    }

    pub(super) fn adopt(&self, session: &SessionId) {
        self.coordinator.adopt(session.clone());
    }

    /// Queues an event for the handlers. Never waits.
    pub(super) fn tell(&self, event: &'static str, data: Value) {
        if self.coordinator.hooks().concerns(event) {
            // The queue is full or the runtime is gone: the port allows the loss of the event.
            let _ = self.told.try_send((event, data));
        }
    }

    /// Ends the session: runs the cleanups.
    pub(super) async fn end(&self) -> Vec<String> {
        self.switch.cancel();
        let mut failures = Vec::new();
        loop {
            let cleaned = AssertUnwindSafe(self.coordinator.clean_next()).catch_unwind();
            match tokio::time::timeout(CLEANUP_LIMIT, cleaned).await {
                Ok(Ok(None)) => return failures,
                Ok(Ok(Some(Ok(())))) => {}
                Ok(Ok(Some(Err(error)))) => failures.push(error.to_string()),
                Ok(Err(_)) => failures.push("it panicked".to_owned()),
                Err(_) => {
                    failures.push(format!("it took longer than {} s", CLEANUP_LIMIT.as_secs()));
                }
            }
        }
    }

    /// Whether a module that should look at calls failed or declined.
    pub(super) fn lacks_hooks(&self) -> bool {
        self.failures
            .iter()
            .any(|failure| failure.kind == ModuleKind::Hook)
            || self
                .declined
                .iter()
                .any(|(_, kind)| *kind == ModuleKind::Hook)
    }
}

/// Passes events on one after another, in their order.
async fn pass_on(
    mut told: mpsc::Receiver<(&'static str, Value)>,
    hooks: HookRegistry,
    handler_limit: Duration,
) {
    while let Some((event, data)) = told.recv().await {
        asking::tell(&hooks, event, data, handler_limit).await;
    }
}
