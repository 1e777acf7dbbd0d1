//! Hooks: code that sees every call before it is decided and after it ran. A hook may rewrite the arguments or
//! stop the call; it can never allow what a rule denies, because the decision comes after it.

use serde::Serialize;
use serde_json::Value;
use toolpost_model::{BoxFuture, Declaration, ObservableInput, Principal, ToolResult};

/// What a hook sees.
pub struct HookCall<'a> {
    /// The tool.
    pub declaration: &'a Declaration,
    /// The arguments, sensitive fields replaced.
    pub input: &'a ObservableInput,
    /// Who calls.
    pub principal: &'a Principal,
}

/// What a hook wants before a call.
pub enum HookVerdict {
    /// Nothing.
    Proceed,
    /// Other arguments. They are checked like the model's own.
    Rewrite {
        /// The new arguments.
        arguments: Value,
        /// Why, for the record.
        reason: String,
    },
    /// The call must not happen.
    Stop {
        /// Why, for the model.
        reason: String,
    },
}

/// A hook broke. A guard that breaks does not allow, so the call ends.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{0}")]
pub struct HookError(pub String);

/// Sees calls go by.
pub trait Hook: Send + Sync + 'static {
    /// Its name, for records.
    fn name(&self) -> &str;

    /// Before the decision.
    fn before<'a>(&'a self, call: &'a HookCall<'a>) -> BoxFuture<'a, Result<HookVerdict, HookError>> {
        let _ = call;
        Box::pin(std::future::ready(Ok(HookVerdict::Proceed)))
    }

    /// After the result is made, before it is recorded. Looks only.
    fn after<'a>(&'a self, call: &'a HookCall<'a>, result: &'a ToolResult) -> BoxFuture<'a, ()> {
        let _ = (call, result);
        Box::pin(std::future::ready(()))
    }
}

/// A change somebody made to the arguments, for the record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct InputMutation {
    /// `hook`.
    pub source_type: &'static str,
    /// Which one.
    pub source: String,
    /// Top-level fields that differ.
    pub changed_fields: Vec<String>,
    /// Why.
    pub reason: String,
}

/// The top-level fields in which two objects differ.
pub(crate) fn changed_fields(before: &Value, after: &Value) -> Vec<String> {
    let keys =
        |value: &Value| value.as_object().map(|o| o.keys().cloned().collect::<Vec<_>>()).unwrap_or_default();
    let mut all = keys(before);
    all.extend(keys(after));
    all.sort();
    all.dedup();
    all.retain(|key| before.get(key) != after.get(key));
    all
}
