//! What a handler answers.

use serde::Serialize;
use serde_json::{Map, Value};

/// How long a person may take by default, in seconds.
pub(super) const APPROVAL_TIMEOUT: f64 = 300.0;

/// What a handler wants to happen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum HookAction {
    /// Nothing: go on.
    #[default]
    Continue,
    /// Do not.
    Deny,
    /// Go on with other data.
    Modify,
    /// Go on, and tell the model something.
    InjectContext,
    /// A person decides.
    AskUser,
}

/// In whose name something is told to the model.
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

/// What counts where nobody answers in time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalDefault {
    /// No.
    #[default]
    Deny,
    /// Yes.
    Allow,
}

/// Something to tell the model, from one handler.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ContextInjection {
    /// The text.
    pub content: String,
    /// In whose name.
    pub role: ContextRole,
    /// For the next request alone.
    pub ephemeral: bool,
    /// With the last tool result, not as a message of its own.
    pub append_to_last_tool_result: bool,
    /// Who wants it told.
    pub hook_name: String,
    /// When.
    pub event: String,
}

/// What a handler answers, with the fields and defaults of Amplifier's model, in its order.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HookResult {
    /// What it wants to happen.
    pub action: HookAction,
    /// The data it goes on with.
    pub data: Option<Map<String, Value>>,
    /// Why.
    pub reason: Option<String>,
    /// What to tell the model.
    pub context_injection: Option<String>,
    /// In whose name.
    pub context_injection_role: ContextRole,
    /// For the next request alone.
    pub ephemeral: bool,
    /// What a person is asked.
    pub approval_prompt: Option<String>,
    /// What a person can answer. `None`: allow and deny.
    pub approval_options: Option<Vec<String>>,
    /// How long a person may take, in seconds.
    pub approval_timeout: f64,
    /// What counts where nobody answers in time.
    pub approval_default: ApprovalDefault,
    /// The user need not see what the handler printed.
    pub suppress_output: bool,
    /// What to tell the user.
    pub user_message: Option<String>,
    /// How serious that is.
    pub user_message_level: MessageLevel,
    /// Who says so.
    pub user_message_source: Option<String>,
    /// What to tell the model goes with the last tool result.
    pub append_to_last_tool_result: bool,
    /// What several handlers want the model told.
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

/// A question to a person.
#[derive(Clone, Debug, PartialEq)]
pub struct HookApprovalQuestion {
    /// What is asked.
    pub prompt: String,
    /// What can be answered.
    pub options: Vec<String>,
    /// How long the answer may take, in seconds.
    pub timeout: f64,
    /// What counts where there is no answer in time.
    pub default: ApprovalDefault,
}

/// A handler answered something that makes no sense. Nobody can tell what it wanted, so nothing may go on because of it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a hook answered what cannot be understood: {0}")]
pub struct UnfitAnswer(pub String);

impl HookResult {
    /// Go on.
    pub fn proceed() -> Self {
        Self::default()
    }

    /// Do not.
    pub fn deny(reason: impl Into<String>) -> Self {
        Self {
            action: HookAction::Deny,
            reason: Some(reason.into()),
            ..Self::default()
        }
    }

    /// Go on with other data.
    pub fn modify(data: Map<String, Value>) -> Self {
        Self {
            action: HookAction::Modify,
            data: Some(data),
            ..Self::default()
        }
    }

    /// Go on, and tell the model something.
    pub fn inject_context(text: impl Into<String>) -> Self {
        Self {
            action: HookAction::InjectContext,
            context_injection: Some(text.into()),
            ..Self::default()
        }
    }

    /// A person decides.
    pub fn ask_user(prompt: impl Into<String>) -> Self {
        Self {
            action: HookAction::AskUser,
            approval_prompt: Some(prompt.into()),
            ..Self::default()
        }
    }

    /// Says why.
    #[must_use]
    pub fn because(mut self, reason: impl Into<String>) -> Self {
        self.reason = Some(reason.into());
        self
    }

    /// Adds something to tell the user.
    #[must_use]
    pub fn with_message(mut self, message: impl Into<String>) -> Self {
        self.user_message = Some(message.into());
        self
    }

    /// What a person is to be asked, where the answer asks for one.
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
