//! The host's side: starts the launcher process, gives it the order and hears its report.
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

/// Starts commands in confines. Cheap to clone; all clones share what the self-test found.
#[derive(Clone, Debug)]
pub struct Launcher {
    shared: Arc<LauncherState>,
}

#[derive(Debug)]
struct LauncherState {
    means: LauncherResources,
    at_most: SandboxTier,
    /// Made when somebody first asks: a host that starts no process spares itself that.
    self_test: OnceLock<SelfTest>,
}

/// What every start needs, whatever the tier.
#[derive(Debug)]
struct LauncherResources {
    program: PathBuf,
    host: HostName,
    cgroups: Cgroups,
    secrets: Vec<UnixBytes>,
    undertaker: JobUndertaker,
}

impl Launcher {
    /// `program` is a binary whose `main` calls [`launch_if_asked`](crate::launch_if_asked), of the same version as
    /// this crate. For a host's own binary give `/proc/self/exe`, which stays the same when the file is replaced by a
    /// newer one. What this machine can confine is tried out when it is first asked for.
    pub fn new(program: PathBuf) -> Self {
        Self::with_tier_at_most(program, SandboxTier::A)
    }

    /// Like [`Launcher::new`], but as if the machine could give no more than this: for tests of the lower tiers, and
    /// for `doctor`.
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

    /// How much this machine can confine. The first to ask waits a moment, with its thread.
    pub fn tier(&self) -> SandboxTier {
        self.self_test().tier
    }

    /// What was tried to find out.
    pub fn self_test(&self) -> &SelfTest {
        self.shared
            .self_test
            .get_or_init(|| self_test::run(&self.shared.means, self.shared.at_most))
    }

    /// The tier, without keeping an async thread waiting for the self-test.
    async fn known_tier(&self) -> Result<SandboxTier, LaunchError> {
        if let Some(known) = self.shared.self_test.get() {
            return Ok(known.tier);
        }
        let launcher = self.clone();
        let tested = tokio::task::spawn_blocking(move || launcher.tier()).await;
        tested.map_err(|error| LaunchError::Launcher(std::io::Error::other(error)))
    }

    /// Starts a command. It runs, confined as [`SandboxedProcess::applied`] says, when this returns; if this fails, nothing of
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
        // A launcher that is already gone is heard of below, with what it said.
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

/// A launcher process that has its order on the way. Dropped, it is let go of and cleared up after.
struct LauncherProcess {
    charge: JobRemainsGuard,
    control: UnixStream,
    /// What is still to be sent.
    order: Vec<u8>,
    stdin: Option<OwnedFd>,
    stdout: OwnedFd,
    stderr: Option<OwnedFd>,
}

/// What the host made for a job. Goes to the undertaker in the end, whatever happens in between.
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

    /// The same with a probe in the command's place.
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
        // No `pre_exec`: with it the whole host would be forked, which takes the longer the larger it is.
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
            // Already gone, and heard of when its report is waited for.
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

/// The first bytes, with the descriptor that goes along. They always fit into a new socket.
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

/// The two ends of standard input: what is passed to the command, and what the host writes to.
fn stdin_ends(stdin: Stdin) -> Result<(Option<OwnedFd>, Option<OwnedFd>), LaunchError> {
    match stdin {
        Stdin::Null => Ok((None, None)),
        Stdin::Piped => pipe().map(|(theirs, ours)| (Some(theirs), Some(ours))),
        Stdin::Socket(socket) => Ok((Some(socket), None)),
    }
}
