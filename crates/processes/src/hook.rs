//! Hooks as commands: an operator's program gets each call as JSON and answers with an exit code and JSON. It runs like
//! every other child of the host: confined, with a cleared environment, and ended with all its processes when it is
//! done or out of time.

pub(crate) mod answer;
pub(crate) mod process;
pub(crate) mod program;
mod request;

use std::{collections::BTreeMap, path::PathBuf, sync::Arc, time::Duration};

use toolpost_core::{Hook, HookCall, HookError, HookOutput, HookScope};
use toolpost_model::{BoxFuture, HookEvent, HookStanding, SandboxProfile, ToolResult};
use toolpost_sandbox::Launcher;

use crate::{
    children::{ChildSettings, Children},
    environment::EnvironmentRefusal,
    workspace::Workspace,
};
use program::{AskedProgram, ProgramDeclaration};

/// The operator's settings of a hook.
#[derive(Clone, Debug)]
pub struct HookDeclaration {
    /// Its name in records.
    pub name: String,
    /// The events it is run for.
    pub events: Vec<HookEvent>,
    /// The calls it is run for.
    pub concern: HookScope,
    /// The program and its arguments. No shell parses them.
    pub argv: Vec<String>,
    /// The effect of its failures.
    pub standing: HookStanding,
    /// Its time limit. With `None` it has the host's limit for all hooks.
    pub time_limit: Option<Duration>,
    /// Its sandbox profile.
    pub profile: SandboxProfile,
    /// Folders that it may write in addition to its profile.
    pub writable: Vec<PathBuf>,
    /// Further files and folders that it may read, usually its own script.
    pub readable: Vec<PathBuf>,
    /// Variables in addition to those of every child.
    pub environment: BTreeMap<String, String>,
}

/// The inputs of [`command_hooks`].
pub struct HookParts {
    /// The workspace that they start in.
    pub workspace: Arc<Workspace>,
    /// The launcher that starts them.
    pub launcher: Launcher,
    /// The settings of all children.
    pub children: ChildSettings,
    /// The hooks, in their order.
    pub hooks: Vec<HookDeclaration>,
}

/// A hook that cannot be configured.
#[derive(Debug, thiserror::Error)]
#[error("hook `{hook}`: {problem}")]
pub struct HookDeclarationError {
    /// The hook's name.
    pub hook: String,
    /// The problem.
    #[source]
    pub problem: HookProblem,
}

/// Why a hook cannot be configured.
#[derive(Debug, thiserror::Error)]
pub enum HookProblem {
    /// The command is empty.
    #[error("its command is empty")]
    NoProgram,
    /// It has no events, so it would never run.
    #[error("it has no event")]
    NoEvent,
    /// A variable that no child gets.
    #[error(transparent)]
    Environment(#[from] EnvironmentRefusal),
}

/// Builds the declared hooks. One that cannot work is refused here and not at the first call.
pub fn command_hooks(parts: HookParts) -> Result<Vec<Arc<dyn Hook>>, HookDeclarationError> {
    let HookParts {
        workspace,
        launcher,
        children,
        hooks,
    } = parts;
    let children = Arc::new(Children::new(Some(launcher), children, workspace));
    let made = hooks.into_iter().map(|declaration| {
        let hook = declaration.name.clone();
        let made = CommandHook::new(declaration, Arc::clone(&children));
        made.map(|made| Arc::new(made) as Arc<dyn Hook>)
            .map_err(|problem| HookDeclarationError { hook, problem })
    });
    made.collect()
}

/// A hook that is a program.
struct CommandHook {
    declaration: HookDeclaration,
    program: AskedProgram,
}

impl CommandHook {
    fn new(declaration: HookDeclaration, children: Arc<Children>) -> Result<Self, HookProblem> {
        let program = ProgramDeclaration {
            argv: declaration.argv.clone(),
            profile: declaration.profile,
            writable: declaration.writable.clone(),
            readable: declaration.readable.clone(),
            environment: declaration.environment.clone(),
        };
        if !program.names_program() {
            return Err(HookProblem::NoProgram);
        }
        if declaration.events.is_empty() {
            return Err(HookProblem::NoEvent);
        }
        Ok(Self {
            program: AskedProgram::new(program, children)?,
            declaration,
        })
    }

    async fn ask(
        &self,
        call: &HookCall<'_>,
        result: Option<&ToolResult>,
    ) -> Result<HookOutput, HookError> {
        let ran = self.program.run(request::written(call, result)).await?;
        answer::read(call.event, &ran)
    }
}

impl Hook for CommandHook {
    fn name(&self) -> &str {
        &self.declaration.name
    }

    fn standing(&self) -> HookStanding {
        self.declaration.standing
    }

    fn time_limit(&self) -> Option<Duration> {
        self.declaration.time_limit
    }

    fn concerns(&self, call: &HookCall<'_>) -> bool {
        self.declaration.events.contains(&call.event) && self.declaration.concern.fits(call)
    }

    fn before<'a>(
        &'a self,
        call: &'a HookCall<'a>,
    ) -> BoxFuture<'a, Result<HookOutput, HookError>> {
        Box::pin(self.ask(call, None))
    }

    fn after<'a>(
        &'a self,
        call: &'a HookCall<'a>,
        result: &'a ToolResult,
    ) -> BoxFuture<'a, Result<HookOutput, HookError>> {
        Box::pin(self.ask(call, Some(result)))
    }

    fn failed<'a>(
        &'a self,
        call: &'a HookCall<'a>,
        result: &'a ToolResult,
    ) -> BoxFuture<'a, Result<HookOutput, HookError>> {
        Box::pin(self.ask(call, Some(result)))
    }
}
