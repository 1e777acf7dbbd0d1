//! The host's side: starts the launcher process, sends it the order and reads its report.
#![expect(
    clippy::disallowed_methods,
    reason = "this module is the crate's door to child processes"
)]

mod order;
mod self_test;

pub use self_test::{Check, SelfTest};

use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::{Arc, OnceLock};

use rustix::io::Errno;
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags};
use rustix::pipe::PipeFlags;
use tokio::io::AsyncWriteExt;
use toolpost_model::{SandboxProfile, SandboxTier};

use crate::LAUNCH_ARGUMENT;
use crate::error::LaunchError;
use crate::job::{SandboxJob, StderrTarget, Stdin};
use crate::machine::{CgroupPurpose, Cgroups, HostName, ScratchFolder, system_secrets};
use crate::message::{self, LauncherMessage, UnixBytes};
use crate::probe::ProbePlan;
use crate::process::{LauncherChannel, ProcessStreams, SandboxedProcess};
use crate::undertaker::{JobRemains, JobUndertaker};
use order::LaunchPreparation;

/// Starts commands in confines. Cheap to clone; all clones share the result of the self-test.
#[derive(Clone, Debug)]
pub struct Launcher {
    shared: Arc<LauncherState>,
}

#[derive(Debug)]
struct LauncherState {
    means: LauncherResources,
    at_most: SandboxTier,
    /// Filled at the first use, so that a host that starts no process skips the test.
    self_test: OnceLock<SelfTest>,
}

/// The inputs of every start, in any tier.
#[derive(Debug)]
struct LauncherResources {
    program: PathBuf,
    host: HostName,
    cgroups: Cgroups,
    secrets: Vec<UnixBytes>,
    undertaker: JobUndertaker,
}

impl Launcher {
    /// `program` is a binary of the same version as this crate, with a `main` that calls
    /// [`launch_if_asked`](crate::launch_if_asked). For a host's own binary use `/proc/self/exe`, which stays the same
    /// when an update replaces the file. The self-test of this machine runs at the first use.
    pub fn new(program: PathBuf) -> Self {
        Self::with_tier_at_most(program, SandboxTier::A)
    }

    /// Like [`Launcher::new`], but as if the machine offered at most this tier: for tests of the lower tiers, and for
    /// `doctor`.
    pub fn with_tier_at_most(program: PathBuf, tier: SandboxTier) -> Self {
        let host = HostName::own();
        ScratchFolder::sweep(&host);
        let cgroups = Cgroups::find(&host);
        let secrets = system_secrets().into_iter().map(UnixBytes::from).collect();
        let means = LauncherResources {
            program,
            host,
            cgroups,
            secrets,
            undertaker: JobUndertaker::new(),
        };
        Self {
            shared: Arc::new(LauncherState {
                means,
                at_most: tier,
                self_test: OnceLock::new(),
            }),
        }
    }

    /// The tier that this machine offers. The first call blocks its thread for the self-test.
    pub fn tier(&self) -> SandboxTier {
        self.self_test().tier
    }

    /// The result of the self-test. The first call blocks its thread.
    pub fn self_test(&self) -> &SelfTest {
        self.shared
            .self_test
            .get_or_init(|| self_test::run(&self.shared.means, self.shared.at_most))
    }

    /// The tier, without blocking an async thread for the self-test.
    async fn known_tier(&self) -> Result<SandboxTier, LaunchError> {
        if let Some(known) = self.shared.self_test.get() {
            return Ok(known.tier);
        }
        let launcher = self.clone();
        let tested = tokio::task::spawn_blocking(move || launcher.tier()).await;
        tested.map_err(|error| LaunchError::Launcher(std::io::Error::other(error)))
    }

    /// Starts a command. On success it runs, confined as [`SandboxedProcess::applied`] reports; on failure no part of
    /// it ran. Must be called within a Tokio runtime.
    pub async fn start(&self, job: SandboxJob) -> Result<SandboxedProcess, LaunchError> {
        let program = job
            .argv
            .first()
            .map(|program| program.to_string_lossy().into_owned())
            .unwrap_or_default();
        let directory = job.directory.clone();
        let spawned = self.shared.means.spawn(job, self.known_tier().await?)?;
        let LauncherProcess {
            charge,
            control,
            order,
            stdin,
            stdout,
            stderr,
        } = spawned;
        control
            .set_nonblocking(true)
            .map_err(LaunchError::Launcher)?;
        let mut control =
            tokio::net::UnixStream::from_std(control).map_err(LaunchError::Launcher)?;
        let streams = ProcessStreams::new(stdin, stdout, stderr).map_err(LaunchError::Launcher)?;
        // If the launcher has already ended, the read below fails and its standard error explains why.
        let _ = control.write_all(&order).await;
        let mut control = LauncherChannel::new(control);
        match control.next_message().await {
            Some(LauncherMessage::Running(applied)) => {
                Ok(SandboxedProcess::new(charge, control, streams, *applied))
            }
            Some(LauncherMessage::Failed(failure)) => {
                Err(order::explain(failure, program, directory))
            }
            Some(LauncherMessage::Ended { .. }) | None => Err(LaunchError::Silent {
                stderr: streams.last_words().await,
            }),
        }
    }
}

/// A launcher process that has not got all of its order yet. Dropping it ends the launcher and removes the job's
/// remains.
struct LauncherProcess {
    charge: JobRemainsGuard,
    control: UnixStream,
    /// The rest of the order, still to be sent.
    order: Vec<u8>,
    stdin: Option<OwnedFd>,
    stdout: OwnedFd,
    stderr: Option<OwnedFd>,
}

