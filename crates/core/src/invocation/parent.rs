//! The call that made a call.

use std::time::Instant;

use toolpost_model::{InvocationId, ResourceUse};

use crate::port::SourceIndex;

/// The call that made a call.
#[derive(Clone)]
pub(crate) struct Parent {
    pub(crate) id: InvocationId,
    /// The calls from the outermost one down to it.
    pub(crate) line: Vec<InvocationId>,
    /// Where its tool comes from.
    pub(crate) source: Option<SourceIndex>,
    /// Nothing it makes outlasts it.
    pub(crate) deadline: Instant,
    /// What it and the calls above it hold.
    pub(crate) held: Vec<ResourceUse>,
    /// Whether a person approved it.
    pub(crate) is_approved: bool,
}
