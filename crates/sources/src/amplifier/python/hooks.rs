//! Handlers of Python modules, behind the desk that hooks of every language are asked through.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use serde_json::Value;
use toolpost_amplifier::{HookResult, ModuleId, events};
use toolpost_core::{Hook, HookError};
use toolpost_model::{BoxFuture, HookStanding, SessionId, SessionScope};

use super::{
    super::{
        hooks::{EventDesk, ModuleHooks, ModuleStandings},
        witnessing::EventTaker,
    },
    call::Running,
    process::{NoAnswer, read},
    protocol::{Emitted, Order},
    set::ModuleSet,
};

/// How long one handler may take where nobody says otherwise.
const USUAL_LIMIT: Duration = Duration::from_secs(5);
/// Of so many handlers in a row each may take its time.
const IN_A_ROW: u32 = 6;

/// The hooks of a set. None where no module has handlers, or was to have some.
pub(super) fn hooks(set: &Arc<ModuleSet>) -> Vec<Arc<dyn Hook>> {
    let listing = set.listing();
    if listing.blind.is_empty() && listing.events.iter().all(|(_, events)| events.is_empty()) {
        return Vec::new();
    }
    let settings = &set.blueprint.settings;
    let standings = ModuleStandings::new(settings.standings.clone());
    let limit = settings.hook_limit.unwrap_or(USUAL_LIMIT);
    let desk = PythonDesk { set: Arc::clone(set), standings, limit };
    let hooks = ModuleHooks::new(Arc::new(desk)).post_on_failure(settings.post_on_failure);
    hooks.time_limit(Some(limit.saturating_mul(IN_A_ROW))).into_hooks().to_vec()
}

struct PythonDesk {
    set: Arc<ModuleSet>,
    standings: ModuleStandings,
    limit: Duration,
}

impl PythonDesk {
    /// The standing of each module that hears an event.
    fn hearing(&self, event: &str) -> BTreeMap<String, HookStanding> {
        let standing = |module: String| {
            let standing = self.standings.of(Some(&ModuleId::new(module.as_str())), event);
            (module, standing)
        };
        self.set.listing().hearing(event).into_iter().map(standing).collect()
    }

    /// A module that should look at calls and is not there has failed at each of them.
    fn missing(&self, event: &str) -> Option<HookResult> {
        if event != events::TOOL_PRE {
            return None;
        }
        let listing = self.set.listing();
        let mut asked = None;
        for failure in &listing.blind {
            let text = format!("the hook module `{}` is not there: {}", failure.module, failure.message);
            match self.standings.of(Some(&failure.module), event) {
                HookStanding::Guard => return Some(HookResult::deny(text)),
                HookStanding::Ordinary => asked = Some(HookResult::ask_user(text)),
                HookStanding::Observer => {}
            }
        }
        asked
    }

    async fn put(&self, session: &SessionId, event: &str, data: &Value) -> Result<HookResult, HookError> {
        let standings = self.hearing(event);
        let missing = self.missing(event);
        if standings.is_empty() || missing.as_ref().is_some_and(|answer| answer.reason.is_some()) {
            return Ok(missing.unwrap_or_default());
        }
        let seat = self.set.seat(session);
        let mounted = seat.mounted(&self.set).await.map_err(|failure| HookError(failure.message))?;
        let limit_ms = u64::try_from(self.limit.as_millis()).unwrap_or(u64::MAX);
        let order = Order::Emit { mount: mounted.mount, event, data, standings: &standings, limit_ms };
        let pending = mounted.bridge.request(order);
        let what = format!("a hook at `{event}`");
        let mut running = Running { bridge: Arc::clone(&mounted.bridge), pending: Some(pending), what };
        let line = running.answered().await.map_err(broken)?;
        let Emitted { result } = read(&line).map_err(broken)?;
        let answer = HookResult::read(&result).map_err(|unfit| HookError(unfit.to_string()))?;
        Ok(match missing {
            Some(question) if answer.approval_prompt.is_none() && answer.reason.is_none() => question,
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
        self.tell_handlers(session, event, &data);
    }

    fn session_closed(&self, session: &SessionId) {
        self.close(session);
    }
}
