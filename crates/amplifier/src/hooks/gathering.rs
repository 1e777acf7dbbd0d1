//! Combines the answers of several handlers to one event: a denial outweighs a question, a question outweighs a text
//! for the model, and changes stay unless the call is denied.

use serde_json::Value;
use toolpost_model::HookStanding;

use super::{
    answer::{ContextInjection, HookAction, HookResult},
    registry::{HookFailure, RegisteredHandler},
};

/// The answers so far. Each handler gets the data as the handlers before it left it.
#[derive(Debug)]
pub struct HookResultCollector {
    data: Value,
    is_changed: bool,
    denied: Option<HookResult>,
    question: Option<HookResult>,
    injections: Vec<ContextInjection>,
    messages: Vec<String>,
    notes: Vec<String>,
}

impl HookResultCollector {
    /// A collector without answers.
    pub fn new(data: Value) -> Self {
        Self {
            data,
            is_changed: false,
            denied: None,
            question: None,
            injections: Vec::new(),
            messages: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// The current data.
    pub fn data(&self) -> &Value {
        &self.data
    }

    /// Whether a handler denied: the remaining handlers need not run.
    pub fn is_denied(&self) -> bool {
        self.denied.is_some()
    }

    /// Failures and odd answers that changed nothing, one line each.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Adds a handler's answer or failure, with the effect of its standing. Only the message of an observer counts;
    /// its other demands become notes.
    pub fn take(
        &mut self,
        handler: &RegisteredHandler,
        standing: HookStanding,
        answer: Result<HookResult, HookFailure>,
        event: &str,
    ) {
        match (answer, standing) {
            (Ok(answer), HookStanding::Observer) => self.observe(handler.name(), answer),
            (Ok(answer), HookStanding::Guard | HookStanding::Ordinary) => {
                self.heed(handler.name(), answer, event);
            }
            (Err(failure), standing) => self.fail(handler.name(), standing, &failure),
        }
    }

    /// A failed guard denies, a failed ordinary handler makes the host ask an operator, a failed observer is noted. A
    /// malformed answer of a guard or an ordinary handler denies: it may have been meant as a denial.
    pub(super) fn fail(&mut self, name: &str, standing: HookStanding, failure: &HookFailure) {
        match (standing, failure) {
            (HookStanding::Observer, _) => self
                .notes
                .push(format!("the hook `{name}` failed: {failure}")),
            (HookStanding::Ordinary, HookFailure::Broke(_)) => {
                let prompt =
                    format!("the hook `{name}`, which looks at such calls, failed: {failure}");
                self.question.get_or_insert(HookResult::ask_user(prompt));
            }
            (HookStanding::Guard, _) | (HookStanding::Ordinary, HookFailure::Unfit(_)) => {
                self.deny(format!("the hook `{name}` failed: {failure}"));
            }
        }
    }

    fn observe(&mut self, name: &str, mut answer: HookResult) {
        self.tell(name, &mut answer);
        let wanted = match answer.action {
            HookAction::Continue => return,
            HookAction::Deny => "deny",
            HookAction::Modify => "modify",
            HookAction::InjectContext => "inject_context",
            HookAction::AskUser => "ask_user",
        };
        self.notes.push(format!(
            "the hook `{name}` is an observer, so its `{wanted}` is ignored"
        ));
    }

    fn tell(&mut self, name: &str, answer: &mut HookResult) {
        if let Some(message) = answer.user_message.take() {
            let source = answer.user_message_source.as_deref().unwrap_or(name);
            self.messages.push(format!("{source}: {message}"));
        }
    }

    fn deny(&mut self, reason: String) {
        self.denied.get_or_insert(HookResult::deny(reason));
    }

    pub(super) fn heed(&mut self, name: &str, mut answer: HookResult, event: &str) {
        self.tell(name, &mut answer);
        match answer.action {
            HookAction::Deny => {
                self.denied = Some(answer);
                return;
            }
            HookAction::AskUser => {
                let prompt = answer
                    .approval_prompt
                    .take()
                    .or_else(|| answer.reason.clone());
                answer.approval_prompt =
                    Some(prompt.unwrap_or_else(|| format!("the hook `{name}` asks")));
                self.question.get_or_insert_with(|| answer.clone());
            }
            HookAction::Continue | HookAction::Modify | HookAction::InjectContext => {}
        }
        self.inject(name, &answer, event);
        // In Amplifier's own registry only `modify` changes the data. Here, changed data beside a question or a text
        // for the model count too, since the handler sent them.
        if let (Some(fresh), Value::Object(data)) = (answer.data, &mut self.data)
            && answer.action != HookAction::Continue
        {
            for (key, value) in fresh {
                // The host sets this member, and handlers cannot change it.
                if key != "timestamp" && data.get(&key) != Some(&value) {
                    data.insert(key, value);
                    self.is_changed = true;
                }
            }
        }
    }

    fn inject(&mut self, name: &str, answer: &HookResult, event: &str) {
        self.injections
            .extend(answer.context_injections.iter().cloned());
        let Some(content) = answer
            .context_injection
            .clone()
            .filter(|text| !text.is_empty())
        else {
            return;
        };
        self.injections.push(ContextInjection {
            content,
            role: answer.context_injection_role,
            ephemeral: answer.ephemeral,
            append_to_last_tool_result: answer.append_to_last_tool_result,
            hook_name: name.to_owned(),
            event: event.to_owned(),
        });
    }

    /// The combined answer. Its action is never `modify`: changed data are returned beside the other demands.
    pub fn finish(self) -> HookResult {
        let message = Some(self.messages.join("\n")).filter(|text| !text.is_empty());
        if let Some(denied) = self.denied {
            return HookResult {
                user_message: message,
                user_message_source: None,
                data: None,
                ..denied
            };
        }
        let data = match self.data {
            Value::Object(data) if self.is_changed => Some(data),
            _ => None,
        };
        let joined: Vec<&str> = self
            .injections
            .iter()
            .map(|one| one.content.as_str())
            .collect();
        let first = self.injections.first();
        let base = match self.question {
            Some(question) => question,
            None if first.is_some() => HookResult::inject_context(String::new()),
            None => HookResult::proceed(),
        };
        HookResult {
            data,
            context_injection: Some(joined.join("\n\n")).filter(|text| !text.is_empty()),
            context_injection_role: first.map(|one| one.role).unwrap_or_default(),
            ephemeral: first.is_some_and(|one| one.ephemeral),
            append_to_last_tool_result: first.is_some_and(|one| one.append_to_last_tool_result),
            user_message: message,
            user_message_source: None,
            context_injections: self.injections,
            ..base
        }
    }
}
