//! One binary; each file holds the checks of one area.
#![expect(clippy::unwrap_used, reason = "a check that panics has failed, which is what it is for")]

mod a2e_host;
mod commands;
mod errors;
mod file;
mod hardening;
mod hooks;
mod layers;
mod mcp;
mod mcp_file;
mod native;
mod plans;
mod reference;
mod values;
