//! The last phase: what stays of a call, and how it is shown.

pub(crate) mod declared;
pub(crate) mod evidence;
pub(crate) mod journal;
pub(crate) mod redaction;
pub(crate) mod rendering;
pub(crate) mod replay;
