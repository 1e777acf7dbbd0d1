//! The job's own namespaces: processes, mounts, network, and others that cost nothing.

use std::path::Path;

use rustix::thread::UnshareFlags;
use toolpost_model::SandboxProfile;

use super::{at, write_file};
use crate::error::LauncherFailure;
use crate::sys;

/// Creates the namespaces. The next child is the first process in them. Returns true if a user namespace was needed, as
/// for every user except root.
pub(super) fn enter(profile: SandboxProfile) -> Result<bool, LauncherFailure> {
    let mut flags = UnshareFlags::NEWNS
        | UnshareFlags::NEWPID
        | UnshareFlags::NEWIPC
        | UnshareFlags::NEWUTS
        | UnshareFlags::NEWCGROUP;
    if !shares_network(profile) {
        flags |= UnshareFlags::NEWNET;
    }
    let user = rustix::process::geteuid().as_raw();
    let group = rustix::process::getegid().as_raw();
    // Root in a container often lacks the right, and then needs a user namespace, too.
    if user == 0 && sys::unshare(flags).is_ok() {
        return Ok(false);
    }
    sys::unshare(flags | UnshareFlags::NEWUSER).map_err(at("make namespaces"))?;
    // Ids are the same inside and outside, so that files keep their owners.
    let write = |file: &str, text: String| {
        write_file(Path::new(file), text.as_bytes()).map_err(at("map users into the namespace"))
    };
    write("/proc/self/setgroups", "deny".to_owned())?;
    write("/proc/self/uid_map", format!("{user} {user} 1"))?;
    write("/proc/self/gid_map", format!("{group} {group} 1"))?;
    Ok(true)
}

/// Finishes the namespaces from the inside, while capabilities are still there.
pub(super) fn settle(profile: SandboxProfile) -> Result<(), LauncherFailure> {
    let _ = rustix::process::setsid();
    if !shares_network(profile) {
        sys::loopback_up().map_err(at("switch on the loopback device"))?;
    }
    Ok(())
}

fn shares_network(profile: SandboxProfile) -> bool {
    match profile {
        SandboxProfile::ReadOnly | SandboxProfile::WorkspaceWrite => false,
        SandboxProfile::Network | SandboxProfile::None => true,
    }
}
