//! A source made of plain tools.

use std::{collections::HashMap, sync::Arc};

use crate::{
    BoxFuture, CallInput, Declaration, DynTool, EffectOrigin, Effects, InputRefusal, ProgramFile,
    Provenance, SandboxPlan, SandboxProfile, SessionId, SessionScope, Source, SourceError,
    SourceSession, Tool, ToolCall, ToolFailure, ToolId, ToolOutput, WireNaming,
};

/// Tools compiled into the host, as a source.
pub struct ToolSet {
    name: String,
    declarations: Vec<Declaration>,
    tools: Arc<DynToolMap>,
    when_session_closes: Option<SessionClosed>,
}

type DynToolMap = HashMap<ToolId, Arc<dyn DynTool>>;
type SessionClosed = Arc<dyn Fn(&SessionId) + Send + Sync>;

struct OpenTools {
    tools: Arc<DynToolMap>,
    session: SessionId,
    when_closed: Option<SessionClosed>,
}

impl ToolSet {
    /// A named set of tools.
    pub fn new(name: impl Into<String>, tools: impl IntoIterator<Item = Arc<dyn DynTool>>) -> Self {
        let mut declarations = Vec::new();
        let mut by_id = HashMap::new();
        for tool in tools {
            let declaration = tool.declaration();
            by_id.entry(declaration.tool_id.clone()).or_insert(tool);
            declarations.push(declaration);
        }
        Self {
            name: name.into(),
            declarations,
            tools: Arc::new(by_id),
            when_session_closes: None,
        }
    }

    /// The tools themselves.
    pub fn tools(&self) -> impl Iterator<Item = &Arc<dyn DynTool>> {
        self.tools.values()
    }

    /// Calls `closed` when a session that used one of the tools ends, so that tools can drop the state of that session.
    #[must_use]
    pub fn when_session_closes(
        mut self,
        closed: impl Fn(&SessionId) + Send + Sync + 'static,
    ) -> Self {
        self.when_session_closes = Some(Arc::new(closed));
        self
    }

    /// A set of one.
    pub fn of(tool: impl Tool) -> Self {
        let tool: Arc<dyn DynTool> = Arc::new(tool);
        Self::new(tool.declaration().tool_id.as_str(), [tool])
    }
}

impl Source for ToolSet {
    fn name(&self) -> &str {
        &self.name
    }

    fn origin(&self) -> EffectOrigin {
        EffectOrigin::HostCode
    }

    fn naming(&self) -> WireNaming {
        WireNaming::Bare
    }

    fn provenance(&self) -> Provenance {
        Provenance::CompiledIn
    }

    fn list(&self) -> BoxFuture<'_, Result<Vec<Declaration>, SourceError>> {
        Box::pin(std::future::ready(Ok(self.declarations.clone())))
    }

    fn open<'a>(
        &'a self,
        scope: &'a SessionScope,
    ) -> BoxFuture<'a, Result<Arc<dyn SourceSession>, SourceError>> {
        let opened: Arc<dyn SourceSession> = Arc::new(OpenTools {
            tools: Arc::clone(&self.tools),
            session: scope.session_id.clone(),
            when_closed: self.when_session_closes.clone(),
        });
        Box::pin(std::future::ready(Ok(opened)))
    }
}

impl SourceSession for OpenTools {
    fn check(&self, tool: &ToolId, input: &CallInput) -> Result<(), InputRefusal> {
        self.tools
            .get(tool)
            .map_or(Ok(()), |tool| tool.check(input))
    }

    fn effects(&self, tool: &ToolId, input: &CallInput) -> Option<Effects> {
        self.tools.get(tool).and_then(|tool| tool.effects(input))
    }

    fn sandbox(
        &self,
        tool: &ToolId,
        input: &CallInput,
        narrowed: Option<SandboxProfile>,
    ) -> Option<SandboxPlan> {
        self.tools
            .get(tool)
            .and_then(|tool| tool.sandbox(input, narrowed))
    }

    fn programs<'a>(
        &'a self,
        tool: &'a ToolId,
        input: &'a CallInput,
    ) -> BoxFuture<'a, Result<Vec<ProgramFile>, ToolFailure>> {
        match self.tools.get(tool) {
            Some(tool) => tool.programs(input),
            None => Box::pin(std::future::ready(Ok(Vec::new()))),
        }
    }

    fn execute<'a>(
        &'a self,
        tool: &'a ToolId,
        call: ToolCall,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolFailure>> {
        match self.tools.get(tool) {
            Some(tool) => tool.execute(call),
            None => {
                let gone =
                    ToolFailure::new(format!("`{tool}` is not in this set any more")).untouched();
                Box::pin(std::future::ready(Err(gone)))
            }
        }
    }

    fn close(&self) {
        if let Some(closed) = &self.when_closed {
            closed(&self.session);
        }
    }
}
