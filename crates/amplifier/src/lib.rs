//! Amplifier's tool contract in Rust: the agreement between module authors and a host.
//!
//! A module is a [`Module`]: it is mounted with a [`Coordinator`] and its configuration, and brings [`Tool`]s and hook
//! handlers. A tool answers with a [`ToolResult`], whose [`text_for_model`](ToolResult::text_for_model) follows
//! Amplifier's rules to the byte. [`into_outcome`] and [`of_result`] are the only conversions between such a result
//! and Toolpost's own; everything that runs modules, in any language, uses them.
//!
//! Nothing here opens a file or starts a process; `toolpost-modules` runs modules written in Python or served over gRPC,
//! `toolpost-wasm` those that are components.
#![warn(missing_docs)]

mod content;
mod coordinator;
mod declaring;
pub mod events;
mod hooks;
mod json;
mod manifest;
mod module;
mod mount;
mod outcome;
mod plan;
mod result;
mod source_text;
mod text;
mod tool;
mod tool_call;
mod tool_spec;

pub use content::{ContentBlock, ContentError};
pub use coordinator::{CancelSwitch, Coordinator, ModuleCancellation, MountChange};
pub use declaring::{AnnotatedDeclaration, MAX_DESCRIPTION, MAX_SCHEMA, MAX_TOOLS, SYSTEM};
pub use hooks::{
    ApprovalDefault, ContextInjection, ContextRole, HookAction, HookApprovalQuestion, HookDemands,
    HookFailure, HookHandler, HookRegistration, HookRegistry, HookResult, HookResultCollector,
    MessageLevel, RegisteredHandler, UnfitAnswer,
};
pub use json::{JsonError, VerbatimJson};
pub use manifest::{
    ComponentError, DeclaredTransport, FolderError, FolderNames, FoundIn, MANIFEST_FILE,
    ModuleManifest, ModuleManifestError, ModuleType, component_type, detect,
};
pub use module::{
    LoadFailure, LoadReason, ModuleId, ModuleKind, ModuleSource, ModuleTransport, PlannedModule,
};
pub use mount::{Module, MountCleanup, MountError, MountReturn, MountState, mount};
pub use outcome::{into_outcome, is_without_reason, of_result};
pub use plan::{
    BundleHeader, BundleIncludeEntry, Include, IncludeTarget, MountPlan, NoteWeight, PlanError,
    PlanErrors, PlanFile, PlanNote, override_sources,
};
pub use result::{ResultError, ToolResult};
pub use source_text::ModuleSourceError;
pub use text::{python_json, python_str, sanitized};
pub use tool::{Tool, ToolError};
pub use tool_call::ToolCall;
pub use tool_spec::ToolSpec;
