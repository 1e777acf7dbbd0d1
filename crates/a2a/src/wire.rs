//! A2A's own messages, in the two dialects that peers use.
//!
//! Both dialects share one set of types. Output is written in exactly the dialect of the request that it answers, with
//! `to_value`. Input is read tolerantly, because peers mix the dialects: with or without `kind`, in either spelling of
//! roles and states, with whole numbers written as `2.0`. Only the agent card is written for both dialects at once.
//!
//! ```
//! use serde_json::json;
//! use toolpost_a2a::wire::{A2aDialect, A2aRequest, Message, Part, SendAnswer, SendParams, answer};
//!
//! let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {
//!     "message": { "messageId": "m1", "role": "ROLE_USER", "parts": [{ "text": "hello" }] } } });
//! let request = A2aRequest::read(&body).map_err(|(_, refusal)| refusal)?;
//! let dialect = A2aDialect::of_request(None, &request.method)?;
//! let params = SendParams::read(&request.params, dialect)?;
//! assert_eq!(params.message.parts, [Part::text("hello")]);
//!
//! let told = SendAnswer::Message(Message::agent("m2", vec![Part::text("hello yourself")]));
//! assert_eq!(
//!     answer(&request.id, told.to_value(dialect))["result"]["message"]["role"],
//!     "ROLE_AGENT",
//! );
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod artifact;
mod card;
mod code;
mod dialect;
mod envelope;
mod headers;
mod members;
mod message;
mod method;
mod number;
mod params;
mod part;
mod stream;
mod task;

pub use artifact::Artifact;
pub use card::{AgentCard, Extension, Skill};
pub use code::{A2aRefusal, ErrorCode};
pub use dialect::{A2aDialect, UnsupportedVersion};
pub use envelope::{A2aRequest, RequestId, answer, refused};
pub use headers::{EXTENSIONS_0_3, EXTENSIONS_1_0, VERSION, activates};
pub use members::PeerMessageError;
pub use message::{Message, MessageRole};
pub use method::A2aMethod;
pub use number::narrowed;
pub use params::{ListParams, SendParams, TaskParams};
pub use part::{Part, PartContent};
pub use stream::{ArtifactUpdate, SendAnswer, StatusUpdate, StreamItem};
pub use task::{Task, TaskPage, TaskState, TaskStatus};
