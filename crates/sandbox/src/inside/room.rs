//! The file system of a job with namespaces: a small root in memory of its own, with bind mounts of the system's
//! directories, the roots and nothing else. A file that is not bound cannot be reached, so nothing has to be forbidden
//! by name, apart from secrets inside the bound directories.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MountPropagationFlags, MoveMountFlags,
    OpenTreeFlags, UnmountFlags,
};

use crate::error::LauncherFailure;
use crate::job::PRIVATE_HOME;
use crate::message::{LaunchOrder, UnixBytes};
use crate::sys::{self, MountDepth};

/// Top-level directories that contain programs. `var` is not among them: services keep their data there, and a command
/// of root would own it.
pub(crate) const SYSTEM: &[&str] = &[
    "usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32", "etc", "opt", "nix", "gnu",
];

/// Single paths that programs need, too, mostly targets of links from `/etc`.
pub(super) const SYSTEM_PLACES: &[&str] = &[
    "/var/lib/ca-certificates",
    "/run/systemd/resolve/stub-resolv.conf",
    "/run/systemd/resolve/resolv.conf",
    "/run/NetworkManager/resolv.conf",
    "/run/resolvconf/resolv.conf",
    "/run/current-system",
    "/mnt/wsl/resolv.conf",
];

pub(super) const DEVICES: &[(&str, u32, u32)] = &[
    ("null", 1, 3),
    ("zero", 1, 5),
    ("full", 1, 7),
    ("random", 1, 8),
    ("urandom", 1, 9),
    ("tty", 5, 0),
];

const LINKS: &[(&str, &str)] = &[
    ("/proc/self/fd", "/dev/fd"),
    ("/proc/self/fd/0", "/dev/stdin"),
    ("/proc/self/fd/1", "/dev/stdout"),
    ("/proc/self/fd/2", "/dev/stderr"),
    ("/tmp", "/var/tmp"),
    ("/run", "/var/run"),
];

/// The cover of masked paths: unreadable for all users, on a read-only mount.
const COVER: &str = "/run/toolpost";

const READ_ONLY: MountAttrFlags = MountAttrFlags::MOUNT_ATTR_RDONLY
    .union(MountAttrFlags::MOUNT_ATTR_NOSUID)
    .union(MountAttrFlags::MOUNT_ATTR_NODEV);
const CLONE: OpenTreeFlags = OpenTreeFlags::OPEN_TREE_CLONE
    .union(OpenTreeFlags::OPEN_TREE_CLOEXEC)
    .union(OpenTreeFlags::AT_RECURSIVE);
const WRITABLE: MountAttrFlags =
    MountAttrFlags::MOUNT_ATTR_NOSUID.union(MountAttrFlags::MOUNT_ATTR_NODEV);

/// The result for the paths of the order.
#[derive(Debug, Default)]
pub(super) struct PathProtectionReport {
    pub(super) protected: Vec<String>,
    pub(super) masked: usize,
    pub(super) missing: Vec<String>,
}

/// Builds the new root and moves into it. The caller is the first process of its process namespace.
///
/// The order of the steps is fixed by the kernel. Trees to bind are opened first, while the old root is visible; they
/// are placed after `pivot_root`. Guards come after all binds, because a later bind would cover them. The root itself
/// becomes read-only last, because every step before creates mount points in it.
pub(super) fn furnish(
    order: &LaunchOrder,
    in_user_namespace: bool,
) -> Result<PathProtectionReport, LauncherFailure> {
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    rustix::mount::mount_change("/", private).map_err(at("keep mounts private"))?;
    let links = system_links();
    let (pieces, passed_over) = pieces(order)?;
    let devices = if in_user_namespace {
        device_pieces()?
    } else {
        Vec::new()
    };
    // `proc` must be created while the old one is visible: a user namespace may create only what it can already see.
    let processes = new_file_system("proc", &[], READ_ONLY | MountAttrFlags::MOUNT_ATTR_NOEXEC)?;
    move_in(order)?;
    lay_out(&links, &processes)?;
    if devices.is_empty() {
        make_devices()?;
    }
    for piece in devices.iter().chain(&pieces) {
        piece.place()?;
    }
    make_directory(PRIVATE_HOME, 0o700)?;
    let mut furnished = guard(order)?;
    furnished.missing.extend(passed_over);
    let root = open_path(Path::new("/")).map_err(at("open the new root"))?;
    sys::restrict_mount(
        &root,
        READ_ONLY - MountAttrFlags::MOUNT_ATTR_NODEV,
        MountDepth::Itself,
    )
    .map_err(at("make the new root read-only"))?;
    Ok(furnished)
}

/// One bind mount with its target path.
struct BindMount {
    tree: OwnedFd,
    target: PathBuf,
    is_directory: bool,
}

