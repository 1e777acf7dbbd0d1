//! System calls without a safe wrapper. All `unsafe` code of this crate is here, one call per function.
#![expect(
    unsafe_code,
    reason = "forking, executing, mount attributes and signal masks have no safe wrapper"
)]

use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

use rustix::io::Errno;
use rustix::mount::MountAttrFlags;
use rustix::process::Pid;
use rustix::thread::UnshareFlags;

fn last() -> Errno {
    Errno::from_raw_os_error(
        std::io::Error::last_os_error()
            .raw_os_error()
            .unwrap_or(libc::EIO),
    )
}

fn checked(result: libc::c_int) -> Result<(), Errno> {
    if result == 0 { Ok(()) } else { Err(last()) }
}

/// Returns `None` in the child. Only for processes with one thread.
pub(crate) fn fork() -> Result<Option<Pid>, Errno> {
    // SAFETY: the launcher has one thread, so no lock can be held by a thread that is missing in the child.
    match unsafe { libc::fork() } {
        -1 => Err(last()),
        pid => Ok(Pid::from_raw(pid)),
    }
}

/// Returns only on failure.
pub(crate) fn execute(program: &CStr, argv: &[CString], environment: &[CString]) -> Errno {
    let pointers = |strings: &[CString]| {
        let mut list: Vec<*const libc::c_char> = strings.iter().map(|one| one.as_ptr()).collect();
        list.push(std::ptr::null());
        list
    };
    let argv = pointers(argv);
    let environment = pointers(environment);
    // SAFETY: both lists end in a null pointer, and their strings outlive the call.
    unsafe { libc::execve(program.as_ptr(), argv.as_ptr(), environment.as_ptr()) };
    last()
}

pub(crate) fn unshare(flags: UnshareFlags) -> Result<(), Errno> {
    // SAFETY: only the flag `FILES` could take descriptors away, and it is removed here.
    unsafe { rustix::thread::unshare_unsafe(flags & !UnshareFlags::FILES) }
}

/// Sets attributes of a mount and of all mounts beneath it.
pub(crate) fn restrict_mount(
    mount: impl AsFd,
    set: MountAttrFlags,
    depth: MountDepth,
) -> Result<(), Errno> {
    let attributes = libc::mount_attr {
        attr_set: u64::from(set.bits()),
        attr_clr: 0,
        propagation: 0,
        userns_fd: 0,
    };
    let recursive = match depth {
        MountDepth::Itself => 0,
        MountDepth::AllBeneath => libc::AT_RECURSIVE,
    };
    // SAFETY: the kernel reads a structure of the given size and keeps no pointer.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mount.as_fd().as_raw_fd(),
            c"".as_ptr(),
            libc::AT_EMPTY_PATH | recursive,
            &raw const attributes,
            size_of::<libc::mount_attr>(),
        )
    };
    if result == 0 { Ok(()) } else { Err(last()) }
}

/// The depth of a change of mount attributes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum MountDepth {
    Itself,
    AllBeneath,
}

/// Closes every descriptor from `first` on.
pub(crate) fn close_from(first: u32) -> Result<(), Errno> {
    // SAFETY: called before any value owns a descriptor of that range.
    if unsafe { libc::syscall(libc::SYS_close_range, first, u32::MAX, 0) } == 0 {
        Ok(())
    } else {
        Err(last())
    }
}

/// Marks every descriptor from `first` on to be closed by the next `execve`.
pub(crate) fn close_from_on_execute(first: u32) -> Result<(), Errno> {
    const CLOEXEC: libc::c_uint = 4;
    // SAFETY: sets a flag, closes nothing.
    let result = unsafe { libc::syscall(libc::SYS_close_range, first, u32::MAX, CLOEXEC) };
    if result == 0 { Ok(()) } else { Err(last()) }
}

/// A descriptor that becomes readable when a child has changed.
pub(crate) fn child_signals() -> Result<OwnedFd, Errno> {
    // SAFETY: `sigemptyset` initialises the set before use, and the descriptor is new and owned here.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, libc::SIGCHLD);
        checked(libc::sigprocmask(
            libc::SIG_BLOCK,
            &raw const set,
            std::ptr::null_mut(),
        ))?;
        match libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) {
            -1 => Err(last()),
            fd => Ok(OwnedFd::from_raw_fd(fd)),
        }
    }
}

/// Resets signals to what a command expects: none blocked, and the broken pipe not ignored as in Rust's runtime.
pub(crate) fn reset_signals() -> Result<(), Errno> {
    // SAFETY: the set is initialised before use, and default dispositions run no code of this process.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        checked(libc::sigprocmask(
            libc::SIG_SETMASK,
            &raw const set,
            std::ptr::null_mut(),
        ))?;
        for signal in 1..32 {
            // Two signals cannot be set, and need not be.
            libc::signal(signal, libc::SIG_DFL);
        }
    }
    Ok(())
}

/// Signals all processes of the namespace except the first, which must be the caller.
pub(crate) fn signal_everyone(signal: libc::c_int) {
    // SAFETY: plain system call. It fails if no process is left to signal, which is no error here.
    unsafe { libc::kill(-1, signal) };
}

/// Switches on the loopback device of a new network namespace.
pub(crate) fn loopback_up() -> Result<(), Errno> {
    // SAFETY: an all-zero request is valid, and its name is shorter than the field.
    unsafe {
        let socket = libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0);
        if socket < 0 {
            return Err(last());
        }
        let socket = OwnedFd::from_raw_fd(socket);
        let mut request: libc::ifreq = std::mem::zeroed();
        for (place, byte) in request.ifr_name.iter_mut().zip(c"lo".to_bytes_with_nul()) {
            *place = *byte as libc::c_char;
        }
        request.ifr_ifru.ifru_flags = libc::IFF_UP as libc::c_short;
        checked(libc::ioctl(
            socket.as_raw_fd(),
            libc::SIOCSIFFLAGS,
            &raw const request,
        ))
    }
}
