//! The answers of handlers.

use serde::Serialize;
use serde_json::{Map, Value};

/// The default time limit of an approval, in seconds.
pub(super) const APPROVAL_TIMEOUT: f64 = 300.0;

/// The action that a handler requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum HookAction {
    /// Continue.
    #[default]
    Continue,
    /// Deny.
    Deny,
    /// Continue with other data.
    Modify,
    /// Continue, and add text to the model's context.
    InjectContext,
    /// Ask an operator.
    AskUser,
}

/// The role of text that is added to the model's context.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ContextRole {
    /// The system's.
    #[default]
    System,
    /// The user's.
    User,
    /// The model's own.
    Assistant,
}

/// How serious a message to the user is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum MessageLevel {
    /// For information.
    #[default]
    Info,
    /// Something is odd.
    Warning,
    /// Something went wrong.
    Error,
}

/// The answer if an approval runs out of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalDefault {
    /// No.
    #[default]
    Deny,
    /// Yes.
    Allow,
}

/// Text from one handler for the model's context.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ContextInjection {
    /// The text.
    pub content: String,
    /// The role of the text.
    pub role: ContextRole,
    /// For the next request alone.
    pub ephemeral: bool,
    /// Append the text to the last tool result, not as a message of its own.
    pub append_to_last_tool_result: bool,
    /// The handler.
    pub hook_name: String,
    /// The event.
    pub event: String,
}

/// The answer of a handler, with the fields and defaults of Amplifier's model, in its order.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HookResult {
    /// The requested action.
    pub action: HookAction,
    /// The changed data.
    pub data: Option<Map<String, Value>>,
    /// The reason.
    pub reason: Option<String>,
    /// The text for the model's context.
    pub context_injection: Option<String>,
    /// The role of that text.
    pub context_injection_role: ContextRole,
    /// For the next request alone.
    pub ephemeral: bool,
    /// The question to the operator.
    pub approval_prompt: Option<String>,
    /// The possible answers. `None`: allow and deny.
    pub approval_options: Option<Vec<String>>,
    /// The time limit of the approval, in seconds.
    pub approval_timeout: f64,
    /// The answer if the approval runs out of time.
    pub approval_default: ApprovalDefault,
    /// The handler's printed output need not be shown to the user.
    pub suppress_output: bool,
    /// A message for the user.
    pub user_message: Option<String>,
    /// The level of the user message.
    pub user_message_level: MessageLevel,
    /// The source of the user message.
    pub user_message_source: Option<String>,
    /// Append the text for the context to the last tool result.
    pub append_to_last_tool_result: bool,
    /// The texts of several handlers for the model's context.
    pub context_injections: Vec<ContextInjection>,
}

impl Default for HookResult {
    fn default() -> Self {
        Self {
            action: HookAction::Continue,
            data: None,
            reason: None,
            context_injection: None,
            context_injection_role: ContextRole::System,
            ephemeral: false,
            approval_prompt: None,
            approval_options: None,
            approval_timeout: APPROVAL_TIMEOUT,
            approval_default: ApprovalDefault::Deny,
            suppress_output: false,
            user_message: None,
            user_message_level: MessageLevel::Info,
            user_message_source: None,
            append_to_last_tool_result: false,
            context_injections: Vec::new(),
        }
    }
}

/// A question to an operator.
#[derive(Clone, Debug, PartialEq)]
pub struct HookApprovalQuestion {
    /// The question.
    pub prompt: String,
    /// The possible answers.
    pub options: Vec<String>,
    /// The time limit of the answer, in seconds.
    pub timeout: f64,
    /// The answer if the approval runs out of time.
    pub default: ApprovalDefault,
}

/// A handler's answer is malformed. Its intent is unknown, so the call must not continue because of it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the answer of a hook is invalid: {0}")]
pub struct UnfitAnswer(pub String);

impl HookResult {
    /// Continue.
    pub fn proceed() -> Self {
        Self::default()
    }

    /// Deny.
    pub fn deny(reason: impl Into<String>) -> Self {
        Self {
            action: HookAction::Deny,
            reason: Some(reason.into()),
            ..Self::default()
        }
    }

    /// Continue with other data.
    pub fn modify(data: Map<String, Value>) -> Self {
        Self {
            action: HookAction::Modify,
            data: Some(data),
            ..Self::default()
        }
    }

    /// Continue, and add text to the model's context.
    pub fn inject_context(text: impl Into<String>) -> Self {
        Self {
            action: HookAction::InjectContext,
            context_injection: Some(text.into()),
            ..Self::default()
        }
    }

    /// Ask an operator.
    pub fn ask_user(prompt: impl Into<String>) -> Self {
        Self {
            action: HookAction::AskUser,
            approval_prompt: Some(prompt.into()),
            ..Self::default()
        }
    }

    /// Sets the reason.
    #[must_use]
    pub fn because(mut self, reason: impl Into<String>) -> Self {
        self.reason = Some(reason.into());
        self
    }

    /// Adds a message for the user.
    #[must_use]
    pub fn with_message(mut self, message: impl Into<String>) -> Self {
        self.user_message = Some(message.into());
        self
    }

    /// The question to the operator, if the answer requests one.
    pub fn approval(&self) -> Option<HookApprovalQuestion> {
        (self.action == HookAction::AskUser).then(|| HookApprovalQuestion {
            prompt: self
                .approval_prompt
                .clone()
                .or_else(|| self.reason.clone())
                .unwrap_or_default(),
            options: self
                .approval_options
                .clone()
                .unwrap_or_else(|| vec!["Allow".into(), "Deny".into()]),
            timeout: self.approval_timeout,
            default: self.approval_default,
        })
    }
}
