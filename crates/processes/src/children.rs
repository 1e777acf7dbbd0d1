//! Starts processes for the native tools: their confines, their environment, and the failures of starting them. The
//! shell, declared commands and code use it.

use std::{ffi::OsString, path::PathBuf, sync::Arc, time::Duration};

use toolpost_model::{
    AppliedSandbox, CallContext, DividedLimit, Effects, ErrorClass, InputRefusal, ProgramFile,
    ResourceAccess, SandboxPlan, SandboxProfile, SandboxTier, ShareRules, ToolFailure,
};
use toolpost_sandbox::{
    Confines, LaunchError, Launcher, ProcessLimits, SandboxJob, SandboxRoot, SandboxedProcess,
    StderrTarget, Stdin,
};

use super::{
    environment::ChildEnvironment,
    guards::{CallerRules, GuardCache, GuardSearchKey, PathGuards, ProgramSight},
    name_watch::NameWatch,
    program_files::{self, ProgramLookup},
};
use crate::workspace::{
    KeptError, KeptPaths, PlaceEffect, ProcessPathView, ProtectedPath, Workspace, find_kept,
};

/// Settings of all children of the native tools. The operator's part is in the section `sandbox` of the configuration.
#[derive(Clone, Debug)]
pub struct ChildSettings {
    /// The default profile of children.
    pub profile: SandboxProfile,
    /// Their resource limits.
    pub limits: ProcessLimits,
    /// Refuse to run a child if its profile cannot be enforced completely.
    pub required: bool,
    /// Further paths that they may read.
    pub readable: Vec<PathBuf>,
    /// Their environment.
    pub environment: ChildEnvironment,
    /// Paths that they may not see, such as the host's data directory.
    pub masked: Vec<PathBuf>,
    /// How long a child may run in the background. A session ends its processes when it closes, but not every session
    /// closes.
    pub lifetime: Duration,
    /// The most children in the background at the same time, divided among callers.
    pub background: DividedLimit,
}

impl Default for ChildSettings {
    fn default() -> Self {
        Self {
            profile: SandboxProfile::default(),
            limits: ProcessLimits::default(),
            required: false,
            readable: Vec::new(),
            environment: ChildEnvironment::default(),
            masked: Vec::new(),
            lifetime: Duration::from_secs(24 * 60 * 60),
            background: ShareRules::default().divide(64),
        }
    }
}

/// Starts children in one workspace.
pub struct Children {
    launcher: Option<Launcher>,
    settings: ChildSettings,
    workspace: Arc<Workspace>,
}

/// A child to start.
pub struct ChildProcessSpec {
    /// The program, and its arguments.
    pub argv: Vec<OsString>,
    /// Its complete environment.
    pub environment: Vec<(OsString, OsString)>,
    /// The working directory.
    pub directory: PathBuf,
    /// Its standard input.
    pub stdin: Stdin,
    /// Its standard error.
    pub stderr: StderrTarget,
    /// Its confines.
    pub confines: Confines,
}

impl Children {
    /// Without a launcher no child can be started.
    pub fn new(
        launcher: Option<Launcher>,
        settings: ChildSettings,
        workspace: Arc<Workspace>,
    ) -> Self {
        Self {
            launcher,
            settings,
            workspace,
        }
    }

    /// The workspace of the children.
    pub fn workspace(&self) -> &Workspace {
        &self.workspace
    }

    /// The settings of all children.
    pub fn settings(&self) -> &ChildSettings {
        &self.settings
    }

    /// The setup that is missing before any child can be started.
    pub fn missing_setup(&self) -> Option<String> {
        self.launcher.is_none().then(|| {
            "processes cannot be started: this host has no launcher (an embedder must call \
             `toolpost_sandbox::launch_if_asked` first in `main` and pass a `Launcher`)"
                .to_owned()
        })
    }

    /// Refuses a profile that the operator does not want to run unconfined. Called before the call is decided.
    pub fn check(&self, profile: SandboxProfile) -> Result<(), InputRefusal> {
        let Some(lack) = self.lack(profile).filter(|_| self.settings.required) else {
            return Ok(());
        };
        let message = format!(
            "{lack}, but the operator requires a sandbox (setting `sandbox.require`); run `toolpost doctor` to see \
             the missing parts"
        );
        Err(InputRefusal {
            class: ErrorClass::SetupRequired,
            at: String::new(),
            message,
        })
    }

    /// The caution for effects if the sandbox would be missing or incomplete.
    fn caution(&self, profile: SandboxProfile) -> Option<String> {
        self.lack(profile)
    }

