//! A file that is written before it has its final name.
//!
//! It has no name at all where the file system can do that, so that a host that is killed while it writes leaves
//! nothing behind. To take over a name that is in use it needs a name of its own for a moment. That name follows
//! from the final one, so whoever writes the same file next finds what was left and removes it, without a look
//! through the directory.

use std::{
    ffi::{OsStr, OsString},
    io::{self, Write as _},
    os::unix::ffi::OsStrExt as _,
    sync::Arc,
};

use cap_std::fs::{Dir, File};
use rustix::{
    fs::{
        AtFlags, FileType, Mode, OFlags, RenameFlags, fstat, openat, renameat, renameat_with, statat,
        unlinkat,
    },
    io::Errno,
};

use crate::native::files::{
    digest,
    workspace::{link_unnamed, open_unnamed},
};

/// How many names there are for one final name: writers of several hosts must not meet.
const NAMES: usize = 4;
/// A file of ours that is older than this was left by a host that died. No write takes this long.
const LEFT_BEHIND_SECONDS: i64 = 15 * 60;

/// A file on its way to its name.
pub(super) struct Temporary {
    dir: Arc<Dir>,
    file: File,
    /// Its name for the moment.
    name: Option<OsString>,
    names: [OsString; NAMES],
}

impl Temporary {
    /// A new file in `dir` that is to be called `target`.
    pub(super) fn new(dir: &Arc<Dir>, target: &OsStr, mode: Mode) -> io::Result<Self> {
        let names = names_for(target);
        match open_unnamed(dir, mode)? {
            Some(file) => Ok(Self { dir: dir.clone(), file, name: None, names }),
            None => Self::named(dir, names, mode),
        }
    }

    /// For file systems without nameless files.
    fn named(dir: &Arc<Dir>, names: [OsString; NAMES], mode: Mode) -> io::Result<Self> {
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let (file, name) = first_free(&names, |name| openat(dir, name, flags, mode))?;
        let temporary = Self { dir: dir.clone(), file: File::from(file), name: Some(name), names };
        temporary.sweep();
        Ok(temporary)
    }

    pub(super) fn file(&self) -> &File {
        &self.file
    }

    pub(super) fn write(&self, content: &[u8]) -> io::Result<()> {
        (&self.file).write_all(content)
    }

    pub(super) fn sync(&self) -> io::Result<()> {
        self.file.sync_all()
    }

    /// Takes over `name`, whatever has it.
    pub(super) fn take_over(&mut self, name: &OsStr) -> rustix::io::Result<()> {
        let own = match self.name.take() {
            Some(own) => own,
            None => {
                let (_, own) =
                    first_free(&self.names, |own| link_unnamed(&self.file, &self.dir, own)).map_err(errno)?;
                self.name = Some(own.clone());
                self.sweep();
                own
            }
        };
        self.name = Some(own.clone());
        renameat(&*self.dir, &own, &*self.dir, name)?;
        self.name = None;
        Ok(())
    }

    /// Takes `name`, which nobody may have.
    pub(super) fn take_new(&mut self, name: &OsStr) -> rustix::io::Result<()> {
        match &self.name {
            None => link_unnamed(&self.file, &self.dir, name),
            Some(own) => {
                renameat_with(&*self.dir, own, &*self.dir, name, RenameFlags::NOREPLACE)?;
                self.name = None;
                Ok(())
            }
        }
    }

    /// Removes what was left by hosts that died at this file. The age is told by the file system's own clock, on
    /// which this file was made just now.
    fn sweep(&self) {
        let Ok(now) = fstat(&self.file) else { return };
        for name in self.names.iter().filter(|name| self.name.as_ref() != Some(*name)) {
            let Ok(other) = statat(&*self.dir, name, AtFlags::SYMLINK_NOFOLLOW) else { continue };
            let is_file = FileType::from_raw_mode(other.st_mode) == FileType::RegularFile;
            if is_file && now.st_ctime - other.st_ctime > LEFT_BEHIND_SECONDS {
                let _ = unlinkat(&*self.dir, name, AtFlags::empty());
            }
        }
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if let Some(name) = &self.name {
            let _ = unlinkat(&*self.dir, name, AtFlags::empty());
        }
    }
}

/// Short whatever the final name is, which may be as long as names can be.
fn names_for(target: &OsStr) -> [OsString; NAMES] {
    let digest = digest::of_bytes(target.as_bytes());
    std::array::from_fn(|number| format!(".toolpost-{}.{number}.tmp", &digest[..16]).into())
}

fn first_free<T>(
    names: &[OsString],
    mut make: impl FnMut(&OsStr) -> rustix::io::Result<T>,
) -> io::Result<(T, OsString)> {
    for name in names {
        match make(name) {
            Ok(made) => return Ok((made, name.clone())),
            Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(Errno::EXIST.into())
}

fn errno(error: io::Error) -> Errno {
    Errno::from_io_error(&error).unwrap_or(Errno::IO)
}
