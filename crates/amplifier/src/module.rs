//! A module in a plan, and its resolved form: the types that planning, fetching and running share.

use std::{fmt, path::PathBuf, sync::Arc};

use serde::Serialize;
use serde_json::{Map, Value};
use toolpost_model::SourceProblem;

/// A module's name in plans, such as `tool-filesystem`. It is not the name of a tool: one module mounts several.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct ModuleId(Arc<str>);

impl ModuleId {
    /// Wraps the text as it is.
    pub fn new(text: impl Into<Arc<str>>) -> Self {
        Self(text.into())
    }

    /// The id's text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ModuleId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The section of a plan that a module stands in. It decides the kind of the module; the name never does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ModuleKind {
    /// It brings tools.
    Tool,
    /// It handles call events.
    Hook,
}

/// One module of a plan, with everything expanded and merged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedModule {
    /// Its kind.
    pub kind: ModuleKind,
    /// Its name.
    pub id: ModuleId,
    /// Its source. `None`: it is installed already.
    pub source: Option<ModuleSource>,
    /// The configuration of its mount.
    pub config: Map<String, Value>,
    /// Its place in the plan, for messages: `plan.yaml: tools[0]`.
    pub place: String,
}

/// The source of a module.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ModuleSource {
    /// A git repository.
    Git {
        /// An address for `git clone`: `https://…`, `ssh://…` or `file://…`.
        url: String,
        /// A branch, tag or full commit. `None`: the repository's own default.
        reference: Option<String>,
        /// The folder inside of it.
        subdirectory: Option<String>,
    },
    /// A folder, or a single file, on this machine.
    Path(PathBuf),
    /// A zip archive behind a URL or on this machine.
    Archive {
        /// `https://…`, `http://…` or `file://…`.
        url: String,
        /// The folder inside of it.
        subdirectory: Option<String>,
    },
    /// A package by its name, installed or from the package index.
    Package(String),
    /// A form that this host does not support. The modules with this source fail, and no others.
    Unspoken {
        /// As written.
        text: String,
        /// The reason.
        why: String,
    },
}

/// The transport of a module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ModuleTransport {
    /// A Python package.
    Python,
    /// A WebAssembly component.
    Wasm {
        /// The file.
        artifact: PathBuf,
        /// The digest that its bytes must have, in lower-case hex.
        sha256: Option<String>,
    },
    /// A running service.
    Grpc {
        /// `host:port` or `http://host:port`, as written.
        endpoint: String,
    },
    /// A program of its own, built from a crate, that serves gRPC once started.
    Rust {
        /// The crate's name, and its binary's.
        name: String,
    },
}

/// A module's failure to load, for operators, records and the event `module:load_failed`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, thiserror::Error)]
#[error("module `{module}` could not be loaded: {message}")]
pub struct LoadFailure {
    /// The module.
    pub module: ModuleId,
    /// The expected kind of module.
    pub kind: ModuleKind,
    /// Its source, as written in the plan.
    pub origin: Option<String>,
    /// The kind of failure.
    pub reason: LoadReason,
    /// The problem, and a hint.
    pub message: String,
}

/// A failure as a problem of the catalog.
impl From<LoadFailure> for SourceProblem {
    fn from(failure: LoadFailure) -> Self {
        Self {
            part: failure.module.to_string(),
            origin: failure.origin,
            code: failure.reason.as_str().to_owned(),
            message: failure.message,
        }
    }
}

/// The kind of a load failure, as Amplifier's event names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LoadReason {
    /// The folder has no package or component in it.
    InvalidPackageLayout,
    /// It cannot be found or fetched.
    MissingSource,
    /// The entry point to mount it is missing.
    InvalidEntryPoint,
    /// Its manifest cannot be read, or does not fit.
    InvalidModuleMetadata,
    /// It was mounted, but its contributions break the contract.
    ValidationFailed,
    /// Anything else: its dependencies cannot be installed, its process does not start.
    Unknown,
}

impl LoadReason {
    /// The word in events and records.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::InvalidPackageLayout => "invalid_package_layout",
            Self::MissingSource => "missing_source",
            Self::InvalidEntryPoint => "invalid_entry_point",
            Self::InvalidModuleMetadata => "invalid_module_metadata",
            Self::ValidationFailed => "validation_failed",
            Self::Unknown => "unknown",
        }
    }
}
