//! Components as tools, through a whole host. The components are made from the text in `tests/fixtures`.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on should stop"
)]
#![expect(
    clippy::disallowed_methods,
    reason = "tests write components and start what builds them"
)]

mod authority;
mod cache;
mod calls;
mod hooks;
mod instances;
mod limits;
mod loading;
mod python;
mod workshop;
