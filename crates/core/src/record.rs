//! The last phase: what stays of a call, and how it is shown.

pub(crate) mod facets;
pub(crate) mod journal;
pub(crate) mod query;
pub(crate) mod redaction;
pub(crate) mod rendering;
pub(crate) mod retention;
