//! Amplifier's contract for tools, as Rust: what a module author and a host agree on.
//!
//! Nothing here opens a file or starts a process; `toolpost-sources` runs modules written in Python or served over gRPC,
//! `toolpost-wasm` those that are components.
#![warn(missing_docs)]

mod module;
mod plan;
mod source_text;

pub use module::{LoadFailure, LoadReason, ModuleId, ModuleKind, ModuleSource, PlannedModule, Transport};
pub use plan::{Include, NoteWeight, Plan, PlanError, PlanErrors, PlanFile, PlanNote, override_sources};
pub use source_text::SourceError;
