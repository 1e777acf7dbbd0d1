//! Hooks of modules among the host's hooks. [`EventDesk`] hides how each language runs its handlers; the payloads and
//! the effects of the answers are the same for all and are defined here.

use std::{collections::HashMap, sync::Arc, time::Duration};

use serde_json::Value;
use toolpost_amplifier::{
    HookDemands, HookResult, ModuleId, ToolSpec,
    events::{self, CallFacts},
    into_outcome, of_result,
};
use toolpost_core::{Hook, HookCall, HookError, HookOutput, HookVote};
use toolpost_model::{Behavior, BoxFuture, HookEvent, HookStanding, SessionScope, ToolResult};

/// Sends call events to the handlers of a session's modules.
pub(crate) trait EventDesk: Send + Sync + 'static {
    /// The name of the module set, for records.
    fn name(&self) -> &str;

    /// Whether an event has a handler.
    fn concerns(&self, event: &str) -> bool;

    /// Asks the handlers one after another, and combines their answers. `Err`: no handler could be asked, which ends
    /// the call if it has not run yet.
    fn ask<'a>(
        &'a self,
        session: &'a SessionScope,
        event: &'static str,
        data: Value,
    ) -> BoxFuture<'a, Result<HookResult, HookError>>;
}

/// The standing of each module's handlers: the consequence of their failure.
#[derive(Clone, Debug, Default)]
pub struct ModuleStandings(HashMap<ModuleId, HookStanding>);

impl ModuleStandings {
    /// The operator's setting for each module.
    pub fn new(standings: impl IntoIterator<Item = (ModuleId, HookStanding)>) -> Self {
        Self(standings.into_iter().collect())
    }

    /// The standing of a module's handlers at an event. By default they are guards before a call, and ordinary hooks
    /// after it.
    pub fn of(&self, module: Option<&ModuleId>, event: &str) -> HookStanding {
        let usual = match event {
            events::TOOL_PRE => HookStanding::Guard,
            events::TOOL_POST | events::TOOL_ERROR => HookStanding::Ordinary,
            _ => HookStanding::Observer,
        };
        module
            .and_then(|module| self.0.get(module).copied())
            .unwrap_or(usual)
    }

    /// Whether the operator's setting makes the module a guard. Such a module may not decline.
    pub(crate) fn is_named_guard(&self, module: &ModuleId) -> bool {
        self.0.get(module) == Some(&HookStanding::Guard)
    }
}

/// The hooks of a module set: one before calls, one after.
pub(crate) struct ModuleHooks {
    desk: Arc<dyn EventDesk>,
    limit: Option<Duration>,
    post_on_failure: bool,
}

impl ModuleHooks {
    /// The hooks behind a desk.
    pub(crate) fn new(desk: Arc<dyn EventDesk>) -> Self {
        Self {
            desk,
            limit: None,
            post_on_failure: false,
        }
    }

    /// The time limit of all handlers together. `None`: the host's limit for each hook.
    #[must_use]
    pub(crate) fn time_limit(mut self, limit: Option<Duration>) -> Self {
        self.limit = limit;
        self
    }

    /// Whether `tool:post` follows failures too, as in Amplifier's own loops; `tool:error` follows them in any case.
    #[must_use]
    pub(crate) fn post_on_failure(mut self, told: bool) -> Self {
        self.post_on_failure = told;
        self
    }

    /// The hooks, in the order in which the host must run them.
    pub(crate) fn into_hooks(self) -> [Arc<dyn Hook>; 2] {
        let Self {
            desk,
            limit,
            post_on_failure,
        } = self;
        let hook = |moment: HookMoment| {
            let name = format!("{}:{}", desk.name(), moment.word());
            Arc::new(ModuleHook {
                name,
                desk: Arc::clone(&desk),
                moment,
                limit,
            }) as Arc<dyn Hook>
        };
        [
            hook(HookMoment::Pre),
            hook(HookMoment::Post {
                also_failures: post_on_failure,
            }),
        ]
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HookMoment {
    Pre,
    Post { also_failures: bool },
}

impl HookMoment {
    fn word(self) -> &'static str {
        match self {
            Self::Pre => "pre",
            Self::Post { .. } => "post",
        }
    }

    /// The Amplifier events that handlers get, in order.
    fn told(self, event: HookEvent) -> &'static [&'static str] {
        match (self, event) {
            (Self::Pre, HookEvent::Before) => &[events::TOOL_PRE],
            (Self::Post { .. }, HookEvent::After) => &[events::TOOL_POST],
            (
                Self::Post {
                    also_failures: true,
                },
                HookEvent::Failure,
            ) => &[events::TOOL_ERROR, events::TOOL_POST],
            (
                Self::Post {
                    also_failures: false,
                },
                HookEvent::Failure,
            ) => &[events::TOOL_ERROR],
            (Self::Pre, HookEvent::After | HookEvent::Failure)
            | (Self::Post { .. }, HookEvent::Before) => &[],
        }
    }
}

struct ModuleHook {
    name: String,
    desk: Arc<dyn EventDesk>,
    moment: HookMoment,
    limit: Option<Duration>,
}