impl BindMount {
    fn take(path: &Path, attributes: MountAttrFlags) -> Result<Self, Errno> {
        Self::from_tree(open_tree(path)?, path, attributes)
    }

    fn from_tree(tree: OwnedFd, path: &Path, attributes: MountAttrFlags) -> Result<Self, Errno> {
        sys::restrict_mount(&tree, attributes, MountDepth::AllBeneath)?;
        let is_directory =
            FileType::from_raw_mode(rustix::fs::fstat(&tree)?.st_mode) == FileType::Directory;
        Ok(Self {
            tree,
            target: path.to_owned(),
            is_directory,
        })
    }

    fn place(&self) -> Result<(), LauncherFailure> {
        let step = || format!("make room for `{}`", self.target.display());
        if let Some(parent) = self.target.parent() {
            make_directories(parent).map_err(|errno| LauncherFailure::sandbox(step(), errno))?;
        }
        let made = match self.is_directory {
            true => rustix::fs::mkdir(&self.target, Mode::from_raw_mode(0o755)),
            false => make_file(&self.target, 0o444),
        };
        match made {
            Ok(()) | Err(Errno::EXIST | Errno::ROFS) => {}
            Err(errno) => return Err(LauncherFailure::sandbox(step(), errno)),
        }
        put(&self.tree, &self.target).map_err(|errno| {
            LauncherFailure::sandbox(format!("bind `{}`", self.target.display()), errno)
        })
    }
}

fn system_links() -> Vec<(PathBuf, PathBuf)> {
    let mut links = Vec::new();
    let named = SYSTEM.iter().map(|name| Path::new("/").join(name));
    for path in named.chain([PathBuf::from("/run/current-system")]) {
        if let Ok(target) = rustix::fs::readlink(&path, Vec::new()) {
            links.push((PathBuf::from(OsStr::from_bytes(target.as_bytes())), path));
        }
    }
    links
}

