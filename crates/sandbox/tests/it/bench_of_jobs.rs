//! A workspace with a launcher, and short ways to run something in it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::Duration;

use tempfile::TempDir;
use tokio::io::AsyncReadExt;
use toolpost_model::{ResourceAccess, SandboxProfile, SandboxTier};
use toolpost_sandbox::{
    CommandExit, Confines, LaunchError, Launcher, PRIVATE_HOME, PRIVATE_TMP, ProcessLimits,
    SandboxJob, SandboxRoot, SandboxedProcess, StderrTarget, Stdin,
};

/// Nothing here takes this long, unless it hangs.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

static LAUNCHER: LazyLock<Launcher> = LazyLock::new(|| Launcher::new(launcher_program()));

pub(crate) fn launcher_program() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_toolpost-launch"))
}

/// A workspace of its own, and the confines for it.
pub(crate) struct Bench {
    pub(crate) launcher: Launcher,
    pub(crate) folder: TempDir,
    pub(crate) confines: Confines,
}

/// What a command that ran to its end left.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) ended: CommandExit,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Bench {
    pub(crate) fn new() -> Self {
        Self::with(LAUNCHER.clone())
    }

    pub(crate) fn at_most(tier: SandboxTier) -> Self {
        Self::with(Launcher::with_tier_at_most(launcher_program(), tier))
    }

    pub(crate) fn with(launcher: Launcher) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = SandboxRoot {
            path: folder.path().canonicalize().unwrap(),
            access: ResourceAccess::Write,
        };
        let confines = Confines {
            roots: vec![root],
            ..Confines::default()
        };
        Self {
            launcher,
            folder,
            confines,
        }
    }

    pub(crate) fn profile(mut self, profile: SandboxProfile) -> Self {
        self.confines.profile = profile;
        self
    }

    pub(crate) fn limits(mut self, limits: ProcessLimits) -> Self {
        self.confines.limits = limits;
        self
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(name)
    }

    pub(crate) fn job(&self, argv: &[&str]) -> SandboxJob {
        let environment = [
            ("PATH", "/usr/local/bin:/usr/bin:/bin"),
            ("HOME", PRIVATE_HOME),
            ("TMPDIR", PRIVATE_TMP),
            ("LANG", "C.UTF-8"),
        ];
        SandboxJob {
            argv: argv.iter().map(OsString::from).collect(),
            environment: environment
                .iter()
                .map(|(name, value)| (name.into(), value.into()))
                .collect(),
            directory: self.path(""),
            stdin: Stdin::Null,
            stderr: StderrTarget::Piped,
            confines: self.confines.clone(),
        }
    }

    pub(crate) fn shell_job(&self, script: &str) -> SandboxJob {
        self.job(&["bash", "--noprofile", "--norc", "-c", script])
    }

    pub(crate) async fn start(&self, script: &str) -> SandboxedProcess {
        self.launcher.start(self.shell_job(script)).await.unwrap()
    }

    pub(crate) async fn run_job(&self, job: SandboxJob) -> Result<Ran, LaunchError> {
        Ok(finish(self.launcher.start(job).await?).await)
    }

    /// Runs a script to its end.
    pub(crate) async fn run(&self, script: &str) -> Ran {
        self.run_job(self.shell_job(script)).await.unwrap()
    }
}

pub(crate) async fn finish(mut process: SandboxedProcess) -> Ran {
    let mut stdout = process.take_stdout().unwrap();
    let stderr = process.take_stderr();
    let mut out = Vec::new();
    let mut err = Vec::new();
    let read_err = async {
        if let Some(mut stderr) = stderr {
            stderr.read_to_end(&mut err).await.unwrap();
        }
    };
    let all = async { tokio::join!(stdout.read_to_end(&mut out), read_err, process.wait()).2 };
    let ended = tokio::time::timeout(PATIENCE, all)
        .await
        .expect("the command hangs");
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Ran {
        ended,
        stdout: text(out),
        stderr: text(err),
    }
}

impl Ran {
    /// It ended well; what it wrote.
    #[track_caller]
    pub(crate) fn ok(&self) -> &str {
        assert_eq!(self.ended.code, Some(0), "{self:?}");
        self.stdout.trim_end()
    }

    /// It was refused with these words.
    #[track_caller]
    pub(crate) fn refused(&self, words: &str) {
        assert_ne!(self.ended.code, Some(0), "{self:?}");
        assert!(self.stderr.contains(words), "{self:?}");
    }
}

pub(crate) fn write(path: &Path, content: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, content).unwrap();
}

/// Looks again and again until it holds.
pub(crate) async fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let looking = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    assert!(
        tokio::time::timeout(PATIENCE, looking).await.is_ok(),
        "never: {what}"
    );
}
