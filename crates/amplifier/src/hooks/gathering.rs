//! What several handlers say to one event, put together: a no outweighs a question, a question outweighs a word for the
//! model, and a change survives all but the no.

use serde_json::Value;
use toolpost_model::HookStanding;

use super::{
    answer::{ContextInjection, HookAction, HookResult},
    registry::{HookFailure, RegisteredHandler},
};

/// What was said so far. Each handler is shown the data as those before it left it.
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
    /// Nothing said yet.
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

    /// The data as it stands.
    pub fn data(&self) -> &Value {
        &self.data
    }

    /// Whether a handler said no: nobody else need be asked.
    pub fn is_denied(&self) -> bool {
        self.denied.is_some()
    }

    /// What went wrong on the way and changed nothing, a line each.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Takes what a handler said, or how it failed, with what its standing makes of it. Of an observer nothing counts but
    /// a message; whatever else it wanted is noted.
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

    /// A guard that fails says no, an ordinary handler that breaks has a person asked, an observer that fails is noted.
    /// Nonsense from anybody but an observer is a no: it may have been meant as one.
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
            "the hook `{name}` is an observer, so its `{wanted}` counts for nothing"
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
        // In Amplifier's own registry only `modify` goes on with other data. What comes with a question or with a word
        // for the model is taken too: the handler gave it.
        if let (Some(fresh), Value::Object(data)) = (answer.data, &mut self.data)
            && answer.action != HookAction::Continue
        {
            for (key, value) in fresh {
                // Added by the host, and nobody's to change.
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

    /// What it all comes to. The action is never `modify`: changed data come with whatever else is to be done.
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
