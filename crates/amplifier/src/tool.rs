//! The trait for authors of tools.

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
    /// The name for calls: short, snake_case, unique.
    fn name(&self) -> &str;

    /// The purpose and the inputs of the tool, for the model.
    fn description(&self) -> &str;

    /// The JSON Schema of its input, read whenever tools are listed. Empty: any object.
    fn input_schema(&self) -> Map<String, Value> {
        Map::new()
    }

    /// The declaration for models.
    fn spec(&self) -> ToolSpec {
        ToolSpec::new(self.name(), self.input_schema()).describe(self.description())
    }

    /// Runs the tool. A tool fails with a [`ToolResult`] that is not a success; an `Err` means that the tool could not
    /// start its work.
    fn execute(&self, input: Value) -> BoxFuture<'_, Result<ToolResult, ToolError>>;

    /// The same with access to the host: deadline, cancellation, progress, other tools. Amplifier's contract has none
    /// of these; a tool that needs them implements this method too.
    fn execute_in(
        &self,
        input: Value,
        context: CallContext,
    ) -> BoxFuture<'_, Result<ToolResult, ToolError>> {
        drop(context);
        Tool::execute(self, input)
    }

    /// The class of effect of its calls. Amplifier's contract has no such member, and an unknown class is handled as
    /// if the tool could do anything.
    fn class(&self) -> EffectClass {
        EffectClass::Unknown
    }
}

/// Why a tool could not start its work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ToolError {
    /// Its work failed.
    #[error("{message}")]
    ExecutionFailed {
        /// The message.
        message: String,
        /// The standard output of a process.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        stdout: Option<String>,
        /// The standard error of a process.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        stderr: Option<String>,
        /// The exit code of a process.
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
        /// The message.
        message: String,
    },
}

impl ToolError {
    /// A failure of its work.
    pub fn failed(message: impl Into<String>) -> Self {
        Self::ExecutionFailed {
            message: message.into(),
            stdout: None,
            stderr: None,
            exit_code: None,
        }
    }

    /// As the failure of a Toolpost call.
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
