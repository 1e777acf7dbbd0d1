//! An MCP server as a source of the host.

use std::sync::{Arc, atomic::Ordering};

use toolpost_core::PinStore;
use toolpost_model::{
    BoxFuture, CallInput, Declaration, EffectOrigin, InputRefusal, SandboxPlan, SandboxProfile,
    SessionScope, Source, SourceCompanions, SourceError, SourceFeed, SourceHealth, SourceProblem,
    SourceSession, ToolCall, ToolFailure, ToolId, ToolOutput, WireNaming,
};
use toolpost_processes::{ChildSettings, Workspace};
use toolpost_sandbox::Launcher;

use super::{McpServer, McpTransport, call, link::UpstreamLink, server::McpUpstream};

/// The parts of an [`McpSource`].
pub struct McpParts {
    /// The operator's configuration.
    pub server: McpServer,
    /// Starts the server's program. Not needed for HTTP.
    pub launcher: Option<Launcher>,
    /// The settings of the host's child processes.
    pub children: ChildSettings,
    /// The workspace. Without it, a program cannot be started.
    pub workspace: Option<Arc<Workspace>>,
    /// The store of accepted definitions.
    pub pins: Arc<dyn PinStore>,
}

/// An MCP server as a source. Nothing is started before the first `list`.
pub struct McpSource {
    server: Arc<McpUpstream>,
}

impl McpSource {
    /// Builds the source from its parts.
    pub fn new(parts: McpParts) -> Self {
        Self {
            server: McpUpstream::new(parts),
        }
    }
}

impl Source for McpSource {
    fn name(&self) -> &str {
        &self.server.settings.name
    }

    fn origin(&self) -> EffectOrigin {
        EffectOrigin::Claimed
    }

    fn naming(&self) -> WireNaming {
        self.server.settings.naming
    }

    fn list(&self) -> BoxFuture<'_, Result<Vec<Declaration>, SourceError>> {
        Box::pin(async { Ok(self.server.list().await?.declarations.clone()) })
    }

    fn problems(&self) -> Vec<SourceProblem> {
        self.server.listing().problems.clone()
    }

    fn health(&self) -> SourceHealth {
        self.server.health()
    }

    fn companions(&self) -> Arc<SourceCompanions> {
        Arc::clone(&self.server.listing().companions)
    }

    fn accept<'a>(
        &'a self,
        tool: Option<&'a ToolId>,
        seen: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Vec<ToolId>, SourceError>> {
        Box::pin(self.server.accept(tool, seen))
    }

    fn open<'a>(
        &'a self,
        session: &'a SessionScope,
    ) -> BoxFuture<'a, Result<Arc<dyn SourceSession>, SourceError>> {
        let link = self.server.way(&session.session_id);
        link.audience.join(&session.principal);
        let opened = McpUpstreamSession {
            server: Arc::clone(&self.server),
            link,
            session: session.clone(),
        };
        Box::pin(std::future::ready(Ok(
            Arc::new(opened) as Arc<dyn SourceSession>
        )))
    }

    fn connect(&self, feed: SourceFeed) {
        self.server.connect(feed);
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.server.close())
    }
}

struct McpUpstreamSession {
    server: Arc<McpUpstream>,
    link: Arc<UpstreamLink>,
    session: SessionScope,
}

impl McpUpstreamSession {
    /// Whether rules hide paths from the caller that the sandbox of the server's program must hide too.
    fn must_guard(&self) -> bool {
        self.server.must_guard(Some(&self.session.principal))
    }

    fn profile(&self) -> Option<SandboxProfile> {
        match &self.server.settings.transport {
            McpTransport::Stdio(program) => Some(program.profile),
            McpTransport::Http { .. } => None,
        }
    }
}

impl SourceSession for McpUpstreamSession {
    fn check(&self, _: &ToolId, _: &CallInput) -> Result<(), InputRefusal> {
        match (self.profile(), &self.server.children) {
            (Some(profile), Some(children)) => children.check(profile),
            (Some(_), None) | (None, _) => Ok(()),
        }
    }

    fn prepare_decision<'a>(&'a self, _: &'a ToolId) -> Option<BoxFuture<'a, ()>> {
        let is_bound = self.must_guard() && self.server.guard_lack().is_none();
        // An idle program needs no comparison here: if its guards are outdated, the call restarts it.
        let live = self.link.busy().filter(|_| is_bound)?;
        Some(Box::pin(
            async move { self.link.compare_guards(&live).await },
        ))
    }

    fn caution(&self, _: &ToolId) -> Option<String> {
        let unguarded = || {
            if !self.must_guard() {
                return None;
            }
            match self.server.guard_lack() {
                Some(lack) => Some(self.server.unguarded(lack)),
                None => {
                    let is_outdated = self.link.busy()?.outdated.load(Ordering::Acquire);
                    is_outdated.then(|| self.server.outdated())
                }
            }
        };
        unguarded().or_else(|| self.server.unlimited())
    }

    fn unbound_paths(&self, _: &ToolId) -> Option<String> {
        match self.server.settings.transport {
            McpTransport::Stdio(_) => None,
            McpTransport::Http { .. } => Some(format!(
                "the MCP server `{}` is reached by a URL and reads files where it runs; path rules do not bind it",
                self.server.settings.name
            )),
        }
    }

    fn sandbox(&self, _: &ToolId, _: &CallInput, _: Option<SandboxProfile>) -> Option<SandboxPlan> {
        // The process runs before the call, so a profile for a single tool cannot narrow its sandbox.
        self.server.plan()
    }

    fn execute<'a>(
        &'a self,
        tool: &'a ToolId,
        call: ToolCall,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolFailure>> {
        Box::pin(call::run(&self.server, &self.link, tool, call))
    }

    fn close(&self) {
        self.link.audience.part(&self.session.principal);
        self.server.leave(&self.session.session_id);
    }
}
