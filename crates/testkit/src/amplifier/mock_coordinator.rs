//! A real coordinator for a session without a host.

use std::ops::Deref;

use serde_json::{Map, Value};
use toolpost_amplifier::{
    CancelSwitch, Coordinator, LoadFailure, Module, ModuleId, ModuleKind, MountChange, MountState,
    ToolError, ToolResult, mount,
};
use toolpost_model::SessionId;

/// A real coordinator of the session `test-session`, which a test can cancel.
pub struct MockCoordinator {
    coordinator: Coordinator,
    switch: CancelSwitch,
}

impl MockCoordinator {
    /// A coordinator without anything mounted.
    #[expect(
        clippy::new_without_default,
        reason = "a coordinator is made on purpose"
    )]
    pub fn new() -> Self {
        let (coordinator, switch) = Coordinator::new(Map::new());
        coordinator.adopt(SessionId::new("test-session"));
        Self {
            coordinator,
            switch,
        }
    }

    /// Mounts a module as a host would. `config` is an object, or null for none.
    pub async fn mount_module(
        &self,
        id: &str,
        module: &dyn Module,
        config: Value,
    ) -> Result<MountState, LoadFailure> {
        let config = match config {
            Value::Object(config) => config,
            _ => Map::new(),
        };
        mount(
            &self.coordinator,
            ModuleKind::Tool,
            &ModuleId::new(id),
            module,
            config,
        )
        .await
    }

    /// Calls a mounted tool as it is, without the checks that a host makes first.
    pub async fn call(&self, tool: &str, input: Value) -> Result<ToolResult, ToolError> {
        let found = self.coordinator.tool(tool);
        let found = found.ok_or_else(|| ToolError::NotFound {
            name: tool.to_owned(),
        })?;
        toolpost_amplifier::Tool::execute(&*found, input).await
    }

    /// The names of all mounted tools, in order, including those that were unmounted.
    pub fn mount_history(&self) -> Vec<String> {
        let mounted = |change: MountChange| match change {
            MountChange::Mounted { name, .. } => Some(name),
            MountChange::Unmounted { .. } => None,
        };
        self.coordinator
            .history()
            .into_iter()
            .filter_map(mounted)
            .collect()
    }

    /// The names of unmounted tools, in order.
    pub fn unmount_history(&self) -> Vec<String> {
        let unmounted = |change: MountChange| match change {
            MountChange::Mounted { .. } => None,
            MountChange::Unmounted { name } => Some(name),
        };
        self.coordinator
            .history()
            .into_iter()
            .filter_map(unmounted)
            .collect()
    }

    /// Cancels the session.
    pub fn cancel(&self) {
        self.switch.cancel();
    }
}

impl Deref for MockCoordinator {
    type Target = Coordinator;

    fn deref(&self) -> &Coordinator {
        &self.coordinator
    }
}
