//! Modules of Amplifier: how they come here, and how they run.

mod declared;
mod hooks;
mod rust_module;
mod witnessing;

pub use hooks::{EventDesk, ModuleHooks, ModuleStandings};
pub use rust_module::{RustModule, RustModules};
pub use witnessing::{EventTaker, EventWitness};
mod cache;
mod fetch;
#[cfg(feature = "grpc")]
mod grpc;
mod packages;
pub(crate) mod python;
mod resolve;
mod running;
mod supply;
mod unloaded;

pub use cache::CacheError;
pub use fetch::{Fetched, Fetcher, Pin};
#[cfg(feature = "grpc")]
pub use grpc::{GrpcHandle, GrpcModule, GrpcSettings, ServiceHealth, SidecarParts};
pub use packages::{
    CoreWish, Packages, PackagesError, Prepared, PythonEnvironment, PythonModule as PackagedModule,
};
pub use resolve::{ResolveError, Resolved, resolve, resolve_folder, sidecar_program};
pub use packages::{CoreWish, Packages, PackagesError, Prepared, PythonEnvironment, PythonModule};
pub use running::RunError;
pub use supply::{Progress, Reach, SUPPLY_VARIABLES, Supply};
pub use unloaded::UnloadedModules;
