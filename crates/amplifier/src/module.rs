//! A module as a plan names it, and as it turns out to be: the words that planning, fetching and running share.

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

/// The section of a plan that a module stands in. It decides what the module is; its name never does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ModuleKind {
    /// It brings tools.
    Tool,
    /// It looks at calls.
    Hook,
}

/// One module of a plan, with everything expanded and merged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedModule {
    /// What it is.
    pub kind: ModuleKind,
    /// Its name.
    pub id: ModuleId,
    /// Where it comes from. `None`: it is installed already.
    pub source: Option<ModuleSource>,
    /// What it is mounted with.
    pub config: Map<String, Value>,
    /// Where the plan names it, for messages: `plan.yaml: tools[0]`.
    pub place: String,
}

/// Where a module comes from.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ModuleSource {
    /// A git repository.
    Git {
        /// What `git clone` takes: `https://…`, `ssh://…` or `file://…`.
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
    /// A package by its name: one that is installed, or that the package index has.
    Package(String),
    /// A form that is not spoken here. It is the failure of whatever comes from there, and of nothing else.
    Unspoken {
        /// As written.
        text: String,
        /// Why nothing can be had from there.
        why: String,
    },
}

/// How a module runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ModuleTransport {
    /// A Python package.
    Python,
    /// A WebAssembly component.
    Wasm {
        /// The file.
        artifact: PathBuf,
        /// What its bytes must hash to, in lower-case hex.
        sha256: Option<String>,
    },
    /// A service that is running somewhere.
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

/// Why a module is not there, for people, records and the event `module:load_failed`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, thiserror::Error)]
#[error("module `{module}` could not be loaded: {message}")]
pub struct LoadFailure {
    /// Which.
    pub module: ModuleId,
    /// What it should have been.
    pub kind: ModuleKind,
    /// Where it was to come from, as written in the plan.
    pub origin: Option<String>,
    /// The kind of failure.
    pub reason: LoadReason,
    /// What is wrong, and what would help.
    pub message: String,
}

/// A failure as a catalog tells it.
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

/// The kind of a load failure, in the words that Amplifier's event has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LoadReason {
    /// The folder has no package or component in it.
    InvalidPackageLayout,
    /// It cannot be found or fetched.
    MissingSource,
    /// What should be called to mount it is not there.
    InvalidEntryPoint,
    /// Its manifest cannot be read, or does not fit.
    InvalidModuleMetadata,
    /// It was mounted, and what it brought is not what the contract says.
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