impl ModuleHook {
    async fn ask(
        &self,
        call: &HookCall<'_>,
        result: Option<&ToolResult>,
    ) -> Result<HookOutput, HookError> {
        let scope = SessionScope {
            session_id: call.session_id.clone(),
            principal: call.principal.clone(),
        };
        let mut output = HookOutput::proceed();
        for event in self
            .moment
            .told(call.event)
            .iter()
            .filter(|event| self.desk.concerns(event))
        {
            let sent = payload(event, call, result);
            let answer = self.desk.ask(&scope, event, sent.clone()).await?;
            let wants = answer
                .wants(event, &sent)
                .map_err(|unfit| HookError(unfit.to_string()))?;
            output = joined(output, heeded(wants, result));
        }
        Ok(output)
    }
}

impl Hook for ModuleHook {
    fn name(&self) -> &str {
        &self.name
    }

    /// The desk settles the failures of single handlers. This standing applies if no handler could be asked.
    fn standing(&self) -> HookStanding {
        match self.moment {
            HookMoment::Pre => HookStanding::Guard,
            HookMoment::Post { .. } => HookStanding::Ordinary,
        }
    }

    fn time_limit(&self) -> Option<Duration> {
        self.limit
    }

    fn concerns(&self, call: &HookCall<'_>) -> bool {
        self.moment
            .told(call.event)
            .iter()
            .any(|event| self.desk.concerns(event))
    }

    fn before<'a>(
        &'a self,
        call: &'a HookCall<'a>,
    ) -> BoxFuture<'a, Result<HookOutput, HookError>> {
        Box::pin(self.ask(call, None))
    }

    fn after<'a>(
        &'a self,
        call: &'a HookCall<'a>,
        result: &'a ToolResult,
    ) -> BoxFuture<'a, Result<HookOutput, HookError>> {
        Box::pin(self.ask(call, Some(result)))
    }

    fn failed<'a>(
        &'a self,
        call: &'a HookCall<'a>,
        result: &'a ToolResult,
    ) -> BoxFuture<'a, Result<HookOutput, HookError>> {
        Box::pin(self.ask(call, Some(result)))
    }
}

/// The payload of an event for the handlers.
fn payload(event: &str, call: &HookCall<'_>, result: Option<&ToolResult>) -> Value {
    let own_id = call.invocation_id.to_string();
    let parent = call.parent.map(|parent| parent.to_string());
    let facts = CallFacts {
        // The mount name, not the wire name: hooks are written against the names in plans.
        tool_name: ToolSpec::native_name(call.declaration),
        tool_input: call.input.arguments().value(),
        tool_call_id: call.request_id.map_or(own_id.as_str(), |id| id.as_str()),
        parallel_group_id: call.batch_id,
        session_id: call.session_id.as_str(),
        parent_id: parent.as_deref(),
        timestamp: call.at,
    };
    let Some(result) = result else {
        return events::tool_pre(&facts);
    };
    let took = result.timings.execute_us / 1_000;
    let result = of_result(result);
    match event {
        events::TOOL_ERROR => events::tool_error(&facts, took, &result),
        _ => events::tool_post(&facts, took, &result),
    }
}

/// The handlers' demands as an output for the host.
fn heeded(wants: HookDemands, result: Option<&ToolResult>) -> HookOutput {
    let mut output = HookOutput {
        arguments: wants.tool_input.map(Value::Object),
        context: wants.context,
        stop: wants.stop,
        message: wants.message,
        reason: wants.reason,
        ..HookOutput::default()
    };
    if let Some(question) = wants.ask {
        match result {
            None => {
                output.opinion = Some(HookVote {
                    behavior: Behavior::Ask,
                    reason: question.prompt,
                });
            }
            // The call is over, so no question is possible, and a result without approval is not shown.
            Some(_) => {
                let reason = format!("it requests approval of the result: {}", question.prompt);
                output.stop.get_or_insert(reason);
            }
        }
    }
    if let (Some(changed), Some(before)) = (wants.result, result) {
        replace(&mut output, changed, before);
    }
    output
}

/// Replaces the result. An image that the hook left as its placeholder becomes the original image again.
fn replace(
    output: &mut HookOutput,
    mut changed: toolpost_amplifier::ToolResult,
    before: &ToolResult,
) {
    let original = of_result(before);
    let shown = original
        .content()
        .iter()
        .map(toolpost_amplifier::ContentBlock::for_events);
    if shown.eq(changed.content().iter().cloned()) {
        changed = changed.with_content(original.content().to_vec());
    }
    match into_outcome(changed) {
        Ok(fresh) => {
            output.output = Some(fresh.content);
            output.structured = fresh.structured;
        }
        Err(failure) => {
            let mut content = vec![toolpost_model::ResultContent::text(format!(
                "Error: {}",
                failure.message
            ))];
            content.extend(failure.content);
            output.output = Some(content);
        }
    }
    output
        .reason
        .get_or_insert_with(|| "a hook of a module changed the result".to_owned());
}

/// Combines the answers to two events about the same end of a call: the later one counts, but a denial stays.
fn joined(first: HookOutput, second: HookOutput) -> HookOutput {
    let both = |one: Option<String>, other: Option<String>| match (one, other) {
        (Some(one), Some(other)) => Some(format!("{one}\n{other}")),
        (one, other) => one.or(other),
    };
    let mut context = first.context;
    context.extend(second.context);
    let (output, structured) = match second.output {
        Some(output) => (Some(output), second.structured),
        None => (first.output, first.structured),
    };
    HookOutput {
        arguments: second.arguments.or(first.arguments),
        output,
        structured,
        context,
        opinion: second.opinion.or(first.opinion),
        stop: first.stop.or(second.stop),
        message: both(first.message, second.message),
        reason: second.reason.or(first.reason),
    }
}
