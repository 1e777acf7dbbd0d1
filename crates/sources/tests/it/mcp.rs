//! MCP servers behind a host: real programs that speak the protocol, well or badly.

mod calls;
mod hostile;
mod stage;
