//! Every file this crate opens by itself is opened here (SQLite opens its own). The callers say what a
//! file means; this module knows modes, links, locks and the order of writes that survives a power cut.
#![expect(
    clippy::disallowed_methods,
    reason = "this is the one module of the crate that opens files"
)]

pub(crate) mod contents;

use std::{
    ffi::OsString,
    fs::{self, DirBuilder, File, OpenOptions, TryLockError},
    io::{self, Read, Seek, Write},
    os::{
        fd::{AsRawFd, OwnedFd},
        unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt, PermissionsExt},
    },
    path::{Path, PathBuf},
    time::Duration,
};

use rustix::{fs::OFlags, process::geteuid};

/// Small files only: a token, a list of trusted files, a process id.
const LONGEST_SMALL_FILE: u64 = 4 << 20;

/// Whom a file or directory belongs to, and who else gets in.
pub(crate) enum FilePrivacy {
    /// Ours alone.
    Private,
    /// Another user's.
    OwnedBy(u32),
    /// Ours, but these permission bits let others in.
    OpenToOthers(u32),
}

fn privacy(metadata: &fs::Metadata) -> FilePrivacy {
    let others = metadata.mode() & 0o7777;
    if metadata.uid() != geteuid().as_raw() {
        FilePrivacy::OwnedBy(metadata.uid())
    } else if others & 0o077 != 0 {
        FilePrivacy::OpenToOthers(others)
    } else {
        FilePrivacy::Private
    }
}

/// `None` where nothing has the name.
fn found<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(there) => Ok(Some(there)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Opens a file for reading, without following a link. A pipe in its place would otherwise keep us waiting for somebody
/// who writes.
fn open_existing(path: &Path) -> io::Result<Option<File>> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let mut options = OpenOptions::new();
    found(options.read(true).custom_flags(bits(flags)).open(path))
}

/// What lies at a path, without following a link there.
pub(crate) enum PathKind {
    Nothing,
    Link,
    Directory,
    Other,
}

pub(crate) fn look(path: &Path) -> io::Result<PathKind> {
    Ok(match found(fs::symlink_metadata(path))? {
        Some(metadata) if metadata.is_symlink() => PathKind::Link,
        Some(metadata) if metadata.is_dir() => PathKind::Directory,
        Some(_) => PathKind::Other,
        None => PathKind::Nothing,
    })
}

/// How long ago a file was written. `None`: it is not there, or was written in the future.
pub(crate) fn age(path: &Path) -> Option<Duration> {
    fs::metadata(path).ok()?.modified().ok()?.elapsed().ok()
}

/// The path from the root, without `.` and without a slash at its end: `lstat("link/")` follows the link.
pub(crate) fn absolute(path: &Path) -> io::Result<PathBuf> {
    Ok(std::path::absolute(path)?.components().collect())
}

/// The path with every link resolved; of a file that is gone, the path as it was given, made absolute.
pub(crate) fn resolved(path: &Path) -> io::Result<PathBuf> {
    match found(fs::canonicalize(path))? {
        Some(resolved) => Ok(resolved),
        None => absolute(path),
    }
}

/// The length of a file, 0 where there is none.
pub(crate) fn length(path: &Path) -> io::Result<u64> {
    Ok(found(fs::metadata(path))?.map_or(0, |metadata| metadata.len()))
}

/// Makes a directory and what is missing above it, all of it for us alone, and their names lasting: a
/// synced record is worth nothing in a directory that a power cut takes away.
pub(crate) fn create_private_directories(path: &Path) -> io::Result<()> {
    let missing: Vec<&Path> = path
        .ancestors()
        .take_while(|above| !above.exists())
        .collect();
    DirBuilder::new().recursive(true).mode(0o700).create(path)?;
    missing.into_iter().try_for_each(sync_parent)
}

/// An open directory: what was checked about it stays true of the handle, whatever happens to its name.
pub(crate) struct DirectoryHandle(File);

