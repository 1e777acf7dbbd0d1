//! A file that is written before it has its final name.
//!
//! It has no name at all if the file system supports that, so that a host that is killed during the write leaves
//! nothing behind. But a file without a name can only be linked to a free name. To replace a file it needs a name of
//! its own for a moment, which a rename then moves over the old one. That name is derived from the final one, so the
//! next write of the same file finds and removes a leftover without a search through the directory.

use std::{
    ffi::{OsStr, OsString},
    io::{self, Write as _},
    os::unix::ffi::OsStrExt as _,
    sync::Arc,
};

use cap_std::fs::{Dir, File};
use rustix::{
    fs::{
        AtFlags, FileType, Mode, OFlags, RenameFlags, fstat, openat, renameat, renameat_with,
        statat, unlinkat,
    },
    io::Errno,
};
use toolpost_processes::{digest, link_unnamed, open_unnamed};

/// Names per final name, so that writers of several hosts do not collide.
const NAMES: usize = 4;
/// A temporary file that is older than this was left by a host that died. No write takes this long.
const LEFT_BEHIND_SECONDS: i64 = 15 * 60;

/// A file that has not got its final name.
pub(super) struct TemporaryFile {
    dir: Arc<Dir>,
    file: File,
    /// Its temporary name.
    name: Option<OsString>,
    names: [OsString; NAMES],
}

impl TemporaryFile {
    /// A new file in `dir` that will be named `target`.
    pub(super) fn new(dir: &Arc<Dir>, target: &OsStr, mode: Mode) -> io::Result<Self> {
        let names = names_for(target);
        match open_unnamed(dir, mode)? {
            Some(file) => Ok(Self {
                dir: dir.clone(),
                file,
                name: None,
                names,
            }),
            None => Self::named(dir, names, mode),
        }
    }

