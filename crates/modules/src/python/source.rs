//! The source of a module set's tools.

use std::sync::Arc;

use toolpost_model::{
    BoxFuture, CallInput, Declaration, EffectOrigin, InputRefusal, Provenance, SandboxPlan,
    SandboxProfile, SessionId, SessionScope, Source, SourceError, SourceFeed, SourceProblem,
    SourceSession, ToolCall, ToolFailure, ToolId, ToolOutput, WireNaming,
};

use super::{
    call,
    listing::{ask_answer, ask_declaration},
    plugin,
    seat::SessionMountKeeper,
    set::ModuleSet,
};

/// The tool by which modules ask an operator. It runs like any other tool, so that the question is decided, recorded
/// and answered in the usual way; an approval means yes.
pub(super) const ASK: &str = "amplifier.ask_operator";

/// The source of Python modules' tools.
#[derive(Clone)]
pub struct PythonSource {
    set: Arc<ModuleSet>,
}

impl PythonSource {
    pub(super) fn new(set: Arc<ModuleSet>) -> Self {
        Self { set }
    }
}

impl Source for PythonSource {
    fn name(&self) -> &str {
        &self.set.name
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
        Box::pin(async {
            let mut declarations = self.set.list().await.declarations.clone();
            if let Ok(id) = ASK.parse()
                && !declarations.is_empty()
            {
                declarations.push(ask_declaration(id));
            }
            Ok(declarations)
        })
    }

    fn problems(&self) -> Vec<SourceProblem> {
        self.set.listing().problems.clone()
    }

    fn freshen(&self) -> Option<BoxFuture<'_, bool>> {
        self.set
            .has_plugin_tools()
            .then(|| Box::pin(self.set.ask_plugins_again()) as BoxFuture<'_, bool>)
    }

    fn search<'a>(&'a self, query: &'a str, limit: usize) -> Option<BoxFuture<'a, Vec<ToolId>>> {
        let found = self
            .set
            .has_plugin_tools()
            .then(|| self.set.search_plugins(query, limit));
        found.map(|found| Box::pin(found) as BoxFuture<'a, Vec<ToolId>>)
    }

    fn open<'a>(
        &'a self,
        session: &'a SessionScope,
    ) -> BoxFuture<'a, Result<Arc<dyn SourceSession>, SourceError>> {
        let seat = self.set.seat(&session.session_id);
        let opened = PythonModuleSession {
            set: Arc::clone(&self.set),
            seat,
            session: session.session_id.clone(),
        };
        Box::pin(std::future::ready(Ok(
            Arc::new(opened) as Arc<dyn SourceSession>
        )))
    }

    fn connect(&self, feed: SourceFeed) {
        self.set.connect(feed);
    }
}

/// The set, opened for a session. Modules are mounted at the first call, not before.
struct PythonModuleSession {
    set: Arc<ModuleSet>,
    seat: Arc<SessionMountKeeper>,
    session: SessionId,
}

impl SourceSession for PythonModuleSession {
    fn check(&self, tool: &ToolId, _: &CallInput) -> Result<(), InputRefusal> {
        if tool.as_str() == ASK {
            return Ok(());
        }
        self.set
            .blueprint
            .children
            .check(self.set.blueprint.settings.profile)
    }

    fn unbound_paths(&self, tool: &ToolId) -> Option<String> {
        let why =
            "the process of the Python modules sees the whole workspace; path rules do not bind it";
        (tool.as_str() != ASK).then(|| why.to_owned())
    }

    fn sandbox(
        &self,
        tool: &ToolId,
        _: &CallInput,
        _: Option<SandboxProfile>,
    ) -> Option<SandboxPlan> {
        let blueprint = &self.set.blueprint;
        // Sessions share the process, so the settings of a single tool cannot narrow its sandbox.
        (tool.as_str() != ASK).then(|| blueprint.children.plan(blueprint.settings.profile, None))
    }

    fn execute<'a>(
        &'a self,
        tool: &'a ToolId,
        call: ToolCall,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolFailure>> {
        if tool.as_str() == ASK {
            return Box::pin(std::future::ready(Ok(ToolOutput::structured(ask_answer()))));
        }
        if tool.namespace() == plugin::NAMESPACE {
            let listing = self.set.listing();
            return Box::pin(async move {
                if let Some(taker) = listing.steps.get(tool) {
                    return plugin::hand_over(&self.set, &self.seat, taker, call).await;
                }
                let takers = listing
                    .dispatches
                    .get(tool)
                    .map(Vec::as_slice)
                    .unwrap_or_default();
                plugin::dispatch(takers, call).await
            });
        }
        Box::pin(call::run(&self.set, &self.seat, tool, call))
    }

    fn close(&self) {
        self.set.close(&self.session);
    }
}
