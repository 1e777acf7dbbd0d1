//! The real binary, run as a person or a service manager would run it. One binary, so that the crate links once.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on should stop"
)]
#![expect(
    clippy::disallowed_methods,
    reason = "tests start processes and prepare files"
)]

mod browser;
mod dice;
mod exported;
mod home;
mod http;
mod piped;
mod served;
mod workshop;

mod a2a;
mod a2a_normalize;
mod a2e;
mod a2e_crash;
mod a2e_plugins;
mod abuse;
mod ai_sdk;
mod amplifier;
mod approvals;
mod artifacts;
mod authorities;
mod calls;
mod commands;
mod complete_record;
mod configuration;
mod confines;
mod connecting;
mod crash_soak;
mod evidence;
mod explaining;
mod fuzzer;
#[cfg(feature = "grpc")]
mod grpc;
mod hooks;
mod joining;
mod journal;
mod journal_retention;
mod journal_search;
mod mcp_servers;
mod modules;
mod names;
mod new;
mod origins;
mod page;
mod pages;
mod plugin_files;
mod readme;
mod reloading;
mod run_code;
mod scenarios;
mod sentinel;
mod serving;
mod shell;
mod soak;
mod terminal;
mod transcripts;
mod trust;
mod validate;
mod watch;
