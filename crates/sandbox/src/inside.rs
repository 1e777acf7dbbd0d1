//! The launcher's process. The host starts it with nothing but a socket. It reads the order, builds the confines, runs
//! the command in them, and then watches it. It has one thread and no environment.
//!
//! With namespaces there are three processes: this one, which is the host's child and ends last; the first process of
//! the namespace, whose end kills every other process in it; and the command. Without namespaces the first two are one.

pub(crate) mod fence;
pub(crate) mod filter;
pub(crate) mod privileges;

mod command;
mod keeper;
mod namespaces;
mod report;
mod room;

use std::ffi::OsString;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{Mode, OFlags, RawDir};
use rustix::io::Errno;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags};
use toolpost_model::{SandboxProfile, SandboxTier};

use crate::error::LauncherFailure;
use crate::message::{self, LaunchOrder, LauncherMessage};
use crate::sys;
use keeper::ProcessTreeKind;
pub(crate) use room::SYSTEM;

/// The launcher word was typed at a terminal.
const NOT_FOR_PEOPLE: i32 = 2;
/// The order was incomplete, or the report could not be sent: the host is gone.
const NO_HOST: i32 = 3;

/// Reads the order from standard input and runs it. Never returns.
pub(crate) fn run() -> ! {
    let code = match take_order() {
        Ok((control, order, stdin)) => serve(&control, order, stdin),
        Err(Errno::NOTSOCK) => NOT_FOR_PEOPLE,
        Err(_) => NO_HOST,
    };
    std::process::exit(code)
}

fn serve(control: &OwnedFd, order: LaunchOrder, stdin: Option<OwnedFd>) -> i32 {
    let told = match launch(control, order, stdin) {
        Ok(()) => return 0,
        Err(failure) => tell(control, &LauncherMessage::Failed(failure)),
    };
    if told.is_ok() { 0 } else { NO_HOST }
}

/// The findings of the build steps, for the report.
#[derive(Debug, Default)]
struct SandboxBuildFindings {
    in_user_namespace: bool,
    furnished: room::PathProtectionReport,
    /// Some control groups could not be joined.
    uncounted: bool,
    mask: u32,
}

fn launch(
    control: &OwnedFd,
    order: LaunchOrder,
    stdin: Option<OwnedFd>,
) -> Result<(), LauncherFailure> {
    let mask = rustix::process::umask(Mode::empty()).bits();
    let mut built = SandboxBuildFindings {
        uncounted: !join(&order),
        mask,
        ..SandboxBuildFindings::default()
    };
    if !is_isolated(&order) {
        let this = rustix::process::getpid();
        rustix::process::set_child_subreaper(Some(this))
            .map_err(at("adopt processes of the command"))?;
        return keeper::keep(control, &order, &built, stdin, ProcessTreeKind::Descendants);
    }
    built.in_user_namespace = namespaces::enter(order.profile)?;
    // Opened before the first process removes the system's directories from both mount views.
    let nothing = keeper::nothing().map_err(at("open `/dev/null`"))?;
    match sys::fork().map_err(at("start the first process of the namespace"))? {
        Some(first) => {
            // Waiting needs nothing of the order, and this process must not hold the command's input open.
            drop((order, stdin));
            keeper::outlast(first, &nothing);
            Ok(())
        }
        None => {
            let failed = first_process(control, &order, built, stdin).err();
            let told = failed.map_or(Ok(()), |failure| {
                tell(control, &LauncherMessage::Failed(failure))
            });
            std::process::exit(if told.is_ok() { 0 } else { NO_HOST })
        }
    }
}

fn first_process(
    control: &OwnedFd,
    order: &LaunchOrder,
    mut built: SandboxBuildFindings,
    stdin: Option<OwnedFd>,
) -> Result<(), LauncherFailure> {
    namespaces::settle(order.profile)?;
    built.furnished = room::furnish(order, built.in_user_namespace)?;
    privileges::no_new_privileges().map_err(at("renounce privileges"))?;
    privileges::drop_capabilities().map_err(at("drop capabilities"))?;
    keeper::die_with_parent().map_err(at("tie itself to the launcher"))?;
    keeper::keep(control, order, &built, stdin, ProcessTreeKind::Namespace)
}

fn is_isolated(order: &LaunchOrder) -> bool {
    order.tier == SandboxTier::A && order.profile != SandboxProfile::None
}

/// Adds the launcher and its children to the job's control groups, and makes them the first to be killed when memory
/// runs out.
fn join(order: &LaunchOrder) -> bool {
    let _ = write_file(Path::new("/proc/self/oom_score_adj"), b"300");
    order
        .counting
        .join
        .iter()
        .all(|file| write_file(file.path(), b"0").is_ok())
}

fn take_order() -> Result<(OwnedFd, LaunchOrder, Option<OwnedFd>), Errno> {
    // The host can inherit any descriptor, of a service manager or of `make`, and pass it on by mistake. All of them are
    // closed before the control socket gets its number: with an inherited descriptor 3 the socket would be 4, and closing
    // from 4 on would close the socket itself.
    sys::close_from(3)?;
    let control = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?;
    let mut passed = None;
    let mut head = [0; 4];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut parts = [std::io::IoSliceMut::new(&mut head)];
    let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::WAITALL;
    if rustix::net::recvmsg(&control, &mut parts, &mut ancillary, flags)?.bytes != 4 {
        return Err(Errno::PIPE);
    }
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(descriptors) = message {
            passed = descriptors.last();
        }
    }
    let mut body = vec![0; message::frame_length(head).map_err(|_| Errno::MSGSIZE)?];
    read_whole(&control, &mut body)?;
    let order: LaunchOrder = serde_json::from_slice(&body).map_err(|_| Errno::BADMSG)?;
    if order.stdin_comes != passed.is_some() {
        return Err(Errno::BADMSG);
    }
    Ok((control, order, passed))
}

fn read_whole(from: &OwnedFd, mut into: &mut [u8]) -> Result<(), Errno> {
    while !into.is_empty() {
        match rustix::io::read(from, &mut *into) {
            Ok(0) => return Err(Errno::PIPE),
            Ok(count) => into = &mut into[count..],
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}

fn write_whole(to: &OwnedFd, mut bytes: &[u8]) -> Result<(), Errno> {
    while !bytes.is_empty() {
        match rustix::io::write(to, bytes) {
            Ok(count) => bytes = &bytes[count..],
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}

fn tell(control: &OwnedFd, message: &LauncherMessage) -> Result<(), Errno> {
    write_whole(control, &message::frame(message).map_err(|_| Errno::INVAL)?)
}

fn write_file(path: &Path, content: &[u8]) -> Result<(), Errno> {
    let file = rustix::fs::open(path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
    rustix::io::write(&file, content).map(drop)
}

/// The entries of a directory, without the two that every directory has.
fn names_in(directory: &Path) -> Result<Vec<OsString>, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let opened = rustix::fs::open(directory, flags, Mode::empty())?;
    let mut space = [MaybeUninit::uninit(); 8192];
    let mut entries = RawDir::new(&opened, &mut space);
    let mut names = Vec::new();
    while let Some(entry) = entries.next() {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if name != b"." && name != b".." {
            names.push(std::ffi::OsStr::from_bytes(name).to_owned());
        }
    }
    Ok(names)
}

fn at(step: &'static str) -> impl Fn(Errno) -> LauncherFailure {
    move |errno| LauncherFailure::sandbox(step, errno)
}
