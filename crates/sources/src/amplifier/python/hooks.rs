//! Handlers of Python modules as hooks of the host. Modules whose failure means the same are asked together, so that
//! their handlers keep Amplifier's order and precedence among themselves.

use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};
use toolpost_amplifier::{
    HookResult, ToolSpec, Wants,
    events::{self, CallFacts},
    into_outcome, of_result,
};
use toolpost_core::{Hook, HookCall, HookError, HookOutput, Opinion};
use toolpost_model::{Behavior, BoxFuture, Content, HookEvent, HookStanding, ToolResult};

use super::{
    call::Running,
    process::{NoAnswer, read},
    protocol::{Emitted, Order},
    set::ModuleSet,
};

/// The handlers of the modules of one standing.
pub(super) struct ModuleHooks {
    set: Arc<ModuleSet>,
    standing: HookStanding,
    name: String,
}

/// A hook for each standing that has handlers, guards first.
pub(super) fn hooks(set: &Arc<ModuleSet>) -> Vec<Arc<dyn Hook>> {
    let standings = [HookStanding::Guard, HookStanding::Ordinary, HookStanding::Observer];
    let made = standings.into_iter().filter_map(|standing| {
        let listing = set.listing();
        let of_it = |module: &&(String, Vec<String>)| {
            set.blueprint.settings.standing(&module.0) == standing && !module.1.is_empty()
        };
        let modules: Vec<&str> = listing.events.iter().filter(of_it).map(|(id, _)| id.as_str()).collect();
        let name = modules.join("+");
        let hook = ModuleHooks { set: Arc::clone(set), standing, name };
        (!modules.is_empty()).then(|| Arc::new(hook) as Arc<dyn Hook>)
    });
    made.collect()
}

impl ModuleHooks {
    /// What a moment of the host is called in Amplifier's words: what happened, and after a failure also what the
    /// operator wants told.
    fn events(&self, event: HookEvent) -> &'static [&'static str] {
        match event {
            HookEvent::Before => &[events::TOOL_PRE],
            HookEvent::After => &[events::TOOL_POST],
            HookEvent::Failure if self.set.blueprint.settings.post_on_failure => {
                &[events::TOOL_ERROR, events::TOOL_POST]
            }
            HookEvent::Failure => &[events::TOOL_ERROR],
        }
    }

    fn hearing(&self, event: &str) -> Vec<String> {
        let settings = &self.set.blueprint.settings;
        self.set.listing().hearing(event, |module| settings.standing(module) == self.standing)
    }

    async fn ask(&self, call: &HookCall<'_>, result: Option<&ToolResult>) -> Result<HookOutput, HookError> {
        let mut output = HookOutput::proceed();
        for event in self.events(call.event) {
            let modules = self.hearing(event);
            if modules.is_empty() {
                continue;
            }
            let sent = payload(event, call, result)?;
            let wants = self.emit(call, event, &sent, &modules).await?;
            output = together(output, self.output(wants));
            if output.stop.is_some() {
                break;
            }
        }
        Ok(output)
    }

    async fn emit(
        &self,
        call: &HookCall<'_>,
        event: &str,
        sent: &Value,
        modules: &[String],
    ) -> Result<Wants, HookError> {
        let seat = self.set.seat(call.session_id);
        let mounted = seat.mounted(&self.set).await.map_err(|failure| HookError(failure.message))?;
        let order = Order::Emit { mount: mounted.mount, event, data: sent, modules };
        let pending = mounted.bridge.request(order);
        let what = format!("the hook `{}` at `{event}`", self.name);
        let mut running = Running { bridge: Arc::clone(&mounted.bridge), pending: Some(pending), what };
        let line = running.answered().await.map_err(broken)?;
        let Emitted { result, errors } = read(&line).map_err(broken)?;
        let answer = HookResult::read(&result).map_err(|unfit| HookError(unfit.to_string()))?;
        let wants = answer.wants(event, sent).map_err(|unfit| HookError(unfit.to_string()))?;
        // A no counts, whoever else broke. Without one, a handler that broke might have said it.
        match errors.first() {
            Some(error) if wants.stop.is_none() => {
                Err(HookError(format!("its handler `{}` failed: {}", error.name, error.message)))
            }
            Some(_) | None => Ok(wants),
        }
    }

    fn output(&self, wants: Wants) -> HookOutput {
        let Wants { stop, ask, tool_input, result, context, message, reason } = wants;
        if self.standing == HookStanding::Observer {
            return HookOutput { message, ..HookOutput::default() };
        }
        let (output, structured) = match result.map(into_outcome) {
            None => (None, None),
            Some(Ok(output)) => (Some(output.content), output.structured),
            Some(Err(failure)) => {
                let said = std::iter::once(Content::text(failure.message)).chain(failure.content);
                (Some(said.collect()), None)
            }
        };
        HookOutput {
            arguments: tool_input.map(Value::Object),
            output,
            structured,
            context,
            opinion: ask.map(|ask| Opinion { behavior: Behavior::Ask, reason: ask.prompt }),
            stop,
            message,
            reason,
        }
    }
}

impl Hook for ModuleHooks {
    fn name(&self) -> &str {
        &self.name
    }

    fn standing(&self) -> HookStanding {
        self.standing
    }

    fn time_limit(&self) -> Option<Duration> {
        self.set.blueprint.settings.hook_limit
    }

    fn concerns(&self, call: &HookCall<'_>) -> bool {
        self.events(call.event).iter().any(|event| !self.hearing(event).is_empty())
    }

    fn before<'a>(&'a self, call: &'a HookCall<'a>) -> BoxFuture<'a, Result<HookOutput, HookError>> {
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

fn payload(event: &str, call: &HookCall<'_>, result: Option<&ToolResult>) -> Result<Value, HookError> {
    let id = call.invocation_id.to_string();
    let begun = i64::try_from(call.invocation_id.unix_millis()).unwrap_or(i64::MAX);
    let timestamp = jiff::Timestamp::from_millisecond(begun)
        .map_err(|error| HookError(format!("the call has no time: {error}")))?;
    let facts = CallFacts {
        tool_name: ToolSpec::native_name(call.declaration),
        tool_input: call.input.arguments().value(),
        tool_call_id: &id,
        parallel_group_id: None,
        session_id: call.session_id.as_str(),
        parent_id: None,
        timestamp,
    };
    let mut sent = match result {
        None => events::tool_pre(&facts),
        Some(result) => {
            let told = of_result(result);
            let duration_ms = result.timings.execute_us / 1000;
            match event {
                events::TOOL_ERROR => events::tool_error(&facts, duration_ms, &told),
                _ => events::tool_post(&facts, duration_ms, &told),
            }
        }
    };
    if call.is_dry_run {
        sent["dry_run"] = json!(true);
    }
    Ok(sent)
}

/// What two events of one moment want.
fn together(first: HookOutput, second: HookOutput) -> HookOutput {
    let changes = second.output.is_some() || second.structured.is_some();
    HookOutput {
        arguments: second.arguments.or(first.arguments),
        output: if changes { second.output } else { first.output },
        structured: if changes { second.structured } else { first.structured },
        context: first.context.into_iter().chain(second.context).collect(),
        opinion: first.opinion.or(second.opinion),
        stop: first.stop.or(second.stop),
        message: first.message.or(second.message),
        reason: first.reason.or(second.reason),
    }
}

fn broken(no: NoAnswer) -> HookError {
    HookError(no.into_failure().message)
}
