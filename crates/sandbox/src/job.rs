//! What is to run, within which confines, and how it ended: the vocabulary of whoever starts processes.

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use toolpost_model::{ResourceAccess, SandboxProfile};

/// Where `HOME` should point to: a directory of its own for each job. Where the job has no private `/tmp`, the
/// launcher puts the real place of that directory into `HOME` and `TMPDIR`.
pub const PRIVATE_HOME: &str = "/tmp/home";

/// What is missing where protected paths are protected by nothing: it concerns processes that write the roots.
pub(crate) const PROTECTED_WRITABLE: &str = "protected paths can be written";

/// The private temporary directory, as the command sees it where it has one of its own.
pub const PRIVATE_TMP: &str = "/tmp";

/// One command to run.
#[derive(Debug)]
pub struct SandboxJob {
    /// The program and its arguments. A program without a slash is looked for in the job's own `PATH`.
    pub argv: Vec<OsString>,
    /// All of the command's environment.
    pub environment: Vec<(OsString, OsString)>,
    /// Where it begins; must be visible within the confines.
    pub directory: PathBuf,
    /// What it reads.
    pub stdin: Stdin,
    /// Where its complaints go.
    pub stderr: StderrTarget,
    /// What it may do.
    pub confines: Confines,
}

/// What a command has as standard input.
#[derive(Debug, Default)]
pub enum Stdin {
    /// Nothing: the end is there at once.
    #[default]
    Null,
    /// A pipe; see [`SandboxedProcess::take_stdin`](crate::SandboxedProcess::take_stdin).
    Piped,
    /// This descriptor, usually one end of a pair of sockets, for commands that are talked with.
    Socket(OwnedFd),
}

/// Where a command's standard error goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StderrTarget {
    /// Its own pipe.
    #[default]
    Piped,
    /// The pipe of standard output, so that both keep the order they were written in.
    WithStdout,
}

/// What a command may do.
#[derive(Clone, Debug, Default)]
pub struct Confines {
    /// What is allowed as a whole.
    pub profile: SandboxProfile,
    /// The directories it works in. Beside them it sees the system's own directories only.
    pub roots: Vec<SandboxRoot>,
    /// Further files and directories it may read, such as toolchains beneath the home directory. Missing ones are
    /// passed over.
    pub readable: Vec<PathBuf>,
    /// Directories whose names it may look through, and nothing more. Without mounts of its own that goes for the names
    /// in all directories beneath as well.
    pub listable: Vec<PathBuf>,
    /// Existing paths inside of writable roots that it may not write, rename or remove.
    pub protected: Vec<PathBuf>,
    /// Paths that it may not read. Missing ones are passed over.
    pub masked: Vec<PathBuf>,
    /// How much it may use.
    pub limits: ProcessLimits,
    /// Refuse to run if anything the profile promises is missing.
    pub required: bool,
    /// Refuse to run if anything that is protected or masked would not be.
    pub guards_required: bool,
    /// Directories that other commands work in, roots of this one or not. A link beneath one of them is not followed on
    /// the way to a root or to what is readable, since another command may have put it there.
    pub shared: Vec<PathBuf>,
}

/// A directory a command works in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SandboxRoot {
    /// Its absolute path, without links.
    pub path: PathBuf,
    /// Whether it may be written where the profile allows writing.
    pub access: ResourceAccess,
}

/// How much a job may use, all its processes together where the machine can count so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessLimits {
    /// Memory.
    pub memory_bytes: u64,
    /// Processes and threads at a time.
    pub processes: u64,
    /// The largest file it may write.
    pub file_bytes: u64,
    /// Open descriptors of one process.
    pub open_files: u64,
    /// What fits into its private temporary directory.
    pub tmp_bytes: u64,
    /// Processor time of one process.
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
    /// What it said itself.
    pub code: Option<i32>,
    /// What ended it.
    pub signal: Option<i32>,
    /// Something of it was killed because the memory limit was reached.
    pub out_of_memory: bool,
}
