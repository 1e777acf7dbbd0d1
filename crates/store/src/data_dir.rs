//! The data directory: one host's state, ours alone, locked by one process.
//!
//! `serve` opens it and holds the lock; every other command looks at it through [`DataDir::at`]. Wherever it
//! lies, what is in it (a token, a record of calls) is only as safe as its permissions, so a directory that
//! others can enter is refused and not repaired: by then somebody may have been inside already.

use std::{
    io,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use crate::disk::{self, DirectoryHandle, FileLock, FilePrivacy, PathKind};

/// A socket's address holds 108 bytes on Linux, the closing zero among them.
const LONGEST_SOCKET_PATH: usize = 107;

/// A command that asks who holds the lock takes it for an instant. A host that starts in that instant
/// tries again this often, this far apart, before it believes that another host is there.
const LOCK_TRIES: u32 = 10;
const LOCK_PAUSE: Duration = Duration::from_millis(5);

/// Why a directory cannot serve as data directory.
#[derive(Debug, thiserror::Error)]
pub enum DataDirError {
    /// Another process works in it.
    #[error("data directory `{path}` is in use{}\nhint: stop that host, or give this one its own `--data-dir`",
        .pid.map(|pid| format!(" by process {pid}")).unwrap_or_default())]
    InUse {
        /// The directory.
        path: PathBuf,
        /// The holder, where it said so.
        pid: Option<u32>,
    },
    /// There is none, and this was not the place to make one.
    #[error("there is no data directory `{path}`\nhint: `toolpost serve` makes one")]
    Missing {
        /// The directory.
        path: PathBuf,
    },
    /// Its name is a link, so somebody else may decide where it leads.
    #[error("data directory `{path}` is a symbolic link\nhint: name the directory it leads to")]
    Link {
        /// The link.
        path: PathBuf,
    },
    /// Its name is taken by something else.
    #[error("`{path}` is not a directory\nhint: move it away or choose another `--data-dir`")]
    NotADirectory {
        /// What was found.
        path: PathBuf,
    },
    /// Another user could change what is in it.
    #[error("data directory `{path}` belongs to user {owner}\nhint: choose another `--data-dir`")]
    OtherOwner {
        /// The directory.
        path: PathBuf,
        /// Its owner's number.
        owner: u32,
    },
    /// Others can look in.
    #[error(
        "data directory `{path}` is open to other users (mode {mode:03o})\nhint: chmod 700 '{path}'"
    )]
    OpenToOthers {
        /// The directory.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// The system refused.
    #[error("cannot {doing} `{path}`")]
    Io {
        /// What was tried.
        doing: &'static str,
        /// On what.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// A data directory that was found private. Opened with [`open`](Self::open) it is also locked, until drop.
pub struct DataDir {
    root: PathBuf,
    /// Keeps the short path to the socket good.
    directory: DirectoryHandle,
    lock: Option<FileLock>,
    /// How long nobody had held it when it was locked.
    unattended: Option<Duration>,
}

impl DataDir {
    /// Makes the directory where it is missing, and takes its lock.
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

    /// How long nobody had held it when this one locked it, as far as can be told.
    pub fn unattended(&self) -> Option<Duration> {
        self.unattended
    }

    /// Notes that its holder is there: the next one counts from the last note.
    pub fn mark_attended(&self) {
        if let Some(lock) = &self.lock
            && let Err(error) = lock.note(&std::process::id().to_string())
        {
            tracing::warn!(%error, "the lock of the data directory cannot be written");
        }
    }

    /// The process that holds the directory at `path`, if one does.
    pub fn running_pid(path: &Path) -> Option<u32> {
        let lock = path.join("lock");
        for _ in 0..LOCK_TRIES {
            if !FileLock::is_held(&lock).unwrap_or(false) {
                return None;
            }
            // A host that starts locks first and signs then.
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

    /// Where it lies.
    pub fn path(&self) -> &Path {
        &self.root
    }

    /// True where this value holds the lock.
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

    /// The directory itself, for files without a name: what is kept in them is gone with its holder.
    pub fn spool(&self) -> io::Result<OwnedFd> {
        self.directory.handle()
    }

    /// The list of trusted files.
    pub(crate) fn trust_path(&self) -> PathBuf {
        self.root.join("trust.json")
    }

    /// The rules remembered from approvals.
    pub(crate) fn rules_path(&self) -> PathBuf {
        self.root.join("rules.json")
    }

    /// What configuration files last said.
    pub(crate) fn last_good_path(&self) -> PathBuf {
        self.root.join("last-good.json")
    }

    /// Where to bind, reach and remove the host's socket, `socket` in the directory.
    ///
    /// Where its name is too long for an address, the path goes through this value's own handle on the
    /// directory and is good only in this process while the value lives. The alternative, a socket under
    /// `/tmp`, would put a guessable name where other users can be first.
    pub fn socket_path(&self) -> PathBuf {
        let path = self.root.join("socket");
        if path.as_os_str().len() <= LONGEST_SOCKET_PATH {
            path
        } else {
            self.directory.short_path().join("socket")
        }
    }

    /// Lets only the owner connect, whatever the umask was when the socket was made.
    pub fn guard_socket(&self) -> io::Result<()> {
        disk::make_private(&self.root.join("socket"))
    }

    /// Takes away the socket a host left behind. Only the holder of the lock may: for anybody else the socket
    /// may be in use.
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
            // A stale number would only mislead for an instant: the lock is what counts.
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
