//! Every file that this crate opens by itself is opened here (SQLite opens its own). The callers know the meaning of a
//! file; this module handles modes, links, locks and an order of writes that survives a power cut.
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

/// The owner and the permissions of a file or directory.
pub(crate) enum FilePrivacy {
    /// Private to this user.
    Private,
    /// It belongs to another user.
    OwnedBy(u32),
    /// It belongs to this user, but these permission bits admit others.
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

/// `None` if the path does not exist.
fn found<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(there) => Ok(Some(there)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Opens a file for reading, without following a link. Non-blocking, because the open of a pipe would otherwise wait
/// for a writer.
fn open_existing(path: &Path) -> io::Result<Option<File>> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let mut options = OpenOptions::new();
    found(options.read(true).custom_flags(bits(flags)).open(path))
}

/// The kind of thing at a path; a link is not followed.
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

/// The time since the last write to a file. `None`: it does not exist, or the time lies in the future.
pub(crate) fn age(path: &Path) -> Option<Duration> {
    fs::metadata(path).ok()?.modified().ok()?.elapsed().ok()
}

/// The absolute path, without `.` and without a slash at its end: `lstat("link/")` follows the link.
pub(crate) fn absolute(path: &Path) -> io::Result<PathBuf> {
    Ok(std::path::absolute(path)?.components().collect())
}

/// The path with every link resolved; for a missing file, the absolute path.
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

/// Makes a directory and its missing parents, all private and synced with their names: a synced record is worth nothing
/// in a directory that a power cut removes.
pub(crate) fn create_private_directories(path: &Path) -> io::Result<()> {
    let missing: Vec<&Path> = path
        .ancestors()
        .take_while(|above| !above.exists())
        .collect();
    DirBuilder::new().recursive(true).mode(0o700).create(path)?;
    missing.into_iter().try_for_each(sync_parent)
}

/// An open directory: checks on the handle stay valid even if the path changes.
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

    pub(crate) fn handle(&self) -> io::Result<OwnedFd> {
        Ok(self.0.try_clone()?.into())
    }

    /// A short path to the same directory, valid in this process while the handle exists.
    pub(crate) fn short_path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.0.as_raw_fd()))
    }
}

/// Makes an empty private file where there is none.
///
/// An existing file is not opened: closing it again would drop the locks that SQLite may hold on it elsewhere in this
/// process, because POSIX locks belong to the process and not to the handle.
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

/// Removes all permissions of other users.
pub(crate) fn make_private(path: &Path) -> io::Result<()> {
    fs::set_permissions(path, fs::Permissions::from_mode(0o600))
}

/// Removes a file; a missing one is no error.
pub(crate) fn remove(path: &Path) -> io::Result<()> {
    found(fs::remove_file(path)).map(|_| ())
}

/// The bytes and the privacy of a small file; `None` if there is no file.
pub(crate) fn read_small(path: &Path) -> io::Result<Option<(Vec<u8>, FilePrivacy)>> {
    read_bounded(path, LONGEST_SMALL_FILE)
}

/// The same with a limit of the caller. A longer file is cut.
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

/// Passes a file's bytes to a visitor in pieces, and returns their number; `None` if there is no file.
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

/// Syncs a file's cached data to its disk, including data of other processes. A missing file is no error.
///
/// Not while SQLite has the file open in this process: see [`create_private_file`].
pub(crate) fn sync(path: &Path) -> io::Result<()> {
    match open_existing(path)? {
        Some(file) => file.sync_all().and_then(|()| sync_parent(path)),
        None => Ok(()),
    }
}

/// Replaces a file as a whole: readers see the old content or the new, also after a power cut.
pub(crate) fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    let temporary = temporary_beside(path)?;
    let written = write_new(&temporary, content).and_then(|()| fs::rename(&temporary, path));
    if written.is_err() {
        // The first error is more useful than a second one about the temporary file.
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

/// A fresh name each time: a leftover of a crash would block a fixed name for ever.
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

/// A lock on a file of its own, held until drop; the file contains the holder's process id.
pub(crate) struct FileLock(File);

impl FileLock {
    /// `None` if another process holds it.
    pub(crate) fn try_exclusive(path: &Path) -> io::Result<Option<Self>> {
        let file = open_lock(path)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Self(file))),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// Waits until the lock is free.
    pub(crate) fn exclusive(path: &Path) -> io::Result<Self> {
        let file = open_lock(path)?;
        file.lock()?;
        Ok(Self(file))
    }

    /// True if a process holds the exclusive lock. A missing file has no holder.
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

    /// Writes a note for processes that find the file locked; an empty text removes it.
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

/// A file to which lines are only ever added.
pub(crate) struct LineFile(File);

impl LineFile {
    /// Opens the file, or makes a private one; fails on a link.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.read(true).append(true).create(true).mode(0o600);
        // Non-blocking, because the open of a pipe would otherwise wait for a reader.
        Ok(Self(
            options
                .custom_flags(bits(OFlags::NOFOLLOW | OFlags::NONBLOCK))
                .open(path)?,
        ))
    }

    /// Ends a line that a crash or a full disk cut short, so that the next line starts by itself.
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

    /// Adds a line with its end in one write. If the disk takes only a part, that part is removed again.
    pub(crate) fn append(&self, line: &[u8]) -> io::Result<()> {
        let mut file = &self.0;
        let before = self.length()?;
        let written = file.write_all(line);
        // Only while no other process has written after it.
        if written.is_err() && self.length()? < before + line.len() as u64 {
            file.set_len(before)?;
        }
        written
    }

    pub(crate) fn clear(&self) -> io::Result<()> {
        self.0.set_len(0)
    }

    /// Whether the path still leads to this file.
    pub(crate) fn is_at(&self, path: &Path) -> io::Result<bool> {
        let own = self.0.metadata()?;
        let there = found(fs::symlink_metadata(path))?;
        Ok(there.is_some_and(|there| (there.dev(), there.ino()) == (own.dev(), own.ino())))
    }

    /// Locks the file against other processes that want to move it. False if one of them holds the lock.
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

/// Renames a file; a missing one is no error.
pub(crate) fn rename(from: &Path, to: &Path) -> io::Result<()> {
    found(fs::rename(from, to)).map(|_| ())
}

fn bits(flags: OFlags) -> i32 {
    flags.bits().cast_signed()
}