    /// The part of a confining profile that the machine cannot provide.
    fn lack(&self, profile: SandboxProfile) -> Option<String> {
        let confined = match profile {
            SandboxProfile::ReadOnly | SandboxProfile::WorkspaceWrite | SandboxProfile::Network => {
                true
            }
            // The operator chose to run without confines.
            SandboxProfile::None => false,
        };
        let tier = self
            .launcher
            .as_ref()
            .map_or(SandboxTier::N, Launcher::tier);
        match tier {
            SandboxTier::A | SandboxTier::B => None,
            SandboxTier::C | SandboxTier::N if !confined => None,
            SandboxTier::C => {
                Some("this machine cannot confine which files a process reaches".to_owned())
            }
            SandboxTier::N => Some("this machine cannot confine processes".to_owned()),
        }
    }

    /// The promises of a profile that the machine did not keep in the self-test.
    fn missing(&self, profile: SandboxProfile) -> Vec<String> {
        self.launcher
            .as_ref()
            .map(|launcher| launcher.self_test().missing(profile))
            .unwrap_or_default()
    }

    /// The profile that effects can rely on; `None` if the machine does not enforce it.
    pub fn confined(&self, profile: SandboxProfile) -> Option<SandboxProfile> {
        match self
            .launcher
            .as_ref()
            .map_or(SandboxTier::N, Launcher::tier)
        {
            SandboxTier::A | SandboxTier::B => Some(profile),
            SandboxTier::C | SandboxTier::N => None,
        }
    }

    /// Whether single paths can be closed to a process of this profile, which requires mounts.
    pub fn can_guard(&self, profile: SandboxProfile) -> bool {
        match profile {
            SandboxProfile::ReadOnly | SandboxProfile::WorkspaceWrite | SandboxProfile::Network => {
                self.launcher.as_ref().map(Launcher::tier) == Some(SandboxTier::A)
            }
            SandboxProfile::None => false,
        }
    }

    /// The sandbox plan for a process of this profile, narrowed to the operator's profile if there is one.
    pub fn plan(&self, profile: SandboxProfile, narrowed: Option<SandboxProfile>) -> SandboxPlan {
        let profile = narrowed.map_or(profile, |given| profile.stricter(given));
        self.plan_in(profile, self.roots())
    }

    /// Like [`plan`](Self::plan), for a process that works in these directories.
    pub fn plan_in(&self, profile: SandboxProfile, roots: Vec<SandboxRoot>) -> SandboxPlan {
        let writes = match profile {
            SandboxProfile::ReadOnly => false,
            SandboxProfile::WorkspaceWrite | SandboxProfile::Network | SandboxProfile::None => true,
        };
        let tier = self
            .launcher
            .as_ref()
            .map_or(SandboxTier::N, Launcher::tier);
        // Without confines the process reaches the network, whatever its profile promises.
        let network = tier == SandboxTier::N
            || matches!(profile, SandboxProfile::Network | SandboxProfile::None);
        let (open, closed): (Vec<SandboxRoot>, Vec<SandboxRoot>) = roots
            .into_iter()
            .partition(|root| writes && root.access == ResourceAccess::Write);
        let named = |paths: Vec<PathBuf>| {
            paths
                .iter()
                .map(|path| path.display().to_string())
                .collect()
        };
        let readable = closed.into_iter().map(|root| root.path);
        SandboxPlan {
            profile,
            tier,
            network,
            writable: named(open.into_iter().map(|root| root.path).collect()),
            readable: named(
                readable
                    .chain(self.settings.readable.iter().cloned())
                    .collect(),
            ),
            required: self.settings.required,
            lack: self.lack(profile),
            missing: self.missing(profile),
        }
    }

    /// Completes the effects of a call that starts a process of this profile.
    pub fn effects(&self, effects: Effects, profile: SandboxProfile) -> Effects {
        let effects = Effects {
            confined: self.confined(profile),
            ..effects
        };
        let lack = self.caution(profile);
        cautioned(
            effects,
            lack.map(|lack| format!("the command would run unconfined: {lack}")),
        )
    }

    /// The default search path of programs.
    pub fn search_path(&self) -> &str {
        self.settings.environment.get("PATH").unwrap_or_default()
    }

    /// Reads the files that a command names as program or script.
    pub async fn program_files(
        &self,
        lookups: Vec<ProgramLookup>,
    ) -> Result<Vec<ProgramFile>, ToolFailure> {
        if !program_files::concern(&self.workspace, &lookups) {
            return Ok(Vec::new());
        }
        let workspace = Arc::clone(&self.workspace);
        let looking =
            tokio::task::spawn_blocking(move || program_files::find(&workspace, &lookups));
        looking.await.unwrap_or_else(|error| {
            let message = format!("the check of the command's program files failed: {error}");
            Err(ToolFailure::new(message).untouched())
        })
    }

