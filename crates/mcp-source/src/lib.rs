//! MCP servers as sources: processes and connections, pinned definitions, calls.
#![warn(missing_docs)]

mod binding;
mod call;
mod clean;
mod client;
mod consult;
mod definition;
mod desk;
mod fetch;
mod link;
mod listening;
mod listing;
mod live;
mod manifest;
mod outcome;
mod process;
mod server;
mod settings;
mod source;
mod watched;

pub use settings::{
    McpNewToolPolicy, McpProgram, McpProtocolEra, McpServer, McpSharing, McpStartPolicy,
    McpTransport,
};
pub use source::{McpParts, McpSource};
