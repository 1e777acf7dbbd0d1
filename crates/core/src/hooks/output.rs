//! What a hook wants.

use serde_json::Value;
use toolpost_model::{Behavior, HookEvent, HookStanding, ResultContent};

/// A hook broke, or said something that makes no sense where it said it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct HookError(pub String);

/// What a hook thinks of a call. One vote among the rules' own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookVote {
    /// Allow, ask or deny.
    pub behavior: Behavior,
    /// Why, for the model too.
    pub reason: String,
}

/// What a hook wants. The default is nothing: the call goes on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HookOutput {
    /// Other arguments, before the call. They are checked like the model's own.
    pub arguments: Option<Value>,
    /// Other content, after the call. Structured content that is not given anew with it is left out: it would still
    /// tell what was replaced.
    pub output: Option<Vec<ResultContent>>,
    /// Other structured content, after the call.
    pub structured: Option<Value>,
    /// Further text for the model, told with the result and under the hook's name.
    pub context: Vec<String>,
    /// What it thinks of the call, before it.
    pub opinion: Option<HookVote>,
    /// The call must not happen; after it: its result must not be seen. The text says why, for the model too.
    pub stop: Option<String>,
    /// A line for whoever watches.
    pub message: Option<String>,
    /// Why arguments or output are other ones, for the record.
    pub reason: Option<String>,
}

impl HookOutput {
    /// Nothing.
    pub fn proceed() -> Self {
        Self::default()
    }

    /// Other arguments.
    pub fn rewrite(arguments: Value, reason: impl Into<String>) -> Self {
        Self {
            arguments: Some(arguments),
            reason: Some(reason.into()),
            ..Self::default()
        }
    }

    /// Other content for the model, as text.
    pub fn replace(text: impl Into<String>, reason: impl Into<String>) -> Self {
        Self {
            output: Some(vec![ResultContent::text(text)]),
            reason: Some(reason.into()),
            ..Self::default()
        }
    }

    /// An opinion.
    pub fn opinion(behavior: Behavior, reason: impl Into<String>) -> Self {
        Self {
            opinion: Some(HookVote {
                behavior,
                reason: reason.into(),
            }),
            ..Self::default()
        }
    }

    /// The end of the call, or of its result.
    pub fn stop(reason: impl Into<String>) -> Self {
        Self {
            stop: Some(reason.into()),
            ..Self::default()
        }
    }

    /// Adds other structured content.
    #[must_use]
    pub fn with_structured(mut self, value: Value) -> Self {
        self.structured = Some(value);
        self
    }

    /// Adds a word for the model.
    #[must_use]
    pub fn with_context(mut self, text: impl Into<String>) -> Self {
        self.context.push(text.into());
        self
    }

    /// Adds a line for whoever watches.
    #[must_use]
    pub fn with_message(mut self, message: impl Into<String>) -> Self {
        self.message = Some(message.into());
        self
    }

    /// Refuses what cannot be had at this event from a hook of this standing. Nothing of such an output is heeded: a
    /// hook that is wrong about when it runs may be wrong about the rest.
    pub(crate) fn check(&self, event: HookEvent, standing: HookStanding) -> Result<(), HookError> {
        let changes_output = self.output.is_some() || self.structured.is_some();
        let changes = changes_output
            || self.arguments.is_some()
            || self.opinion.is_some()
            || self.stop.is_some()
            || !self.context.is_empty();
        if standing == HookStanding::Observer && changes {
            return Err(HookError(
                "an observer can leave a message and nothing else".to_owned(),
            ));
        }
        let unfit = match event {
            HookEvent::Before if changes_output => "the output cannot be changed before the call",
            HookEvent::After | HookEvent::Failure if self.arguments.is_some() => {
                "the arguments cannot be changed after the call"
            }
            HookEvent::After | HookEvent::Failure if self.opinion.is_some() => {
                "an opinion comes too late after the call"
            }
            HookEvent::Before | HookEvent::After | HookEvent::Failure => return Ok(()),
        };
        Err(HookError(unfit.to_owned()))
    }
}
