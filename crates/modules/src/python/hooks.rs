//! Handlers of Python modules, behind the desk that all languages share.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use serde_json::Value;
use toolpost_amplifier::{HookAction, HookResult, ModuleId, events};
use toolpost_core::{Hook, HookError};
use toolpost_model::{BoxFuture, HookStanding, SessionId, SessionScope};

use super::{
    super::{
        hooks::{EventDesk, ModuleHooks, ModuleStandings},
        unloaded::observer_hint,
        witnessing::EventTaker,
    },
    call::RunningBridgeRequest,
    listing::ModuleSetListing,
    process::{NoAnswer, read},
    protocol::{BridgeEmitReply, BridgeOrder},
    set::ModuleSet,
};

/// The default time limit of one handler.
const USUAL_LIMIT: Duration = Duration::from_secs(5);
/// The time limit of all handlers together, as a multiple of the limit of one.
const IN_A_ROW: u32 = 6;

/// The hooks of a set. Empty if no module has handlers or was expected to have some.
pub(super) fn hooks(set: &Arc<ModuleSet>) -> Vec<Arc<dyn Hook>> {
    let listing = set.listing();
    let settings = &set.blueprint.settings;
    let standings = ModuleStandings::new(settings.standings.clone());
    let has_handlers = listing.events.iter().any(|(_, events)| !events.is_empty());
    let lacks_guard = listing
        .declined
        .iter()
        .any(|module| standings.is_named_guard(module));
    if listing.blind.is_empty() && !has_handlers && !lacks_guard {
        return Vec::new();
    }
    let limit = settings.hook_limit.unwrap_or(USUAL_LIMIT);
    let desk = PythonDesk {
        set: Arc::clone(set),
        standings,
        limit,
    };
    let hooks = ModuleHooks::new(Arc::new(desk)).post_on_failure(settings.post_on_failure);
    hooks
        .time_limit(Some(limit.saturating_mul(IN_A_ROW)))
        .into_hooks()
        .to_vec()
}

struct PythonDesk {
    set: Arc<ModuleSet>,
    standings: ModuleStandings,
    limit: Duration,
}

impl PythonDesk {
    fn standing(&self, module: &str, event: &str) -> HookStanding {
        self.standings.of(Some(&ModuleId::new(module)), event)
    }

    /// The standing of every module. Handlers may come after the mount, so modules without one are included too.
    fn all_standings(&self, event: &str) -> BTreeMap<String, HookStanding> {
        let ids = self
            .set
            .blueprint
            .modules
            .iter()
            .map(|module| module.planned.id.as_str());
        ids.map(|id| (id.to_owned(), self.standing(id, event)))
            .collect()
    }

    /// The result for missing modules: a module that should look at calls and failed to load has failed at each of
    /// them.
    fn missing(&self, event: &str) -> Option<HookResult> {
        if event != events::TOOL_PRE {
            return None;
        }
        let listing = self.set.listing();
        let gone = listing.blind.iter().map(|failure| {
            let text = format!(
                "the hook module `{}` is not available: {}",
                failure.module, failure.message
            );
            (
                failure.module.as_str(),
                format!("{text}\n{}", observer_hint(&failure.module)),
            )
        });
        let declined = listing
            .declined
            .iter()
            .filter(|module| self.standings.is_named_guard(module));
        let declined = declined.map(|module| {
            (
                module.as_str(),
                format!("the hook module `{module}` declined, but is configured as a guard"),
            )
        });
        self.failed(event, gone.chain(declined))
    }

    /// The result for modules that failed to look at an event.
    fn failed<'a>(
        &self,
        event: &str,
        modules: impl Iterator<Item = (&'a str, String)>,
    ) -> Option<HookResult> {
        let mut question = None;
        for (module, why) in modules {
            match self.standing(module, event) {
                HookStanding::Guard => return Some(HookResult::deny(why)),
                HookStanding::Ordinary if event == events::TOOL_PRE => {
                    question = Some(HookResult::ask_user(why));
                }
                HookStanding::Ordinary | HookStanding::Observer => {}
            }
        }
        question
    }