/// All bind mounts, outer before inner, and the paths that were skipped because a link has their name.
fn pieces(order: &LaunchOrder) -> Result<(Vec<BindMount>, Vec<String>), LauncherFailure> {
    let mut wanted: Vec<(PathBuf, MountAttrFlags, MissingPathPolicy)> = Vec::new();
    let system = SYSTEM.iter().map(|name| Path::new("/").join(name));
    for path in system.chain(SYSTEM_PLACES.iter().map(PathBuf::from)) {
        if !is_link(&path) {
            wanted.push((path, READ_ONLY, MissingPathPolicy::Fine));
        }
    }
    wanted.extend(
        order
            .readable
            .iter()
            .map(|path| (path.path().to_owned(), READ_ONLY, MissingPathPolicy::Fine)),
    );
    for root in &order.roots {
        let path = root.path.path();
        if path == Path::new("/") {
            return Err(LauncherFailure::sandbox(
                "a root cannot be `/`; name directories beneath it",
                Errno::INVAL,
            ));
        }
        let attributes = if root.writable { WRITABLE } else { READ_ONLY };
        wanted.push((path.to_owned(), attributes, MissingPathPolicy::Fails));
    }
    // The sort is stable, so that a root comes after a readable path of the same name and wins.
    wanted.sort_by_key(|(path, ..)| path.components().count());
    let mut pieces = Vec::with_capacity(wanted.len());
    let mut passed_over = Vec::new();
    for (path, attributes, absence) in wanted {
        let taken = open_beneath_root(order, &path).and_then(|place| {
            BindMount::from_tree(open_tree_of(&path, place.as_ref())?, &path, attributes)
        });
        match taken {
            Ok(piece) => pieces.push(piece),
            Err(Errno::NOENT | Errno::NOTDIR | Errno::ACCESS)
                if absence == MissingPathPolicy::Fine => {}
            // The path is skipped and not an error: otherwise one command could prevent the start of all later ones
            // with a link.
            Err(Errno::LOOP) if absence == MissingPathPolicy::Fine => {
                passed_over.push(format!(
                    "`{}` leads through a link in a root",
                    path.display()
                ));
            }
            Err(errno) => {
                return Err(LauncherFailure::sandbox(
                    format!("open `{}`", path.display()),
                    errno,
                ));
            }
        }
    }
    Ok((pieces, passed_over))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum MissingPathPolicy {
    Fine,
    Fails,
}

/// Where device nodes cannot be created, the host's nodes are bound.
fn device_pieces() -> Result<Vec<BindMount>, LauncherFailure> {
    let bind = |(name, ..): &(&str, u32, u32)| {
        let path = Path::new("/dev").join(name);
        let tree = open_tree(&path).map_err(at("open a device"))?;
        Ok(BindMount {
            tree,
            target: path,
            is_directory: false,
        })
    };
    DEVICES.iter().map(bind).collect()
}

fn make_devices() -> Result<(), LauncherFailure> {
    for (name, major, minor) in DEVICES {
        let path = format!("/dev/{name}");
        let device = rustix::fs::makedev(*major, *minor);
        rustix::fs::mknodat(
            CWD,
            &path,
            FileType::CharacterDevice,
            Mode::from_raw_mode(0o666),
            device,
        )
        .map_err(at("make a device"))?;
    }
    Ok(())
}

/// Makes a tmpfs the root and detaches the old root. `/usr` is only a mount point that surely exists; the tmpfs covers
/// it until the pivot.
fn move_in(order: &LaunchOrder) -> Result<(), LauncherFailure> {
    let bytes = order.limits.tmp_bytes;
    let settings = [
        ("size", bytes + (1 << 20)),
        ("nr_inodes", bytes / 4096 + 4096),
    ];
    let root = new_file_system("tmpfs", &settings, MountAttrFlags::MOUNT_ATTR_NOSUID)?;
    put(&root, Path::new("/usr")).map_err(at("mount the new root"))?;
    rustix::process::fchdir(&root).map_err(at("enter the new root"))?;
    rustix::process::pivot_root(".", ".").map_err(at("change the root"))?;
    rustix::mount::unmount(".", UnmountFlags::DETACH).map_err(at("leave the old root"))?;
    rustix::process::chdir("/").map_err(at("enter the new root"))
}

fn lay_out(links: &[(PathBuf, PathBuf)], processes: &OwnedFd) -> Result<(), LauncherFailure> {
    for path in ["/dev", "/proc", "/run", "/var"] {
        make_directory(path, 0o755)?;
    }
    for path in ["/tmp", "/dev/shm"] {
        make_directory(path, 0o1777)?;
        let clone = BindMount::take(Path::new(path), WRITABLE).map_err(at("make `/tmp`"))?;
        put(&clone.tree, Path::new(path)).map_err(at("make `/tmp`"))?;
    }
    put(processes, Path::new("/proc")).map_err(at("make `/proc`"))?;
    for (target, path) in LINKS {
        rustix::fs::symlink(*target, *path).map_err(at("make a link"))?;
    }
    for (target, path) in links {
        rustix::fs::symlink(target, path).map_err(at("make a link"))?;
    }
    make_directory(COVER, 0o755)?;
    make_file(Path::new("/run/toolpost/file"), 0o000).map_err(at("make a cover"))?;
    make_directory("/run/toolpost/directory", 0o000)?;
    let cover = BindMount::take(Path::new(COVER), READ_ONLY).map_err(at("make a cover"))?;
    put(&cover.tree, Path::new(COVER)).map_err(at("make a cover"))
}

/// Protects and masks the paths of the order. A protected path becomes a mount of its own, which can be neither written
/// nor renamed. A masked path gets a cover.
fn guard(order: &LaunchOrder) -> Result<PathProtectionReport, LauncherFailure> {
    let mut furnished = PathProtectionReport::default();
    for path in between_root_and_guarded(order) {
        let pinned = BindMount::take(&path, WRITABLE).and_then(|piece| put(&piece.tree, &path));
        pinned.map_err(|errno| {
            LauncherFailure::sandbox(format!("pin `{}`", path.display()), errno)
        })?;
    }
    for path in order.protected.iter().map(UnixBytes::path) {
        if is_link(path) {
            furnished.missing.push(format!(
                "`{}` is a link and cannot be protected",
                path.display()
            ));
            continue;
        }
        match BindMount::take(path, READ_ONLY).and_then(|piece| put(&piece.tree, path)) {
            Ok(()) => furnished.protected.push(path.display().to_string()),
            Err(Errno::NOENT | Errno::NOTDIR) => {}
            Err(errno) => {
                return Err(LauncherFailure::sandbox(
                    format!("protect `{}`", path.display()),
                    errno,
                ));
            }
        }
    }
    for path in order
        .masked
        .iter()
        .chain(&order.system_secrets)
        .map(UnixBytes::path)
    {
        let Ok(stat) = rustix::fs::stat(path) else {
            continue;
        };
        let cover = match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => "/run/toolpost/directory",
            _ => "/run/toolpost/file",
        };
        open_tree(Path::new(cover))
            .and_then(|cover| put(&cover, path))
            .map_err(|errno| {
                LauncherFailure::sandbox(format!("mask `{}`", path.display()), errno)
            })?;
        furnished.masked += 1;
    }
    Ok(furnished)
}

