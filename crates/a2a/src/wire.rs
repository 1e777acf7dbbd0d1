//! A2A's own messages, in the two dialects that peers speak.
//!
//! One set of types for both. What is written is written in exactly the dialect of the request it answers, with
//! `to_value`; what is read is read tolerantly, with or without `kind`, in either spelling of roles and states, with
//! whole numbers that arrive as `2.0`, because peers mix these. Only the agent card is written for both at once.

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
pub use code::{ErrorCode, Refusal};
pub use dialect::{Dialect, UnsupportedVersion};
pub use envelope::{Request, RequestId, answer, refused};
pub use headers::{EXTENSIONS_0_3, EXTENSIONS_1_0, VERSION, activates};
pub use members::Misread;
pub use message::{Message, Role};
pub use method::Method;
pub use number::narrowed;
pub use params::{ListParams, SendParams, TaskParams};
pub use part::{Content, Part};
pub use stream::{ArtifactUpdate, SendAnswer, StatusUpdate, StreamItem};
pub use task::{Task, TaskPage, TaskState, TaskStatus};
