//! Modules of Amplifier: how they come here, and how they run.

mod fetch;
#[cfg(feature = "grpc")]
mod grpc;
mod packages;
mod resolve;
mod supply;

pub use fetch::{Fetched, Fetcher, Pin};
#[cfg(feature = "grpc")]
pub use grpc::{GrpcHandle, GrpcModule, GrpcSettings, ServiceHealth, SidecarParts};
pub use packages::{CoreWish, Packages, PackagesError, Prepared, PythonEnvironment, PythonModule};
pub use resolve::{ResolveError, Resolved, resolve, resolve_folder, sidecar_program};
pub use supply::{Progress, Reach, SUPPLY_VARIABLES, Supply};
