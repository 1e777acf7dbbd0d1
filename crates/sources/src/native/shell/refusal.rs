//! Guesses whether a command failed because the sandbox refused it something, and says what and why.
//!
//! A process that meets a sandbox sees only an ordinary error. An agent that is not told tries again and again, and a
//! person who is not told switches the sandbox off. But it is a guess from the last lines of an output that anybody
//! can write, so it is worded as one and nothing is decided on it.

mod path;

use std::path::Path;

use schemars::JsonSchema;
use serde::Serialize;
use toolpost_model::{Access, AppliedSandbox, SandboxProfile};
use toolpost_sandbox::{Confines, Ended, PRIVATE_TMP};

use super::shown::Shown;
use crate::native::files::shown as quoted;

/// How many of the last lines are looked at.
const LINES: usize = 200;
const SIGSYS: i32 = 31;
const SIGXFSZ: i32 = 25;

/// What the sandbox seems to have refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct SandboxRefusal {
    /// What was refused.
    pub(crate) kind: RefusalKind,
    /// The path, where the output names one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) path: Option<String>,
    /// What it looks like, in a sentence.
    pub(crate) message: String,
    /// The operator's setting that would change it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) setting: Option<&'static str>,
}

/// What can be refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RefusalKind {
    /// A path outside of the roots.
    OutsidePath,
    /// A protected path inside of a root.
    ProtectedPath,
    /// A path in a root that may only be read.
    ReadOnlyPath,
    /// A path that is hidden.
    HiddenPath,
    /// The network.
    Network,
    /// A system call.
    SystemCall,
    /// More memory.
    Memory,
    /// More processes.
    Processes,
    /// A larger file, or more temporary files.
    Disk,
}

/// Under which circumstances a command ran.
pub(crate) struct Scene<'s> {
    pub(crate) confines: &'s Confines,
    pub(crate) applied: &'s AppliedSandbox,
    pub(crate) directory: &'s Path,
}

/// The complaint of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Complaint {
    ReadOnly,
    Denied,
    NotPermitted,
    Network,
    Refused,
    NoSpace,
    NoProcesses,
}

const COMPLAINTS: [(&str, Complaint); 19] = [
    ("read-only file system", Complaint::ReadOnly),
    ("erofs", Complaint::ReadOnly),
    ("permission denied", Complaint::Denied),
    ("eacces", Complaint::Denied),
    ("operation not permitted", Complaint::NotPermitted),
    ("eperm", Complaint::NotPermitted),
    ("network is unreachable", Complaint::Network),
    ("network unreachable", Complaint::Network),
    ("enetunreach", Complaint::Network),
    ("could not resolve host", Complaint::Network),
    ("temporary failure in name resolution", Complaint::Network),
    ("name or service not known", Complaint::Network),
    ("failed to lookup address", Complaint::Network),
    ("eai_again", Complaint::Network),
    ("connection refused", Complaint::Refused),
    ("econnrefused", Complaint::Refused),
    ("no space left on device", Complaint::NoSpace),
    (
        "fork: retry: resource temporarily unavailable",
        Complaint::NoProcesses,
    ),
    ("cannot fork", Complaint::NoProcesses),
];

/// Guesses why a command failed. `None`: the sandbox has probably nothing to do with it.
pub(crate) fn guess(output: &Shown, ended: Ended, scene: &Scene<'_>) -> Option<SandboxRefusal> {
    if ended.code == Some(0) {
        return None;
    }
    if ended.out_of_memory {
        let message = "something of the command was ended because its memory limit was reached";
        return Some(plain(RefusalKind::Memory, message, "sandbox.memory"));
    }
    if scene.confines.profile == SandboxProfile::None {
        return None;
    }
    match ended.signal {
        Some(SIGSYS) => return Some(system_call()),
        Some(SIGXFSZ) => {
            let message =
                "looks like the command was ended because it wrote a file over the size limit";
            return Some(plain(RefusalKind::Disk, message, "sandbox.file_size"));
        }
        _ => {}
    }
    let lines: Vec<&str> = output.pieces().flat_map(str::lines).collect();
    lines
        .iter()
        .rev()
        .take(LINES)
        .find_map(|line| read(line, scene))
}

