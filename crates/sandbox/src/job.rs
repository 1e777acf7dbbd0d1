//! The vocabulary for starting a process: the job, its confines, and its exit.

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use toolpost_model::{ResourceAccess, SandboxProfile};

/// The value for `HOME`: a directory of its own for each job. In a job without a private `/tmp`, the launcher replaces
/// it in `HOME` and `TMPDIR` by the real path of that directory.
pub const PRIVATE_HOME: &str = "/tmp/home";

/// The report's text for unprotected paths. It matters only for processes that can write the roots.
pub(crate) const PROTECTED_WRITABLE: &str = "protected paths can be written";

/// The private temporary directory, as a command with a private `/tmp` sees it.
pub const PRIVATE_TMP: &str = "/tmp";

/// One command to run.
#[derive(Debug)]
pub struct SandboxJob {
    /// The program and its arguments. A program without a slash is searched in the job's own `PATH`.
    pub argv: Vec<OsString>,
    /// The complete environment of the command.
    pub environment: Vec<(OsString, OsString)>,
    /// The working directory, which must be visible within the confines.
    pub directory: PathBuf,
    /// The command's standard input.
    pub stdin: Stdin,
    /// The command's standard error.
    pub stderr: StderrTarget,
    /// The limits of the command.
    pub confines: Confines,
}

/// The standard input of a command.
#[derive(Debug, Default)]
pub enum Stdin {
    /// Empty: end of file at once.
    #[default]
    Null,
    /// A pipe; see [`SandboxedProcess::take_stdin`](crate::SandboxedProcess::take_stdin).
    Piped,
    /// This descriptor, usually one end of a socket pair, for commands that exchange messages with the host.
    Socket(OwnedFd),
}

/// Where a command's standard error goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StderrTarget {
    /// A pipe of its own.
    #[default]
    Piped,
    /// The pipe of standard output, so that the order of both is kept.
    WithStdout,
}

/// The limits of a command.
#[derive(Clone, Debug, Default)]
pub struct Confines {
    /// The profile of the sandbox.
    pub profile: SandboxProfile,
    /// The directories that the command works in. It also sees the system's directories and nothing else.
    pub roots: Vec<SandboxRoot>,
    /// Further files and directories that it may read, such as toolchains in the home directory. Missing ones are
    /// skipped.
    pub readable: Vec<PathBuf>,
    /// Directories that it may list without reading the files. Without mounts, all directories beneath them can be
    /// listed as well.
    pub listable: Vec<PathBuf>,
    /// Existing paths inside of writable roots that it may not write, rename or remove.
    pub protected: Vec<PathBuf>,
    /// Paths that it may not read. Missing ones are skipped.
    pub masked: Vec<PathBuf>,
    /// The resource limits.
    pub limits: ProcessLimits,
    /// Refuse to run if a part of the profile is missing.
    pub required: bool,
    /// Refuse to run if a protected or masked path would be without its guard.
    pub guards_required: bool,
    /// Directories that other commands work in, whether roots of this job or not. The launcher follows no link beneath
    /// them on the way to a root or a readable path, because another command may have created it.
    pub shared: Vec<PathBuf>,
}

/// A directory a command works in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SandboxRoot {
    /// Its absolute path, without links.
    pub path: PathBuf,
    /// Whether it is writable, if the profile allows writing.
    pub access: ResourceAccess,
}

/// Resource limits of a job. They count all its processes together if the machine can do that.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessLimits {
    /// Memory of the job.
    pub memory_bytes: u64,
    /// Processes and threads at the same time.
    pub processes: u64,
    /// The size of the largest file that it may write.
    pub file_bytes: u64,
    /// Open descriptors per process.
    pub open_files: u64,
    /// The size of its private temporary directory.
    pub tmp_bytes: u64,
    /// Processor time per process.
    pub cpu: Option<Duration>,
}

impl Default for ProcessLimits {
    fn default() -> Self {
        Self {
            memory_bytes: 2 << 30,
            processes: 256,
            file_bytes: 1 << 30,
            open_files: 1024,
            tmp_bytes: 512 << 20,
            cpu: None,
        }
    }
}

/// How a command ended: with a code or by a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandExit {
    /// The exit code.
    pub code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// Whether a process of the job was killed at the memory limit.
    pub out_of_memory: bool,
}
