//! MCP servers behind a host: real programs that speak the protocol, well or badly.

mod beside;
mod calls;
mod hostile;
mod kept;
mod over_http;
mod pins;
mod stage;
mod supervision;
mod whose;
