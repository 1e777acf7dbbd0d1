//! The examples, run as programs and called over HTTP.
#![expect(
    clippy::disallowed_methods,
    reason = "tests start programs and prepare files"
)]
#![expect(
    clippy::unwrap_used,
    reason = "in test helpers, which clippy takes for code"
)]

mod agent_loop;
mod amplifier_module;
mod post;
mod program;
mod replay;
mod word_count;