/// Directories between a writable root and the guarded or bound paths in it, outer first. Each is bound onto itself,
/// because a mount point cannot be renamed. Without that, a command could rename the parent of a protected folder. The
/// guard is a mount and exists only for this job; the next command would find the folder under a new name that no guard
/// covers.
fn between_root_and_guarded(order: &LaunchOrder) -> BTreeSet<PathBuf> {
    let mut between = BTreeSet::new();
    let bound = order
        .roots
        .iter()
        .map(|root| &root.path)
        .chain(&order.readable);
    for path in order
        .protected
        .iter()
        .chain(&order.masked)
        .chain(bound)
        .map(UnixBytes::path)
    {
        if rustix::fs::lstat(path).is_err() {
            continue;
        }
        let above = |root: &Path| root != path && path.starts_with(root);
        let roots = order.roots.iter().filter(|root| above(root.path.path()));
        // The innermost root decides whether the path is writable.
        let Some(root) = roots
            .max_by_key(|root| root.path.bytes().len())
            .filter(|root| root.writable)
        else {
            continue;
        };
        let above = path
            .ancestors()
            .skip(1)
            .take_while(|above| *above != root.path.path());
        between.extend(above.map(Path::to_owned));
    }
    between
}

fn new_file_system(
    kind: &str,
    settings: &[(&str, u64)],
    attributes: MountAttrFlags,
) -> Result<OwnedFd, LauncherFailure> {
    let make = || {
        let context = rustix::mount::fsopen(kind, FsOpenFlags::FSOPEN_CLOEXEC)?;
        if kind == "tmpfs" {
            rustix::mount::fsconfig_set_string(&context, "mode", "0755")?;
        }
        for (name, value) in settings {
            rustix::mount::fsconfig_set_string(&context, *name, value.to_string())?;
        }
        rustix::mount::fsconfig_create(&context)?;
        rustix::mount::fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, attributes)
    };
    make().map_err(|errno| {
        LauncherFailure::sandbox(format!("make a file system of type {kind}"), errno)
    })
}

/// Opens a path inside of a root without following links. Another command may have replaced any part of it with a link,
/// even if this job may not write there, and the host would then bind a place of the command's choice. `None`: the path
/// is in no root, so only the operator can have changed the way to it.
pub(super) fn open_beneath_root(
    order: &LaunchOrder,
    path: &Path,
) -> Result<Option<OwnedFd>, Errno> {
    let roots = order
        .roots
        .iter()
        .map(|root| &root.path)
        .chain(&order.shared)
        .map(UnixBytes::path);
    let above = roots.filter(|root| *root != path && path.starts_with(root));
    // The outermost root: commands may have changed everything beneath it.
    let Some(root) = above.min_by_key(|root| root.components().count()) else {
        return Ok(None);
    };
    let inner = path.strip_prefix(root).map_err(|_| Errno::INVAL)?;
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    rustix::fs::openat2(open_path(root)?, inner, flags, Mode::empty(), resolve).map(Some)
}

fn open_tree_of(path: &Path, place: Option<&OwnedFd>) -> Result<OwnedFd, Errno> {
    match place {
        Some(place) => rustix::mount::open_tree(place, "", CLONE | OpenTreeFlags::AT_EMPTY_PATH),
        None => open_tree(path),
    }
}

fn open_tree(path: &Path) -> Result<OwnedFd, Errno> {
    rustix::mount::open_tree(CWD, path, CLONE)
}

fn put(tree: &OwnedFd, target: &Path) -> Result<(), Errno> {
    rustix::mount::move_mount(
        tree,
        "",
        CWD,
        target,
        MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH,
    )
}

fn open_path(path: &Path) -> Result<OwnedFd, Errno> {
    rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
}

fn make_file(path: &Path, mode: u32) -> Result<(), Errno> {
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::from_raw_mode(mode)).map(drop)
}

fn make_directory(path: &str, mode: u32) -> Result<(), LauncherFailure> {
    match rustix::fs::mkdir(path, Mode::from_raw_mode(mode)) {
        // A root may cover the place, in which case the launcher must not create it.
        Ok(()) | Err(Errno::EXIST | Errno::ROFS | Errno::ACCESS) => Ok(()),
        Err(errno) => Err(LauncherFailure::sandbox(format!("make `{path}`"), errno)),
    }
}

fn make_directories(path: &Path) -> Result<(), Errno> {
    let mut sofar = PathBuf::new();
    for component in path.components() {
        sofar.push(component);
        match rustix::fs::mkdir(&sofar, Mode::from_raw_mode(0o755)) {
            Ok(()) | Err(Errno::EXIST | Errno::ROFS) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}

pub(super) fn is_link(path: &Path) -> bool {
    rustix::fs::lstat(path)
        .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Symlink)
}

fn at(step: &'static str) -> impl Fn(Errno) -> LauncherFailure {
    move |errno| LauncherFailure::sandbox(step, errno)
}
