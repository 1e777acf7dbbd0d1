//! Converts a job into the launcher's order, and the launcher's failures into errors of the job.

use std::ffi::OsStr;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use toolpost_model::{ResourceAccess, SandboxProfile, SandboxTier};

use super::stdin_ends;
use crate::error::{LaunchError, LauncherFailure};
use crate::job::{Confines, SandboxJob, StderrTarget};
use crate::machine::ScratchFolder;
use crate::message::{CountingGroups, LaunchOrder, OrderedRoot, UnixBytes};

/// Refuses values that no process can get, and relative paths, which would have another meaning in the launcher.
pub(super) fn check(job: &SandboxJob) -> Result<(), LaunchError> {
    if job.argv.is_empty() {
        return Err(LaunchError::NoCommand);
    }
    let variables = job
        .environment
        .iter()
        .flat_map(|(name, value)| [name, value]);
    for text in job.argv.iter().chain(variables) {
        speakable(text)?;
    }
    let Confines {
        roots,
        readable,
        listable,
        protected,
        masked,
        shared,
        ..
    } = &job.confines;
    let named = roots
        .iter()
        .map(|root| &root.path)
        .chain(readable)
        .chain(listable)
        .chain(protected)
        .chain(masked)
        .chain(shared);
    for path in named.chain([&job.directory]) {
        speakable(path.as_os_str())?;
        if !path.is_absolute() {
            return Err(LaunchError::NotAbsolute { path: path.clone() });
        }
    }
    Ok(())
}

fn speakable(text: &OsStr) -> Result<(), LaunchError> {
    if text.as_bytes().contains(&0) {
        return Err(LaunchError::Unspeakable {
            value: text.to_string_lossy().into_owned(),
        });
    }
    Ok(())
}

/// An order, with the descriptors that a message cannot contain.
pub(super) struct LaunchPreparation {
    pub(super) order: LaunchOrder,
    /// The descriptor that is sent with the order.
    pub(super) pass: Option<OwnedFd>,
    /// The host's end of standard input.
    pub(super) stdin: Option<OwnedFd>,
    pub(super) stderr: StderrTarget,
    pub(super) scratch: Option<ScratchFolder>,
}

pub(super) fn write(
    job: SandboxJob,
    tier: SandboxTier,
    secrets: &[UnixBytes],
    scratch: Option<ScratchFolder>,
) -> Result<LaunchPreparation, LaunchError> {
    let (pass, stdin) = stdin_ends(job.stdin)?;
    let confines = job.confines;
    let writes = match confines.profile {
        SandboxProfile::ReadOnly => false,
        SandboxProfile::WorkspaceWrite | SandboxProfile::Network | SandboxProfile::None => true,
    };
    let roots = confines.roots.into_iter().map(|root| OrderedRoot {
        path: root.path.into(),
        writable: writes && root.access == ResourceAccess::Write,
    });
    let order = LaunchOrder {
        tier,
        profile: confines.profile,
        argv: octets(job.argv),
        environment: job
            .environment
            .into_iter()
            .map(|(name, value)| (name.into(), value.into()))
            .collect(),
        directory: job.directory.into(),
        roots: roots.collect(),
        readable: octets(confines.readable),
        listable: octets(confines.listable),
        protected: octets(confines.protected),
        masked: octets(confines.masked),
        system_secrets: secrets.to_vec(),
        limits: confines.limits,
        required: confines.required,
        guards_required: confines.guards_required,
        shared: octets(confines.shared),
        stdin_comes: pass.is_some(),
        counting: CountingGroups::default(),
        scratch: scratch
            .as_ref()
            .map(|scratch| scratch.path().to_owned().into()),
        probe: None,
    };
    Ok(LaunchPreparation {
        order,
        pass,
        stdin,
        stderr: job.stderr,
        scratch,
    })
}

fn octets<T: Into<UnixBytes>>(list: Vec<T>) -> Vec<UnixBytes> {
    list.into_iter().map(Into::into).collect()
}

pub(super) fn explain(
    failure: LauncherFailure,
    program: String,
    directory: PathBuf,
) -> LaunchError {
    let said = io::Error::from_raw_os_error;
    match failure {
        LauncherFailure::Command { errno } => LaunchError::Command {
            program,
            source: said(errno),
        },
        LauncherFailure::Directory { errno } => LaunchError::Directory {
            path: directory,
            source: said(errno),
        },
        LauncherFailure::Sandbox { step, errno } => LaunchError::Sandbox {
            step,
            source: said(errno),
        },
        LauncherFailure::Incomplete { applied } => LaunchError::Incomplete { applied },
    }
}
