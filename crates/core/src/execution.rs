//! Layer 7, execution: the tool runs under its deadline, beside the calls it makes itself.

pub(crate) mod credentials;
pub(crate) mod deadline;
pub(crate) mod nested;
pub(crate) mod redirect;
pub(crate) mod run;
