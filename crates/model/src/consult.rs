//! What a running call asks of whoever called it: a form to fill in, a text from their model, the folders they work in.
//!
//! The questions and answers are MCP's own objects, because that is the one protocol with words for them. A caller
//! that has no way to be asked answers none, and a tool that needs an answer then says so.

use serde_json::Value;

use crate::{BoxFuture, InvocationId};

/// What can be asked of a caller.
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
    /// The word for it in settings and messages.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Elicitation => "elicitation",
            Self::UrlElicitation => "url elicitation",
            Self::Sampling => "sampling",
            Self::Roots => "roots",
        }
    }
}

/// The kinds that are answered somewhere. None by default.
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
    /// What its answer is found by. Distinct among the questions that are asked together.
    pub key: String,
    /// What is asked for.
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

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConsultError {
    /// The caller does not answer this kind.
    #[error("the caller does not answer questions of the kind {}", .0.as_str())]
    Unsupported(ConsultKind),
    /// There is no caller that could be asked.
    #[error("the caller cannot be asked anything")]
    Nobody,
    /// The call was told to stop meanwhile, or the caller went away.
    #[error("the call was stopped while its caller was asked")]
    Canceled,
    /// No answer came.
    #[error("the caller did not answer in time")]
    TimedOut,
    /// The caller refused, or answered something that is no answer.
    #[error("the caller refused: {0}")]
    Refused(String),
}

/// Whoever made a call, as far as they can be asked something while it runs. Implemented by faces.
pub trait ConsultableCaller: Send + Sync + 'static {
    /// What may be asked.
    fn answers(&self) -> ConsultKinds;

    /// Told that something was asked for which it does not answer.
    fn lacks(&self, kind: ConsultKind) {
        let _ = kind;
    }

    /// Asks, all at once, and gives the answers in any order. Dropped where the call ends first.
    fn consult(
        &self,
        call: InvocationId,
        questions: Vec<ConsultQuestion>,
    ) -> BoxFuture<'_, Result<Vec<ConsultReply>, ConsultError>>;
}
