//! Modules of Amplifier and plugins of A2E files as tools: fetching, resolving and running them.
//!
//! A module is fetched and resolved, then loaded by the Python sidecar, reached over gRPC (feature `grpc`) or compiled in.
#![warn(missing_docs)]

mod cache;
mod declared;
mod fetch;
#[cfg(feature = "grpc")]
mod grpc;
mod hooks;
mod packages;
mod python;
mod resolve;
mod running;
mod rust_module;
mod supply;
mod unloaded;
mod witnessing;

pub use cache::CacheError;
pub use fetch::{CachedModule, FetchPin, FetchedModule, Fetcher, cached_module};
#[cfg(feature = "grpc")]
pub use grpc::{GrpcHandle, GrpcModule, GrpcSettings, ServiceHealth, SidecarParts};
pub use hooks::ModuleStandings;
pub use packages::{
    CoreWish, FolderSharing, PackageEnvironments, PackagesError, PreparedEnvironment,
    PythonEnvironment, PythonModule,
};
pub use python::{
    BridgedModule, CoreInUse, LoadedPlugin, MessageStanding, PluginHost, PluginPort,
    ProcessIsolation, PythonModules, PythonPackage, PythonParts, PythonSettings, PythonSource,
    allowed_message_patterns, message_standing,
};
pub use resolve::{ResolveError, ResolvedModule, resolve, resolve_folder};
pub use running::RunError;
pub use rust_module::{RustModule, RustModules};
pub use supply::{
    ModuleFetchPolicy, ModuleSetupProgress, ModuleSupply, SUPPLY_VARIABLES, SetupProgressSink,
};
pub use unloaded::UnloadedModules;
pub use witnessing::{EventTaker, EventWitness};
