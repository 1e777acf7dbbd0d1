//! Approvals at a terminal: shows a question to the operator and sends the answer to the host. Used by `toolpost
//! approvals`, and by the prompts of `serve` and `call`.

pub(crate) mod desk;
pub(crate) mod editing;
pub(crate) mod ids;
pub(crate) mod prompt;
pub(crate) mod question;
pub(crate) mod receipt;
