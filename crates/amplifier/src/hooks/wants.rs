//! The effect of an answer on a call. Hooks of modules in every language go through this step before the host acts on
//! their answers.

use serde_json::{Map, Value};

use super::answer::{HookAction, HookApprovalQuestion, HookResult, UnfitAnswer};
use crate::{ToolResult, events};

/// The effect of an answer on a call. Empty: the call continues.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HookDemands {
    /// The call must not run, or its result must not be shown, with the reason.
    pub stop: Option<String>,
    /// An operator must approve first.
    pub ask: Option<HookApprovalQuestion>,
    /// Other arguments, before the call.
    pub tool_input: Option<Map<String, Value>>,
    /// Another result, after the call.
    pub result: Option<ToolResult>,
    /// Texts for the model's context.
    pub context: Vec<String>,
    /// A message for the user.
    pub message: Option<String>,
    /// The reason, from the hook.
    pub reason: Option<String>,
}

impl HookResult {
    /// The effect of the answer on the call of the event. `sent` is the event's payload: only a difference from it
    /// counts as a change. A change stands beside a question or a text for the model. Only `tool:pre`, `tool:post` and
    /// `tool:error` allow changes.
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
                    "the action `modify` requires `data`".to_owned(),
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

    /// The user's message, with its source in front.
    fn message(&self) -> Option<String> {
        let message = self.user_message.as_ref()?;
        Some(match &self.user_message_source {
            Some(source) => format!("{source}: {message}"),
            None => message.clone(),
        })
    }

    /// The texts of several handlers are in the list, the text of a single one in the field.
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
    fields.ok_or_else(|| UnfitAnswer("the new `tool_input` is not an object".to_owned()))
}

/// A changed result is either a whole result or a new output.
fn result(value: &Value) -> Result<ToolResult, UnfitAnswer> {
    let is_whole = value
        .as_object()
        .is_some_and(|fields| fields.contains_key("success") || fields.contains_key("output"));
    match is_whole {
        true => ToolResult::read(value).map_err(|error| UnfitAnswer(error.to_string())),
        false => Ok(ToolResult::success(value.clone())),
    }
}
