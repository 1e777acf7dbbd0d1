//! Guesses whether a command failed because the sandbox refused something, and explains it.
//!
//! A process in a sandbox only gets an ordinary error. Without an explanation, an agent retries again and again, and an
//! operator switches the sandbox off. But this is a guess from the last lines of an output, and every program can print
//! such lines, so the message is worded as a guess and no decision depends on it.

mod path;

use std::path::Path;

use schemars::JsonSchema;
use serde::Serialize;
use toolpost_model::{AppliedSandbox, ResourceAccess, SandboxProfile};
use toolpost_processes::shown as quoted;
use toolpost_sandbox::{CommandExit, Confines, PRIVATE_TMP};

use super::shown::OutputExcerpt;

/// The number of last lines that are searched.
const LINES: usize = 200;
const SIGSYS: i32 = 31;
const SIGXFSZ: i32 = 25;

/// What the sandbox seems to have refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct SandboxRefusal {
    /// What was refused.
    pub(crate) kind: SandboxRefusalKind,
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
#[schemars(rename = "RefusalKind")]
pub(crate) enum SandboxRefusalKind {
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

/// The conditions that a command ran under.
pub(crate) struct SandboxedRunContext<'s> {
    pub(crate) confines: &'s Confines,
    pub(crate) applied: &'s AppliedSandbox,
    pub(crate) directory: &'s Path,
}

/// The kind of error in a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OutputComplaint {
    ReadOnly,
    Denied,
    NotPermitted,
    Network,
    Refused,
    NoSpace,
    NoProcesses,
}

const COMPLAINTS: [(&str, OutputComplaint); 19] = [
    ("read-only file system", OutputComplaint::ReadOnly),
    ("erofs", OutputComplaint::ReadOnly),
    ("permission denied", OutputComplaint::Denied),
    ("eacces", OutputComplaint::Denied),
    ("operation not permitted", OutputComplaint::NotPermitted),
    ("eperm", OutputComplaint::NotPermitted),
    ("network is unreachable", OutputComplaint::Network),
    ("network unreachable", OutputComplaint::Network),
    ("enetunreach", OutputComplaint::Network),
    ("could not resolve host", OutputComplaint::Network),
    (
        "temporary failure in name resolution",
        OutputComplaint::Network,
    ),
    ("name or service not known", OutputComplaint::Network),
    ("failed to lookup address", OutputComplaint::Network),
    ("eai_again", OutputComplaint::Network),
    ("connection refused", OutputComplaint::Refused),
    ("econnrefused", OutputComplaint::Refused),
    ("no space left on device", OutputComplaint::NoSpace),
    (
        "fork: retry: resource temporarily unavailable",
        OutputComplaint::NoProcesses,
    ),
    ("cannot fork", OutputComplaint::NoProcesses),
];

