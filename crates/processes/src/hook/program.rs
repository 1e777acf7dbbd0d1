//! A program of the operator that is asked about calls: how it is started, and within which confines.

use std::{collections::BTreeMap, ffi::OsString, path::PathBuf, sync::Arc};

use toolpost_core::HookError;
use toolpost_model::{ResourceAccess, SandboxProfile};
use toolpost_sandbox::{Confines, SandboxRoot, StderrTarget, Stdin};

use super::process::{self, HookProcessOutput};
use crate::{
    children::{ChildProcessSpec, Children},
    environment::{EnvironmentRefusal, variable_pairs},
};

/// What the operator says of a program that is asked about calls.
#[derive(Clone, Debug)]
pub struct ProgramDeclaration {
    /// The program and its arguments. No shell reads them.
    pub argv: Vec<String>,
    /// What it may do.
    pub profile: SandboxProfile,
    /// Folders it may write, whatever else its profile lets it write.
    pub writable: Vec<PathBuf>,
    /// Further files and folders it may read: usually its own script.
    pub readable: Vec<PathBuf>,
    /// Variables beside those that every child gets.
    pub environment: BTreeMap<String, String>,
}

impl ProgramDeclaration {
    /// Whether there is anything to run.
    pub(crate) fn names_program(&self) -> bool {
        let program = self.argv.first();
        program.is_some_and(|program| !program.trim().is_empty())
    }
}

/// A program that can be started.
pub(crate) struct AskedProgram {
    declaration: ProgramDeclaration,
    children: Arc<Children>,
}

impl AskedProgram {
    /// Refuses a variable that no child is given.
    pub(crate) fn new(
        declaration: ProgramDeclaration,
        children: Arc<Children>,
    ) -> Result<Self, EnvironmentRefusal> {
        let program = Self {
            declaration,
            children,
        };
        program.environment()?;
        Ok(program)
    }

    fn environment(&self) -> Result<Vec<(OsString, OsString)>, EnvironmentRefusal> {
        let own = variable_pairs(&self.declaration.environment);
        self.children.settings().environment.with(own)
    }

    /// What it may do. A program that may write somewhere may write there: the folders that agents work in stay closed
    /// to it unless its profile opens them.
    fn confines(&self) -> Confines {
        let declared = &self.declaration;
        let mut confines = self.children.operators_confines(declared.profile);
        confines.readable.extend_from_slice(&declared.readable);
        if declared.profile == SandboxProfile::ReadOnly && !declared.writable.is_empty() {
            confines.profile = SandboxProfile::WorkspaceWrite;
            for root in &mut confines.roots {
                root.access = ResourceAccess::Read;
            }
        }
        let own = declared.writable.iter().map(|path| SandboxRoot {
            path: path.clone(),
            access: ResourceAccess::Write,
        });
        confines.roots.extend(own);
        confines
    }

    /// Starts it, writes the input and gives what it left behind. Dropping the future ends the program.
    pub(crate) async fn run(&self, input: Vec<u8>) -> Result<HookProcessOutput, HookError> {
        let environment = self
            .environment()
            .map_err(|refusal| HookError(refusal.to_string()))?;
        let child = ChildProcessSpec {
            argv: self.declaration.argv.iter().map(Into::into).collect(),
            environment,
            directory: self.children.workspace().path().to_owned(),
            stdin: Stdin::Piped,
            stderr: StderrTarget::Piped,
            confines: self.confines(),
        };
        let started = self.children.start(child).await;
        let mut process = started
            .map_err(|failure| HookError(format!("it did not start: {}", failure.message)))?;
        process::run(&mut process, input).await
    }
}
