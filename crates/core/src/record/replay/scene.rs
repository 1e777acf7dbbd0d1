//! The tools of a cassette in a replaying host: a source that runs nothing, their names, and the denied tools.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use toolpost_model::{
    Behavior, BoxFuture, Decision, Declaration, EffectClass, EffectOrigin, PermissionMode,
    Provenance, SessionScope, Source, SourceError, SourceSession, ToolCall, ToolFailure, ToolId,
    ToolInputSettings, ToolOutput, ToolSettings, ToolSurfaceSettings, WireNaming,
};

use super::{Cassette, CassetteTool};
use crate::{
    catalog::OperatorSettings,
    permission::{PermissionFacts, Policy, PolicyEngine},
};

/// The replacement of the recorded host's sources, rules and settings.
pub(crate) struct ReplayScene {
    pub(crate) source: RecordedTools,
    pub(crate) policy: RecordedDenials,
    pub(crate) settings: RecordedNames,
}

impl ReplayScene {
    /// Takes the tools from a cassette.
    pub(crate) fn of(cassette: &mut Cassette) -> Self {
        let tools = std::mem::take(&mut cassette.tools);
        let denied = tools
            .iter()
            .filter(|tool| tool.denied)
            .map(|tool| tool.declaration.tool_id.clone());
        let denied = denied.collect();
        let names = tools.iter().map(
            |CassetteTool {
                 name,
                 sensitive,
                 declaration,
                 ..
             }| {
                let settings = ToolSettings {
                    surface: ToolSurfaceSettings {
                        name: Some(name.clone()),
                        ..ToolSurfaceSettings::default()
                    },
                    input: ToolInputSettings {
                        sensitive: sensitive.clone(),
                        ..ToolInputSettings::default()
                    },
                    ..ToolSettings::default()
                };
                (declaration.tool_id.clone(), settings)
            },
        );
        Self {
            settings: RecordedNames(names.collect()),
            policy: RecordedDenials {
                denied,
                other: Policy::in_mode(PermissionMode::Bypass),
            },
            source: RecordedTools(tools.into_iter().map(|tool| tool.declaration).collect()),
        }
    }
}

pub(crate) struct RecordedTools(Vec<Declaration>);

impl Source for RecordedTools {
    fn name(&self) -> &str {
        "replay"
    }

    fn origin(&self) -> EffectOrigin {
        EffectOrigin::HostCode
    }

    fn naming(&self) -> WireNaming {
        WireNaming::Bare
    }

    /// The recorded names are used unchanged, so every tool counts as compiled in, whatever source it had.
    fn provenance(&self) -> Provenance {
        Provenance::CompiledIn
    }

    fn list(&self) -> BoxFuture<'_, Result<Vec<Declaration>, SourceError>> {
        Box::pin(std::future::ready(Ok(self.0.clone())))
    }

    fn open<'a>(
        &'a self,
        _: &'a SessionScope,
    ) -> BoxFuture<'a, Result<Arc<dyn SourceSession>, SourceError>> {
        Box::pin(std::future::ready(Ok(
            Arc::new(NothingRuns) as Arc<dyn SourceSession>
        )))
    }
}

struct NothingRuns;

impl SourceSession for NothingRuns {
    fn execute<'a>(
        &'a self,
        _: &'a ToolId,
        _: ToolCall,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolFailure>> {
        let failure =
            ToolFailure::new("this host replays a recording and runs no tools").untouched();
        Box::pin(std::future::ready(Err(failure)))
    }
}

/// Hides the tools that were denied. A replay decides nothing else.
pub(crate) struct RecordedDenials {
    denied: HashSet<ToolId>,
    other: Policy,
}

impl PolicyEngine for RecordedDenials {
    fn decide(&self, facts: &PermissionFacts<'_>) -> Decision {
        let mut decision = self.other.decide(facts);
        if self.denied.contains(&facts.declaration.tool_id) {
            decision.behavior = Behavior::Deny;
            decision.reason.text = "the recorded host denied every call of this tool".to_owned();
        }
        decision
    }

    fn denies_outright(&self, declaration: &Declaration, _: Option<EffectClass>) -> bool {
        self.denied.contains(&declaration.tool_id)
    }
}

/// The recorded wire names and sensitive arguments of the tools.
pub(crate) struct RecordedNames(HashMap<ToolId, ToolSettings>);

impl OperatorSettings for RecordedNames {
    fn of(&self, tool: &Declaration, _: &str) -> Option<ToolSettings> {
        self.0.get(&tool.tool_id).cloned()
    }

    fn names(&self) -> Vec<String> {
        Vec::new()
    }
}
