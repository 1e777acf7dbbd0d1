//! The command's process: a child that applies the last confines to itself, reports them, and executes the program.

use std::ffi::{CString, OsStr};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use landlock::{AccessFs, BitFlags, RulesetError};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::pipe::PipeFlags;
use rustix::process::{Pid, Resource, Rlimit, Signal};
use toolpost_model::{AppliedSandbox, SandboxProfile, SandboxTier};

use super::fence::{self, LandlockEnforcement, LandlockFence, OutsideProcesses, TcpAccess};
use super::filter::{self, SocketAccess};
use super::privileges::{self, PrivilegeStatus};
use super::report::ConfinementStatus;
use super::{SandboxBuildFindings, at, is_isolated, read_whole, report, room, write_whole};
use crate::error::LauncherFailure;
use crate::job::{PRIVATE_HOME, PRIVATE_TMP};
use crate::message::{self, LaunchOrder, UnixBytes};
use crate::{probe, sys};

/// Applying more Landlock rules than this at every start takes too long.
const MOST_RULES: usize = 512;

/// Returns when the program is being executed, or with the reason why it is not.
///
/// The parent learns this from a pipe that closes on `execve`. The child first writes the confines that are in force;
/// then either `execve` succeeds, which closes the pipe, or the child writes its error. The report alone is not enough:
/// it could claim that a command ran whose program is missing.
pub(super) fn start(
    order: &LaunchOrder,
    built: &SandboxBuildFindings,
    stdin: Option<OwnedFd>,
) -> Result<(Pid, AppliedSandbox), LauncherFailure> {
    let (answers, speaks) =
        rustix::pipe::pipe_with(PipeFlags::CLOEXEC).map_err(at("make a pipe to the command"))?;
    let Some(child) = sys::fork().map_err(at("start the command"))? else {
        drop(answers);
        become_command(order, built, stdin, &speaks)
    };
    drop((speaks, stdin));
    match hear(&answers) {
        Ok(Ok(applied)) => match hear::<LauncherFailure>(&answers) {
            // The kernel closed the other end when it executed the program.
            Err(_) => Ok((child, applied)),
            Ok(failure) => Err(failure),
        },
        Ok(Err(failure)) => Err(failure),
        Err(errno) => Err(LauncherFailure::sandbox("receive from the command", errno)),
    }
}

fn hear<T: serde::de::DeserializeOwned>(from: &OwnedFd) -> Result<T, Errno> {
    let mut head = [0; 4];
    read_whole(from, &mut head)?;
    let mut body = vec![0; message::frame_length(head).map_err(|_| Errno::MSGSIZE)?];
    read_whole(from, &mut body)?;
    serde_json::from_slice(&body).map_err(|_| Errno::BADMSG)
}

fn say<T: serde::Serialize>(to: &OwnedFd, message: &T) {
    if let Ok(bytes) = message::frame(message) {
        let _ = write_whole(to, &bytes);
    }
}

fn become_command(
    order: &LaunchOrder,
    built: &SandboxBuildFindings,
    stdin: Option<OwnedFd>,
    speaks: &OwnedFd,
) -> ! {
    let prepared = prepare(order, built, stdin);
    say(speaks, &prepared);
    if prepared.is_ok() {
        if let Some(plan) = &order.probe {
            probe::try_everything(plan);
            std::process::exit(0)
        }
        let errno = execute(order);
        say(
            speaks,
            &LauncherFailure::Command {
                errno: errno.raw_os_error(),
            },
        );
    }
    std::process::exit(127)
}

fn prepare(
    order: &LaunchOrder,
    built: &SandboxBuildFindings,
    stdin: Option<OwnedFd>,
) -> Result<AppliedSandbox, LauncherFailure> {
    let _ = rustix::process::setsid();
    // If the keeper is killed, the command ends with it. The rest of the tree ends with the namespace, or the host
    // kills it.
    let _ = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
    take_stdin(stdin).map_err(at("connect standard input"))?;
    rustix::process::umask(Mode::from_raw_mode(built.mask));
    rustix::process::chdir(order.directory.path()).map_err(|errno| LauncherFailure::Directory {
        errno: errno.raw_os_error(),
    })?;
    limit(order).map_err(at("set limits"))?;
    sys::reset_signals().map_err(at("reset signals"))?;
    sys::close_from_on_execute(3).map_err(at("close descriptors"))?;
    let found = confine(order)?;
    let applied = report::applied(order, built, &found);
    let unguarded = order.guards_required && !report::guards_hold(order, &found);
    if unguarded || (order.required && !applied.missing.is_empty()) {
        return Err(LauncherFailure::Incomplete {
            applied: Box::new(applied),
        });
    }
    Ok(applied)
}

