//! MCP servers as sources: their processes and connections, their definitions made safe and pinned, their calls.
//!
//! `client` and its folder alone know the SDK's types; everything else here speaks the model's words and plain JSON.

mod settings;

pub use settings::{McpEra, McpNewTools, McpProgram, McpServer, McpSharing, McpStart, McpTransport};
