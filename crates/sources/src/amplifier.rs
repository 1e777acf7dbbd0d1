//! Modules of Amplifier: how they come here, and how they run.

mod declared;
mod hooks;
mod rust_module;
mod witnessing;

pub use hooks::{EventDesk, ModuleHooks, ModuleStandings};
pub use rust_module::{RustModule, RustModules};
pub use witnessing::{EventTaker, EventWitness};
