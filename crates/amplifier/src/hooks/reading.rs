//! Reads the answer of a handler in another language.

use serde_json::{Map, Value};

use super::answer::{
    ApprovalDefault, ContextInjection, ContextRole, HookAction, HookResult, MessageLevel,
    UnfitAnswer,
};
use crate::result::{as_bool, kind};

impl HookResult {
    /// Reads an answer: `null` continues, an object is read as in Amplifier's model, and any other value is
    /// [unfit](UnfitAnswer).
    pub fn read(value: &Value) -> Result<Self, UnfitAnswer> {
        let fields = match value {
            Value::Null => return Ok(Self::proceed()),
            Value::Object(fields) => HookResultFields(fields),
            other => return Err(UnfitAnswer(format!("{} instead of an object", kind(other)))),
        };
        let usual = Self::default();
        let data = match fields.given("data") {
            None => None,
            Some(Value::Object(data)) => Some(data.clone()),
            Some(other) => {
                return Err(UnfitAnswer(format!(
                    "`data` is {}, not an object",
                    kind(other)
                )));
            }
        };
        Ok(Self {
            action: fields.word("action", action)?.unwrap_or_default(),
            data,
            reason: fields.text("reason")?,
            context_injection: fields.text("context_injection")?,
            context_injection_role: fields
                .word("context_injection_role", role)?
                .unwrap_or_default(),
            ephemeral: fields.flag("ephemeral")?,
            approval_prompt: fields.text("approval_prompt")?,
            approval_options: fields.texts("approval_options")?,
            approval_timeout: fields
                .number("approval_timeout")?
                .unwrap_or(usual.approval_timeout),
            approval_default: fields
                .word("approval_default", approval_default)?
                .unwrap_or_default(),
            suppress_output: fields.flag("suppress_output")?,
            user_message: fields.text("user_message")?,
            user_message_level: fields
                .word("user_message_level", level)?
                .unwrap_or_default(),
            user_message_source: fields.text("user_message_source")?,
            append_to_last_tool_result: fields.flag("append_to_last_tool_result")?,
            context_injections: fields.injections()?,
        })
    }
}

fn action(word: &str) -> Option<HookAction> {
    Some(match word {
        "continue" => HookAction::Continue,
        "deny" => HookAction::Deny,
        "modify" => HookAction::Modify,
        "inject_context" => HookAction::InjectContext,
        "ask_user" => HookAction::AskUser,
        _ => return None,
    })
}

fn role(word: &str) -> Option<ContextRole> {
    Some(match word {
        "system" => ContextRole::System,
        "user" => ContextRole::User,
        "assistant" => ContextRole::Assistant,
        _ => return None,
    })
}

fn level(word: &str) -> Option<MessageLevel> {
    Some(match word {
        "info" => MessageLevel::Info,
        "warning" => MessageLevel::Warning,
        "error" => MessageLevel::Error,
        _ => return None,
    })
}

fn approval_default(word: &str) -> Option<ApprovalDefault> {
    Some(match word {
        "deny" => ApprovalDefault::Deny,
        "allow" => ApprovalDefault::Allow,
        _ => return None,
    })
}

struct HookResultFields<'a>(&'a Map<String, Value>);

impl<'a> HookResultFields<'a> {
    fn given(&self, key: &str) -> Option<&'a Value> {
        self.0.get(key).filter(|value| !value.is_null())
    }

    fn text(&self, key: &str) -> Result<Option<String>, UnfitAnswer> {
        let Some(value) = self.given(key) else {
            return Ok(None);
        };
        let text = value.as_str().map(ToOwned::to_owned);
        text.map(Some)
            .ok_or_else(|| UnfitAnswer(format!("`{key}` is {}, not a text", kind(value))))
    }

    fn texts(&self, key: &str) -> Result<Option<Vec<String>>, UnfitAnswer> {
        let Some(value) = self.given(key) else {
            return Ok(None);
        };
        let texts = value.as_array().and_then(|items| {
            items
                .iter()
                .map(|item| item.as_str().map(ToOwned::to_owned))
                .collect::<Option<Vec<_>>>()
        });
        texts
            .map(Some)
            .ok_or_else(|| UnfitAnswer(format!("`{key}` is not a list of texts")))
    }

    fn flag(&self, key: &str) -> Result<bool, UnfitAnswer> {
        let Some(value) = self.given(key) else {
            return Ok(false);
        };
        as_bool(value).ok_or_else(|| UnfitAnswer(format!("`{key}` is {value}, not true or false")))
    }

    fn number(&self, key: &str) -> Result<Option<f64>, UnfitAnswer> {
        let Some(value) = self.given(key) else {
            return Ok(None);
        };
        let number = value
            .as_f64()
            .or_else(|| value.as_str()?.trim().parse().ok());
        let number = number.filter(|number: &f64| number.is_finite());
        number
            .map(Some)
            .ok_or_else(|| UnfitAnswer(format!("`{key}` is {value}, not a number")))
    }

    fn word<T>(&self, key: &str, known: fn(&str) -> Option<T>) -> Result<Option<T>, UnfitAnswer> {
        let Some(value) = self.given(key) else {
            return Ok(None);
        };
        let word = value.as_str().and_then(known);
        word.map(Some)
            .ok_or_else(|| UnfitAnswer(format!("`{key}` cannot be {value}")))
    }

    fn injections(&self) -> Result<Vec<ContextInjection>, UnfitAnswer> {
        let Some(value) = self.given("context_injections") else {
            return Ok(Vec::new());
        };
        let unfit = || {
            UnfitAnswer("`context_injections` is not a list of objects with `content`".to_owned())
        };
        let read = |item: &Value| {
            let fields = HookResultFields(item.as_object().ok_or_else(unfit)?);
            Ok(ContextInjection {
                content: fields.text("content")?.ok_or_else(unfit)?,
                role: fields.word("role", role)?.unwrap_or_default(),
                ephemeral: fields.flag("ephemeral")?,
                append_to_last_tool_result: fields.flag("append_to_last_tool_result")?,
                hook_name: fields
                    .text("hook_name")?
                    .unwrap_or_else(|| "unknown".to_owned()),
                event: fields.text("event")?.unwrap_or_default(),
            })
        };
        value
            .as_array()
            .ok_or_else(unfit)?
            .iter()
            .map(read)
            .collect()
    }
}