/// The host's objects for a job. Dropping this gives them to the undertaker, also when a start fails or is cancelled.
#[derive(Debug)]
pub(crate) struct JobRemainsGuard {
    remains: Option<JobRemains>,
    undertaker: JobUndertaker,
}

impl JobRemainsGuard {
    pub(crate) fn remains(&mut self) -> Option<&mut JobRemains> {
        self.remains.as_mut()
    }

    pub(crate) fn id(&self) -> u32 {
        self.remains
            .as_ref()
            .map(|remains| remains.launcher.id())
            .unwrap_or_default()
    }

    pub(crate) fn ran_out_of_memory(&self) -> bool {
        self.remains
            .as_ref()
            .is_some_and(|remains| remains.leaf.ran_out_of_memory())
    }
}

impl Drop for JobRemainsGuard {
    fn drop(&mut self) {
        if let Some(remains) = self.remains.take() {
            self.undertaker.take(remains);
        }
    }
}

impl LauncherResources {
    fn spawn(&self, job: SandboxJob, tier: SandboxTier) -> Result<LauncherProcess, LaunchError> {
        order::check(&job)?;
        let scratch = match is_isolated(tier, job.confines.profile) {
            true => None,
            false => Some(ScratchFolder::new(&self.host).map_err(LaunchError::Launcher)?),
        };
        self.send_off(order::write(job, tier, &self.secrets, scratch)?)
    }

    /// Spawns a launcher with a probe instead of a command.
    fn spawn_probe(
        &self,
        job: SandboxJob,
        tier: SandboxTier,
        plan: ProbePlan,
    ) -> Result<LauncherProcess, LaunchError> {
        let mut errand = order::write(job, tier, &self.secrets, None)?;
        errand.order.probe = Some(plan);
        self.send_off(errand)
    }

    fn send_off(&self, errand: LaunchPreparation) -> Result<LauncherProcess, LaunchError> {
        let LaunchPreparation {
            mut order,
            pass,
            stdin,
            stderr,
            scratch,
        } = errand;
        let failed = LaunchError::Launcher;
        let (control, theirs) = UnixStream::pair().map_err(failed)?;
        let (stdout, their_stdout) = pipe()?;
        let (stderr, their_stderr) = match stderr {
            StderrTarget::Piped => pipe().map(|(ours, theirs)| (Some(ours), theirs))?,
            StderrTarget::WithStdout => (None, their_stdout.try_clone().map_err(failed)?),
        };
        let purpose = match is_isolated(order.tier, order.profile) {
            true => CgroupPurpose::Counting,
            false => CgroupPurpose::CountingAndKilling,
        };
        let leaf = self.cgroups.leaf(&self.host, &order.limits, purpose);
        order.counting = leaf.counting.clone();
        // The child must not need `pre_exec`. With it the standard library uses `fork` instead of `posix_spawn`, which
        // copies the page tables of the whole host and takes longer the larger it is. All preparations therefore happen
        // in the launcher itself, after `execve`.
        let spawned = Command::new(&self.program)
            .arg(LAUNCH_ARGUMENT)
            .env_clear()
            .process_group(0)
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::from(their_stdout))
            .stderr(Stdio::from(their_stderr))
            .spawn();
        let launcher = match spawned {
            Ok(launcher) => launcher,
            Err(error) => {
                let mut leaf = leaf;
                leaf.remove();
                return Err(LaunchError::Launcher(error));
            }
        };
        let remains = JobRemains {
            launcher,
            leaf,
            scratch,
        };
        let charge = JobRemainsGuard {
            remains: Some(remains),
            undertaker: self.undertaker.clone(),
        };
        let mut bytes = message::frame(&order).map_err(failed)?;
        let sent = match send_head(&control, &bytes, pass.as_ref()) {
            Ok(sent) => sent,
            // The launcher has already ended; reading its report shows why.
            Err(Errno::PIPE | Errno::CONNRESET) => 0,
            Err(errno) => return Err(failed(errno.into())),
        };
        bytes.drain(..sent);
        Ok(LauncherProcess {
            charge,
            control,
            order: bytes,
            stdin,
            stdout,
            stderr,
        })
    }
}

/// Whether the job has namespaces of its own.
fn is_isolated(tier: SandboxTier, profile: SandboxProfile) -> bool {
    tier == SandboxTier::A && profile != SandboxProfile::None
}

/// Sends the first bytes together with the descriptor. They always fit into a new socket's buffer.
fn send_head(
    control: &UnixStream,
    bytes: &[u8],
    pass: Option<&OwnedFd>,
) -> rustix::io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    let descriptors = pass.map(AsFd::as_fd);
    if let Some(descriptors) = &descriptors {
        ancillary.push(SendAncillaryMessage::ScmRights(std::slice::from_ref(
            descriptors,
        )));
    }
    rustix::net::sendmsg(
        control,
        &[IoSlice::new(&bytes[..4])],
        &mut ancillary,
        SendFlags::NOSIGNAL,
    )
}

fn pipe() -> Result<(OwnedFd, OwnedFd), LaunchError> {
    rustix::pipe::pipe_with(PipeFlags::CLOEXEC).map_err(|errno| LaunchError::Launcher(errno.into()))
}

/// The two ends of standard input: the command's end, and the host's end for writing.
fn stdin_ends(stdin: Stdin) -> Result<(Option<OwnedFd>, Option<OwnedFd>), LaunchError> {
    match stdin {
        Stdin::Null => Ok((None, None)),
        Stdin::Piped => pipe().map(|(theirs, ours)| (Some(theirs), Some(ours))),
        Stdin::Socket(socket) => Ok((Some(socket), None)),
    }
}
