//! The contract as its users see it: results and their texts, hooks, events, mounting.
#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot be set up should stop"
)]

mod declaring;
mod event_payloads;
mod hook_answers;
mod mounting;
mod outcomes;
mod registry;
mod results;