/// Guesses why a command failed. `None` if the sandbox is probably not the cause.
pub(crate) fn guess(
    output: &OutputExcerpt,
    ended: CommandExit,
    scene: &SandboxedRunContext<'_>,
) -> Option<SandboxRefusal> {
    if ended.code == Some(0) {
        return None;
    }
    if ended.out_of_memory {
        let message = "a process of the command was ended because the memory limit was reached";
        return Some(plain(SandboxRefusalKind::Memory, message, "sandbox.memory"));
    }
    if scene.confines.profile == SandboxProfile::None {
        return None;
    }
    match ended.signal {
        Some(SIGSYS) => return Some(system_call()),
        Some(SIGXFSZ) => {
            let message =
                "looks like the command was ended because it wrote a file over the size limit";
            return Some(plain(
                SandboxRefusalKind::Disk,
                message,
                "sandbox.file_size",
            ));
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

fn read(line: &str, scene: &SandboxedRunContext<'_>) -> Option<SandboxRefusal> {
    let lower = line.to_lowercase();
    let (_, complaint) = COMPLAINTS.iter().find(|(words, _)| lower.contains(words))?;
    let offline = scene.applied.net.starts_with("none");
    let without_network = |message| {
        plain(
            SandboxRefusalKind::Network,
            message,
            "sandbox.profile: network",
        )
    };
    let network = || {
        without_network(
            "looks like the command needs the network, which this sandbox does not allow",
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
        OutputComplaint::ReadOnly | OutputComplaint::Denied => named(),
        OutputComplaint::NotPermitted if offline && lower.contains("socket") => Some(network()),
        OutputComplaint::NotPermitted => {
            named().or_else(|| scene.applied.seccomp.then(system_call))
        }
        OutputComplaint::Network => offline.then(network),
        // The missing server may also be one of the command's own.
        OutputComplaint::Refused if offline && on_this_machine => Some(without_network(
            "looks like nothing listens there; each command has a network of its own and cannot reach the server of \
             another call or user: start the server in the same command",
        )),
        OutputComplaint::Refused => None,
        OutputComplaint::NoSpace
            if path::named_in(line)
                .iter()
                .any(|path| path.starts_with(PRIVATE_TMP)) =>
        {
            let message = "looks like the private temporary directory of the command is full";
            Some(plain(SandboxRefusalKind::Disk, message, "sandbox.tmp"))
        }
        OutputComplaint::NoSpace => None,
        OutputComplaint::NoProcesses => {
            let message = "looks like the command reached its limit of processes";
            Some(plain(
                SandboxRefusalKind::Processes,
                message,
                "sandbox.processes",
            ))
        }
    }
}

/// The place of a path in the confines, if that explains the error.
fn placed(
    named: &str,
    complaint: OutputComplaint,
    scene: &SandboxedRunContext<'_>,
) -> Option<SandboxRefusal> {
    let path = path::absolute(scene.directory, named)?;
    let confines = scene.confines;
    let beneath = |place: &std::path::PathBuf| path.starts_with(place);
    let (kind, why, setting) = if confines.masked.iter().any(beneath) {
        (
            SandboxRefusalKind::HiddenPath,
            "it is hidden from commands",
            None,
        )
    } else if confines.protected.iter().any(beneath) {
        let git = path.components().any(|part| part.as_os_str() == ".git");
        let setting = if git {
            "protect: {git: false}"
        } else {
            "protect"
        };
        (
            SandboxRefusalKind::ProtectedPath,
            "it is write-protected",
            Some(setting),
        )
    } else if let Some(root) = confines
        .roots
        .iter()
        .filter(|root| beneath(&root.path))
        .max_by_key(|root| root.path.as_os_str().len())
    {
        match (root.access, confines.profile) {
            (ResourceAccess::Read, _) => (
                SandboxRefusalKind::ReadOnlyPath,
                "its root is read-only",
                Some("roots: access: write"),
            ),
            (ResourceAccess::Write, SandboxProfile::ReadOnly) => (
                SandboxRefusalKind::ReadOnlyPath,
                "the profile is `read-only`",
                Some("sandbox.profile: workspace-write"),
            ),
            // The sandbox allows writing there, so the file's own permissions are the cause.
            (
                ResourceAccess::Write,
                SandboxProfile::WorkspaceWrite | SandboxProfile::Network | SandboxProfile::None,
            ) => {
                return None;
            }
        }
    } else if path.starts_with(PRIVATE_TMP) {
        return None;
    } else if complaint == OutputComplaint::ReadOnly {
        (
            SandboxRefusalKind::OutsidePath,
            "it lies outside of the writable roots",
            Some("roots"),
        )
    } else {
        (
            SandboxRefusalKind::OutsidePath,
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
    plain(
        SandboxRefusalKind::SystemCall,
        message,
        "sandbox.profile: none",
    )
}

fn plain(kind: SandboxRefusalKind, message: &str, setting: &'static str) -> SandboxRefusal {
    SandboxRefusal {
        kind,
        path: None,
        message: message.to_owned(),
        setting: Some(setting),
    }
}

impl SandboxRefusal {
    /// The last line of the text for the model.
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
