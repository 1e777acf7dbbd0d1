//! Builds the hooks of a configuration.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use toolpost_config::{HookConfig, HostConfig};
use toolpost_core::{ConcernError, Hook, HookScope};
use toolpost_model::SandboxProfile;
use toolpost_processes::{
    HookDeclaration, HookDeclarationError, HookParts, ProgramDeclaration, command_hooks,
};
use toolpost_sandbox::Launcher;
use toolpost_store::DataDir;

use super::native::{self, NativeError};

/// The reason why the hooks of a configuration cannot be built.
#[derive(Debug, thiserror::Error)]
pub enum HooksError {
    /// There is no workspace in which hooks start.
    #[error("the configuration names hooks, which require a workspace, and this host has none")]
    NoWorkspace,
    /// There is no launcher that can start them.
    #[error("the configuration names hooks, and this host has no launcher to start processes with")]
    NoLauncher,
    /// The workspace cannot be opened for them.
    #[error(transparent)]
    Native(#[from] NativeError),
    /// A file or folder of a hook is missing.
    #[error("{place}: hook `{hook}`: `{}` cannot be found: {source}", path.display())]
    Missing {
        /// File and line of its entry.
        place: String,
        /// The hook.
        hook: String,
        /// The missing path.
        path: PathBuf,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
    /// The `when` of a hook is invalid.
    #[error("{place}: hook `{hook}`: {source}")]
    Concern {
        /// File and line of its entry.
        place: String,
        /// The hook.
        hook: String,
        /// The problem.
        #[source]
        source: ConcernError,
    },
    /// A hook is declared wrongly.
    #[error("{place}: {source}")]
    Declaration {
        /// File and line of its entry.
        place: String,
        /// The problem.
        #[source]
        source: HookDeclarationError,
    },
}

/// The files of hooks. Tools ask before they change one, because a writer of such a file controls the hook's votes.
pub(super) fn files(config: &HostConfig) -> Vec<PathBuf> {
    config
        .hooks
        .iter()
        .flat_map(|hook| files_among(&hook.command))
        .collect()
}

/// The existing files among the words of a command.
pub(super) fn files_among(command: &[String]) -> impl Iterator<Item = PathBuf> + '_ {
    let whole = command
        .iter()
        .map(Path::new)
        .filter(|path| path.is_absolute() && path.is_file());
    whole.map(|path| path.canonicalize().unwrap_or_else(|_| path.to_owned()))
}

/// The hooks, in the order of the configuration.
pub(super) fn hooks(
    config: &HostConfig,
    data_dir: Option<&DataDir>,
    program: Option<&Path>,
) -> Result<Vec<Arc<dyn Hook>>, HooksError> {
    if config.hooks.is_empty() {
        return Ok(Vec::new());
    }
    let root = config.workspace.as_ref().ok_or(HooksError::NoWorkspace)?;
    let program = program.ok_or(HooksError::NoLauncher)?;
    let workspace = Arc::new(native::workspace(config, root, files(config))?);
    let parts = HookParts {
        children: native::children(config, &workspace, data_dir),
        launcher: Launcher::new(program.to_owned()),
        hooks: config
            .hooks
            .iter()
            .map(|hook| declared(hook, config))
            .collect::<Result<_, _>>()?,
        workspace,
    };
    command_hooks(parts).map_err(|source| {
        let of = config.hooks.iter().find(|hook| hook.name == source.hook);
        HooksError::Declaration {
            place: of.map(|hook| hook.place.clone()).unwrap_or_default(),
            source,
        }
    })
}

fn declared(hook: &HookConfig, config: &HostConfig) -> Result<HookDeclaration, HooksError> {
    let mut concern = HookScope::with_tools(hook.tools.clone());
    if let Some(when) = &hook.when {
        concern = concern
            .when(when.clone(), super::places(config))
            .map_err(|source| HooksError::Concern {
                place: hook.place.clone(),
                hook: hook.name.clone(),
                source,
            })?;
    }
    let wanted = ConfiguredProgram {
        command: &hook.command,
        files: &hook.files,
        profile: hook.profile,
        writable: &hook.writable,
        environment: &hook.environment,
    };
    let program = wanted
        .declared(config)
        .map_err(|(path, source)| HooksError::Missing {
            place: hook.place.clone(),
            hook: hook.name.clone(),
            path,
            source,
        })?;
    Ok(HookDeclaration {
        name: hook.name.clone(),
        events: hook.events.clone(),
        concern,
        argv: program.argv,
        standing: hook.standing,
        time_limit: hook.timeout,
        profile: program.profile,
        writable: program.writable,
        readable: program.readable,
        environment: program.environment,
    })
}

/// A program that decides about calls, as configured.
pub(super) struct ConfiguredProgram<'a> {
    pub(super) command: &'a [String],
    pub(super) files: &'a [PathBuf],
    pub(super) profile: SandboxProfile,
    pub(super) writable: &'a [PathBuf],
    /// The names of its environment variables.
    pub(super) environment: &'a [String],
}

impl ConfiguredProgram<'_> {
    /// Builds the declaration. Fails for a missing path, which otherwise only the first call would report.
    pub(super) fn declared(
        self,
        config: &HostConfig,
    ) -> Result<ProgramDeclaration, (PathBuf, std::io::Error)> {
        let found = |path: &Path| {
            path.canonicalize()
                .map_err(|error| (path.to_owned(), error))
        };
        let program = self.command.first().map(Path::new);
        let program = program.filter(|program| program.is_absolute());
        for file in self.files.iter().map(PathBuf::as_path).chain(program) {
            found(file)?;
        }
        let named = &config.environment.variables;
        let variables = self.environment.iter();
        let variables = variables.filter_map(|name| named.get_key_value(name));
        Ok(ProgramDeclaration {
            argv: self.command.to_vec(),
            profile: self.profile,
            writable: self
                .writable
                .iter()
                .map(|path| found(path))
                .collect::<Result<_, _>>()?,
            readable: files_among(self.command).collect(),
            environment: variables
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect(),
        })
    }
}
