//! Modules made from fixtures, and hosts that offer them.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};
use tempfile::TempDir;
use toolpost_amplifier::{LoadFailure, ModuleId, ModuleKind, ModuleSource, PlannedModule};
use toolpost_testkit::TestHost;
use toolpost_wasm::{WasmModule, WasmModules, WasmSettings};

pub(crate) const ECHO: &str = include_str!("../fixtures/echo.wat");
pub(crate) const BEHAVIOURS: &str = include_str!("../fixtures/behaviours.wat");
pub(crate) const HOOK: &str = include_str!("../fixtures/hook.wat");
pub(crate) const WORLD: &str = include_str!("../fixtures/world.wat");

/// A folder with components in it, and an engine without a cache.
pub(crate) struct Workshop {
    pub(crate) folder: TempDir,
    pub(crate) modules: WasmModules,
}

impl Workshop {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        Self {
            folder,
            modules: WasmModules::new(None).expect("an engine"),
        }
    }

    /// Writes a component made from text.
    pub(crate) fn component(&self, text: &str) -> PathBuf {
        self.file(&wat::parse_str(text).unwrap_or_else(|error| panic!("{error}")))
    }

    pub(crate) fn file(&self, bytes: &[u8]) -> PathBuf {
        let path = self.folder.path().join("module.wasm");
        std::fs::write(&path, bytes).expect("a file");
        path
    }

    pub(crate) async fn load(
        &self,
        text: &str,
        settings: WasmSettings,
    ) -> Result<WasmModule, LoadFailure> {
        self.load_with(text, &Map::new(), settings).await
    }

    pub(crate) async fn load_with(
        &self,
        text: &str,
        config: &Map<String, Value>,
        settings: WasmSettings,
    ) -> Result<WasmModule, LoadFailure> {
        let path = self.component(text);
        self.modules
            .load(&planned(&path, config), &path, None, settings)
            .await
    }

    /// A host with one module.
    pub(crate) async fn host(&self, text: &str, settings: WasmSettings) -> TestHost {
        let module = self
            .load(text, settings)
            .await
            .unwrap_or_else(|error| panic!("{error}"));
        TestHost::build(|builder| builder.source(module)).await
    }
}

/// A module of a plan.
pub(crate) fn planned(path: &Path, config: &Map<String, Value>) -> PlannedModule {
    PlannedModule {
        kind: ModuleKind::Tool,
        id: ModuleId::new("tool-fixture"),
        source: Some(ModuleSource::Path(path.to_owned())),
        config: config.clone(),
        place: "plan.yaml: tools[0]".to_owned(),
    }
}
