//! Hooks as commands: a program that the operator names is given each call as JSON and answers with an exit code and
//! JSON of its own. It runs like every other child of the host: confined, with a cleared environment, and gone with
//! everything it started when it is done or out of time.

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

/// What the operator says of a hook.
#[derive(Clone, Debug)]
pub struct HookDeclaration {
    /// Its name, for records.
    pub name: String,
    /// When it is asked.
    pub events: Vec<HookEvent>,
    /// About which calls.
    pub concern: HookScope,
    /// The program and its arguments. No shell reads them.
    pub argv: Vec<String>,
    /// What its failure means.
    pub standing: HookStanding,
    /// How long it may take; `None`: as long as the host gives every hook.
    pub time_limit: Option<Duration>,
    /// What it may do.
    pub profile: SandboxProfile,
    /// Folders it may write, whatever else its profile lets it write.
    pub writable: Vec<PathBuf>,
    /// Further files and folders it may read: usually its own script.
    pub readable: Vec<PathBuf>,
    /// Variables beside those that every child gets.
    pub environment: BTreeMap<String, String>,
}

/// What command hooks are made of.
pub struct HookParts {
    /// Where they begin.
    pub workspace: Arc<Workspace>,
    /// Starts them.
    pub launcher: Launcher,
    /// What every child is started with.
    pub children: ChildSettings,
    /// The hooks, in their order.
    pub hooks: Vec<HookDeclaration>,
}

/// Why a hook cannot be made.
#[derive(Debug, thiserror::Error)]
#[error("hook `{hook}`: {problem}")]
pub struct HookDeclarationError {
    /// Which.
    pub hook: String,
    /// What is wrong with it.
    #[source]
    pub problem: HookProblem,
}

/// What is wrong with a hook.
#[derive(Debug, thiserror::Error)]
pub enum HookProblem {
    /// Nothing to run.
    #[error("its command names no program")]
    NoProgram,
    /// It would never be asked.
    #[error("it names no event")]
    NoEvent,
    /// A variable that no child is given.
    #[error(transparent)]
    Environment(#[from] EnvironmentRefusal),
}

/// Makes the declared hooks. What cannot work is refused here, not at the first call.
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
