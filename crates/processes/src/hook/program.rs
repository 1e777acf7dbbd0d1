//! An operator's program that decides about calls: its start and its confines.

use std::{collections::BTreeMap, ffi::OsString, path::PathBuf, sync::Arc};

use toolpost_core::HookError;
use toolpost_model::{ResourceAccess, SandboxProfile};
use toolpost_sandbox::{Confines, SandboxRoot, StderrTarget, Stdin};

use super::process::{self, HookProcessOutput};
use crate::{
    children::{ChildProcessSpec, Children},
    environment::{EnvironmentRefusal, variable_pairs},
};

/// The operator's settings of a program that decides about calls.
#[derive(Clone, Debug)]
pub struct ProgramDeclaration {
    /// The program and its arguments. No shell parses them.
    pub argv: Vec<String>,
    /// Its sandbox profile.
    pub profile: SandboxProfile,
    /// Folders that it may write in addition to its profile.
    pub writable: Vec<PathBuf>,
    /// Further files and folders that it may read, usually its own script.
    pub readable: Vec<PathBuf>,
    /// Variables in addition to those of every child.
    pub environment: BTreeMap<String, String>,
}

impl ProgramDeclaration {
    /// Whether the command is not empty.
    pub(crate) fn names_program(&self) -> bool {
        let program = self.argv.first();
        program.is_some_and(|program| !program.trim().is_empty())
    }
}

pub(crate) struct AskedProgram {
    declaration: ProgramDeclaration,
    children: Arc<Children>,
}

impl AskedProgram {
    /// Refuses variables that no child may get.
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

    /// The confines of the program. A read-only program with `writable` folders may write exactly these. The agents'
    /// folders stay read-only for it, unless its profile makes them writable.
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

    /// Starts the program, writes the input and returns its exit and output. Dropping the future ends the program.
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