fn take_stdin(stdin: Option<OwnedFd>) -> Result<(), Errno> {
    let stdin = match stdin {
        Some(stdin) => stdin,
        None => rustix::fs::open("/dev/null", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?,
    };
    rustix::stdio::dup2_stdin(&stdin)
}

fn limit(order: &LaunchOrder) -> Result<(), Errno> {
    let limits = &order.limits;
    let set = |resource, wanted: u64| {
        // The host itself may have a lower hard limit, which cannot be raised.
        let bound = rustix::process::getrlimit(resource)
            .maximum
            .map_or(wanted, |most| most.min(wanted));
        rustix::process::setrlimit(
            resource,
            Rlimit {
                current: Some(bound),
                maximum: Some(bound),
            },
        )
    };
    set(Resource::Core, 0)?;
    set(Resource::Nofile, limits.open_files)?;
    set(Resource::Fsize, limits.file_bytes)?;
    if let Some(cpu) = limits.cpu {
        set(Resource::Cpu, cpu.max(Duration::from_secs(1)).as_secs())?;
    }
    if order.counting.processes.is_none() {
        set(Resource::Nproc, limits.processes)?;
    }
    if order.counting.memory.is_none() {
        // Limits the data segment and not the address space, of which many runtimes reserve far more than they use.
        set(Resource::Data, limits.memory_bytes)?;
    }
    Ok(())
}

/// Applies the confines to this process. The order is fixed: without `no_new_privs` an unprivileged process may install
/// neither Landlock nor a filter, and the filter comes last, because it refuses system calls that the steps before it
/// need. The privileges are read back at the end, since only then all of them are in force.
fn confine(order: &LaunchOrder) -> Result<ConfinementStatus, LauncherFailure> {
    let mut found = ConfinementStatus::default();
    if order.profile == SandboxProfile::None || order.tier == SandboxTier::N {
        return Ok(found);
    }
    privileges::no_new_privileges().map_err(at("renounce privileges"))?;
    privileges::drop_capabilities().map_err(at("drop capabilities"))?;
    if order.tier <= SandboxTier::B {
        let (fenced, readable_secrets) = fence_in(order)?;
        found.landlock = fenced.abi;
        found.readable_secrets = readable_secrets;
    }
    let sockets = match order.profile {
        SandboxProfile::Network => SocketAccess::Usual,
        SandboxProfile::ReadOnly | SandboxProfile::WorkspaceWrite if is_isolated(order) => {
            SocketAccess::Usual
        }
        SandboxProfile::ReadOnly | SandboxProfile::WorkspaceWrite | SandboxProfile::None => {
            SocketAccess::Pairs
        }
    };
    found.sockets = Some(sockets);
    filter::refuse(sockets).map_err(at("filter system calls"))?;
    found.standing = PrivilegeStatus::look().map_err(at("read its own privileges"))?;
    Ok(found)
}

fn fence_in(order: &LaunchOrder) -> Result<(LandlockEnforcement, usize), LauncherFailure> {
    let (places, readable_secrets) = if is_isolated(order) {
        (Vec::new(), 0)
    } else {
        readable_places(order)
    };
    let fenced = build_fence(order, &places);
    let fenced = fenced
        .map_err(|_| LauncherFailure::sandbox("restrict files with Landlock", Errno::INVAL))?;
    Ok((fenced, readable_secrets))
}

fn build_fence(
    order: &LaunchOrder,
    places: &[PathBuf],
) -> Result<LandlockEnforcement, RulesetError> {
    let isolated = is_isolated(order);
    let tcp = if isolated || order.profile == SandboxProfile::Network {
        TcpAccess::Free
    } else {
        TcpAccess::Refused
    };
    let mut fence = LandlockFence::new(tcp, OutsideProcesses::OutOfReach)?;
    if isolated {
        // All files in the new root were put there for the command to read.
        fence = fence.allow(Path::new("/"), fence::reading() | fence::talking())?;
        for path in [PRIVATE_TMP, "/dev/shm"] {
            fence = fence.allow(Path::new(path), fence::writing())?;
        }
        fence = fence.allow(Path::new("/dev"), fence::using())?;
    } else {
        for path in places {
            fence = allow_named(fence, order, path, fence::reading())?;
        }
        for path in order.listable.iter().map(UnixBytes::path) {
            fence = allow_named(fence, order, path, fence::listing())?;
        }
        for (name, ..) in room::DEVICES {
            fence = fence.allow(&Path::new("/dev").join(name), fence::using())?;
        }
        if let Some(scratch) = &order.scratch {
            fence = fence.allow(scratch.path(), fence::writing())?;
        }
    }
    for root in order.roots.iter().filter(|root| root.writable) {
        fence = allow_named(fence, order, root.path.path(), fence::writing())?;
    }
    fence.close()
}

/// Allows a path that the order names. Earlier commands may have replaced it.
fn allow_named(
    fence: LandlockFence,
    order: &LaunchOrder,
    path: &Path,
    access: BitFlags<AccessFs>,
) -> Result<LandlockFence, RulesetError> {
    match room::open_beneath_root(order, path) {
        Ok(Some(opened)) => fence.allow_opened(opened, access),
        Ok(None) => fence.allow(path, access),
        // A link, or missing.
        Err(_) => Ok(fence),
    }
}

/// The places to allow for reading if no mount can hide anything, and the number of secrets in them that could not be
/// left out.
fn readable_places(order: &LaunchOrder) -> (Vec<PathBuf>, usize) {
    let hidden: Vec<PathBuf> = order
        .masked
        .iter()
        .chain(&order.system_secrets)
        .map(|path| path.path().to_owned())
        .collect();
    let system = room::SYSTEM.iter().map(|name| Path::new("/").join(name));
    let system = system
        .chain(room::SYSTEM_PLACES.iter().map(PathBuf::from))
        .chain([PathBuf::from("/proc")]);
    let named = order.readable.iter().map(|path| path.path().to_owned());
    let roots = order
        .roots
        .iter()
        .filter(|root| !root.writable)
        .map(|root| root.path.path().to_owned());
    let mut places = Vec::new();
    let beneath = |tree: &Path| {
        hidden
            .iter()
            .filter(|one| one.starts_with(tree) && exists(one))
            .count()
    };
    let mut exposed = 0;
    for tree in system.chain(named).chain(roots) {
        match fence::around(&tree, &hidden, MOST_RULES) {
            Some(around) => places.extend(around),
            None => {
                exposed += beneath(&tree);
                places.push(tree);
            }
        }
    }
    exposed += order
        .roots
        .iter()
        .filter(|root| root.writable)
        .map(|root| beneath(root.path.path()))
        .sum::<usize>();
    (places, exposed)
}

fn exists(path: &Path) -> bool {
    rustix::fs::lstat(path).is_ok()
}

fn execute(order: &LaunchOrder) -> Errno {
    let text = |octets: &UnixBytes| CString::new(octets.bytes()).unwrap_or_default();
    let argv: Vec<CString> = order.argv.iter().map(text).collect();
    let environment: Vec<CString> = order
        .environment
        .iter()
        .map(|variable| spell(order, variable))
        .collect();
    let Some(program) = order.argv.first() else {
        return Errno::NOENT;
    };
    let mut last = Errno::NOENT;
    for candidate in candidates(order, program) {
        let Ok(candidate) = CString::new(candidate.as_os_str().as_bytes()) else {
            continue;
        };
        match sys::execute(&candidate, &argv, &environment) {
            Errno::NOENT | Errno::NOTDIR => {}
            errno => last = errno,
        }
    }
    last
}

/// The program as named if it has a slash, or its name in every directory of the command's own `PATH`.
fn candidates(order: &LaunchOrder, program: &UnixBytes) -> Vec<PathBuf> {
    if program.bytes().contains(&b'/') {
        return vec![program.path().to_owned()];
    }
    let path = order
        .environment
        .iter()
        .find(|(name, _)| name.bytes() == b"PATH");
    let path = path.map_or(&b"/usr/local/bin:/usr/bin:/bin"[..], |(_, path)| {
        path.bytes()
    });
    let directories = path
        .split(|byte| *byte == b':')
        .filter(|directory| directory.starts_with(b"/"));
    directories
        .map(|directory| Path::new(OsStr::from_bytes(directory)).join(program.path()))
        .collect()
}

/// A variable in the system's form. In a job without a private `/tmp`, the value gets the real path of its temporary
/// directory.
fn spell(order: &LaunchOrder, (name, value): &(UnixBytes, UnixBytes)) -> CString {
    let mut bytes = [name.bytes(), b"="].concat();
    match &order.scratch {
        Some(scratch) if value.bytes() == PRIVATE_HOME.as_bytes() => {
            bytes.extend_from_slice(scratch.path().join("home").as_os_str().as_bytes());
        }
        Some(scratch) if name.bytes() == b"TMPDIR" && value.bytes() == PRIVATE_TMP.as_bytes() => {
            bytes.extend_from_slice(scratch.bytes());
        }
        _ => bytes.extend_from_slice(value.bytes()),
    }
    CString::new(bytes).unwrap_or_default()
}
