//! Starts processes that can do only what their profile allows.
//!
//! A host creates one [`Launcher`] and gives it a [`SandboxJob`] for each command. The launcher is a process of its
//! own: the host's binary, started again, with a `main` that first calls [`launch_if_asked`]. It builds the confines
//! around itself, reports them, and then becomes the command. [`toolpost_model::AppliedSandbox`] is that report: it
//! contains the confines in force, not the requested ones.
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

/// The system's own directories, which every command sees.
pub fn system_directories() -> Vec<std::path::PathBuf> {
    inside::SYSTEM
        .iter()
        .map(|name| std::path::Path::new("/").join(name))
        .collect()
}

/// The only argument of a binary that is started as a launcher.
const LAUNCH_ARGUMENT: &str = "__launch";

/// Call this first in `main` of a binary that can be a launcher, before threads and arguments. It never returns if the
/// process was started as a launcher.
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