    /// The result for modules that should have got an event in a session and did not: modules with handlers in this
    /// mount or the first one, and hook modules that failed to mount in this session.
    fn deaf(&self, event: &str, own: &ModuleSetListing, asked: &[String]) -> Option<HookResult> {
        let mut expected: BTreeSet<String> =
            self.set.listing().hearing(event).into_iter().collect();
        expected.extend(own.hearing(event));
        if event == events::TOOL_PRE {
            expected.extend(own.blind.iter().map(|failure| failure.module.to_string()));
        }
        let deaf = expected
            .iter()
            .filter_map(|module| match own.failure_of(module) {
                Some(failure) => {
                    let why = format!(
                        "the hook module `{module}` is not available: {}",
                        failure.message
                    );
                    Some((module.as_str(), why))
                }
                None if asked.contains(module) => None,
                None => {
                    let why =
                        format!("the module `{module}` no longer has a handler for `{event}`");
                    Some((module.as_str(), why))
                }
            });
        self.failed(event, deaf)
    }

    async fn put(
        &self,
        session: &SessionId,
        event: &str,
        data: &Value,
    ) -> Result<HookResult, HookError> {
        let missing = self.missing(event);
        let denied = missing
            .as_ref()
            .is_some_and(|answer| answer.action == HookAction::Deny);
        if denied || self.set.listing().hearing(event).is_empty() {
            return Ok(missing.unwrap_or_default());
        }
        let seat = self.set.seat(session);
        let mounted = seat
            .mounted(&self.set)
            .await
            .map_err(|failure| HookError(failure.message))?;
        let limit_ms = u64::try_from(self.limit.as_millis()).unwrap_or(u64::MAX);
        let standings = self.all_standings(event);
        let order = BridgeOrder::Emit {
            mount: mounted.mount,
            event,
            data,
            standings: &standings,
            limit_ms,
        };
        let pending = mounted.bridge.request(order);
        let what = format!("a hook at `{event}`");
        let mut running = RunningBridgeRequest {
            bridge: Arc::clone(&mounted.bridge),
            pending: Some(pending),
            what,
        };
        let line = running.answered().await.map_err(broken)?;
        let BridgeEmitReply { result, asked } = read(&line).map_err(broken)?;
        mounted.bridge.works();
        let answer = HookResult::read(&result).map_err(|unfit| HookError(unfit.to_string()))?;
        if answer.action == HookAction::Deny {
            return Ok(answer);
        }
        let failed = self.deaf(event, &mounted.listing, &asked).or(missing);
        Ok(match failed {
            Some(failed) if failed.action == HookAction::Deny => failed,
            // One question is enough. Changes by other handlers stay.
            Some(question) if answer.action != HookAction::AskUser => HookResult {
                action: question.action,
                approval_prompt: question.approval_prompt,
                ..answer
            },
            Some(_) | None => answer,
        })
    }
}

fn broken(no: NoAnswer) -> HookError {
    HookError(no.into_failure().message)
}

impl EventDesk for PythonDesk {
    fn name(&self) -> &str {
        &self.set.name
    }

    fn concerns(&self, event: &str) -> bool {
        !self.set.listing().hearing(event).is_empty() || self.missing(event).is_some()
    }

    fn ask<'a>(
        &'a self,
        session: &'a SessionScope,
        event: &'static str,
        data: Value,
    ) -> BoxFuture<'a, Result<HookResult, HookError>> {
        Box::pin(async move { self.put(&session.session_id, event, &data).await })
    }
}

impl EventTaker for ModuleSet {
    fn concerns(&self, event: &str) -> bool {
        !self.listing().hearing(event).is_empty()
    }

    fn tell(&self, session: &SessionId, event: &'static str, data: Value) {
        self.tell_handlers(session, event, data);
    }

    fn session_closed(&self, session: &SessionId) {
        self.close(session);
    }
}
