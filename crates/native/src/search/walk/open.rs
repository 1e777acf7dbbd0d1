//! Opens the entries of a walk, beneath its start and never through a link.

use std::path::Path;

use cap_std::fs::{Dir, File};
use rustix::{
    fd::{AsFd, OwnedFd},
    fs::{FileType, Mode, OFlags, Stat, fstat, openat},
    io::{Errno, Result},
    path::Arg,
};

/// The open does not block: a pipe may have the name by now.
const READ: OFlags = OFlags::RDONLY
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);
const LIST: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// Opens the directory at `path`, relative to `base` and without `..`, for listing.
///
/// It opens the whole path at once, so that a walk holds one directory per thread and not one per level. No name on the
/// way may be a link: a directory that was swapped for a link since the walk saw it is refused.
pub(in crate::search) fn open_directory(base: &Dir, path: &Path) -> Result<OwnedFd> {
    if path.as_os_str().is_empty() {
        return openat(base, c".", LIST, Mode::empty());
    }
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{ResolveFlags, openat2};
        let beneath =
            ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        match openat2(base, path, LIST, Mode::empty(), beneath) {
            // Old kernels do not have the call, and old container rules refuse it.
            Err(Errno::NOSYS | Errno::PERM) => {}
            opened => return opened,
        }
    }
    step_by_step(base, path)
}

/// Opens the directory one name at a time.
fn step_by_step(base: &Dir, path: &Path) -> Result<OwnedFd> {
    let mut here: Option<OwnedFd> = None;
    for component in path.components() {
        let std::path::Component::Normal(name) = component else {
            return Err(Errno::INVAL);
        };
        here = Some(match &here {
            None => openat(base, name, LIST, Mode::empty())?,
            Some(dir) => openat(dir, name, LIST, Mode::empty())?,
        });
    }
    here.ok_or(Errno::INVAL)
}

/// Opens the regular file `name`, one plain name, in `dir`.
pub(in crate::search) fn open_file(dir: impl AsFd, name: impl Arg) -> Result<(File, Stat)> {
    let file = openat(dir, name, READ, Mode::empty())?;
    let stat = fstat(&file)?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => Ok((File::from(file), stat)),
        _ => Err(Errno::INVAL),
    }
}

/// Opens the regular file at `path`, relative to `base` and without `..`.
pub(in crate::search) fn open_file_beneath(base: &Dir, path: &Path) -> Result<(File, Stat)> {
    let name = path.file_name().ok_or(Errno::INVAL)?;
    open_file(
        open_directory(base, path.parent().unwrap_or(Path::new("")))?,
        name,
    )
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use cap_std::{ambient_authority, fs::Dir};
    use rustix::io::Errno;

    use super::{open_directory, open_file_beneath, step_by_step};

    #[test]
    fn no_name_on_the_way_may_be_a_link_or_lead_up() {
        let dir = cap_tempfile::tempdir(ambient_authority()).unwrap();
        dir.create_dir_all("a/b").unwrap();
        dir.write("a/b/file", "x").unwrap();
        dir.symlink("a", "link").unwrap();
        dir.symlink("b/file", "a/file_link").unwrap();
        let check = |path: &str, opens: bool| {
            for open in [open_directory, step_by_step] {
                assert_eq!(open(&dir, Path::new(path)).is_ok(), opens, "{path}");
            }
        };
        check("a", true);
        check("a/b", true);
        check("link", false);
        check("link/b", false);
        check("a/b/file", false);
        check("../a", false);
        check("/", false);
        let file = |path: &str| open_file_beneath(&dir, Path::new(path)).map(|_| ());
        assert_eq!(file("a/b/file"), Ok(()));
        assert_eq!(file("link/b/file"), Err(Errno::LOOP));
        assert_eq!(file("a/file_link"), Err(Errno::LOOP));
        assert_eq!(file("a/b"), Err(Errno::INVAL));
        let _: &Dir = &dir;
    }
}
