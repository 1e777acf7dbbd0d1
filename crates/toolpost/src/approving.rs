//! Answering questions as a person at a terminal: what is asked is shown, the answer goes to the host. Used by
//! `toolpost approvals`, and by the prompts of `serve` and `call`.

pub(crate) mod desk;
pub(crate) mod editing;
pub(crate) mod ids;
pub(crate) mod prompt;
pub(crate) mod question;
