//! How the native tools start processes: within which confines, with which environment, and what is said when that
//! cannot be done. The shell, declared commands and code come through here.

use std::{ffi::OsString, path::PathBuf, sync::Arc};

use toolpost_model::{ErrorClass, Refusal, SandboxProfile, SandboxTier, ToolFailure};
use toolpost_sandbox::{Confines, Job, LaunchError, Launcher, Process, ProcessLimits, Root, Stderr, Stdin};

use super::{environment::ChildEnvironment, files::Workspace};

/// What every child of the native tools is started with. The operator's part of it stands in the section `sandbox`
/// of the configuration.
#[derive(Clone, Debug, Default)]
pub struct ChildSettings {
    /// What children may do where nobody says otherwise.
    pub profile: SandboxProfile,
    /// How much they may use.
    pub limits: ProcessLimits,
    /// Refuse to run anything whose profile cannot be enforced completely.
    pub required: bool,
    /// Further paths they may read.
    pub readable: Vec<PathBuf>,
    /// What they find in their environment.
    pub environment: ChildEnvironment,
    /// Paths they may not see, such as the host's data directory.
    pub masked: Vec<PathBuf>,
}

/// Starts children in one workspace.
pub(crate) struct Children {
    launcher: Option<Launcher>,
    settings: ChildSettings,
    workspace: Arc<Workspace>,
}

/// One child to start.
pub(crate) struct Child {
    pub(crate) argv: Vec<OsString>,
    pub(crate) environment: Vec<(OsString, OsString)>,
    pub(crate) directory: PathBuf,
    pub(crate) stdin: Stdin,
    pub(crate) stderr: Stderr,
    pub(crate) confines: Confines,
}

impl Children {
    pub(crate) fn new(
        launcher: Option<Launcher>,
        settings: ChildSettings,
        workspace: Arc<Workspace>,
    ) -> Self {
        Self { launcher, settings, workspace }
    }

    pub(crate) fn workspace(&self) -> &Workspace {
        &self.workspace
    }

    pub(crate) fn settings(&self) -> &ChildSettings {
        &self.settings
    }

    /// What must be done before anything can be started at all.
    pub(crate) fn missing_setup(&self) -> Option<String> {
        self.launcher.is_none().then(|| {
            "processes cannot be started: this host was made without a launcher (an embedder calls \
             `toolpost_sandbox::launch_if_asked` first in `main` and hands over a `Launcher`)"
                .to_owned()
        })
    }

    /// Refuses what the operator does not want to run unconfined, before anybody decides about it.
    pub(crate) fn check(&self, profile: SandboxProfile) -> Result<(), Refusal> {
        let Some(lack) = self.lack(profile).filter(|_| self.settings.required) else { return Ok(()) };
        let message = format!(
            "{lack}, and the operator requires a sandbox (setting `sandbox.require`); `toolpost doctor` says what \
             this machine lacks"
        );
        Err(Refusal { class: ErrorClass::SetupRequired, at: String::new(), message })
    }

    /// Why a person should look at every command: nothing, or too little, would confine it.
    pub(crate) fn caution(&self, profile: SandboxProfile) -> Option<String> {
        self.lack(profile)
    }

    /// What the machine cannot give of a profile that promises confinement.
    fn lack(&self, profile: SandboxProfile) -> Option<String> {
        let confined = match profile {
            SandboxProfile::ReadOnly | SandboxProfile::WorkspaceWrite | SandboxProfile::Network => true,
            // The operator has said that nothing is to confine it.
            SandboxProfile::None => false,
        };
        let tier = self.launcher.as_ref().map_or(SandboxTier::N, Launcher::tier);
        match tier {
            SandboxTier::A | SandboxTier::B => None,
            SandboxTier::C | SandboxTier::N if !confined => None,
            SandboxTier::C => Some("this machine cannot confine which files a process reaches".to_owned()),
            SandboxTier::N => Some("this machine cannot confine processes".to_owned()),
        }
    }

    /// The directories children work in.
    fn roots(&self) -> Vec<Root> {
        self.workspace.roots().map(|(path, access)| Root { path: path.to_owned(), access }).collect()
    }

    /// What a child of this profile may do.
    pub(crate) fn confines(&self, profile: SandboxProfile) -> Confines {
        let settings = &self.settings;
        Confines {
            profile,
            roots: self.roots(),
            readable: [&settings.readable, settings.environment.toolchains()].concat(),
            // Looked for anew each time: what is protected may have been made since.
            protected: self.workspace.protected_paths(),
            masked: [&settings.masked, settings.environment.credentials()].concat(),
            limits: settings.limits,
            required: settings.required,
        }
    }

    pub(crate) async fn start(&self, child: Child) -> Result<Process, ToolFailure> {
        let Some(launcher) = &self.launcher else {
            let message = self.missing_setup().unwrap_or_default();
            return Err(ToolFailure::of(ErrorClass::SetupRequired, message).untouched());
        };
        let job = Job {
            argv: child.argv,
            environment: child.environment,
            directory: child.directory,
            stdin: child.stdin,
            stderr: child.stderr,
            confines: child.confines,
        };
        launcher.start(job).await.map_err(not_started)
    }
}

/// Nothing ran, whatever the reason.
fn not_started(error: LaunchError) -> ToolFailure {
    let (class, code, hint) = match &error {
        LaunchError::NoCommand | LaunchError::Unspeakable { .. } | LaunchError::NotAbsolute { .. } => {
            (ErrorClass::InvalidArguments, "bad_command", None)
        }
        LaunchError::Command { program, .. } => (
            ErrorClass::SetupRequired,
            "program_missing",
            Some(format!(
                "`{program}` must be installed where the host's `PATH` finds it, outside of writable roots"
            )),
        ),
        LaunchError::Directory { .. } => (
            ErrorClass::SandboxViolation,
            "bad_directory",
            Some("give a `working_directory` inside the workspace".to_owned()),
        ),
        LaunchError::Incomplete { .. } => (
            ErrorClass::SetupRequired,
            "sandbox_incomplete",
            Some("the operator requires a complete sandbox (setting `sandbox.require`)".to_owned()),
        ),
        LaunchError::Sandbox { .. } => (
            ErrorClass::SetupRequired,
            "sandbox_failed",
            Some("`toolpost doctor` says what this machine lacks".to_owned()),
        ),
        LaunchError::Launcher(_) | LaunchError::Silent { .. } => {
            (ErrorClass::DependencyUnavailable, "launcher_failed", None)
        }
    };
    let failure = ToolFailure::of(class, error.to_string()).code(code).untouched();
    let failure = match hint {
        Some(hint) => failure.hint(hint),
        None => failure,
    };
    match error {
        LaunchError::Incomplete { applied } => failure.confined(*applied),
        LaunchError::NoCommand
        | LaunchError::Unspeakable { .. }
        | LaunchError::NotAbsolute { .. }
        | LaunchError::Command { .. }
        | LaunchError::Directory { .. }
        | LaunchError::Sandbox { .. }
        | LaunchError::Launcher(_)
        | LaunchError::Silent { .. } => failure,
    }
}
