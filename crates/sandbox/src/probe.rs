//! The probe of the self-test: a process inside the confines attempts what they must refuse, and for each attempt a
//! similar one that they must allow.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::process::Pid;
use serde::{Deserialize, Serialize};

use crate::message::UnixBytes;
use crate::sys;

/// The targets of the attempts.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ProbePlan {
    /// A directory of the host that is not a root.
    pub(crate) outside: UnixBytes,
    /// A writable root.
    pub(crate) inside: UnixBytes,
    /// Its own directory for temporary files, if it has one.
    pub(crate) temporary: Option<UnixBytes>,
    /// A masked file in the root.
    pub(crate) masked: UnixBytes,
    /// A protected file in the root.
    pub(crate) protected: UnixBytes,
    /// An address that the host listens on.
    pub(crate) tcp: Option<SocketAddr>,
    /// A socket that the host listens on.
    pub(crate) socket: UnixBytes,
    pub(crate) host: u32,
    /// The host's start time in the kernel's ticks: inside the confines, another process may have its id.
    pub(crate) host_started: u64,
}

/// An attempt of the probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum ProbeAttempt {
    WriteInside,
    WriteTemporary,
    ListenOnLoopback,
    WriteOutside,
    ReadMasked,
    WriteProtected,
    ConnectToHost,
    ConnectToSocket,
    SignalHost,
    SeeHost,
    ReadHostEnvironment,
    Unshare,
    HoldCapability,
}

/// The result of one attempt, as sent to the host.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct SelfTestFinding {
    pub(crate) attempt: ProbeAttempt,
    pub(crate) succeeded: bool,
    /// The system's error if it refused.
    pub(crate) errno: Option<i32>,
}

/// Makes all attempts and writes the results to standard output.
pub(crate) fn try_everything(plan: &ProbePlan) {
    let sees_host = see(plan.host, plan.host_started);
    let tried = [
        (
            ProbeAttempt::WriteInside,
            write(&plan.inside.path().join("written")),
        ),
        (
            ProbeAttempt::WriteTemporary,
            write_temporary(plan.temporary.as_ref()),
        ),
        (
            ProbeAttempt::ListenOnLoopback,
            TcpListener::bind(("127.0.0.1", 0)).map(drop).map_err(errno),
        ),
        (
            ProbeAttempt::WriteOutside,
            write(&plan.outside.path().join("written")),
        ),
        (ProbeAttempt::ReadMasked, read(plan.masked.path())),
        (ProbeAttempt::WriteProtected, write(plan.protected.path())),
        (ProbeAttempt::ConnectToHost, connect(plan.tcp)),
        (
            ProbeAttempt::ConnectToSocket,
            UnixStream::connect(plan.socket.path())
                .map(drop)
                .map_err(errno),
        ),
        (
            ProbeAttempt::SignalHost,
            sees_host.and_then(|()| signal(plan.host)),
        ),
        (ProbeAttempt::SeeHost, sees_host),
        (
            ProbeAttempt::ReadHostEnvironment,
            sees_host.and_then(|()| read(Path::new(&format!("/proc/{}/environ", plan.host)))),
        ),
        (
            ProbeAttempt::Unshare,
            sys::unshare(rustix::thread::UnshareFlags::NEWUSER),
        ),
        (ProbeAttempt::HoldCapability, hold_capability()),
    ];
    let told: Vec<SelfTestFinding> = tried
        .into_iter()
        .map(|(attempt, result)| SelfTestFinding {
            attempt,
            succeeded: result.is_ok(),
            errno: result.err().map(Errno::raw_os_error),
        })
        .collect();
    if let Ok(text) = serde_json::to_vec(&told) {
        let _ = rustix::io::write(rustix::stdio::stdout(), &text);
    }
}

fn write_temporary(place: Option<&UnixBytes>) -> Result<(), Errno> {
    place.map_or(Err(Errno::NOENT), |place| {
        write(&place.path().join("written"))
    })
}

fn write(path: &Path) -> Result<(), Errno> {
    let flags = OFlags::CREATE | OFlags::WRONLY | OFlags::CLOEXEC;
    let file = rustix::fs::open(path, flags, Mode::from_raw_mode(0o600))?;
    rustix::io::write(&file, b"x").map(drop)
}

fn read(path: &Path) -> Result<(), Errno> {
    let file = rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    rustix::io::read(&file, &mut [0; 16]).map(drop)
}

fn see(pid: u32, started: u64) -> Result<(), Errno> {
    let file = rustix::fs::open(
        format!("/proc/{pid}/stat"),
        OFlags::RDONLY | OFlags::CLOEXEC,
        Mode::empty(),
    )?;
    let mut text = [0; 1024];
    let length = rustix::io::read(&file, &mut text)?;
    let found = started_at(&String::from_utf8_lossy(&text[..length]));
    if found == Some(started) {
        Ok(())
    } else {
        Err(Errno::SRCH)
    }
}

/// The start time of a process, from its line in `/proc`.
pub(crate) fn started_at(stat: &str) -> Option<u64> {
    // The name comes first, in brackets, and may contain anything.
    let (_, after_name) = stat.rsplit_once(')')?;
    after_name.split_whitespace().nth(19)?.parse().ok()
}

fn connect(address: Option<SocketAddr>) -> Result<(), Errno> {
    let address = address.ok_or(Errno::ADDRNOTAVAIL)?;
    TcpStream::connect_timeout(&address, Duration::from_secs(1))
        .map(drop)
        .map_err(errno)
}

fn signal(pid: u32) -> Result<(), Errno> {
    let pid = i32::try_from(pid)
        .ok()
        .and_then(Pid::from_raw)
        .ok_or(Errno::SRCH)?;
    rustix::process::test_kill_process(pid)
}

fn hold_capability() -> Result<(), Errno> {
    let sets = rustix::thread::capabilities(None)?;
    if sets.permitted.is_empty() && sets.effective.is_empty() {
        Err(Errno::PERM)
    } else {
        Ok(())
    }
}

#[expect(clippy::needless_pass_by_value, reason = "the shape `map_err` wants")]
fn errno(error: std::io::Error) -> Errno {
    Errno::from_raw_os_error(error.raw_os_error().unwrap_or(libc::EIO))
}
