//! The launcher's report: the confines that it applied and the kernel confirms, and those that are missing.

use toolpost_model::{AppliedSandbox, SandboxLimit, SandboxProfile, SandboxTier};

use super::filter::SocketAccess;
use super::privileges::PrivilegeStatus;
use super::{SandboxBuildFindings, is_isolated};
use crate::job::PROTECTED_WRITABLE;
use crate::message::LaunchOrder;

/// The Landlock versions with features that a process without namespaces depends on.
const TRUNCATION: u32 = 3;
const SIGNALS: u32 = 6;
const SOCKET_PATHS: u32 = 9;

/// The confines in force, read right before the program is executed.
#[derive(Debug, Default)]
pub(super) struct ConfinementStatus {
    pub(super) standing: PrivilegeStatus,
    pub(super) landlock: Option<u32>,
    pub(super) sockets: Option<SocketAccess>,
    /// The number of masked paths that can still be read.
    pub(super) readable_secrets: usize,
}

pub(super) fn applied(
    order: &LaunchOrder,
    built: &SandboxBuildFindings,
    found: &ConfinementStatus,
) -> AppliedSandbox {
    let confines_files = is_isolated(order) || found.landlock.is_some();
    let mut fs_write: Vec<String> = match confines_files {
        true => {
            let writable = order.roots.iter().filter(|root| root.writable);
            writable
                .map(|root| root.path.path().display().to_string())
                .collect()
        }
        false => vec!["everything".to_owned()],
    };
    if confines_files {
        fs_write.push("tmp".to_owned());
    }
    AppliedSandbox {
        tier: order.tier,
        requested: order.profile,
        fs_write,
        fs_read: if confines_files {
            "system+roots"
        } else {
            "everything"
        }
        .to_owned(),
        protected: built.furnished.protected.clone(),
        masked: masked(order, built, found),
        net: network(order, found),
        landlock_abi: found.landlock,
        seccomp: found.standing.filtered,
        caps: if found.standing.powerless {
            "none"
        } else {
            "kept"
        }
        .to_owned(),
        userns: built.in_user_namespace,
        pids: processes(order, built),
        memory: memory(order, built),
        missing: missing(order, built, found),
        protected_created: Vec::new(),
    }
}

fn masked(order: &LaunchOrder, built: &SandboxBuildFindings, found: &ConfinementStatus) -> usize {
    match (is_isolated(order), found.landlock) {
        (true, _) => built.furnished.masked,
        (false, Some(_)) => {
            (order.masked.len() + order.system_secrets.len()).saturating_sub(found.readable_secrets)
        }
        (false, None) => 0,
    }
}

fn network(order: &LaunchOrder, found: &ConfinementStatus) -> String {
    match (order.profile, found.sockets) {
        (SandboxProfile::ReadOnly | SandboxProfile::WorkspaceWrite, Some(sockets)) => match sockets
        {
            SocketAccess::Usual => "none (network namespace)".to_owned(),
            SocketAccess::Pairs => "none (system call filter)".to_owned(),
        },
        (SandboxProfile::Network | SandboxProfile::None, _) | (_, None) => "host".to_owned(),
    }
}

fn processes(order: &LaunchOrder, built: &SandboxBuildFindings) -> Option<SandboxLimit> {
    let limit = order.limits.processes;
    match &order.counting.processes {
        Some(by) if !built.uncounted => Some(SandboxLimit {
            limit,
            by: by.clone(),
        }),
        Some(_) => None,
        // This limit does not apply to root.
        None if rustix::process::getuid().is_root() && !built.in_user_namespace => None,
        None => Some(SandboxLimit {
            limit,
            by: "rlimit".to_owned(),
        }),
    }
}

fn memory(order: &LaunchOrder, built: &SandboxBuildFindings) -> Option<SandboxLimit> {
    let limit = order.limits.memory_bytes;
    match &order.counting.memory {
        Some(by) if !built.uncounted => Some(SandboxLimit {
            limit,
            by: by.clone(),
        }),
        Some(_) => None,
        None => Some(SandboxLimit {
            limit,
            by: "rlimit".to_owned(),
        }),
    }
}

/// Whether all protected and masked paths are. With namespaces the command would not have started otherwise.
pub(super) fn guards_hold(order: &LaunchOrder, found: &ConfinementStatus) -> bool {
    let writes = order.roots.iter().any(|root| root.writable);
    let fenced = found.landlock.is_some() && found.readable_secrets == 0;
    is_isolated(order) || (fenced && (!writes || order.protected.is_empty()))
}

fn missing(
    order: &LaunchOrder,
    built: &SandboxBuildFindings,
    found: &ConfinementStatus,
) -> Vec<String> {
    if order.profile == SandboxProfile::None {
        return Vec::new();
    }
    let mut missing = built.furnished.missing.clone();
    let mut say = |holds: bool, what: &str| {
        if !holds {
            missing.push(what.to_owned());
        }
    };
    let isolated = is_isolated(order);
    let landlock = found.landlock.unwrap_or_default();
    say(order.tier != SandboxTier::N, "nothing confines the command");
    say(isolated || landlock > 0, "files are not confined");
    say(
        isolated || landlock == 0 || landlock >= TRUNCATION,
        "files outside of the roots can be emptied",
    );
    say(
        isolated || landlock == 0,
        "modes, owners and times of files outside of the roots can be changed",
    );
    say(
        !isolated || landlock > 0,
        "landlock, the second layer around files",
    );
    say(found.standing.filtered, "a filter of system calls");
    say(found.standing.powerless, "capabilities are kept");
    say(
        found.standing.no_new_privileges,
        "privileges can be gained by executing programs",
    );
    say(isolated, "other processes of this machine can be seen");
    say(
        isolated || landlock >= SIGNALS,
        "other processes of this user can be signalled",
    );
    let talks = found.sockets == Some(SocketAccess::Usual);
    say(
        isolated || !talks || landlock >= SOCKET_PATHS,
        "unix sockets of this machine can be connected to",
    );
    let shares_names = isolated && order.profile == SandboxProfile::Network;
    say(
        !shares_names || landlock >= SIGNALS,
        "unix sockets without a path can be connected to",
    );
    let no_network = matches!(
        order.profile,
        SandboxProfile::ReadOnly | SandboxProfile::WorkspaceWrite
    );
    say(
        !no_network || found.sockets.is_some(),
        "the network can be reached",
    );
    let writes = order.roots.iter().any(|root| root.writable);
    say(
        isolated || !writes || order.protected.is_empty(),
        PROTECTED_WRITABLE,
    );
    say(
        isolated || landlock == 0 || found.readable_secrets == 0,
        "masked paths inside of roots can be read",
    );
    say(
        processes(order, built).is_some(),
        "the number of processes is not bounded",
    );
    say(memory(order, built).is_some(), "memory is not bounded");
    missing
}
