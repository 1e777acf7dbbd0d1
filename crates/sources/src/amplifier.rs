//! Modules of Amplifier: found, fetched, and run as sources of tools.

mod resolve;

pub use resolve::{ResolveError, Resolved, resolve, resolve_folder, sidecar_program};
