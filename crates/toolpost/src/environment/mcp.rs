//! The values behind the references of MCP servers, and cache folders for their programs.
//!
//! No problem here stops the host: a server with an unresolved reference is reported, and the others run.

use std::{
    collections::BTreeMap,
    fs::DirBuilder,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
    sync::Arc,
};

use toolpost_config::{HostConfig, McpPiece, McpReach, McpValues};
use toolpost_core::{MemoryPins, PinStore, PinStoreError};
use toolpost_model::Secret;
use toolpost_store::{DataDir, PinFiles};

use super::credentials::secret_file;

/// Looks up every reference in the texts of servers.
pub(crate) fn mcp_values(config: &HostConfig) -> McpValues {
    let mut values = McpValues {
        workspace: config.workspace.clone(),
        home: config.environment.home.clone(),
        ..McpValues::default()
    };
    for piece in config.mcp.texts().flat_map(|text| text.pieces()) {
        match piece {
            McpPiece::Variable { name, .. } => {
                let value =
                    super::variable(name).map(|value| (name.clone(), Secret::new(value.trim())));
                values.variables.extend(value);
            }
            McpPiece::File(path) => {
                let read =
                    || secret_file(path).map_err(|error| format!("cannot be used: {error:#}"));
                values.files.entry(path.clone()).or_insert_with(read);
            }
            McpPiece::Plain(_) | McpPiece::Workspace | McpPiece::Home => {}
        }
    }
    values
}

/// A cache folder for each program. If it cannot be made, the program has none.
pub(crate) fn mcp_caches(config: &HostConfig) -> BTreeMap<String, PathBuf> {
    let Some(cache) = &config.cache_dir else {
        return BTreeMap::new();
    };
    let programs = config
        .mcp
        .servers
        .iter()
        .filter(|server| match server.reach {
            McpReach::Program { .. } => true,
            McpReach::Http { .. } => false,
        });
    let made = programs.filter_map(|server| {
        let folder = cache.join("mcp").join(&server.name);
        match DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&folder)
        {
            Ok(()) => Some((server.name.clone(), folder)),
            Err(error) => {
                tracing::warn!("`{}` cannot be created: {error}", folder.display());
                None
            }
        }
    });
    made.collect()
}

/// The accepted definitions of a data directory, for a read-only host: new pins are dropped with it.
pub(crate) fn pins_to_look_at(data_dir: &Path) -> Arc<dyn PinStore> {
    let files = DataDir::at(data_dir)
        .ok()
        .map(|data_dir| PinFiles::new(&data_dir));
    Arc::new(LookedAt {
        files,
        learned: MemoryPins::default(),
    })
}

struct LookedAt {
    files: Option<PinFiles>,
    learned: MemoryPins,
}

impl PinStore for LookedAt {
    fn load(&self, source: &str) -> Result<Option<String>, PinStoreError> {
        match (self.learned.load(source)?, &self.files) {
            (Some(learned), _) => Ok(Some(learned)),
            (None, Some(files)) => files.load(source),
            (None, None) => Ok(None),
        }
    }

    fn keep(&self, source: &str, manifest: &str) -> Result<(), PinStoreError> {
        self.learned.keep(source, manifest)
    }
}
