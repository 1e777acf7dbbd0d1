//! Confines for Toolpost's own threads and processes: file workers, interpreter workers, and the host itself.

use std::io;

use libc::c_long;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{DumpableBehavior, Resource, Rlimit};
use rustix::thread::{CapabilitySet, CapabilitySets};
use toolpost_model::ResourceAccess;

use crate::error::LockDownError;
use crate::inside::fence::{self, LandlockFence, OutsideProcesses, TcpAccess};
use crate::inside::filter;
use crate::inside::privileges::{self, PrivilegeStatus};
use crate::job::SandboxRoot;

/// The confines of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadConfinement {
    /// Landlock's version if it is in force; without it the thread is not confined.
    pub landlock_abi: Option<u32>,
}

/// Confines the calling thread, and everything that it starts, to these roots for good. Returns the confines in force:
/// on a kernel without Landlock there are none.
pub fn confine_thread(roots: &[SandboxRoot]) -> ThreadConfinement {
    let build = || {
        let mut fence = LandlockFence::new(TcpAccess::Refused, OutsideProcesses::Reachable)?;
        for root in roots {
            let access = match root.access {
                ResourceAccess::Read => fence::reading(),
                ResourceAccess::Write => fence::writing(),
            };
            fence = fence.allow(&root.path, access)?;
        }
        fence.close()
    };
    keep_file_capabilities();
    let fenced = build().ok();
    ThreadConfinement {
        landlock_abi: fenced.and_then(|fenced| fenced.abi),
    }
}

/// Drops all other capabilities. A host of root needs these to work on the files of other users; with the others it
/// could look into any process, with or without Landlock.
fn keep_file_capabilities() {
    let kept = CapabilitySet::CHOWN
        | CapabilitySet::DAC_OVERRIDE
        | CapabilitySet::FOWNER
        | CapabilitySet::FSETID;
    if let Ok(held) = rustix::thread::capabilities(None) {
        let sets = CapabilitySets {
            effective: held.effective & kept,
            permitted: held.permitted & kept,
            inheritable: CapabilitySet::empty(),
        };
        let _ = rustix::thread::set_capabilities(None, sets);
    }
}

/// The limits of a locked process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LockedDown {
    /// Landlock's version if it is in force. Without it, only the filter prevents the opening of files.
    pub landlock_abi: Option<u32>,
    /// The limit of its address space.
    pub address_space: u64,
}

/// The worker cannot open descriptors anyway, but the kernel refuses to poll more than this limit, even for descriptors
/// that exist.
const MOST_DESCRIPTORS: u64 = 64;

/// The system calls of an interpreter: memory, its open descriptors, time, and exit.
const WORKER_CALLS: &[c_long] = &[
    libc::SYS_read,
    libc::SYS_write,
    libc::SYS_readv,
    libc::SYS_writev,
    libc::SYS_recvfrom,
    libc::SYS_sendto,
    libc::SYS_recvmsg,
    libc::SYS_sendmsg,
    libc::SYS_shutdown,
    libc::SYS_close,
    libc::SYS_fstat,
    libc::SYS_lseek,
    libc::SYS_ppoll,
    libc::SYS_mmap,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_mprotect,
    libc::SYS_madvise,
    libc::SYS_brk,
    libc::SYS_futex,
    libc::SYS_sched_yield,
    libc::SYS_sched_getaffinity,
    libc::SYS_nanosleep,
    libc::SYS_clock_nanosleep,
    libc::SYS_clock_gettime,
    libc::SYS_clock_getres,
    libc::SYS_gettimeofday,
    libc::SYS_getrandom,
    libc::SYS_getrusage,
    libc::SYS_getpid,
    libc::SYS_gettid,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sigaltstack,
    libc::SYS_restart_syscall,
    libc::SYS_exit,
    libc::SYS_exit_group,
];

#[cfg(target_arch = "x86_64")]
const WORKER_CALLS_HERE: &[c_long] = &[libc::SYS_poll, libc::SYS_time];
#[cfg(not(target_arch = "x86_64"))]
const WORKER_CALLS_HERE: &[c_long] = &[];

/// Locks this process down for good: no files, no network, no new processes or threads, at most `memory_bytes` more
/// memory than now. Open descriptors stay usable. The process must have one thread. For workers that run an
/// interpreter.
///
/// The checks of the result come before the fence: they read `/proc`, which is closed afterwards. A failed step is an
/// error, so that a process that is only half locked does not start its work.
pub fn lock_down(memory_bytes: u64) -> Result<LockedDown, LockDownError> {
    let address_space = address_space()
        .map_err(failed("read its size"))?
        .saturating_add(memory_bytes);
    privileges::no_new_privileges().map_err(failed("renounce privileges"))?;
    privileges::drop_capabilities().map_err(failed("drop capabilities"))?;
    // `/proc` cannot be read after the files are closed.
    let standing = PrivilegeStatus::look().map_err(failed("read its own privileges"))?;
    if !standing.powerless {
        return Err(failed("drop capabilities")(Errno::PERM));
    }
    let _ = rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable);
    let fenced = LandlockFence::new(TcpAccess::Refused, OutsideProcesses::OutOfReach)
        .and_then(LandlockFence::close);
    let fenced = fenced.map_err(|error| LockDownError {
        step: "close files",
        source: io::Error::other(error),
    })?;
    let bounds = [
        (Resource::Core, 0),
        (Resource::Fsize, 0),
        (Resource::Nofile, MOST_DESCRIPTORS),
        (Resource::Nproc, 0),
        (Resource::As, address_space),
    ];
    for (resource, bound) in bounds {
        rustix::process::setrlimit(
            resource,
            Rlimit {
                current: Some(bound),
                maximum: Some(bound),
            },
        )
        .map_err(failed("set limits"))?;
    }
    let calls: Vec<c_long> = WORKER_CALLS
        .iter()
        .chain(WORKER_CALLS_HERE)
        .copied()
        .collect();
    filter::allow_only(&calls).map_err(failed("filter system calls"))?;
    Ok(LockedDown {
        landlock_abi: fenced.abi,
        address_space,
    })
}

fn failed(step: &'static str) -> impl Fn(Errno) -> LockDownError {
    move |errno| LockDownError {
        step,
        source: errno.into(),
    }
}

fn address_space() -> Result<u64, Errno> {
    let file = rustix::fs::open(
        "/proc/self/statm",
        OFlags::RDONLY | OFlags::CLOEXEC,
        Mode::empty(),
    )?;
    let mut text = [0; 128];
    let length = rustix::io::read(&file, &mut text)?;
    let pages: u64 = std::str::from_utf8(&text[..length])
        .ok()
        .and_then(|text| text.split(' ').next()?.parse().ok())
        .ok_or(Errno::INVAL)?;
    Ok(pages * rustix::param::page_size() as u64)
}

/// For the host itself, at its start: no process of the same user may read its memory, and it writes no core files.
pub fn harden_host() {
    let _ = rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable);
    let _ = rustix::process::setrlimit(
        Resource::Core,
        Rlimit {
            current: Some(0),
            maximum: Some(0),
        },
    );
}
