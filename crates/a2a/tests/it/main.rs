//! The crate as its users see it. One binary, so that it links once.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod producer;
mod receiver;
mod ui_stream;
mod wire;
