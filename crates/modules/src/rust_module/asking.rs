//! Runs the handlers of a mounted set, each within its time limit.

use std::{panic::AssertUnwindSafe, time::Duration};

use futures_util::FutureExt as _;
use serde_json::Value;
use toolpost_amplifier::{
    HookFailure, HookRegistry, HookResult, HookResultCollector, ModuleKind, RegisteredHandler,
    events,
};
use toolpost_model::HookStanding;

use super::{super::hooks::ModuleStandings, mounted::MountedSet};

/// Sends an event about a call to the handlers, and combines their answers.
pub(super) async fn ask(
    set: &MountedSet,
    event: &'static str,
    data: Value,
    standings: &ModuleStandings,
    limit: Duration,
) -> HookResult {
    if let Some(answer) = missing(set, event, standings) {
        return answer;
    }
    let mut gathering = HookResultCollector::new(data);
    for handler in set.coordinator().hooks().handlers(event) {
        let answer = within(&handler, event, gathering.data(), limit).await;
        let standing = standing(standings, &handler, event, answer.is_err());
        gathering.take(&handler, standing, answer, event);
        if gathering.is_denied() {
            break;
        }
    }
    let notes = gathering.notes().join("\n");
    let mut answer = gathering.finish();
    if !notes.is_empty() {
        answer.user_message = Some(match answer.user_message {
            Some(message) => format!("{message}\n{notes}"),
            None => notes,
        });
    }
    answer
}

/// Sends an event whose answers do not count.
pub(super) async fn tell(hooks: &HookRegistry, event: &'static str, data: Value, limit: Duration) {
    for handler in hooks.handlers(event) {
        // It only observes, and there is no call to record its failure with.
        let _ = within(&handler, event, &data, limit).await;
    }
}

/// The result for missing modules: a module that should look at calls and failed to mount has failed at each of them.
fn missing(set: &MountedSet, event: &str, standings: &ModuleStandings) -> Option<HookResult> {
    if event != events::TOOL_PRE {
        return None;
    }
    let hooks = set
        .failures()
        .iter()
        .filter(|failure| failure.kind == ModuleKind::Hook);
    let declined = set
        .declined()
        .iter()
        .filter(|(module, kind)| *kind == ModuleKind::Hook && standings.is_named_guard(module));
    if let Some((module, _)) = declined.into_iter().next() {
        let text = format!("the hook module `{module}` declined, but is configured as a guard");
        return Some(HookResult::deny(text));
    }
    let mut asked = None;
    for failure in hooks {
        let text = format!(
            "the hook module `{}` is not available: {}",
            failure.module, failure.message
        );
        match standings.of(Some(&failure.module), event) {
            HookStanding::Guard => return Some(HookResult::deny(text)),
            HookStanding::Ordinary => asked = Some(HookResult::ask_user(text)),
            HookStanding::Observer => {}
        }
    }
    asked
}

/// A finished call can no longer be questioned, so the failure of an ordinary handler is only logged there.
fn standing(
    standings: &ModuleStandings,
    handler: &RegisteredHandler,
    event: &str,
    failed: bool,
) -> HookStanding {
    match standings.of(handler.module(), event) {
        HookStanding::Ordinary if failed && event != events::TOOL_PRE => HookStanding::Observer,
        standing => standing,
    }
}

async fn within(
    handler: &RegisteredHandler,
    event: &str,
    data: &Value,
    limit: Duration,
) -> Result<HookResult, HookFailure> {
    let asked = AssertUnwindSafe(handler.ask(event, data)).catch_unwind();
    match tokio::time::timeout(limit, asked).await {
        Ok(Ok(answer)) => answer,
        Ok(Err(_)) => Err(HookFailure::broke("it panicked")),
        Err(_) => Err(HookFailure::broke(format!(
            "it did not answer within {} ms",
            limit.as_millis()
        ))),
    }
}
