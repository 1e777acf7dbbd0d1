//! Amplifier's contract for tools, as Rust: what a module author and a host agree on.
//!
//! Nothing here opens a file or starts a process; `toolpost-sources` runs modules written in Python or served over gRPC,
//! `toolpost-wasm` those that are components.
#![warn(missing_docs)]

mod manifest;
mod module;

pub use manifest::{
    ComponentError, DeclaredTransport, FolderError, FolderNames, FoundIn, MANIFEST_FILE, Manifest,
    ManifestError, ModuleType, component_type, detect,
};
pub use module::{LoadFailure, LoadReason, ModuleId, ModuleKind, ModuleSource, PlannedModule, Transport};
