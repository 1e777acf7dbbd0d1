//! Watches the command until it ends, then kills its remaining processes. If the host ends, it kills everything.

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::event::{PollFd, PollFlags};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{DumpableBehavior, Pid, Signal, WaitOptions, WaitStatus};

use super::{SandboxBuildFindings, at, command, names_in, tell};
use crate::error::LauncherFailure;
use crate::message::{LaunchOrder, LauncherMessage, TERMINATE};
use crate::sys;

/// How to find all processes that the command started.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ProcessTreeKind {
    /// This process is the first of a namespace. All others are in it and end with it.
    Namespace,
    /// They are the descendants of this process, which adopts orphans among them.
    Descendants,
}

/// Runs the command and returns after the command or the host has ended.
pub(super) fn keep(
    control: &OwnedFd,
    order: &LaunchOrder,
    built: &SandboxBuildFindings,
    stdin: Option<OwnedFd>,
    tree: ProcessTreeKind,
) -> Result<(), LauncherFailure> {
    // This process has the order in its memory, so other processes must neither read nor write it.
    let _ = rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable);
    let children = sys::child_signals().map_err(at("watch children"))?;
    let (command, applied) = command::start(order, built, stdin)?;
    // From here on only the command holds its pipes open. A reader of the output would otherwise see no end of file as
    // long as this process watches the rest of the tree.
    nothing()
        .and_then(|nothing| release_output(&nothing))
        .map_err(at("release the command's output"))?;
    if tell(control, &LauncherMessage::Running(Box::new(applied))).is_err() {
        tree.kill();
        return Ok(());
    }
    if let Some(status) = watch(control, &children, command, tree) {
        let code = status.exit_status();
        let signal = status.terminating_signal();
        let _ = tell(control, &LauncherMessage::Ended { code, signal });
    }
    tree.kill();
    Ok(())
}

/// Waits for the command's end; `None` if the host is gone or orders the end of everything.
///
/// The host's death shows as end of file on the control socket. The parent-death signal is no alternative: it fires
/// when the *thread* that started this process ends, and the host's runtime starts and ends threads at any time.
fn watch(
    control: &OwnedFd,
    children: &OwnedFd,
    command: Pid,
    tree: ProcessTreeKind,
) -> Option<WaitStatus> {
    loop {
        if let Some(status) = reap(command) {
            return Some(status);
        }
        let mut watched = [
            PollFd::new(control, PollFlags::IN),
            PollFd::new(children, PollFlags::IN),
        ];
        match rustix::event::poll(&mut watched, None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => return None,
        }
        if !watched[1].revents().is_empty() {
            let mut signals = [0; 1024];
            let _ = rustix::io::read(children, &mut signals);
        }
        if !watched[0].revents().is_empty() {
            let mut byte = [0; 1];
            match rustix::io::read(control, &mut byte) {
                Ok(1) if byte[0] == TERMINATE => tree.terminate(),
                Ok(1) | Err(Errno::INTR) => {}
                Ok(_) | Err(_) => return None,
            }
        }
    }
}

/// Collects all ended children, and returns the command's status if it is among them.
fn reap(command: Pid) -> Option<WaitStatus> {
    while let Ok(Some((pid, status))) = rustix::process::wait(WaitOptions::NOHANG) {
        if pid == command {
            return Some(status);
        }
    }
    None
}

impl ProcessTreeKind {
    fn terminate(self) {
        match self {
            Self::Namespace => {
                sys::signal_everyone(libc::SIGTERM);
                sys::signal_everyone(libc::SIGCONT);
            }
            Self::Descendants => {
                for pid in descendants() {
                    let _ = rustix::process::kill_process(pid, Signal::TERM);
                    let _ = rustix::process::kill_process(pid, Signal::CONT);
                }
            }
        }
    }

    /// Returns when no process is left.
    fn kill(self) {
        match self {
            // The kernel kills them when this process exits, and reports the exit to its parent only after that.
            Self::Namespace => {}
            Self::Descendants => loop {
                // In most cases no process is left, and the search through `/proc` is not needed.
                match rustix::process::wait(WaitOptions::NOHANG) {
                    Ok(Some(_)) | Err(Errno::INTR) => continue,
                    Ok(None) => {}
                    Err(_) => return,
                }
                // A process may fork while the others are killed. Its orphaned child comes to this process, and the
                // next round finds it. The loop ends when there is no child to wait for, and not when one pass over
                // `/proc` found nothing: a pass is no snapshot.
                for pid in descendants() {
                    let _ = rustix::process::kill_process(pid, Signal::KILL);
                }
                let _ = rustix::process::wait(WaitOptions::empty());
            },
        }
    }
}

/// All descendants of this process, from the parent ids in `/proc`.
fn descendants() -> Vec<Pid> {
    let mut children: HashMap<i32, Vec<i32>> = HashMap::new();
    for name in names_in(Path::new("/proc")).unwrap_or_default() {
        let Some(pid) = name.to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        if let Some(parent) = parent_of(pid) {
            children.entry(parent).or_default().push(pid);
        }
    }
    let mut found = Vec::new();
    let mut next = vec![rustix::process::getpid().as_raw_nonzero().get()];
    while let Some(pid) = next.pop() {
        for child in children.remove(&pid).unwrap_or_default() {
            next.push(child);
            found.extend(Pid::from_raw(child));
        }
    }
    found
}

fn parent_of(pid: i32) -> Option<i32> {
    let stat = rustix::fs::open(
        format!("/proc/{pid}/stat"),
        OFlags::RDONLY | OFlags::CLOEXEC,
        Mode::empty(),
    )
    .ok()?;
    let mut text = [0; 512];
    let length = rustix::io::read(&stat, &mut text).ok()?;
    let text = String::from_utf8_lossy(&text[..length]).into_owned();
    // The name comes first, in brackets, and may contain anything.
    let (_, after) = text.rsplit_once(')')?;
    after.split_whitespace().nth(1)?.parse().ok()
}

/// The host's child waits here for the first process of the namespace, and thereby for all processes in it.
pub(super) fn outlast(first: Pid, nothing: &OwnedFd) {
    let _ = release_output(nothing);
    while let Err(Errno::INTR) = rustix::process::waitpid(Some(first), WaitOptions::empty()) {}
}

/// The parent is the launcher's outer process, which has one thread, so the signal does not fire when a thread of the
/// host ends.
pub(super) fn die_with_parent() -> Result<(), Errno> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))
}

/// Replaces the standard streams, so that this process holds no pipe open.
fn release_output(nothing: &OwnedFd) -> Result<(), Errno> {
    rustix::stdio::dup2_stdin(nothing)?;
    rustix::stdio::dup2_stdout(nothing)?;
    rustix::stdio::dup2_stderr(nothing)
}

pub(super) fn nothing() -> Result<OwnedFd, Errno> {
    rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())
}
