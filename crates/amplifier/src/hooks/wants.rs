//! What an answer means for a call: the step that hooks of modules in every language go through before the host hears of
//! what they want.

use serde_json::{Map, Value};

use super::answer::{HookAction, HookApprovalQuestion, HookResult, UnfitAnswer};
use crate::{ToolResult, events};

/// What an answer means for a call. Nothing set: it goes on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HookDemands {
    /// The call must not be made, or its result not be seen: why.
    pub stop: Option<String>,
    /// A person must say yes first.
    pub ask: Option<HookApprovalQuestion>,
    /// Other arguments, before the call.
    pub tool_input: Option<Map<String, Value>>,
    /// Another result, after the call.
    pub result: Option<ToolResult>,
    /// What the model is to be told, a piece each.
    pub context: Vec<String>,
    /// What the user is to be told.
    pub message: Option<String>,
    /// Why, in the hook's words.
    pub reason: Option<String>,
}

impl HookResult {
    /// What the answer to an event means for the call that the event told of; `sent` is the event's payload, so that
    /// only what is other than it counts as a change. A change survives beside a question or a word for the model. At
    /// the other events than `tool:pre`, `tool:post` and `tool:error` nothing can be changed.
    pub fn wants(&self, event: &str, sent: &Value) -> Result<HookDemands, UnfitAnswer> {
        let mut wants = HookDemands {
            reason: self.reason.clone(),
            message: self.message(),
            ..HookDemands::default()
        };
        match self.action {
            HookAction::Deny => {
                let reason = self
                    .reason
                    .clone()
                    .unwrap_or_else(|| "it gave no reason".to_owned());
                return Ok(HookDemands {
                    stop: Some(reason),
                    ..wants
                });
            }
            HookAction::AskUser => wants.ask = self.approval(),
            HookAction::Continue | HookAction::Modify | HookAction::InjectContext => {}
        }
        wants.context = self.told_to_model();
        let Some(data) = &self.data else {
            return match self.action {
                HookAction::Modify => Err(UnfitAnswer(
                    "it wants to modify, and gives no `data`".to_owned(),
                )),
                _ => Ok(wants),
            };
        };
        let changed = |key: &str| data.get(key).filter(|value| **value != sent[key]);
        match event {
            events::TOOL_PRE => {
                wants.tool_input = changed("tool_input").map(arguments).transpose()?;
            }
            events::TOOL_POST | events::TOOL_ERROR => {
                wants.result = changed("result").map(result).transpose()?;
            }
            _ => {}
        }
        Ok(wants)
    }

    /// The user's message, under the name it is to be told.
    fn message(&self) -> Option<String> {
        let message = self.user_message.as_ref()?;
        Some(match &self.user_message_source {
            Some(source) => format!("{source}: {message}"),
            None => message.clone(),
        })
    }

    /// What several handlers want told is in the list; what a single one does, in the field.
    fn told_to_model(&self) -> Vec<String> {
        let mut told: Vec<String> = self
            .context_injections
            .iter()
            .map(|one| one.content.clone())
            .collect();
        if told.is_empty() {
            told.extend(self.context_injection.clone());
        }
        told.retain(|text| !text.is_empty());
        told
    }
}

fn arguments(value: &Value) -> Result<Map<String, Value>, UnfitAnswer> {
    let fields = value.as_object().cloned();
    fields.ok_or_else(|| UnfitAnswer("the `tool_input` it wants is not an object".to_owned()))
}

/// A changed result is a whole one, or else what it should have for an output.
fn result(value: &Value) -> Result<ToolResult, UnfitAnswer> {
    let is_whole = value
        .as_object()
        .is_some_and(|fields| fields.contains_key("success") || fields.contains_key("output"));
    match is_whole {
        true => ToolResult::read(value).map_err(|error| UnfitAnswer(error.to_string())),
        false => Ok(ToolResult::success(value.clone())),
    }
}
