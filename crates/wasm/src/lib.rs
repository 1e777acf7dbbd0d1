//! WebAssembly components as tools and hooks: the worlds `amplifier:modules/tool` and `amplifier:modules/hook-handler`.
//!
//! [`WasmModules`] is the engine of a host. It loads a module's file into a [`WasmModule`], which is a source of tools
//! like any other. A component runs in this process and reaches nothing outside of it except through the grants in
//! [`WasmSettings`]. The effects of a call therefore come from the host's settings and are not a claim of the
//! component.
#![warn(missing_docs)]

mod component;
mod disk;
mod engine;
mod failure;
mod guest;
mod hook;
mod limits;
mod live;
mod loading;
mod module;
mod outcome;
mod output;
mod session;
mod settings;
mod spec;
mod supervision;
mod ticker;

pub use engine::{WasmError, WasmModules};
pub use hook::WasmHook;
pub use module::WasmModule;
pub use settings::{DirectoryAccess, DirectoryGrant, InstanceUse, WasmSettings};
