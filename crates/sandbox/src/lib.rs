//! Starts processes that can do only what their profile says.
//!
//! A host makes one [`Launcher`] and gives it a [`SandboxJob`] for each command. The launcher is a process of its own: the
//! host's binary, started again, whose `main` calls [`launch_if_asked`] before anything else. It builds the confines
//! around itself, reports what it built, and only then becomes the command. [`toolpost_model::AppliedSandbox`] is that
//! report, never a wish.
#![warn(missing_docs)]

mod error;
mod inside;
mod job;
mod launcher;
mod lock;
mod machine;
mod message;
mod probe;
mod process;
mod sys;
mod undertaker;

pub use error::{LaunchError, LockDownError};
pub use job::{
    CommandExit, Confines, PRIVATE_HOME, PRIVATE_TMP, ProcessLimits, SandboxJob, SandboxRoot,
    StderrTarget, Stdin,
};
pub use launcher::{Check, Launcher, SelfTest};
pub use lock::{LockedDown, ThreadConfinement, confine_thread, harden_host, lock_down};
pub use process::SandboxedProcess;

/// The directories of the system itself that every command sees.
pub fn system_directories() -> Vec<std::path::PathBuf> {
    inside::SYSTEM
        .iter()
        .map(|name| std::path::Path::new("/").join(name))
        .collect()
}

/// The word that makes a binary a launcher: its only argument.
const LAUNCH_ARGUMENT: &str = "__launch";

/// The first thing in `main` of a binary that can be a launcher, before threads, arguments and anything else. Never
/// returns when this process was started as one.
pub fn launch_if_asked() {
    let mut arguments = std::env::args_os().skip(1);
    if arguments
        .next()
        .is_some_and(|first| first == LAUNCH_ARGUMENT)
        && arguments.next().is_none()
    {
        inside::run();
    }
}
