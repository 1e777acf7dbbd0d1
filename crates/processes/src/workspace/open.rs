//! Opens single names in directories that are already open. Links are never followed.

use std::{
    ffi::{OsStr, OsString},
    io,
    os::{fd::AsRawFd, unix::ffi::OsStringExt},
};

use cap_std::fs::{Dir, File};
use rustix::{
    fs::{AtFlags, CWD, FileType, Mode, OFlags, Stat, fstat, linkat, openat, readlinkat},
    io::Errno,
};

use crate::workspace::failure::{PathError, special};

/// Opens a directory only as a place, which requires no right to list it.
#[cfg(target_os = "linux")]
const AS_PLACE: OFlags = OFlags::PATH;
#[cfg(not(target_os = "linux"))]
const AS_PLACE: OFlags = OFlags::RDONLY;

/// Opens the directory `name`, which is one plain name, in `parent`.
pub fn open_directory(parent: &Dir, name: &OsStr) -> rustix::io::Result<Dir> {
    let flags = AS_PLACE | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(parent, name, flags, Mode::empty()).map(Dir::from)
}

/// The text of the link `name` in `parent`.
pub fn read_link(parent: &Dir, name: &OsStr) -> rustix::io::Result<OsString> {
    Ok(OsString::from_vec(
        readlinkat(parent, name, Vec::new())?.into_bytes(),
    ))
}

/// Opens the directory `name` in `parent` so that it can be listed.
pub fn open_listing(parent: &Dir, name: &OsStr) -> rustix::io::Result<Dir> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(parent, name, flags, Mode::empty()).map(Dir::from)
}

/// A new file in `dir` without a name, so that nothing remains if this process dies. `None` if the file system does not
/// support that.
pub fn open_unnamed(dir: &Dir, mode: Mode) -> rustix::io::Result<Option<File>> {
    match openat(
        dir,
        ".",
        OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC,
        mode,
    ) {
        Ok(file) => Ok(Some(File::from(file))),
        Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::NOENT | Errno::INVAL) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Gives a name to a file without one. Fails if the name is taken.
pub fn link_unnamed(file: &File, dir: &Dir, name: &OsStr) -> rustix::io::Result<()> {
    match linkat(file, "", dir, name, AtFlags::EMPTY_PATH) {
        // Kernels before 6.10 allow this to the superuser only; the other way needs `/proc`.
        Err(Errno::NOENT | Errno::PERM) => {
            let path = format!("/proc/self/fd/{}", file.as_raw_fd());
            linkat(CWD, path, dir, name, AtFlags::SYMLINK_FOLLOW)
        }
        linked => linked,
    }
}

/// Opens the regular file `name` in `parent` for reading. Any other kind is refused after a check of the open
/// descriptor. The open does not block: a pipe without a writer must not hold the worker.
pub fn open_regular(parent: &Dir, name: &OsStr, given: &str) -> Result<(File, Stat), PathError> {
    let failed = |error: Errno| PathError::Io {
        given: given.to_owned(),
        source: error.into(),
    };
    let flags =
        OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = match openat(parent, name, flags, Mode::empty()) {
        Ok(file) => file,
        Err(Errno::LOOP | Errno::NOENT) => {
            return Err(PathError::Swapped {
                given: given.to_owned(),
            });
        }
        Err(error) => return Err(failed(error)),
    };
    let stat = fstat(&file).map_err(failed)?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => Ok((File::from(file), stat)),
        FileType::Directory => Err(PathError::IsDirectory {
            given: given.to_owned(),
        }),
        other => Err(special(given, other)),
    }
}

/// Makes the names in a directory durable. File systems without support return `EINVAL`, and a directory without the
/// right to list it cannot be opened for this; neither means that the data is at risk.
pub fn sync_directory(dir: &Dir) -> io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let opened = match openat(dir, ".", flags, Mode::empty()) {
        Err(Errno::ACCESS) => return Ok(()),
        opened => opened?,
    };
    match rustix::fs::fsync(&opened) {
        Err(Errno::INVAL | Errno::NOTSUP) => Ok(()),
        synced => Ok(synced?),
    }
}

#[cfg(test)]
mod tests {
    use std::{ffi::OsStr, sync::mpsc, time::Duration};

    use cap_std::ambient_authority;
    use rustix::fs::{FileType, Mode, mknodat};

    use super::{PathError, open_directory, open_regular};

    /// Callers check a name before they open it; this covers a swap in between.
    #[test]
    fn a_link_is_never_followed() {
        let dir = cap_tempfile::tempdir(ambient_authority()).unwrap();
        dir.write("file", "x").unwrap();
        dir.create_dir("dir").unwrap();
        dir.symlink("file", "file_link").unwrap();
        dir.symlink("dir", "dir_link").unwrap();
        assert!(open_regular(&dir, OsStr::new("file"), "file").is_ok());
        assert!(open_directory(&dir, OsStr::new("dir")).is_ok());
        let refused = open_regular(&dir, OsStr::new("file_link"), "file_link").map(|_| ());
        assert!(
            matches!(refused, Err(PathError::Swapped { .. })),
            "{refused:?}"
        );
        assert!(open_directory(&dir, OsStr::new("dir_link")).is_err());
    }

    #[test]
    fn a_pipe_without_a_writer_is_refused_at_once() {
        let dir = cap_tempfile::tempdir(ambient_authority()).unwrap();
        mknodat(&*dir, "pipe", FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        let (done, waiting) = mpsc::channel();
        std::thread::spawn(move || {
            done.send(open_regular(&dir, OsStr::new("pipe"), "pipe").map(|_| ()))
        });
        let refused = waiting
            .recv_timeout(Duration::from_secs(10))
            .expect("the open must not wait for a writer");
        assert!(
            matches!(refused, Err(PathError::Special { .. })),
            "{refused:?}"
        );
    }
}
