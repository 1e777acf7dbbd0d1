//! The data directory: one host's state, private to its user, locked by one process.
//!
//! `serve` opens it and holds the lock; every other command uses it through [`DataDir::at`]. Its content (a token, a
//! record of calls) is only as safe as its permissions, so a directory that other users can enter is refused and not
//! repaired: another user may have been inside already.

use std::{
    io,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use crate::disk::{self, DirectoryHandle, FileLock, FilePrivacy, PathKind};

/// A socket address on Linux holds 108 bytes, including the closing zero.
const LONGEST_SOCKET_PATH: usize = 107;

/// A command that checks the lock takes it for an instant. A host that starts in that instant tries again this often,
/// with this pause, before it concludes that another host runs.
const LOCK_TRIES: u32 = 10;
const LOCK_PAUSE: Duration = Duration::from_millis(5);

/// Why a directory cannot serve as data directory.
#[derive(Debug, thiserror::Error)]
pub enum DataDirError {
    /// Another process holds it.
    #[error("data directory `{path}` is in use{}\nhint: stop that host, or give this one its own `--data-dir`",
        .pid.map(|pid| format!(" by process {pid}")).unwrap_or_default())]
    InUse {
        /// The directory.
        path: PathBuf,
        /// The process that holds it, where it is known.
        pid: Option<u32>,
    },
    /// The directory is missing, and this command must not make one.
    #[error("there is no data directory `{path}`\nhint: run `toolpost serve` to create it")]
    Missing {
        /// The directory.
        path: PathBuf,
    },
    /// Its name is a link, and another user may control the target.
    #[error("data directory `{path}` is a symbolic link\nhint: give the path of its target")]
    Link {
        /// The link.
        path: PathBuf,
    },
    /// Its name is in use for something else.
    #[error("`{path}` is not a directory\nhint: move it away or choose another `--data-dir`")]
    NotADirectory {
        /// The path.
        path: PathBuf,
    },
    /// Another user could change the content.
    #[error("data directory `{path}` belongs to user {owner}\nhint: choose another `--data-dir`")]
    OtherOwner {
        /// The directory.
        path: PathBuf,
        /// Its owner's number.
        owner: u32,
    },
    /// Other users can enter it.
    #[error(
        "data directory `{path}` is open to other users (mode {mode:03o})\nhint: chmod 700 '{path}'"
    )]
    OpenToOthers {
        /// The directory.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// The system refused an operation.
    #[error("cannot {doing} `{path}`")]
    Io {
        /// The operation.
        doing: &'static str,
        /// The path.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
}

/// A data directory that is private to its user. One from [`open`](Self::open) is also locked, until drop.
pub struct DataDir {
    root: PathBuf,
    /// Keeps the short path of the socket valid.
    directory: DirectoryHandle,
    lock: Option<FileLock>,
    /// The time that the directory had no holder before this lock.
    unattended: Option<Duration>,
}

impl DataDir {
    /// Opens the directory, makes it if it is missing, and takes its lock.
    pub fn open(path: &Path) -> Result<Self, DataDirError> {
        let root = disk::absolute(path).map_err(failed("find", path))?;
        if let PathKind::Nothing = disk::look(&root).map_err(failed("look at", &root))? {
            disk::create_private_directories(&root).map_err(failed("create", &root))?;
        }
        let mut data_dir = Self::at(&root)?;
        let left = disk::age(&root.join("lock"));
        data_dir.lock = Some(data_dir.take_lock()?);
        data_dir.unattended = left;
        Ok(data_dir)
    }

    /// The same paths without the lock, for a command beside a host or after one.
    pub fn at(path: &Path) -> Result<Self, DataDirError> {
        let root = disk::absolute(path).map_err(failed("find", path))?;
        match disk::look(&root).map_err(failed("look at", &root))? {
            PathKind::Directory => {}
            PathKind::Nothing => return Err(DataDirError::Missing { path: root }),
            PathKind::Link => return Err(DataDirError::Link { path: root }),
            PathKind::Other => return Err(DataDirError::NotADirectory { path: root }),
        }
        let directory = DirectoryHandle::open(&root).map_err(failed("open", &root))?;
        match directory.privacy().map_err(failed("look at", &root))? {
            FilePrivacy::Private => Ok(Self {
                root,
                directory,
                lock: None,
                unattended: None,
            }),
            FilePrivacy::OwnedBy(owner) => Err(DataDirError::OtherOwner { path: root, owner }),
            FilePrivacy::OpenToOthers(mode) => Err(DataDirError::OpenToOthers { path: root, mode }),
        }
    }

    /// The time that the directory had no holder before this lock, if it is known.
    pub fn unattended(&self) -> Option<Duration> {
        self.unattended
    }

    /// Notes that the directory has a holder: the next one counts from the last note.
    pub fn mark_attended(&self) {
        if let Some(lock) = &self.lock
            && let Err(error) = lock.note(&std::process::id().to_string())
        {
            tracing::warn!(%error, "the lock of the data directory cannot be written");
        }
    }

    /// The process that holds the directory at `path`, if any.
    pub fn running_pid(path: &Path) -> Option<u32> {
        let lock = path.join("lock");
        for _ in 0..LOCK_TRIES {
            if !FileLock::is_held(&lock).unwrap_or(false) {
                return None;
            }
            // A starting host takes the lock first and writes its process id afterwards.
            if let Some(pid) = noted_pid(&lock) {
                return Some(pid);
            }
            thread::sleep(LOCK_PAUSE);
        }
        None
    }

    fn take_lock(&self) -> Result<FileLock, DataDirError> {
        let path = self.root.join("lock");
        for attempt in 0..LOCK_TRIES {
            if attempt > 0 {
                thread::sleep(LOCK_PAUSE);
            }
            if let Some(lock) = FileLock::try_exclusive(&path).map_err(failed("lock", &path))? {
                lock.note(&std::process::id().to_string())
                    .map_err(failed("write", &path))?;
                return Ok(lock);
            }
        }
        Err(DataDirError::InUse {
            path: self.root.clone(),
            pid: noted_pid(&path),
        })
    }

    /// The path of the directory.
    pub fn path(&self) -> &Path {
        &self.root
    }

    /// Whether this value holds the lock.
    pub fn is_locked(&self) -> bool {
        self.lock.is_some()
    }

    /// The journal.
    pub fn journal_path(&self) -> PathBuf {
        self.root.join("journal.db")
    }

    /// The file with the token of the network faces.
    pub fn token_path(&self) -> PathBuf {
        self.root.join("token")
    }

    /// The directory itself, for unnamed files, which disappear with their process.
    pub fn spool(&self) -> io::Result<OwnedFd> {
        self.directory.handle()
    }

    pub(crate) fn trust_path(&self) -> PathBuf {
        self.root.join("trust.json")
    }

    pub(crate) fn rules_path(&self) -> PathBuf {
        self.root.join("rules.json")
    }

    pub(crate) fn last_good_path(&self) -> PathBuf {
        self.root.join("last-good.json")
    }

    /// The path to bind, connect and remove the host's socket: `socket` in the directory.
    ///
    /// If the name is too long for a socket address, the path goes through this value's own handle on the directory; it
    /// is then valid only in this process while the value lives. The alternative, a socket under `/tmp`, would have a
    /// guessable name that another user could take first.
    pub fn socket_path(&self) -> PathBuf {
        let path = self.root.join("socket");
        if path.as_os_str().len() <= LONGEST_SOCKET_PATH {
            path
        } else {
            self.directory.short_path().join("socket")
        }
    }

    /// Restricts connections to the owner, whatever the umask was when the socket was made.
    pub fn guard_socket(&self) -> io::Result<()> {
        disk::make_private(&self.root.join("socket"))
    }

    /// Removes the socket that an earlier host left behind. Requires the lock: without it, the socket may be in use.
    pub fn clear_socket(&self) -> io::Result<()> {
        if self.is_locked() {
            disk::remove(&self.root.join("socket"))
        } else {
            Ok(())
        }
    }
}

impl Drop for DataDir {
    fn drop(&mut self) {
        if let Some(lock) = &self.lock {
            // An error is ignored: the process id is only a hint for messages, and the lock alone decides.
            let _ = lock.note("");
        }
    }
}

fn noted_pid(lock: &Path) -> Option<u32> {
    let (bytes, _) = disk::read_small(lock).ok()??;
    std::str::from_utf8(&bytes).ok()?.trim().parse().ok()
}

fn failed(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> DataDirError {
    let path = path.to_path_buf();
    move |source| DataDirError::Io {
        doing,
        path,
        source,
    }
}
