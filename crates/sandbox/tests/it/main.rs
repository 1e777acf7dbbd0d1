//! The launcher from the outside: real processes in real confines.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on should stop"
)]
#![expect(
    clippy::disallowed_methods,
    reason = "tests start processes and look at files"
)]

mod bench_of_jobs;
mod files;
mod leaks;
mod limits;
mod locks;
mod network;
mod roles;
mod running;
mod secrets;
mod tiers;
mod trees;
