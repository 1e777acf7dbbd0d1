//! Errors of starting a command. In each of these cases no part of the command ran.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use thiserror::Error;
use toolpost_model::AppliedSandbox;

/// Why a command was not started.
#[derive(Debug, Error)]
pub enum LaunchError {
    /// The job names no program.
    #[error("there is no command to run")]
    NoCommand,
    /// An argument, variable or path that the system cannot pass to a process.
    #[error("`{value}` contains a NUL byte, which commands cannot get")]
    Unspeakable {
        /// The argument, variable or path.
        value: String,
    },
    /// A path that is not absolute.
    #[error("`{path}` is not an absolute path")]
    NotAbsolute {
        /// The path.
        path: PathBuf,
    },
    /// The program is missing or cannot be executed.
    #[error("cannot run `{program}`: {source}")]
    Command {
        /// The program as the job names it.
        program: String,
        /// The system's error.
        source: std::io::Error,
    },
    /// The working directory is missing, or the command may not reach it.
    #[error("cannot use `{path}` as working directory: {source}")]
    Directory {
        /// The directory.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// A step of building the sandbox failed.
    #[error("the sandbox could not be built: {step}: {source}")]
    Sandbox {
        /// The step, with its path if it has one.
        step: String,
        /// The system's error.
        source: std::io::Error,
    },
    /// The job requires the whole confinement, and this machine cannot provide all of it.
    #[error("the sandbox is required but incomplete: {}", .applied.missing.join("; "))]
    Incomplete {
        /// The confinement that would have been in force.
        applied: Box<AppliedSandbox>,
    },
    /// The launcher could not be started, or its socket failed.
    #[error("cannot start the launcher: {0}")]
    Launcher(#[source] std::io::Error),
    /// The launcher ended without a report.
    #[error("the launcher ended before the command began{}", said(.stderr))]
    Silent {
        /// The end of its standard error.
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

/// A failure in the launcher, as it is sent to the host.
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
