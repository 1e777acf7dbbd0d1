//! Tests how much this machine can confine: the launcher runs a probe in each tier, the strongest first, until one
//! holds.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::time::Duration;

use toolpost_model::{AppliedSandbox, ResourceAccess, SandboxProfile, SandboxTier};

use super::{LauncherProcess, LauncherResources};
use crate::error::LaunchError;
use crate::job::{
    Confines, PRIVATE_TMP, PROTECTED_WRITABLE, ProcessLimits, SandboxJob, SandboxRoot,
    StderrTarget, Stdin,
};
use crate::machine::ScratchFolder;
use crate::message::{LauncherMessage, take_frame};
use crate::probe::{ProbeAttempt, ProbePlan, SelfTestFinding};

/// A probe takes milliseconds. On a machine where it takes longer than this, commands would not work either.
const PATIENCE: Duration = Duration::from_secs(20);

/// The result of the self-test: the tier of this machine and the checks behind it.
#[derive(Clone, Debug)]
pub struct SelfTest {
    /// The strongest tier that held.
    pub tier: SandboxTier,
    /// All checks; the last ones are of the tier in use.
    pub checks: Vec<Check>,
    /// The usable control groups, in words.
    pub cgroups: String,
    /// Landlock's version, if the kernel has it.
    pub landlock_abi: Option<u32>,
    /// The promises of the profile `workspace-write` that the tier in use does not keep.
    missing: Vec<String>,
}

impl SelfTest {
    /// The promises of a profile that this machine did not keep in the test. Empty if everything is in force.
    pub fn missing(&self, profile: SandboxProfile) -> Vec<String> {
        let concerns = |what: &&String| match profile {
            SandboxProfile::ReadOnly => *what != PROTECTED_WRITABLE,
            SandboxProfile::WorkspaceWrite | SandboxProfile::Network => true,
            // It promises nothing.
            SandboxProfile::None => false,
        };
        self.missing.iter().filter(concerns).cloned().collect()
    }
}

/// One check of the self-test.
#[derive(Clone, Debug)]
pub struct Check {
    /// The tier that it ran in.
    pub tier: SandboxTier,
    /// The condition that must hold.
    pub name: &'static str,
    /// Whether it held.
    pub ok: bool,
    /// The result in words.
    pub detail: String,
}

/// The expected result of an attempt, by tier. `A` needs all; a lower tier needs those that its means can provide.
struct Expectation {
    attempt: ProbeAttempt,
    name: &'static str,
    succeeds: bool,
    /// The weakest tier that still needs it.
    down_to: SandboxTier,
}

const fn must(attempt: ProbeAttempt, name: &'static str, down_to: SandboxTier) -> Expectation {
    Expectation {
        attempt,
        name,
        succeeds: true,
        down_to,
    }
}

const fn must_not(attempt: ProbeAttempt, name: &'static str, down_to: SandboxTier) -> Expectation {
    Expectation {
        attempt,
        name,
        succeeds: false,
        down_to,
    }
}

const EXPECTATIONS: &[Expectation] = &[
    must(
        ProbeAttempt::WriteInside,
        "roots can be written",
        SandboxTier::C,
    ),
    must(
        ProbeAttempt::WriteTemporary,
        "there is a private temporary directory",
        SandboxTier::A,
    ),
    must(
        ProbeAttempt::ListenOnLoopback,
        "there is a loopback device of its own",
        SandboxTier::A,
    ),
    must_not(
        ProbeAttempt::WriteOutside,
        "nothing else can be written",
        SandboxTier::B,
    ),
    must_not(
        ProbeAttempt::ReadMasked,
        "masked paths cannot be read",
        SandboxTier::A,
    ),
    must_not(
        ProbeAttempt::WriteProtected,
        "protected paths cannot be written",
        SandboxTier::A,
    ),
    must_not(
        ProbeAttempt::ConnectToHost,
        "the host's network is out of reach",
        SandboxTier::C,
    ),
    must_not(
        ProbeAttempt::ConnectToSocket,
        "the host's sockets are out of reach",
        SandboxTier::C,
    ),
    must_not(
        ProbeAttempt::SignalHost,
        "other processes cannot be signalled",
        SandboxTier::A,
    ),
    must_not(
        ProbeAttempt::SeeHost,
        "other processes cannot be seen",
        SandboxTier::A,
    ),
    must_not(
        ProbeAttempt::ReadHostEnvironment,
        "the host's environment cannot be read",
        SandboxTier::B,
    ),
    must_not(
        ProbeAttempt::Unshare,
        "system calls are filtered",
        SandboxTier::C,
    ),
    must_not(
        ProbeAttempt::HoldCapability,
        "no capability is left",
        SandboxTier::C,
    ),
];

pub(super) fn run(means: &LauncherResources, at_most: SandboxTier) -> SelfTest {
    let mut checks = Vec::new();
    let mut landlock_abi = None;
    for tier in [SandboxTier::A, SandboxTier::B, SandboxTier::C] {
        if tier < at_most {
            continue;
        }
        let ProbeRunReport { tried, applied } = match probe(means, tier) {
            Ok(probed) => {
                landlock_abi = landlock_abi.or(probed.applied.landlock_abi);
                probed
            }
            Err(error) => {
                let detail = error.to_string();
                checks.push(Check {
                    tier,
                    name: "the confines can be built",
                    ok: false,
                    detail,
                });
                continue;
            }
        };
        let results: Vec<Check> = EXPECTATIONS
            .iter()
            .filter(|expected| tier <= expected.down_to)
            .map(|expected| check(tier, expected, &tried))
            .collect();
        let holds = results.iter().all(|check| check.ok);
        checks.extend(results);
        if holds {
            let cgroups = means.cgroups.describe();
            let missing = applied.missing;
            return SelfTest {
                tier,
                checks,
                cgroups,
                landlock_abi,
                missing,
            };
        }
    }
    let missing = vec!["nothing confines the command".to_owned()];
    SelfTest {
        tier: SandboxTier::N,
        checks,
        cgroups: means.cgroups.describe(),
        landlock_abi,
        missing,
    }
}

