//! Joining: a second host that starts in a folder connects its agent to the host that holds the data directory.
//!
//! The joining process sends an HTTP request over the unix socket, which is upgraded ([`request`]). The host fixes the
//! face, the principal and the session before it accepts ([`reception`]). From then on the connection carries only the
//! agent's own protocol, so the agent cannot reach a route of the socket.
//!
//! The joining process outlives the host. Its relay ([`relay`]) remembers the agent's handshake and open requests, and
//! continues with the next host, which may be the joining process itself.

mod connection;
mod open_requests;
mod reception;
mod relay;
mod request;
mod settings;

pub use connection::{HostConnection, JoinError, join_host};
pub(crate) use open_requests::OpenRequests;
pub(crate) use reception::{JoinReception, routes};
pub(crate) use relay::{HostChange, HostLine, RelayedProtocol};
pub use relay::{RelayEnd, StdioRelay};
pub use request::{JoinTicket, StdioFace};
pub(crate) use settings::StartSettings;
