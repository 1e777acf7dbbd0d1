//! What the host needs from outside and has no room of its own for: the clock.
//!
//! The other ports sit beside their rooms: `Journal` and `Redactor` in `record`, `PolicyEngine` and `Hook` in
//! `flow`, `Source` and `Tool` in the model.

use jiff::Timestamp;

/// A source's place among the host's sources.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct SourceIndex(pub(crate) usize);

/// The wall clock. The only place in this crate that reads it.
#[expect(
    clippy::disallowed_methods,
    reason = "the one module that reads the clock"
)]
pub(crate) fn now() -> Timestamp {
    Timestamp::now()
}
