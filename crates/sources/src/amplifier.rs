//! Modules of Amplifier: how they come here, and how they run.

mod fetch;
#[cfg(feature = "grpc")]
mod grpc;
mod packages;
pub(crate) mod python;
mod resolve;
mod supply;
mod unloaded;

pub use fetch::{Fetched, Fetcher, Pin};
#[cfg(feature = "grpc")]
pub use grpc::{GrpcModule, GrpcSettings, ServiceHealth, SidecarParts};
pub use packages::{
    CoreWish, Packages, PackagesError, Prepared, PythonEnvironment, PythonModule as PackagedModule,
};
pub use resolve::{ResolveError, Resolved, resolve, resolve_folder, sidecar_program};
pub use supply::{Progress, Reach, SUPPLY_VARIABLES, Supply};
pub use unloaded::UnloadedModules;
