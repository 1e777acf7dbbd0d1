//! The client against scripted hosts, and messages as others read them. One binary, so that the crate links once.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on should stop"
)]

mod peer;

mod breaks;
mod calls;
mod codec;
mod definitions;
mod events;
mod handshake;
mod kept;
mod leaving;
mod link;
mod lists;
mod new_sessions;
mod snapshots;
mod stdio;
mod unreadable;
