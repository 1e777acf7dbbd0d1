//! Questions of a running call to its caller: a form to fill in, a text from their model, the folders they work in.
//!
//! The questions and answers are MCP's own objects, because MCP is the only protocol that defines them. A caller
//! without a channel for questions answers none, and a tool that needs an answer then fails with that reason.

use serde_json::Value;

use crate::{BoxFuture, InvocationId};

/// The kind of a question to the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ConsultKind {
    /// A form for the person behind the caller.
    Elicitation,
    /// An address that the person is to visit.
    UrlElicitation,
    /// A text from the caller's model.
    Sampling,
    /// The folders the caller works in.
    Roots,
}

impl ConsultKind {
    /// The name of the kind in settings and messages.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Elicitation => "elicitation",
            Self::UrlElicitation => "url elicitation",
            Self::Sampling => "sampling",
            Self::Roots => "roots",
        }
    }
}

/// A set of kinds, such as the kinds that a caller answers. Empty by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConsultKinds {
    /// Forms.
    pub elicitation: bool,
    /// Addresses to visit.
    pub url_elicitation: bool,
    /// Texts from a model.
    pub sampling: bool,
    /// Folders.
    pub roots: bool,
}

impl ConsultKinds {
    /// Whether a kind is among them.
    pub fn includes(self, kind: ConsultKind) -> bool {
        match kind {
            ConsultKind::Elicitation => self.elicitation,
            ConsultKind::UrlElicitation => self.url_elicitation,
            ConsultKind::Sampling => self.sampling,
            ConsultKind::Roots => self.roots,
        }
    }

    /// The kinds that are in both.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            elicitation: self.elicitation && other.elicitation,
            url_elicitation: self.url_elicitation && other.url_elicitation,
            sampling: self.sampling && other.sampling,
            roots: self.roots && other.roots,
        }
    }
}

/// One question.
#[derive(Clone, Debug, PartialEq)]
pub struct ConsultQuestion {
    /// Matches the answer to its question. Distinct among the questions of one request.
    pub key: String,
    /// The kind of the question.
    pub kind: ConsultKind,
    /// The parameters of MCP's request of that kind.
    pub params: Value,
}

/// The answer to one question.
#[derive(Clone, Debug, PartialEq)]
pub struct ConsultReply {
    /// The question's key.
    pub key: String,
    /// MCP's result for a request of that kind.
    pub value: Value,
}

/// Why a question has no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConsultError {
    /// The caller does not answer this kind.
    #[error("the caller does not answer questions of the kind {}", .0.as_str())]
    Unsupported(ConsultKind),
    /// There is no caller that could be asked.
    #[error("the caller cannot be asked anything")]
    Nobody,
    /// The call was canceled, or the caller disconnected.
    #[error("the call was stopped while its caller was asked")]
    Canceled,
    /// No answer came.
    #[error("the caller did not answer in time")]
    TimedOut,
    /// The caller refused, or its answer was invalid.
    #[error("the caller refused: {0}")]
    Refused(String),
}

/// A caller that can answer questions while its call runs. Faces implement it.
pub trait ConsultableCaller: Send + Sync + 'static {
    /// The kinds of question that the caller answers.
    fn answers(&self) -> ConsultKinds;

    /// Notes that a call asked a kind of question that the caller does not answer.
    fn lacks(&self, kind: ConsultKind) {
        let _ = kind;
    }

    /// Asks all questions at once; the answers come in any order. The future is dropped if the call ends first.
    fn consult(
        &self,
        call: InvocationId,
        questions: Vec<ConsultQuestion>,
    ) -> BoxFuture<'_, Result<Vec<ConsultReply>, ConsultError>>;
}