    /// For file systems without nameless files.
    fn named(dir: &Arc<Dir>, names: [OsString; NAMES], mode: Mode) -> io::Result<Self> {
        let flags =
            OFlags::CREATE | OFlags::EXCL | OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let (file, name) = first_free(&names, |name| openat(dir, name, flags, mode))?;
        let temporary = Self {
            dir: dir.clone(),
            file: File::from(file),
            name: Some(name),
            names,
        };
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

    /// Takes `name`, and replaces any file with it.
    pub(super) fn take_over(&mut self, name: &OsStr) -> rustix::io::Result<()> {
        let own = match self.name.take() {
            Some(own) => own,
            None => {
                let (_, own) =
                    first_free(&self.names, |own| link_unnamed(&self.file, &self.dir, own))?;
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

    /// Takes `name`. Fails if a file has it.
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

    /// Removes temporary files that dead hosts left for this name. Their age is measured with the file system's own
    /// clock, from this new file.
    fn sweep(&self) {
        if let Ok(now) = fstat(&self.file) {
            self.sweep_at(now.st_ctime);
        }
    }

    fn sweep_at(&self, now: i64) {
        for name in self
            .names
            .iter()
            .filter(|name| self.name.as_ref() != Some(*name))
        {
            let Ok(other) = statat(&*self.dir, name, AtFlags::SYMLINK_NOFOLLOW) else {
                continue;
            };
            let is_file = FileType::from_raw_mode(other.st_mode) == FileType::RegularFile;
            if is_file && now.saturating_sub(other.st_ctime) > LEFT_BEHIND_SECONDS {
                let _ = unlinkat(&*self.dir, name, AtFlags::empty());
            }
        }
    }
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        if let Some(name) = &self.name {
            let _ = unlinkat(&*self.dir, name, AtFlags::empty());
        }
    }
}

/// The temporary names for a final name. They are short for any final name, which may have the maximal length.
fn names_for(target: &OsStr) -> [OsString; NAMES] {
    let digest = digest::of_bytes(target.as_bytes());
    std::array::from_fn(|number| format!(".toolpost-{}.{number}.tmp", &digest[..16]).into())
}

fn first_free<T>(
    names: &[OsString],
    mut make: impl FnMut(&OsStr) -> rustix::io::Result<T>,
) -> rustix::io::Result<(T, OsString)> {
    for name in names {
        match make(name) {
            Ok(made) => return Ok((made, name.clone())),
            Err(Errno::EXIST) => {}
            Err(error) => return Err(error),
        }
    }
    Err(Errno::EXIST)
}

#[cfg(test)]
mod tests {
    use std::{ffi::OsStr, sync::Arc};

    use cap_std::{ambient_authority, fs::Dir};
    use rustix::fs::{Mode, OFlags, fstat, openat};

    use super::{LEFT_BEHIND_SECONDS, NAMES, TemporaryFile, first_free, names_for};

    fn directory() -> (cap_tempfile::TempDir, Arc<Dir>) {
        let held = cap_tempfile::tempdir(ambient_authority()).unwrap();
        let dir = Arc::new(held.try_clone().unwrap());
        (held, dir)
    }

    fn names(dir: &Dir) -> Vec<String> {
        let mut names: Vec<_> = dir
            .entries()
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    const MODE: Mode = Mode::RWXU;

    /// Both kinds of files: without a name, and with one as on file systems without nameless files.
    fn both(dir: &Arc<Dir>, target: &str) -> [TemporaryFile; 2] {
        let unnamed = TemporaryFile::new(dir, OsStr::new(target), MODE).unwrap();
        [
            unnamed,
            TemporaryFile::named(dir, names_for(OsStr::new(target)), MODE).unwrap(),
        ]
    }

    #[test]
    fn a_file_takes_its_name_and_leaves_no_other() {
        let (_held, dir) = directory();
        for (number, mut temporary) in both(&dir, "a.txt").into_iter().enumerate() {
            temporary.write(format!("{number}").as_bytes()).unwrap();
            temporary.take_over(OsStr::new("a.txt")).unwrap();
            drop(temporary);
            assert_eq!(dir.read_to_string("a.txt").unwrap(), number.to_string());
        }
        for mut temporary in both(&dir, "b.txt") {
            assert!(
                temporary.take_new(OsStr::new("a.txt")).is_err(),
                "the name is taken"
            );
            temporary.take_new(OsStr::new("b.txt")).unwrap();
            drop(temporary);
            dir.remove_file("b.txt").unwrap();
        }
        drop(both(&dir, "c.txt"));
        assert_eq!(names(&dir), ["a.txt"]);
    }

    #[test]
    fn writers_do_not_meet_and_full_houses_are_an_error() {
        let (_held, dir) = directory();
        let mut writers: Vec<_> = (0..NAMES)
            .map(|_| both(&dir, "a.txt")[1].name.clone().unwrap())
            .collect();
        writers.dedup();
        assert_eq!(
            writers.len(),
            1,
            "a name is free again when its writer is gone"
        );
        let held: Vec<_> = (0..NAMES)
            .map(|_| TemporaryFile::named(&dir, names_for(OsStr::new("a.txt")), MODE).unwrap())
            .collect();
        assert!(TemporaryFile::named(&dir, names_for(OsStr::new("a.txt")), MODE).is_err());
        let mut unnamed = TemporaryFile::new(&dir, OsStr::new("a.txt"), MODE).unwrap();
        assert!(unnamed.take_over(OsStr::new("a.txt")).is_err());
        drop(held);
        unnamed.take_over(OsStr::new("a.txt")).unwrap();
        assert!(first_free(&[], |_| openat(&*dir, "x", OFlags::RDONLY, MODE)).is_err());
    }

    /// A test cannot set a file's change time, so it moves the other side of the comparison.
    #[test]
    fn only_old_files_of_ours_are_swept() {
        let (_held, dir) = directory();
        let ours = names_for(OsStr::new("a.txt"));
        dir.write(&ours[1], "left a moment ago").unwrap();
        dir.create_dir(&ours[2]).unwrap();
        dir.write(".toolpost-0000000000000000.0.tmp", "of another file")
            .unwrap();
        let temporary = TemporaryFile::new(&dir, OsStr::new("a.txt"), MODE).unwrap();
        temporary.sweep();
        assert_eq!(names(&dir).len(), 3, "nothing is old");
        let now = fstat(temporary.file()).unwrap().st_ctime;
        temporary.sweep_at(now + LEFT_BEHIND_SECONDS - 60);
        assert_eq!(names(&dir).len(), 3, "not old enough");
        temporary.sweep_at(now + LEFT_BEHIND_SECONDS + 60);
        assert_eq!(names(&dir).len(), 2);
        assert!(dir.symlink_metadata(&ours[1]).is_err());
    }
}
