//! The names of the extension.

/// What is sent.
pub const CANONICAL_URI: &str = "https://mentionable.dev/ns/a2a-tool-events/v0.1";
/// An older name, taken from peers and never sent.
pub const DEPRECATED_URI: &str = "https://mentionable.dev/spec/a2a-tool-events/v0.1";

/// Whether a peer means this extension.
pub fn is_tool_events(uri: &str) -> bool {
    uri == CANONICAL_URI || uri == DEPRECATED_URI
}
