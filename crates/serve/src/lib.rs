//! Toolpost's server: a whole host from a configuration, and the faces agents come in by.
//!
//! [`Server::start`] is all an embedder needs; [`Server::builder`] adds tools and sources of one's own;
//! [`open_host`] gives the host without any face, as the command line uses it.
#![warn(missing_docs)]

mod a2a;
pub mod a2e;
mod auth;
mod clock;
mod compose;
mod feed;
mod http;
mod join;
mod listen;
mod mcp;
mod refusals;
mod reload;
mod server;
mod streams;
mod trace_headers;

pub use auth::CallerAuthentication;
pub use compose::{
    ApprovalAudience, AuthoritiesError, HooksError, HostParts, LoadedModules, McpHandover,
    ModuleSetupListener, ModulesError, ModulesHandover, NativeError, NativeHandover, OpenedHost,
    RequiredServerError, StartError, check_places, load_modules, module_supply, open_host,
};
pub use http::openapi::document as openapi_document;
pub use join::{HostConnection, JoinError, JoinTicket, RelayEnd, StdioFace, StdioRelay, join_host};
pub use reload::ReloadReport;
pub use server::{Server, ServerBuilder};
pub use toolpost_modules::{ModuleStandings, RustModule, RustModules};

/// Whether this build runs modules that are WebAssembly components: the feature `wasm`.
pub const RUNS_COMPONENTS: bool = cfg!(feature = "wasm");
/// Whether this build runs modules that are gRPC services: the feature `grpc`.
pub const RUNS_GRPC_MODULES: bool = cfg!(feature = "grpc");
