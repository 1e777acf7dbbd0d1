//! A2E, the agent-to-environment protocol: its messages, their wire form, and a client for agents.
//!
//! [`Message`] and its bodies are the vocabulary. Only [`codec`] reads and writes their wire form, and [`projection`]
//! translates Toolpost's own results, events and declarations into it. Existing clients of this protocol silently drop
//! a message with one wrong field, so every shape follows those clients.
//!
//! An agent connects a [`Client`] over HTTP, to a child process or to a host in the same process, and calls tools
//! through a [`ToolApi`].
#![warn(missing_docs)]

mod client;
pub mod codec;
mod definition;
mod lax;
mod link;
mod message;
pub mod projection;
pub mod sse;
mod tool_api;

pub use client::{
    AuthToken, CallError, Client, ClientCounters, ConnectError, ConnectOptions, HostDeparture,
    HostNotice, HostNotices, HostTransport, HttpHost, ProtocolError, StderrSink, StdioCommand,
};
pub use definition::{ToolDefinition, ToolParameter};
pub use link::InProcessLink;
pub use message::{
    Body, CapabilityEntry, CapabilityName, ErrorCode, ErrorMessage, HandshakeRequest,
    HandshakeResponse, InvokeEvent, Message, OtherBody, Pong, RefusalReason, Shutdown,
    ToolCallRequest, ToolCallResponse, ToolCancelRequest, ToolCancelResponse, ToolEventMessage,
    ToolListRequest, ToolListResponse, ToolResult,
};
pub use tool_api::{CallEvent, CallOptions, ClientCall, ListOptions, ToolApi};