fn check(tier: SandboxTier, expected: &Expectation, tried: &[SelfTestFinding]) -> Check {
    let result = tried.iter().find(|tried| tried.attempt == expected.attempt);
    let (ok, detail) = match result {
        Some(SelfTestFinding {
            succeeded: true, ..
        }) => (expected.succeeds, "it was possible".to_owned()),
        Some(SelfTestFinding {
            errno: Some(errno), ..
        }) => (
            !expected.succeeds,
            format!("refused: {}", std::io::Error::from_raw_os_error(*errno)),
        ),
        Some(SelfTestFinding { errno: None, .. }) => (!expected.succeeds, "refused".to_owned()),
        None => (false, "the probe did not report it".to_owned()),
    };
    Check {
        tier,
        name: expected.name,
        ok,
        detail,
    }
}

struct ProbeRunReport {
    tried: Vec<SelfTestFinding>,
    applied: AppliedSandbox,
}

fn probe(means: &LauncherResources, tier: SandboxTier) -> Result<ProbeRunReport, LaunchError> {
    let failed = LaunchError::Launcher;
    let ground = ScratchFolder::new(&means.host).map_err(failed)?;
    let inside = ground.path().join("home");
    let masked = ground.write("home/masked", "secret").map_err(failed)?;
    let protected = ground.write("home/protected", "precious").map_err(failed)?;
    let socket = ground.path().join("socket");
    // Kept open until the probe has ended, so that the probe has a socket to connect to.
    let _listens = UnixListener::bind(&socket).map_err(failed)?;
    let listener = TcpListener::bind(("127.0.0.1", 0)).ok();
    let plan = ProbePlan {
        outside: ground.path().to_owned().into(),
        inside: inside.clone().into(),
        temporary: (tier == SandboxTier::A).then(|| PathBuf::from(PRIVATE_TMP).into()),
        masked: masked.clone().into(),
        protected: protected.clone().into(),
        tcp: listener
            .as_ref()
            .and_then(|listener| listener.local_addr().ok()),
        socket: socket.into(),
        host: std::process::id(),
        host_started: means.host.started(),
    };
    let mut spawned = means.spawn_probe(job(inside, masked, protected), tier, plan)?;
    let patience = Some(PATIENCE);
    spawned.control.set_read_timeout(patience).map_err(failed)?;
    spawned.control.write_all(&spawned.order).map_err(failed)?;
    let mut probed = hear(&mut spawned)?;
    for tried in probed
        .tried
        .iter_mut()
        .filter(|tried| tried.attempt == ProbeAttempt::WriteOutside)
    {
        // The probe may have written to a private directory of that name, so only the file on the host counts.
        tried.succeeded = ground.holds("written");
    }
    Ok(probed)
}

fn job(inside: PathBuf, masked: PathBuf, protected: PathBuf) -> SandboxJob {
    SandboxJob {
        argv: vec!["probe".into()],
        environment: vec![("TMPDIR".into(), PRIVATE_TMP.into())],
        directory: inside.clone(),
        stdin: Stdin::Null,
        stderr: StderrTarget::Piped,
        confines: Confines {
            profile: SandboxProfile::WorkspaceWrite,
            roots: vec![SandboxRoot {
                path: inside,
                access: ResourceAccess::Write,
            }],
            protected: vec![protected],
            masked: vec![masked],
            limits: ProcessLimits::default(),
            ..Confines::default()
        },
    }
}

/// Reads the report, then the output of the probe, which fits into the pipe's buffer.
fn hear(spawned: &mut LauncherProcess) -> Result<ProbeRunReport, LaunchError> {
    let mut inbox = Vec::new();
    let mut applied = None;
    loop {
        match take_frame(&mut inbox).map_err(LaunchError::Launcher)? {
            Some(LauncherMessage::Running(told)) => applied = Some(*told),
            Some(LauncherMessage::Failed(failure)) => {
                return Err(super::order::explain(
                    failure,
                    "the probe".to_owned(),
                    PathBuf::new(),
                ));
            }
            Some(LauncherMessage::Ended { .. }) => break,
            None => {
                let mut part = [0; 4096];
                match spawned
                    .control
                    .read(&mut part)
                    .map_err(LaunchError::Launcher)?
                {
                    0 => {
                        return Err(LaunchError::Silent {
                            stderr: String::new(),
                        });
                    }
                    count => inbox.extend_from_slice(&part[..count]),
                }
            }
        }
    }
    let mut told = vec![0; 1 << 16];
    let length = rustix::io::read(&spawned.stdout, &mut told)
        .map_err(|errno| LaunchError::Launcher(errno.into()))?;
    let tried = serde_json::from_slice(&told[..length])
        .map_err(|error| LaunchError::Launcher(error.into()))?;
    let applied = applied.ok_or(LaunchError::Silent {
        stderr: String::new(),
    })?;
    Ok(ProbeRunReport { tried, applied })
}
