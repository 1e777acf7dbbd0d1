//! One command per file.

pub(crate) mod a2a;
pub(crate) mod approvals;
pub(crate) mod artifacts;
pub(crate) mod call;
pub(crate) mod capture;
pub(crate) mod completions;
pub(crate) mod connect;
pub(crate) mod doctor;
pub(crate) mod explain;
pub(crate) mod journal;
pub(crate) mod modules;
pub(crate) mod new;
pub(crate) mod reference;
pub(crate) mod serve;
pub(crate) mod tools;
pub(crate) mod trust;
pub(crate) mod validate;
pub(crate) mod watch;
pub(crate) mod welcome;
