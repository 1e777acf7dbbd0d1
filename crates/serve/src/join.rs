//! A second host in one folder. The data directory has one holder; a host that is started beside it joins it.
//!
//! The process that joins asks over the unix socket, with an HTTP request that is upgraded ([`request`]). The host
//! fixes the face, the principal and the session before it agrees ([`reception`]). From then on the connection
//! carries the bytes of the agent's own protocol and nothing else, so an agent cannot reach a route of the socket.
//!
//! The process that joined outlives the host: its relay ([`relay`]) remembers the agent's handshake and open
//! requests, and goes on with the next host, which may be this very process.

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
