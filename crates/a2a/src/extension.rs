//! The names of the extension.

/// The URI that this crate sends.
pub const CANONICAL_URI: &str = "https://mentionable.dev/ns/a2a-tool-events/v0.1";
/// An older URI, accepted from peers and never sent.
pub const DEPRECATED_URI: &str = "https://mentionable.dev/spec/a2a-tool-events/v0.1";

/// Whether a URI names the tool events extension.
pub fn is_tool_events(uri: &str) -> bool {
    uri == CANONICAL_URI || uri == DEPRECATED_URI
}