impl DirectoryHandle {
    /// Fails on a link.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW;
        Ok(Self(
            OpenOptions::new()
                .read(true)
                .custom_flags(bits(flags))
                .open(path)?,
        ))
    }

    pub(crate) fn privacy(&self) -> io::Result<FilePrivacy> {
        Ok(privacy(&self.0.metadata()?))
    }

    /// Another handle on it.
    pub(crate) fn handle(&self) -> io::Result<OwnedFd> {
        Ok(self.0.try_clone()?.into())
    }

    /// A short path to the same directory, good in this process while the handle lives.
    pub(crate) fn short_path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.0.as_raw_fd()))
    }
}

/// Makes an empty file for us alone where there is none.
///
/// An existing file is not opened: closing it again would drop the locks SQLite may hold on it elsewhere in
/// this process, as POSIX locks belong to the process and not to the handle.
pub(crate) fn create_private_file(path: &Path) -> io::Result<()> {
    match OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
    {
        Ok(file) => file.sync_all().and_then(|()| sync_parent(path)),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}

/// Takes every right from everybody but the owner.
pub(crate) fn make_private(path: &Path) -> io::Result<()> {
    fs::set_permissions(path, fs::Permissions::from_mode(0o600))
}

/// Removes a file that may not be there.
pub(crate) fn remove(path: &Path) -> io::Result<()> {
    found(fs::remove_file(path)).map(|_| ())
}

/// A small file's bytes and who can get at them; `None` where there is no file.
pub(crate) fn read_small(path: &Path) -> io::Result<Option<(Vec<u8>, FilePrivacy)>> {
    read_bounded(path, LONGEST_SMALL_FILE)
}

/// The same of a file that may be larger. Of one that is larger still, only the beginning.
pub(crate) fn read_bounded(
    path: &Path,
    longest: u64,
) -> io::Result<Option<(Vec<u8>, FilePrivacy)>> {
    let Some(file) = open_existing(path)? else {
        return Ok(None);
    };
    let mut bytes = Vec::new();
    let privacy = privacy(&file.metadata()?);
    file.take(longest).read_to_end(&mut bytes)?;
    Ok(Some((bytes, privacy)))
}

/// Shows a file's bytes piece by piece, and tells how many there were; `None` where there is no file.
pub(crate) fn read_in_pieces(
    path: &Path,
    size: usize,
    mut show: impl FnMut(&[u8]),
) -> io::Result<Option<u64>> {
    let Some(mut file) = open_existing(path)? else {
        return Ok(None);
    };
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    let mut piece = vec![0; size];
    let mut total = 0;
    loop {
        match file.read(&mut piece) {
            Ok(0) => return Ok(Some(total)),
            Ok(count) => {
                show(&piece[..count]);
                total += count as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Writes what the system holds of a file to its disk, whoever wrote it. One that is not there needs nothing.
///
/// Not while SQLite has the file open in this process: see [`create_private_file`].
pub(crate) fn sync(path: &Path) -> io::Result<()> {
    match open_existing(path)? {
        Some(file) => file.sync_all().and_then(|()| sync_parent(path)),
        None => Ok(()),
    }
}

/// Replaces a file as a whole: whoever reads sees the old content or the new, after a power cut too.
pub(crate) fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    let temporary = temporary_beside(path)?;
    let written = write_new(&temporary, content).and_then(|()| fs::rename(&temporary, path));
    if written.is_err() {
        // The first error tells more than a second one about the leftover would.
        let _ = fs::remove_file(&temporary);
    }
    written.and_then(|()| sync_parent(path))
}

fn write_new(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(content)?;
    file.sync_all()
}

/// A fresh name each time: a fixed one would be blocked for ever by what a crash left behind.
fn temporary_beside(path: &Path) -> io::Result<PathBuf> {
    let random = getrandom::u64()?;
    let mut name = OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(format!(".{random:016x}"));
    Ok(path.with_file_name(name))
}

fn sync_parent(path: &Path) -> io::Result<()> {
    let parent = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    File::open(parent)?.sync_all()
}

/// A lock on a file of its own, held until dropped; the file keeps the holder's process id.
pub(crate) struct FileLock(File);

impl FileLock {
    /// `None` where somebody else holds it.
    pub(crate) fn try_exclusive(path: &Path) -> io::Result<Option<Self>> {
        let file = open_lock(path)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Self(file))),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// Waits for it.
    pub(crate) fn exclusive(path: &Path) -> io::Result<Self> {
        let file = open_lock(path)?;
        file.lock()?;
        Ok(Self(file))
    }

    /// True where somebody holds the exclusive lock. A missing file is held by nobody.
    pub(crate) fn is_held(path: &Path) -> io::Result<bool> {
        let Some(file) = open_existing(path)? else {
            return Ok(false);
        };
        match file.try_lock_shared() {
            Ok(()) => Ok(false),
            Err(TryLockError::WouldBlock) => Ok(true),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// Leaves a note for those who find it locked; an empty one takes it away.
    pub(crate) fn note(&self, text: &str) -> io::Result<()> {
        let mut file = &self.0;
        file.set_len(0)?;
        file.rewind()?;
        file.write_all(text.as_bytes())
    }
}

fn open_lock(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600);
    options.custom_flags(bits(OFlags::NOFOLLOW)).open(path)
}

/// A file that lines are only ever added to, ours to write.
pub(crate) struct LineFile(File);

impl LineFile {
    /// Makes the file for us alone where there is none; fails on a link.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.read(true).append(true).create(true).mode(0o600);
        // A pipe would otherwise keep us waiting for somebody who reads it.
        Ok(Self(
            options
                .custom_flags(bits(OFlags::NOFOLLOW | OFlags::NONBLOCK))
                .open(path)?,
        ))
    }

    /// Closes a line that a crash or a full disk cut short, so that the next one begins by itself.
    pub(crate) fn end_last_line(&self) -> io::Result<()> {
        let mut last = [b'\n'];
        if let Some(end) = self.length()?.checked_sub(1) {
            self.0.read_exact_at(&mut last, end)?;
        }
        if last == [b'\n'] {
            Ok(())
        } else {
            (&self.0).write_all(b"\n")
        }
    }

    pub(crate) fn is_regular(&self) -> io::Result<bool> {
        Ok(self.0.metadata()?.is_file())
    }

    pub(crate) fn privacy(&self) -> io::Result<FilePrivacy> {
        Ok(privacy(&self.0.metadata()?))
    }

    pub(crate) fn length(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    /// Adds a line with its end in one write. Where the disk takes only a part, that part is taken back.
    pub(crate) fn append(&self, line: &[u8]) -> io::Result<()> {
        let mut file = &self.0;
        let before = self.length()?;
        let written = file.write_all(line);
        // Taken back only while nobody else has written behind it.
        if written.is_err() && self.length()? < before + line.len() as u64 {
            file.set_len(before)?;
        }
        written
    }

    pub(crate) fn clear(&self) -> io::Result<()> {
        self.0.set_len(0)
    }

    /// Whether the path still leads to this file, and not to nothing or to another.
    pub(crate) fn is_at(&self, path: &Path) -> io::Result<bool> {
        let own = self.0.metadata()?;
        let there = found(fs::symlink_metadata(path))?;
        Ok(there.is_some_and(|there| (there.dev(), there.ino()) == (own.dev(), own.ino())))
    }

    /// Keeps other processes that ask from moving the file. False where one of them is about it.
    pub(crate) fn try_lock(&self) -> io::Result<bool> {
        match self.0.try_lock() {
            Ok(()) => Ok(true),
            Err(TryLockError::WouldBlock) => Ok(false),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    pub(crate) fn unlock(&self) -> io::Result<()> {
        self.0.unlock()
    }
}

/// Gives a file another name; one that is not there keeps none.
pub(crate) fn rename(from: &Path, to: &Path) -> io::Result<()> {
    found(fs::rename(from, to)).map(|_| ())
}

fn bits(flags: OFlags) -> i32 {
    flags.bits().cast_signed()
}