    /// The directories that children work in.
    fn roots(&self) -> Vec<SandboxRoot> {
        self.workspace
            .roots()
            .map(|(path, access)| SandboxRoot {
                path: path.to_owned(),
                access,
            })
            .collect()
    }

    /// The confines of a child that a call starts for a tool of this profile. The operator's profile for the tool can
    /// only narrow them. Paths that rules close to the call are closed to the child.
    ///
    /// The guards are searched here, at the start of the child, and not when the call was decided: files may have been
    /// created while the call waited for an answer.
    pub async fn confines(
        &self,
        profile: SandboxProfile,
        context: &CallContext,
    ) -> Result<Confines, ToolFailure> {
        let profile = context
            .profile()
            .map_or(profile, |given| profile.stricter(given));
        let kept = self.kept_paths(profile, context).await?;
        let is_closed = |place: &ProtectedPath| match place.effect {
            PlaceEffect::RunsCode => true,
            PlaceEffect::SteersAgents => !context.may_steer(&place.path),
        };
        Ok(self.confines_with(profile, &kept, is_closed))
    }

    /// Watches for protected names that a process of this profile creates. `None` for a profile that cannot write.
    pub fn watch_names(&self, profile: SandboxProfile) -> Option<NameWatch> {
        match profile {
            SandboxProfile::ReadOnly => None,
            SandboxProfile::WorkspaceWrite | SandboxProfile::Network | SandboxProfile::None => {
                Some(NameWatch::begin(Arc::clone(&self.workspace)))
            }
        }
    }

    /// The confines of an operator's program. Rules apply to calls and not to it.
    pub fn operators_confines(&self, profile: SandboxProfile) -> Confines {
        self.confines_with(profile, &KeptPaths::default(), |_| true)
    }

    /// The confines of an operator's program that receives calls.
    pub fn program_confines(
        &self,
        profile: SandboxProfile,
        sight: &ProgramSight,
        guards: &PathGuards,
    ) -> Confines {
        let mut confines = self.confines_with(profile, &guards.kept, |_| true);
        // Processes that work in a root may replace parts of the program's paths by links, so the roots are passed as
        // `shared`.
        confines.shared = std::mem::take(&mut confines.roots)
            .into_iter()
            .map(|root| root.path)
            .collect();
        confines.roots.clone_from(&sight.roots);
        confines.readable.extend(sight.readable.iter().cloned());
        confines
    }

    /// The default view of such a program: the view of every child.
    pub fn whole_sight(&self) -> ProgramSight {
        ProgramSight {
            roots: self.roots(),
            readable: Vec::new(),
        }
    }

    /// The view of a program that may see only these paths of the roots. `Err`: a path outside of all roots.
    pub fn narrow_sight(&self, only: &[PathBuf]) -> Result<ProgramSight, PathBuf> {
        let roots = self.roots();
        let narrowed = |path: &PathBuf| -> Result<SandboxRoot, PathBuf> {
            let above = roots.iter().filter(|root| path.starts_with(&root.path));
            let innermost = above.max_by_key(|root| root.path.components().count());
            let access = innermost.ok_or_else(|| path.clone())?.access;
            Ok(SandboxRoot {
                path: path.clone(),
                access,
            })
        };
        let roots = only.iter().map(narrowed).collect::<Result<_, _>>()?;
        Ok(ProgramSight {
            roots,
            readable: Vec::new(),
        })
    }

