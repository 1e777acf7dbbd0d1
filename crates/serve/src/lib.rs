//! Toolpost's server: builds a host from a configuration, and serves it to agents over all faces.
//!
//! Embedders use [`Server::start`]; [`Server::builder`] adds the embedder's own tools and sources; [`open_host`] opens
//! a host without a face, as the command line does.
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
pub use listen::InProcessConnection;
pub use reload::{ReloadReport, applies_while_running};
pub use server::{Server, ServerBuilder};
pub use toolpost_modules::{ModuleStandings, RustModule, RustModules};

/// Whether this build supports modules that are WebAssembly components: the feature `wasm`.
pub const RUNS_COMPONENTS: bool = cfg!(feature = "wasm");
/// Whether this build supports modules that are gRPC services: the feature `grpc`.
pub const RUNS_GRPC_MODULES: bool = cfg!(feature = "grpc");
