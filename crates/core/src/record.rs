//! The last phase: the record of a call, and its presentation.

pub(crate) mod artifacts;
pub(crate) mod blobs;
pub(crate) mod body;
pub(crate) mod declared;
pub(crate) mod evidence;
pub(crate) mod facets;
pub(crate) mod journal;
pub(crate) mod persist;
pub(crate) mod query;
pub(crate) mod redaction;
pub(crate) mod rendering;
pub(crate) mod replay;
pub(crate) mod retention;
pub(crate) mod room;
pub(crate) mod story;
