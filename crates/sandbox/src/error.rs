//! Why a command was not started. Nothing of it ran in any of these cases.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use thiserror::Error;
use toolpost_model::AppliedSandbox;

/// Why a command was not started.
#[derive(Debug, Error)]
pub enum LaunchError {
    /// No program was named.
    #[error("there is no command to run")]
    NoCommand,
    /// An argument, variable or path that no process can be given.
    #[error("`{value}` holds a NUL byte, which no command can be given")]
    Unspeakable {
        /// What it was.
        value: String,
    },
    /// A path that is not absolute.
    #[error("`{path}` is not an absolute path")]
    NotAbsolute {
        /// The path.
        path: PathBuf,
    },
    /// The program is not there, or cannot be executed.
    #[error("cannot run `{program}`: {source}")]
    Command {
        /// The program as named.
        program: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// The working directory is not there, or not within the confines.
    #[error("cannot use `{path}` as working directory: {source}")]
    Directory {
        /// The directory.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A step of building the sandbox failed, so nothing was run.
    #[error("the sandbox could not be built: {step}: {source}")]
    Sandbox {
        /// What was being done, with the path it was done to.
        step: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// The whole confinement is required, and this machine cannot give all of it.
    #[error("the sandbox is required but incomplete: {}", .applied.missing.join("; "))]
    Incomplete {
        /// What would have been applied.
        applied: Box<AppliedSandbox>,
    },
    /// The launcher itself could not be started or talked to.
    #[error("cannot start the launcher: {0}")]
    Launcher(#[source] std::io::Error),
    /// The launcher ended without saying why.
    #[error("the launcher ended before the command began{}", said(.stderr))]
    Silent {
        /// The last words on its standard error.
        stderr: String,
    },
}

fn said(stderr: &str) -> String {
    if stderr.is_empty() {
        String::new()
    } else {
        format!(": {stderr}")
    }
}

/// What went wrong in the launcher, as it travels to the host.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum LauncherFailure {
    Command { errno: i32 },
    Directory { errno: i32 },
    Sandbox { step: String, errno: i32 },
    Incomplete { applied: Box<AppliedSandbox> },
}

impl LauncherFailure {
    pub(crate) fn sandbox(step: impl Into<String>, errno: rustix::io::Errno) -> Self {
        Self::Sandbox {
            step: step.into(),
            errno: errno.raw_os_error(),
        }
    }
}

/// Why a process could not be locked down.
#[derive(Debug, Error)]
#[error("cannot lock this process down: {step}: {source}")]
pub struct LockDownError {
    pub(crate) step: &'static str,
    pub(crate) source: std::io::Error,
}
