//! The headers of A2A, in lower case as HTTP libraries require.

use crate::is_tool_events;

/// The version of the request; a peer of 0.3 sends none.
pub const VERSION: &str = "a2a-version";
/// The extensions that a peer of 1.0 requests, and the extensions that an answer uses.
pub const EXTENSIONS_1_0: &str = "a2a-extensions";
/// The same for a peer of 0.3.
pub const EXTENSIONS_0_3: &str = "x-a2a-extensions";

/// Whether header values, each a list with commas, name the tool events extension by either of its URIs.
///
/// Pass the values of both [`EXTENSIONS_1_0`] and [`EXTENSIONS_0_3`], because peers mix them.
pub fn activates<'a>(values: impl IntoIterator<Item = &'a str>) -> bool {
    values
        .into_iter()
        .flat_map(|value| value.split(','))
        .any(|uri| is_tool_events(uri.trim()))
}
