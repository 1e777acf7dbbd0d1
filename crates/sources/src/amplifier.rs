//! Modules of Amplifier: how they come here, and how they run.

mod cache;
mod fetch;
mod packages;
mod running;
mod supply;

pub use cache::CacheError;
pub use fetch::{Fetched, Fetcher, Pin, cached_module};
pub use packages::{CoreWish, Packages, PackagesError, Prepared, PythonEnvironment, PythonModule};
pub use running::RunError;
pub use supply::{Progress, Reach, SUPPLY_VARIABLES, Supply};
