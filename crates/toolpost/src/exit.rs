//! Exit codes, documented in the command-line reference.

use std::{fmt, process::ExitCode};

use toolpost_config::{ConfigError, ConfigErrors};
use toolpost_model::Outcome;

/// The end of the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CliExit {
    /// 0: done.
    Done,
    /// 1: the tool failed, or a check found a problem.
    Failed,
    /// 2: the command or the configuration is wrong.
    Usage,
    /// 3: a rule, the mode or a limit refused the call.
    Denied,
    /// 4: the call was canceled or its deadline passed.
    Stopped,
    /// 5: the outcome of the call is unknown.
    Unknown,
    /// 6: done, but a part of the configuration is missing.
    Incomplete,
    /// The exit code of the command that `capture` ran.
    Of(u8),
}

impl From<CliExit> for ExitCode {
    fn from(exit: CliExit) -> Self {
        Self::from(match exit {
            CliExit::Done => 0,
            CliExit::Failed => 1,
            CliExit::Usage => 2,
            CliExit::Denied => 3,
            CliExit::Stopped => 4,
            CliExit::Unknown => 5,
            CliExit::Incomplete => 6,
            CliExit::Of(code) => code,
        })
    }
}

impl From<Outcome> for CliExit {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Succeeded | Outcome::Partial => Self::Done,
            Outcome::Failed => Self::Failed,
            Outcome::Denied | Outcome::Rejected => Self::Denied,
            Outcome::Canceled | Outcome::TimedOut => Self::Stopped,
            Outcome::Unknown => Self::Unknown,
        }
    }
}

/// The host disconnected during a call.
#[derive(Debug)]
pub(crate) struct HostLost;

impl fmt::Display for HostLost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "the host disconnected before the call ended, so the outcome is unknown\n\
             hint: start the host again, then check `toolpost journal tail`",
        )
    }
}

impl std::error::Error for HostLost {}

/// The user at the terminal stopped the call.
#[derive(Debug)]
pub(crate) struct CallInterruptedError;

impl fmt::Display for CallInterruptedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the call was stopped")
    }
}

impl std::error::Error for CallInterruptedError {}

/// A mistake on the command line.
#[derive(Debug)]
pub(crate) struct UsageError(pub(crate) String);

impl fmt::Display for UsageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for UsageError {}

/// The code for an error that ended a command.
pub(crate) fn of(error: &anyhow::Error) -> CliExit {
    if error.is::<UsageError>() || error.is::<ConfigErrors>() || error.is::<ConfigError>() {
        CliExit::Usage
    } else if error.is::<HostLost>() {
        CliExit::Unknown
    } else if error.is::<CallInterruptedError>() {
        CliExit::Stopped
    } else {
        CliExit::Failed
    }
}
