//! The output of a hook.

use serde_json::Value;
use toolpost_model::{Behavior, HookEvent, HookStanding, ResultContent};

/// A hook failed, or its output is invalid for its event.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct HookError(pub String);

/// A hook's opinion about a call, which counts as one vote beside the rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookVote {
    /// Allow, ask or deny.
    pub behavior: Behavior,
    /// The reason, which the model also gets.
    pub reason: String,
}

/// The output of a hook. The default lets the call continue unchanged.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HookOutput {
    /// Replaces the arguments before the call. They are validated like the arguments of the model.
    pub arguments: Option<Value>,
    /// Replaces the content after the call. Without new structured content, the old structured content is removed,
    /// because it would still hold the replaced content.
    pub output: Option<Vec<ResultContent>>,
    /// Replaces the structured content after the call.
    pub structured: Option<Value>,
    /// Further text for the model, which is added to the result under the hook's name.
    pub context: Vec<String>,
    /// A vote, before the call.
    pub opinion: Option<HookVote>,
    /// Stops the call, or withholds its result after the call. The text is the reason, which the model also gets.
    pub stop: Option<String>,
    /// A message for the call's listeners.
    pub message: Option<String>,
    /// The reason for a change of arguments or output, for the record.
    pub reason: Option<String>,
}

impl HookOutput {
    /// An output without changes.
    pub fn proceed() -> Self {
        Self::default()
    }

    /// Replaces the arguments.
    pub fn rewrite(arguments: Value, reason: impl Into<String>) -> Self {
        Self {
            arguments: Some(arguments),
            reason: Some(reason.into()),
            ..Self::default()
        }
    }

    /// Replaces the content by text.
    pub fn replace(text: impl Into<String>, reason: impl Into<String>) -> Self {
        Self {
            output: Some(vec![ResultContent::text(text)]),
            reason: Some(reason.into()),
            ..Self::default()
        }
    }

    /// Votes.
    pub fn opinion(behavior: Behavior, reason: impl Into<String>) -> Self {
        Self {
            opinion: Some(HookVote {
                behavior,
                reason: reason.into(),
            }),
            ..Self::default()
        }
    }

    /// Stops the call or withholds its result.
    pub fn stop(reason: impl Into<String>) -> Self {
        Self {
            stop: Some(reason.into()),
            ..Self::default()
        }
    }

    /// Replaces the structured content as well.
    #[must_use]
    pub fn with_structured(mut self, value: Value) -> Self {
        self.structured = Some(value);
        self
    }

    /// Adds text for the model.
    #[must_use]
    pub fn with_context(mut self, text: impl Into<String>) -> Self {
        self.context.push(text.into());
        self
    }

    /// Adds a message for the call's listeners.
    #[must_use]
    pub fn with_message(mut self, message: impl Into<String>) -> Self {
        self.message = Some(message.into());
        self
    }

    /// Refuses an output that is invalid for this event or standing. None of it is applied, because a hook that is
    /// wrong about its event may be wrong about the rest.
    pub(crate) fn check(&self, event: HookEvent, standing: HookStanding) -> Result<(), HookError> {
        let changes_output = self.output.is_some() || self.structured.is_some();
        let changes = changes_output
            || self.arguments.is_some()
            || self.opinion.is_some()
            || self.stop.is_some()
            || !self.context.is_empty();
        if standing == HookStanding::Observer && changes {
            return Err(HookError("an observer can only leave a message".to_owned()));
        }
        let unfit = match event {
            HookEvent::Before if changes_output => "the output cannot be changed before the call",
            HookEvent::After | HookEvent::Failure if self.arguments.is_some() => {
                "the arguments cannot be changed after the call"
            }
            HookEvent::After | HookEvent::Failure if self.opinion.is_some() => {
                "an opinion is not possible after the call"
            }
            HookEvent::Before | HookEvent::After | HookEvent::Failure => return Ok(()),
        };
        Err(HookError(unfit.to_owned()))
    }
}
