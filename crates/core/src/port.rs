//! The host's clock, and the index type of its sources.
//!
//! The other ports are declared in the folders of their layers: `Journal` and `Redactor` in `record`, `PolicyEngine` in
//! `permission`, `Hook` in `hooks`, `Source` and `Tool` in the model crate.

use jiff::Timestamp;

/// The position of a source in the host's list of sources.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct SourceIndex(pub(crate) usize);

/// Reads the wall clock. No other code in this crate does.
#[expect(
    clippy::disallowed_methods,
    reason = "the one module that reads the clock"
)]
pub(crate) fn now() -> Timestamp {
    Timestamp::now()
}
