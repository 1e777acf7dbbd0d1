//! MCP servers behind a host: real programs that speak the protocol, well or badly.
#![expect(
    clippy::disallowed_methods,
    reason = "tests prepare and inspect real files"
)]
#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot be set up should stop"
)]

mod beside;
mod calls;
mod hostile;
mod kept;
mod over_http;
mod pins;
mod stage;
mod supervision;
mod whose;