    /// The paths that rules close to such a program. Searches its whole view, unless the last search is still valid.
    pub async fn guards(
        &self,
        profile: SandboxProfile,
        sight: ProgramSight,
        rules: CallerRules,
        cache: Arc<GuardCache>,
    ) -> Result<PathGuards, ToolFailure> {
        let writes = match profile {
            SandboxProfile::ReadOnly => false,
            SandboxProfile::WorkspaceWrite | SandboxProfile::Network | SandboxProfile::None => true,
        };
        let question = GuardSearchKey::new(&rules, &sight);
        let search = move |sight: &ProcessPathView<'_>| match cache.guards(&question) {
            Some(guards) => Ok(guards),
            None => find_kept(sight, &rules).map(|found| cache.keep(question, &rules, found)),
        };
        self.look(sight, writes, search).await
    }

    fn confines_with(
        &self,
        profile: SandboxProfile,
        kept: &KeptPaths,
        is_closed: impl Fn(&ProtectedPath) -> bool,
    ) -> Confines {
        let settings = &self.settings;
        // Searched at every start, because protected paths may have been created since the last one.
        let protected = self
            .workspace
            .protected_paths()
            .into_iter()
            .filter(is_closed);
        let protected = protected
            .map(|place| place.path)
            .chain(kept.protected.iter().cloned());
        Confines {
            profile,
            roots: self.roots(),
            readable: [&settings.readable, settings.environment.toolchains()].concat(),
            guards_required: !kept.is_empty(),
            protected: protected.collect(),
            masked: [
                &settings.masked,
                settings.environment.credentials(),
                &kept.masked,
            ]
            .concat(),
            limits: settings.limits,
            required: settings.required,
            shared: Vec::new(),
            listable: Vec::new(),
        }
    }

    /// Empty if nothing could close the paths to the child. In that case the decision had a caution that says so.
    async fn kept_paths(
        &self,
        profile: SandboxProfile,
        context: &CallContext,
    ) -> Result<KeptPaths, ToolFailure> {
        let writes = match profile {
            SandboxProfile::ReadOnly => false,
            SandboxProfile::WorkspaceWrite | SandboxProfile::Network => true,
            SandboxProfile::None => return Ok(KeptPaths::default()),
        };
        if !context.has_path_rules() || self.confined(profile).is_none() {
            return Ok(KeptPaths::default());
        }
        let rules = context.clone();
        let search =
            move |sight: &ProcessPathView<'_>| find_kept(sight, &rules).map(|(kept, _)| kept);
        self.look(self.whole_sight(), writes, search).await
    }

    /// Runs a search for kept paths on a blocking thread.
    async fn look<T: Send + 'static>(
        &self,
        sight: ProgramSight,
        writes: bool,
        search: impl FnOnce(&ProcessPathView<'_>) -> Result<T, KeptError> + Send + 'static,
    ) -> Result<T, ToolFailure> {
        let readable = [sight.readable, self.settings.readable.clone()].concat();
        let programs = [
            self.settings.environment.toolchains(),
            &toolpost_sandbox::system_directories(),
        ]
        .concat();
        let looking = tokio::task::spawn_blocking(move || {
            let sight = ProcessPathView {
                roots: &sight.roots,
                readable: &readable,
                programs: &programs,
                writes,
            };
            search(&sight)
        });
        match looking.await {
            Ok(found) => found.map_err(KeptError::into_failure),
            Err(error) => Err(ToolFailure::new(format!(
                "the search for denied paths failed: {error}"
            ))
            .untouched()),
        }
    }

    /// Starts a child in its confines.
    pub async fn start(&self, child: ChildProcessSpec) -> Result<SandboxedProcess, ToolFailure> {
        let Some(launcher) = &self.launcher else {
            let message = self.missing_setup().unwrap_or_default();
            return Err(ToolFailure::of(ErrorClass::SetupRequired, message).untouched());
        };
        let guarded = child.confines.guards_required;
        let job = SandboxJob {
            argv: child.argv,
            environment: child.environment,
            directory: child.directory,
            stdin: child.stdin,
            stderr: child.stderr,
            confines: child.confines,
        };
        launcher.start(job).await.map_err(|error| match error {
            LaunchError::Incomplete { applied } if guarded && !self.settings.required => {
                unguarded(*applied)
            }
            other => not_started(other),
        })
    }
}

/// The failure if rules close paths to the call and the machine cannot close them to a process.
fn unguarded(applied: AppliedSandbox) -> ToolFailure {
    let message = "rules deny paths to this call, and this machine cannot hide them from a process";
    ToolFailure::of(ErrorClass::PermissionDenied, message)
        .code("kept_by_rule")
        .hint("use the file tools, which skip these paths, or run `toolpost doctor` to see the missing parts of the sandbox")
        .confined(applied)
        .untouched()
}

/// The failure of a start. In each case no part of the command ran.
fn not_started(error: LaunchError) -> ToolFailure {
    let (class, code, hint) = match &error {
        LaunchError::NoCommand
        | LaunchError::Unspeakable { .. }
        | LaunchError::NotAbsolute { .. } => (ErrorClass::InvalidArguments, "bad_command", None),
        LaunchError::Command { program, .. } => (
            ErrorClass::SetupRequired,
            "program_missing",
            Some(format!(
                "install `{program}` in a folder of the host's `PATH`, outside of writable roots"
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
            Some("run `toolpost doctor` to see the missing parts".to_owned()),
        ),
        LaunchError::Launcher(_) | LaunchError::Silent { .. } => {
            (ErrorClass::DependencyUnavailable, "launcher_failed", None)
        }
    };
    let failure = ToolFailure::of(class, error.to_string())
        .code(code)
        .untouched();
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

/// Adds a reason to the effects' caution, unless it contains the reason already.
pub fn cautioned(effects: Effects, reason: Option<String>) -> Effects {
    match (reason, &effects.caution) {
        (None, _) => effects,
        (Some(reason), None) => effects.with_caution(reason),
        (Some(reason), Some(first)) if first.contains(&reason) => effects,
        (Some(reason), Some(first)) => {
            let both = format!("{first}; {reason}");
            effects.with_caution(both)
        }
    }
}
