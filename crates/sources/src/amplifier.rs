//! Modules of Amplifier: how they come here, and how they run.

mod fetch;
mod packages;
mod supply;

pub use fetch::{Fetched, Fetcher, Pin};
pub use packages::{CoreWish, Packages, PackagesError, Prepared, PythonEnvironment, PythonModule};
pub use supply::{Progress, Reach, SUPPLY_VARIABLES, Supply};
//! Modules of Amplifier: found, fetched, and run as sources of tools.

mod resolve;

pub use resolve::{ResolveError, Resolved, resolve, resolve_folder, sidecar_program};
//! Amplifier's modules as sources and hooks of this host: what runs a module, whatever it is written in.

pub(crate) mod python;
