//! Hooks as commands: a program that the operator names is given each call as JSON and answers with an exit code and
//! JSON of its own. It runs like every other child of the host: confined, with a cleared environment, and gone with
//! everything it started when it is done or out of time.

mod answer;
mod process;
mod request;

use std::{collections::BTreeMap, path::PathBuf, sync::Arc, time::Duration};

use toolpost_core::{Concern, Hook, HookCall, HookError, HookOutput};
use toolpost_model::{Access, BoxFuture, HookEvent, HookStanding, SandboxProfile, ToolResult};
use toolpost_sandbox::{Confines, Launcher, Root, Stderr, Stdin};

use crate::native::{Child, ChildSettings, Children, EnvironmentRefusal, Workspace};

/// What the operator says of a hook.
#[derive(Clone, Debug)]
pub struct HookDeclaration {
    /// Its name, for records.
    pub name: String,
    /// When it is asked.
    pub events: Vec<HookEvent>,
    /// About which calls.
    pub concern: Concern,
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
    let HookParts { workspace, launcher, children, hooks } = parts;
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
    children: Arc<Children>,
}

impl CommandHook {
    fn new(declaration: HookDeclaration, children: Arc<Children>) -> Result<Self, HookProblem> {
        if declaration.argv.first().is_none_or(|program| program.trim().is_empty()) {
            return Err(HookProblem::NoProgram);
        }
        if declaration.events.is_empty() {
            return Err(HookProblem::NoEvent);
        }
        let hook = Self { declaration, children };
        hook.environment()?;
        Ok(hook)
    }

    fn environment(&self) -> Result<Vec<(std::ffi::OsString, std::ffi::OsString)>, EnvironmentRefusal> {
        let own = self.declaration.environment.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        self.children.settings().environment.with(own)
    }

    /// What it may do. A hook that may write somewhere may write there: the folders that agents work in stay closed to
    /// it unless its profile opens them.
    fn confines(&self) -> Confines {
        let declared = &self.declaration;
        let mut confines = self.children.operators_confines(declared.profile);
        confines.readable.extend_from_slice(&declared.readable);
        if declared.profile == SandboxProfile::ReadOnly && !declared.writable.is_empty() {
            confines.profile = SandboxProfile::WorkspaceWrite;
            for root in &mut confines.roots {
                root.access = Access::Read;
            }
        }
        let own = declared.writable.iter().map(|path| Root { path: path.clone(), access: Access::Write });
        confines.roots.extend(own);
        confines
    }

    async fn ask(&self, call: &HookCall<'_>, result: Option<&ToolResult>) -> Result<HookOutput, HookError> {
        let environment = self.environment().map_err(|refusal| HookError(refusal.to_string()))?;
        let child = Child {
            argv: self.declaration.argv.iter().map(Into::into).collect(),
            environment,
            directory: self.children.workspace().path().to_owned(),
            stdin: Stdin::Piped,
            stderr: Stderr::Piped,
            confines: self.confines(),
        };
        let started = self.children.start(child).await;
        let mut process =
            started.map_err(|failure| HookError(format!("it did not start: {}", failure.message)))?;
        let ran = process::run(&mut process, request::written(call, result)).await?;
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

    fn before<'a>(&'a self, call: &'a HookCall<'a>) -> BoxFuture<'a, Result<HookOutput, HookError>> {
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
