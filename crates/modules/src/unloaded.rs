//! Modules of a plan that could not be loaded. They bring no tools and are reported with the listing. In place of
//! their hooks stand refusals, so that no call passes as if the missing hook had agreed.

use std::{collections::BTreeMap, sync::Arc};

use toolpost_amplifier::{LoadFailure, ModuleId, ModuleKind};
use toolpost_core::{Hook, HookCall, HookError, HookOutput};
use toolpost_model::{
    BoxFuture, Declaration, EffectOrigin, HookEvent, HookStanding, Provenance, SessionScope,
    Source, SourceError, SourceProblem, SourceSession, WireNaming,
};

/// The modules of a plan that failed to load, as a source without tools.
#[derive(Clone, Debug)]
pub struct UnloadedModules {
    name: String,
    failures: Vec<LoadFailure>,
}

impl UnloadedModules {
    /// The failures of one plan, under the name of the plan's source in records.
    pub fn new(name: impl Into<String>, failures: Vec<LoadFailure>) -> Self {
        Self {
            name: name.into(),
            failures,
        }
    }

    /// The stand-ins for the missing hooks: each refuses the calls that it should have checked, unless the operator's
    /// setting is that it only observes. Modules without an entry are guards.
    pub fn hooks(&self, standings: &BTreeMap<ModuleId, HookStanding>) -> Vec<Arc<dyn Hook>> {
        let missing = self
            .failures
            .iter()
            .filter(|failure| failure.kind == ModuleKind::Hook);
        let hooks = missing.map(|failure| MissingHook {
            name: failure.module.to_string(),
            standing: standings
                .get(&failure.module)
                .copied()
                .unwrap_or(HookStanding::Guard),
            message: format!("{failure}\n{}", observer_hint(&failure.module)),
        });
        hooks.map(|hook| Arc::new(hook) as Arc<dyn Hook>).collect()
    }
}

impl Source for UnloadedModules {
    fn name(&self) -> &str {
        &self.name
    }

    fn origin(&self) -> EffectOrigin {
        EffectOrigin::Claimed
    }

    fn naming(&self) -> WireNaming {
        WireNaming::Bare
    }

    fn provenance(&self) -> Provenance {
        Provenance::MountPlan
    }

    fn list(&self) -> BoxFuture<'_, Result<Vec<Declaration>, SourceError>> {
        Box::pin(std::future::ready(Ok(Vec::new())))
    }

    fn problems(&self) -> Vec<SourceProblem> {
        self.failures
            .iter()
            .cloned()
            .map(SourceProblem::from)
            .collect()
    }

    fn open<'a>(
        &'a self,
        _: &'a SessionScope,
    ) -> BoxFuture<'a, Result<Arc<dyn SourceSession>, SourceError>> {
        let reason = "none of its modules could be loaded".to_owned();
        Box::pin(std::future::ready(Err(SourceError {
            origin: self.name.clone(),
            reason,
        })))
    }
}

/// A hint for operators who want calls to pass without a missing hook.
pub(crate) fn observer_hint(module: &ModuleId) -> String {
    format!(
        "hint: fix it, or, if no call depends on it, set `amplifier: {{hooks: {{{module}: observer}}}}` in the \
         configuration"
    )
}

/// The stand-in for a missing hook.
struct MissingHook {
    name: String,
    standing: HookStanding,
    message: String,
}

impl Hook for MissingHook {
    fn name(&self) -> &str {
        &self.name
    }

    fn standing(&self) -> HookStanding {
        self.standing
    }

    fn concerns(&self, call: &HookCall<'_>) -> bool {
        call.event == HookEvent::Before
    }

    fn before<'a>(&'a self, _: &'a HookCall<'a>) -> BoxFuture<'a, Result<HookOutput, HookError>> {
        Box::pin(std::future::ready(Err(HookError(self.message.clone()))))
    }
}
