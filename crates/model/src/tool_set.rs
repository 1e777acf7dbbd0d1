//! A source made of plain tools.

use std::{collections::HashMap, sync::Arc};

use crate::{
    BoxFuture, CallInput, Declaration, DynTool, EffectOrigin, Effects, Naming, Refusal, SessionScope, Source,
    SourceError, SourceSession, Tool, ToolCall, ToolFailure, ToolId, ToolOutput,
};

/// Tools compiled into the host, as a source.
pub struct ToolSet {
    name: String,
    declarations: Vec<Declaration>,
    tools: Arc<OpenTools>,
}

struct OpenTools(HashMap<ToolId, Arc<dyn DynTool>>);

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
        Self { name: name.into(), declarations, tools: Arc::new(OpenTools(by_id)) }
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

    fn naming(&self) -> Naming {
        Naming::Bare
    }

    fn list(&self) -> BoxFuture<'_, Result<Vec<Declaration>, SourceError>> {
        Box::pin(std::future::ready(Ok(self.declarations.clone())))
    }

    fn open<'a>(&'a self, _: &'a SessionScope) -> BoxFuture<'a, Result<Arc<dyn SourceSession>, SourceError>> {
        let tools: Arc<dyn SourceSession> = self.tools.clone();
        Box::pin(std::future::ready(Ok(tools)))
    }
}

impl SourceSession for OpenTools {
    fn check(&self, tool: &ToolId, input: &CallInput) -> Result<(), Refusal> {
        self.0.get(tool).map_or(Ok(()), |tool| tool.check(input))
    }

    fn effects(&self, tool: &ToolId, input: &CallInput) -> Option<Effects> {
        self.0.get(tool).and_then(|tool| tool.effects(input))
    }

    fn execute<'a>(
        &'a self,
        tool: &'a ToolId,
        call: ToolCall,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolFailure>> {
        match self.0.get(tool) {
            Some(tool) => tool.execute(call),
            None => {
                let gone = ToolFailure::new(format!("`{tool}` is not in this set any more")).untouched();
                Box::pin(std::future::ready(Err(gone)))
            }
        }
    }
}
