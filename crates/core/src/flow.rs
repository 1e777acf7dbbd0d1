//! The second phase: the way of one call.

pub(crate) mod approval;
pub(crate) mod credentials;
pub(crate) mod execution;
pub(crate) mod hooks;
pub(crate) mod invocation;
pub(crate) mod permission;
pub(crate) mod result;
pub(crate) mod scheduling;
pub(crate) mod witness;
