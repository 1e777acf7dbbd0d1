//! MCP with the other ends there are: the official conformance suite, the official clients, the reference servers.
//! A binary of its own, because its fixture is a host in this process and none of the other tests needs one.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on should stop"
)]
#![expect(
    clippy::disallowed_methods,
    reason = "tests start processes and prepare files"
)]
#![expect(
    clippy::print_stderr,
    reason = "figures are told, and shown where a test is run by itself"
)]

#[path = "../it/home.rs"]
#[expect(dead_code, reason = "other tests need more of it")]
mod home;
#[path = "../it/http.rs"]
#[expect(dead_code, reason = "other tests need more of it")]
mod http;
#[path = "../it/served.rs"]
#[expect(dead_code, reason = "other tests need more of it")]
mod served;

mod fixture;
mod suite;

mod behind;
mod clients;
mod own_tools;
