//! Modules that a plan names and that are not there. They bring no tools, and are reported wherever somebody looks for
//! some; and a hook that is not there guards nothing, so calls do not pass as if it had agreed.

use std::{collections::BTreeMap, sync::Arc};

use toolpost_amplifier::{LoadFailure, ModuleId, ModuleKind};
use toolpost_core::{Hook, HookCall, HookError, HookOutput};
use toolpost_model::{
    BoxFuture, Declaration, EffectOrigin, HookEvent, HookStanding, Provenance, SessionScope,
    Source, SourceError, SourceProblem, SourceSession, WireNaming,
};

/// The modules of a plan that could not be loaded, as a source without tools.
#[derive(Clone, Debug)]
pub struct UnloadedModules {
    name: String,
    failures: Vec<LoadFailure>,
}

impl UnloadedModules {
    /// The failures of one plan, under the name that the plan's source has in records.
    pub fn new(name: impl Into<String>, failures: Vec<LoadFailure>) -> Self {
        Self {
            name: name.into(),
            failures,
        }
    }

    /// What stands where the missing hooks should: each refuses what it was to look at, unless the operator says that
    /// it only observes. Modules that are not named are guards.
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

/// How a person lets calls pass without a hook that is not there.
pub(crate) fn observer_hint(module: &ModuleId) -> String {
    format!(
        "hint: mend it; or, if no call depends on it, put `amplifier: {{hooks: {{{module}: observer}}}}` into the \
         configuration"
    )
}

/// A hook that is not there.
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
