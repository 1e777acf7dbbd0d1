//! What the author of a tool implements.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use toolpost_model::{BoxFuture, CallContext, EffectClass, ErrorClass, ToolFailure};

use crate::{ToolResult, ToolSpec};

/// A tool of a module, as Amplifier's Rust contract has it.
///
/// ```
/// use serde_json::{Value, json};
/// use toolpost_amplifier::{Tool, ToolError, ToolResult};
/// use toolpost_model::BoxFuture;
///
/// struct Shout;
///
/// impl Tool for Shout {
///     fn name(&self) -> &str {
///         "shout"
///     }
///
///     fn description(&self) -> &str {
///         "Says it in capitals"
///     }
///
///     fn execute(&self, input: Value) -> BoxFuture<'_, Result<ToolResult, ToolError>> {
///         Box::pin(async move {
///             let Some(text) = input["text"].as_str() else {
///                 return Ok(ToolResult::failure("text is required"));
///             };
///             Ok(ToolResult::success(text.to_uppercase()))
///         })
///     }
/// }
/// ```
pub trait Tool: Send + Sync + 'static {
    /// The name that it is called by: short, snake_case, of no other tool.
    fn name(&self) -> &str;

    /// What it does and expects, for the model.
    fn description(&self) -> &str;

    /// The JSON Schema of its input. Asked whenever tools are listed. Empty: any object.
    fn input_schema(&self) -> Map<String, Value> {
        Map::new()
    }

    /// How it is told to a model.
    fn spec(&self) -> ToolSpec {
        ToolSpec::new(self.name(), self.input_schema()).describe(self.description())
    }

    /// Does the work. A [`ToolResult`] that is not a success is how a tool fails; an `Err` says that it could not even
    /// try.
    fn execute(&self, input: Value) -> BoxFuture<'_, Result<ToolResult, ToolError>>;

    /// The same, with the way back to the host: deadline, cancellation, progress, other tools. Amplifier's contract has
    /// no such thing; a tool that wants it implements this one too.
    fn execute_in(
        &self,
        input: Value,
        context: CallContext,
    ) -> BoxFuture<'_, Result<ToolResult, ToolError>> {
        drop(context);
        Tool::execute(self, input)
    }

    /// What kind of effect its calls have. Amplifier's contract does not say, and what nobody says counts as able to do
    /// anything.
    fn class(&self) -> EffectClass {
        EffectClass::Unknown
    }
}

/// Why a tool could not even try.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ToolError {
    /// It broke at work.
    #[error("{message}")]
    ExecutionFailed {
        /// What happened.
        message: String,
        /// What a process wrote.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        stdout: Option<String>,
        /// What a process complained of.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        stderr: Option<String>,
        /// How a process ended.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        exit_code: Option<i32>,
    },
    /// There is no such tool.
    #[error("Tool '{name}' not found")]
    NotFound {
        /// The name.
        name: String,
    },
    /// Anything else.
    #[error("{message}")]
    Other {
        /// What happened.
        message: String,
    },
}

impl ToolError {
    /// It broke at work.
    pub fn failed(message: impl Into<String>) -> Self {
        Self::ExecutionFailed {
            message: message.into(),
            stdout: None,
            stderr: None,
            exit_code: None,
        }
    }

    /// As the end of a Toolpost call.
    pub fn into_failure(self) -> ToolFailure {
        let message = self.to_string();
        match self {
            Self::ExecutionFailed {
                stdout,
                stderr,
                exit_code,
                ..
            } => {
                let mut failure = ToolFailure::new(message);
                failure.exit_code = exit_code;
                let shown = [stdout, stderr]
                    .into_iter()
                    .flatten()
                    .filter(|text| !text.is_empty());
                failure.content = shown.map(toolpost_model::ResultContent::text).collect();
                failure
            }
            Self::NotFound { .. } => ToolFailure::of(ErrorClass::UnknownTool, message).untouched(),
            Self::Other { .. } => ToolFailure::new(message),
        }
    }
}
