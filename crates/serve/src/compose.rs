//! From a configuration to a running host: the one place that knows which adapter stands behind which port.
//!
//! `Server` and the command line's own short-lived host both come through here.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::Arc,
};

use toolpost_config::HostConfig;
use toolpost_core::{Host, HostError, KnownSecrets, Limits, Policy, SchedulerLimits, ToolSettings};
use toolpost_model::{Source, ToolSet};
use toolpost_sources::{Workspace, WorkspaceError, native_tools};
use toolpost_store::{DataDir, DataDirError, JournalOptions, OpenError, SqliteJournal, TokenError};

/// Why a host or server cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The workspace cannot be opened.
    #[error(transparent)]
    Workspace(#[from] WorkspaceError),
    /// The data directory cannot be used.
    #[error(transparent)]
    DataDir(#[from] DataDirError),
    /// An agent could write the record of its own deeds.
    #[error("the data directory `{data}` lies inside the workspace `{workspace}`, where tools may write")]
    DataInWorkspace {
        /// The data directory.
        data: PathBuf,
        /// The workspace.
        workspace: PathBuf,
    },
    /// The journal cannot be opened.
    #[error(transparent)]
    Journal(#[from] OpenError),
    /// The host cannot start.
    #[error(transparent)]
    Host(#[from] HostError),
    /// The token cannot be read or made.
    #[error(transparent)]
    Token(#[from] TokenError),
    /// A network face without a token.
    #[error("`{0}` can be reached from other machines, so a token is required there")]
    OpenToTheNetwork(std::net::SocketAddr),
    /// The address is taken or not ours.
    #[error("cannot listen on `{address}`")]
    Listen {
        /// The address or socket.
        address: String,
        /// Why.
        #[source]
        source: std::io::Error,
    },
}

/// What goes into a host beside its configuration.
#[derive(Default)]
pub struct HostParts {
    /// Sources of the embedder's own.
    pub sources: Vec<Box<dyn FnOnce(toolpost_core::HostBuilder) -> toolpost_core::HostBuilder + Send>>,
    /// Values that must never be written or shown, with their kind.
    pub secrets: Vec<(String, String)>,
}

impl HostParts {
    /// Adds a source.
    pub fn source(&mut self, source: impl Source) {
        self.sources.push(Box::new(|builder| builder.source(source)));
    }
}

/// A host, and the data directory it holds.
pub struct OpenedHost {
    /// The host.
    pub host: Host,
    /// Locked as long as this lives. `None`: the journal is in memory.
    pub data_dir: Option<DataDir>,
}

/// Locks the data directory of a configuration, where it has one.
pub(crate) fn open_data_dir(config: &HostConfig) -> Result<Option<DataDir>, StartError> {
    let Some(path) = &config.data_dir else { return Ok(None) };
    if let Some(workspace) = &config.workspace
        && is_beneath(path, workspace)
    {
        return Err(StartError::DataInWorkspace { data: path.clone(), workspace: workspace.clone() });
    }
    Ok(Some(DataDir::open(path)?))
}

/// Compares where the paths really lead: the longest part of `path` that exists decides.
fn is_beneath(path: &Path, root: &Path) -> bool {
    let real = |path: &Path| path.ancestors().find_map(|part| part.canonicalize().ok());
    match (real(path), real(root)) {
        (Some(path), Some(root)) => path.starts_with(root),
        _ => path.starts_with(root),
    }
}

/// Opens a host: the journal in `data_dir` or in memory, the native tools in the workspace where there is one,
/// and `parts`.
pub async fn open_host(config: &HostConfig, parts: HostParts) -> Result<OpenedHost, StartError> {
    let data_dir = open_data_dir(config)?;
    let host = host_on(config, data_dir.as_ref(), parts).await?;
    Ok(OpenedHost { host, data_dir })
}

pub(crate) async fn host_on(
    config: &HostConfig,
    data_dir: Option<&DataDir>,
    parts: HostParts,
) -> Result<Host, StartError> {
    let mut builder = Host::builder()
        .policy(Policy { mode: config.mode, rules: config.rules.clone() })
        .limits(limits(config))
        .settings(settings(config))
        .require_shown(config.discovery.require_shown)
        .redactor(KnownSecrets::new(parts.secrets.iter().map(|(kind, value)| (kind.as_str(), value.as_str()))));
    if let Some(data_dir) = data_dir {
        let options = JournalOptions { max_bytes: config.limits.journal };
        builder = builder.journal(Arc::new(SqliteJournal::open(&data_dir.journal_path(), options)?));
    }
    // An embedder's own tools come first: of two that want one name, theirs keeps it.
    for add in parts.sources {
        builder = add(builder);
    }
    if let Some(workspace) = &config.workspace {
        let workspace = Arc::new(Workspace::open(workspace)?);
        builder = builder.source(ToolSet::new("native", native_tools(workspace)));
    }
    Ok(builder.build().await?)
}

fn limits(config: &HostConfig) -> Limits {
    let limits = &config.limits;
    Limits {
        scheduler: SchedulerLimits {
            concurrency: limits.concurrency,
            session_concurrency: limits.session_concurrency,
            queue: limits.queue,
        },
        deadline: limits.deadline,
        deadline_ceiling: limits.deadline_ceiling,
        inline_chars: limits.inline_chars,
        argument_bytes: limits.argument_bytes,
        sessions: limits.sessions,
        session_idle: limits.session_idle,
    }
}

fn settings(config: &HostConfig) -> HashMap<String, ToolSettings> {
    let setting = |(name, tool): (&String, &toolpost_config::ToolSettings)| {
        let settings = ToolSettings {
            enabled: Some(tool.enabled),
            deferred: tool.deferred,
            timeout: tool.timeout,
            class: tool.class,
            max_inline_chars: tool.max_inline_chars,
            approval_required: tool.approval_required,
            requires: tool.requires.clone(),
        };
        (name.clone(), settings)
    };
    config.tools.iter().map(setting).collect()
}