fn read(line: &str, scene: &Scene<'_>) -> Option<SandboxRefusal> {
    let lower = line.to_lowercase();
    let (_, complaint) = COMPLAINTS.iter().find(|(words, _)| lower.contains(words))?;
    let offline = scene.applied.net.starts_with("none");
    let without_network =
        |message| plain(RefusalKind::Network, message, "sandbox.profile: network");
    let network = || {
        without_network(
            "looks like the command wanted the network, which it does not have in this sandbox",
        )
    };
    let on_this_machine = ["localhost", "127.0.0.1", "::1"]
        .iter()
        .any(|name| lower.contains(name));
    let named = || {
        path::named_in(line)
            .into_iter()
            .find_map(|path| placed(&path, *complaint, scene))
    };
    match complaint {
        Complaint::ReadOnly | Complaint::Denied => named(),
        Complaint::NotPermitted if offline && lower.contains("socket") => Some(network()),
        Complaint::NotPermitted => named().or_else(|| scene.applied.seccomp.then(system_call)),
        Complaint::Network => offline.then(network),
        // It may also be a server of the command's own that is not up.
        Complaint::Refused if offline && on_this_machine => Some(without_network(
            "looks like nothing listens there; each command has a network of its own, so a server that another call \
             or somebody else started cannot be reached from it: start it in the same command",
        )),
        Complaint::Refused => None,
        Complaint::NoSpace
            if path::named_in(line)
                .iter()
                .any(|path| path.starts_with(PRIVATE_TMP)) =>
        {
            let message = "looks like the private temporary directory of the command is full";
            Some(plain(RefusalKind::Disk, message, "sandbox.tmp"))
        }
        Complaint::NoSpace => None,
        Complaint::NoProcesses => {
            let message = "looks like the command reached its limit of processes";
            Some(plain(RefusalKind::Processes, message, "sandbox.processes"))
        }
    }
}

/// Where a path stands in the confines, if that explains the complaint.
fn placed(named: &str, complaint: Complaint, scene: &Scene<'_>) -> Option<SandboxRefusal> {
    let path = path::absolute(scene.directory, named)?;
    let confines = scene.confines;
    let beneath = |place: &std::path::PathBuf| path.starts_with(place);
    let (kind, why, setting) = if confines.masked.iter().any(beneath) {
        (RefusalKind::HiddenPath, "it is hidden from commands", None)
    } else if confines.protected.iter().any(beneath) {
        let git = path.components().any(|part| part.as_os_str() == ".git");
        let setting = if git {
            "protect: {git: false}"
        } else {
            "protect"
        };
        (
            RefusalKind::ProtectedPath,
            "it is protected from being written",
            Some(setting),
        )
    } else if let Some(root) = confines
        .roots
        .iter()
        .filter(|root| beneath(&root.path))
        .max_by_key(|root| root.path.as_os_str().len())
    {
        match (root.access, confines.profile) {
            (Access::Read, _) => (
                RefusalKind::ReadOnlyPath,
                "its root may only be read",
                Some("roots: access: write"),
            ),
            (Access::Write, SandboxProfile::ReadOnly) => (
                RefusalKind::ReadOnlyPath,
                "the profile is `read-only`",
                Some("sandbox.profile: workspace-write"),
            ),
            // It may write there, so this is about the file's own permissions.
            (
                Access::Write,
                SandboxProfile::WorkspaceWrite | SandboxProfile::Network | SandboxProfile::None,
            ) => {
                return None;
            }
        }
    } else if path.starts_with(PRIVATE_TMP) {
        return None;
    } else if complaint == Complaint::ReadOnly {
        (
            RefusalKind::OutsidePath,
            "it lies outside of the writable roots",
            Some("roots"),
        )
    } else {
        (
            RefusalKind::OutsidePath,
            "it lies outside of the roots",
            Some("roots, or sandbox.readable"),
        )
    };
    let path = path.to_string_lossy().into_owned();
    let message = format!("looks like the sandbox refused `{}`: {why}", quoted(&path));
    Some(SandboxRefusal {
        kind,
        path: Some(path),
        message,
        setting,
    })
}

fn system_call() -> SandboxRefusal {
    let message = "looks like the sandbox refused a system call that the command made";
    plain(RefusalKind::SystemCall, message, "sandbox.profile: none")
}

fn plain(kind: RefusalKind, message: &str, setting: &'static str) -> SandboxRefusal {
    SandboxRefusal {
        kind,
        path: None,
        message: message.to_owned(),
        setting: Some(setting),
    }
}

impl SandboxRefusal {
    /// The line that closes the text a model is given.
    pub(crate) fn told(&self) -> String {
        match self.setting {
            Some(setting) => {
                format!(
                    "[{}; only the operator can change that (setting `{setting}`)]",
                    self.message
                )
            }
            None => format!("[{}]", self.message),
        }
    }
}

#[cfg(test)]
mod tests;
