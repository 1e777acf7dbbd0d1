//! Layer 8, failures: why a call did not succeed, and how the caller can continue.

use std::{borrow::Cow, fmt};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{AppliedSandbox, ResultContent, Truncation};

macro_rules! error_classes {
    ($($(#[$doc:meta])* $name:ident = $code:literal, $explain:literal;)*) => {
        /// The kind of a failure. Stable: callers branch on it.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
        pub enum ErrorClass {
            $(#[doc = $explain] #[serde(rename = $code)] $name,)*
        }

        impl ErrorClass {
            /// Every class, for the reference in the docs.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// The code on the wire and in records.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$name => $code,)* }
            }

            /// The meaning, in one sentence.
            pub fn explain(self) -> &'static str {
                match self { $(Self::$name => $explain,)* }
            }
        }
    };
}

error_classes! {
    UnknownTool = "unknown_tool", "No tool has that name.";
    PolicyBlocked = "policy_blocked", "The tool exists but is hidden from this caller.";
    SchemaNotLoaded = "schema_not_loaded", "The tool is deferred and was not shown in this session yet.";
    SchemaValidationFailed = "schema_validation_failed", "The arguments are not a valid JSON object.";
    InvalidArguments = "invalid_arguments", "The arguments do not fit the tool's schema or rules.";
    SetupRequired = "setup_required", "A requirement of the tool is not installed or configured.";
    SandboxViolation = "sandbox_violation", "The call tried to use a resource outside its limits.";
    HookBlocked = "hook_blocked", "A hook stopped the call.";
    HookFailed = "hook_failed", "A guard hook failed, so the call is not allowed.";
    PermissionDenied = "permission_denied", "A rule or the mode denies the call.";
    ApprovalRejected = "approval_rejected", "The call requires a person's approval and was not approved.";
    ApprovalPending = "approval_pending", "The caller stopped waiting for approval; the call has not run yet.";
    RateLimited = "rate_limited", "A queue or a limit is full.";
    Queued = "queued", "The caller stopped waiting while the call was in the queue; the call did not run.";
    Canceled = "canceled", "The call was canceled, or the host stopped before the call started.";
    SiblingCanceled = "sibling_canceled", "Another call of its batch failed or did not run, so this call was canceled.";
    Timeout = "timeout", "The deadline passed and the work was stopped.";
    DependencyUnavailable = "dependency_unavailable", "A dependency of the tool did not answer.";
    ExecutionFailed = "execution_failed", "The tool ran and failed.";
    ResultTooLarge = "result_too_large", "The result is over the limit and could not be cut.";
    OutcomeUnknown = "outcome_unknown", "The host stopped while the call ran; it is unknown whether the call took effect.";
    RequestConflict = "request_conflict", "The request id was already used with other arguments.";
    JournalUnavailable = "journal_unavailable", "The journal cannot be written, so nothing may run.";
}

impl fmt::Display for ErrorClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Whether and how the caller can get further.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Recoverability {
    /// The same call may work.
    Retry,
    /// Another call may work: other arguments, or a search first.
    ChangeCall,
    /// Only the operator can change the answer.
    Operator,
    /// Nothing will.
    Never,
}

/// Conditions for a retry. Filled from facts: an effect that may have happened is never called safe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RetryGuidance {
    /// Sending the same call again cannot do harm.
    pub safe: bool,
    /// The arguments must change first.
    pub change_arguments: bool,
    /// The tool must be discovered first.
    pub discover_first: bool,
    /// A person must approve.
    pub needs_approval: bool,
    /// The shortest wait before a retry, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub after_ms: Option<u64>,
}

impl RetryGuidance {
    /// A retry is harmless and may help.
    pub const SAFE: Self = Self {
        safe: true,
        change_arguments: false,
        discover_first: false,
        needs_approval: false,
        after_ms: None,
    };
    /// A retry could do something twice.
    pub const UNSAFE: Self = Self {
        safe: false,
        ..Self::SAFE
    };
}

/// Why a call did not succeed, as part of its result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolError {
    /// The kind.
    pub class: ErrorClass,
    /// A finer code; equals the class where there is nothing finer.
    pub code: Cow<'static, str>,
    /// The failure, for the model: names the place, the expected value and the given value.
    pub message: String,
    /// Advice for the model.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub hint: Option<String>,
    /// Whether the caller can get further.
    pub recoverability: Recoverability,
    /// Conditions for a retry.
    pub retry: RetryGuidance,
    /// Machine-readable details, such as the list of schema violations.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub details: Option<Value>,
}

/// The failure of a tool.
///
/// Any error converts into one with `?`; the constructors add details.
#[derive(Clone, Debug)]
pub struct ToolFailure {
    /// The kind.
    pub class: ErrorClass,
    /// A finer code of the tool's own.
    pub code: Option<Cow<'static, str>>,
    /// The failure, for the model.
    pub message: String,
    /// Advice for the model.
    pub hint: Option<String>,
    /// Nothing was changed, so the call can be sent again. `None`: judged by the call's effects.
    pub untouched: Option<bool>,
    /// The shortest wait before a retry, in milliseconds, where it is known.
    pub after_ms: Option<u64>,
    /// Machine-readable details.
    pub details: Option<Value>,
    /// Exit code of a process, where one ran.
    pub exit_code: Option<i32>,
    /// The confinement of the process, where one ran.
    pub sandbox: Option<Box<AppliedSandbox>>,
    /// Content to show despite the failure, such as the output up to the deadline.
    pub content: Vec<ResultContent>,
    /// The part of that content that was left out.
    pub truncated: Option<Box<Truncation>>,
    /// Metadata from the tool's own system.
    pub meta: Option<Box<Map<String, Value>>>,
}

impl ToolFailure {
    /// The tool ran and failed.
    pub fn new(message: impl Into<String>) -> Self {
        Self::of(ErrorClass::ExecutionFailed, message)
    }

    /// A failure of a given kind.
    pub fn of(class: ErrorClass, message: impl Into<String>) -> Self {
        Self {
            class,
            code: None,
            message: message.into(),
            hint: None,
            untouched: None,
            after_ms: None,
            details: None,
            exit_code: None,
            sandbox: None,
            content: Vec::new(),
            truncated: None,
            meta: None,
        }
    }

    /// The arguments have the right shape and still cannot work.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::of(ErrorClass::InvalidArguments, message).untouched()
    }

    /// Adds a finer code.
    #[must_use]
    pub fn code(mut self, code: &'static str) -> Self {
        self.code = Some(Cow::Borrowed(code));
        self
    }

    /// Adds advice for the model.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Adds the confinement of the process.
    #[must_use]
    pub fn confined(mut self, sandbox: AppliedSandbox) -> Self {
        self.sandbox = Some(Box::new(sandbox));
        self
    }

    /// Sets the shortest wait before a retry.
    #[must_use]
    pub fn after_ms(mut self, wait: u64) -> Self {
        self.after_ms = Some(wait);
        self
    }

    /// Promises that nothing was changed.
    #[must_use]
    pub fn untouched(mut self) -> Self {
        self.untouched = Some(true);
        self
    }
}

/// `ToolFailure` is deliberately no `Error` itself: an `Error` would overlap with this blanket conversion through the
/// identity `From<T> for T`, and `?` could not convert every error.
impl<E: std::error::Error> From<E> for ToolFailure {
    fn from(error: E) -> Self {
        let mut message = error.to_string();
        let mut source = error.source();
        while let Some(inner) = source {
            message.push_str(": ");
            message.push_str(&inner.to_string());
            source = inner.source();
        }
        Self::new(message)
    }
}
