//! The server from outside: raw HTTP over real sockets, on loopback. One binary, so that the crate links once.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on should stop"
)]
#![expect(
    clippy::disallowed_methods,
    reason = "tests prepare and inspect real files"
)]

mod client;
mod running;

mod a2a;
mod a2e;
mod approvals;
mod artifacts;
mod background;
mod bodies;
mod connections;
mod door;
mod events;
mod honesty;
mod identity;
mod invocations;
mod leaving;
mod listing;
mod mcp;
mod module_events;
mod openapi;
mod refusals;
mod repeats;
mod secrets;
mod sessions;
mod shares;
mod starting;
mod statuses;
mod stream;
mod traces;
mod waiting;
