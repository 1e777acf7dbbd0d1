//! The audit log: a file of JSON objects, one a line, that other programs read.
//!
//! It is not the record. The journal is chained, synced and searchable; this is a plain file that grows to a size, is
//! moved aside and begun anew, for existing log shippers and rotators. They may move or delete it at any time, so the
//! log checks its path about once a second.
//!
//! [`AuditLog`] writes on the caller's thread. A face that must not wait uses [`AuditWriter`], which has a thread of
//! its own.

mod writer;

use std::{
    io,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use parking_lot::Mutex;

use crate::disk::{self, FilePrivacy, LineFile, PathKind};

pub use writer::AuditWriter;

/// The shortest time between two checks that the file is still at its path, and between two tries to move it aside.
const PAUSE: Duration = Duration::from_secs(1);

/// The rotation of the log: its largest size, and the number of old files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuditRotation {
    /// A line that would make the file larger than this goes to a new file.
    pub max_bytes: u64,
    /// The number of old files, from `….1`, the newest, on. With 0 the file starts over.
    pub backup_count: u32,
}

/// Why the audit log cannot be opened, or a line cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum AuditLogError {
    /// Its folder is missing and cannot be made, or is no folder.
    #[error(
        "there is no folder for the audit log `{path}`\nhint: create the folder, or change `a2e.audit.path`"
    )]
    NoFolder {
        /// The file.
        path: PathBuf,
    },
    /// Its name is a link, and another user may control the target.
    #[error("audit log `{path}` is a symbolic link\nhint: give the path of its target")]
    Link {
        /// The link.
        path: PathBuf,
    },
    /// Its name is in use for something else.
    #[error("audit log `{path}` is not a regular file\nhint: change `a2e.audit.path`")]
    NotAFile {
        /// The path.
        path: PathBuf,
    },
    /// Another user could change the content.
    #[error(
        "audit log `{path}` belongs to user {owner}\nhint: move it away or change `a2e.audit.path`"
    )]
    OtherOwner {
        /// The file.
        path: PathBuf,
        /// Its owner's number.
        owner: u32,
    },
    /// Other users may write to it. Read access for others is accepted, because a log shipper may need it.
    #[error(
        "audit log `{path}` can be written by other users (mode {mode:03o})\nhint: chmod go-w '{path}'"
    )]
    WritableByOthers {
        /// The file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// The text contains a line break.
    #[error("a line of the audit log contains a line break")]
    NotALine,
    /// The system refused an operation.
    #[error("cannot {doing} audit log `{path}`")]
    Io {
        /// The operation.
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
}

/// An open log. Several threads may append to one, and several processes to one file.
pub struct AuditLog {
    path: PathBuf,
    rotation: AuditRotation,
    current: Mutex<AuditLogFile>,
}

struct AuditLogFile {
    file: LineFile,
    /// The time of the last check that the file is at its path; `None` forces a check.
    seen: Option<Instant>,
    /// The time of the last failure to move the file aside.
    stuck: Option<Instant>,
    /// Whether the last write failed and may have left a part of a line.
    torn: bool,
}

impl AuditLogFile {
    fn new(file: LineFile) -> Self {
        Self {
            file,
            seen: Some(Instant::now()),
            stuck: None,
            torn: false,
        }
    }
}

impl AuditLog {
    /// Opens the log. Makes the file (0600) and its folder (0700) where they are missing, but never a folder through a
    /// dangling link.
    pub fn open(path: &Path, rotation: AuditRotation) -> Result<Self, AuditLogError> {
        let path = disk::absolute(path).map_err(failed("find", path))?;
        make_folder(&path)?;
        let current = Mutex::new(AuditLogFile::new(open_file(&path)?));
        Ok(Self {
            path,
            rotation,
            current,
        })
    }

    /// The absolute path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Adds a line, given without its end. On return the line is with the system, and not yet synced.
    ///
    /// Each line is whole, in one file. Lines are lost only if another program deletes the file: then the lines of
    /// about one second, until the next check.
    pub fn append(&self, line: &str) -> Result<(), AuditLogError> {
        if line.contains('\n') {
            return Err(AuditLogError::NotALine);
        }
        let line = [line.as_bytes(), b"\n"].concat();
        let mut current = self.current.lock();
        self.follow(&mut current)?;
        self.make_room(&mut current, line.len() as u64)?;
        let write = |current: &AuditLogFile| {
            if current.torn {
                current.file.end_last_line()?;
            }
            current.file.append(&line)
        };
        let written = write(&current);
        current.torn = written.is_err();
        written.map_err(failed("write to", &self.path))
    }

    /// Opens the file again if it is no longer at its path.
    fn follow(&self, current: &mut AuditLogFile) -> Result<(), AuditLogError> {
        if current.seen.is_some_and(|seen| seen.elapsed() < PAUSE) {
            return Ok(());
        }
        if current
            .file
            .is_at(&self.path)
            .map_err(failed("look for", &self.path))?
        {
            current.seen = Some(Instant::now());
        } else {
            *current = AuditLogFile::new(open_file(&self.path)?);
        }
        Ok(())
    }

    /// Begins a new file if the line would not fit. A log that cannot be moved aside grows on: too large a file is
    /// better than a lost line.
    fn make_room(&self, current: &mut AuditLogFile, more: u64) -> Result<(), AuditLogError> {
        let length = current
            .file
            .length()
            .map_err(failed("measure", &self.path))?;
        let fits = length == 0 || length.saturating_add(more) <= self.rotation.max_bytes;
        if fits || current.stuck.is_some_and(|stuck| stuck.elapsed() < PAUSE) {
            return Ok(());
        }
        if let Err(error) = self.rotate(current, length) {
            let path = self.path.display();
            tracing::warn!(error = &error as &dyn std::error::Error, %path, "the audit log cannot be rotated and exceeds its size limit");
            current.stuck = Some(Instant::now());
        }
        Ok(())
    }

    /// Moves aside the file, which had length `full` when it was found full.
    fn rotate(&self, current: &mut AuditLogFile, full: u64) -> Result<(), AuditLogError> {
        let moving = |error| failed("move", &self.path)(error);
        // Several processes may append to this log and find it full at the same time. The lock is on the open file, not
        // on the name: only one process gets it, and it then checks that the name still leads to this file. Without
        // that check the second process would move aside the new, almost empty file and push an old one out of the
        // backups. A process that does not get the lock appends its line to the file that the other one moves, and
        // checks the path again for the next line.
        if !current.file.try_lock().map_err(moving)? {
            current.seen = None;
            return Ok(());
        }
        if !current.file.is_at(&self.path).map_err(moving)? {
            *current = AuditLogFile::new(open_file(&self.path)?);
            return Ok(());
        }
        let kept = self.rotation.backup_count > 0;
        let done = if kept {
            self.move_aside()
        } else {
            clear(&current.file, full)
        };
        current.file.unlock().map_err(moving)?;
        // The path may be free now, even after an error.
        current.seen = None;
        done.map_err(moving)?;
        self.follow(current)
    }

    /// Each file takes the name of the next older one, up to the first free name or the last one allowed.
    fn move_aside(&self) -> io::Result<()> {
        let mut last = 1;
        while last < self.rotation.backup_count
            && !matches!(disk::look(&self.numbered(last))?, PathKind::Nothing)
        {
            last += 1;
        }
        for number in (1..last).rev() {
            disk::rename(&self.numbered(number), &self.numbered(number + 1))?;
        }
        disk::rename(&self.path, &self.numbered(1))
    }

    fn numbered(&self, number: u32) -> PathBuf {
        let mut name = self.path.clone().into_os_string();
        name.push(format!(".{number}"));
        name.into()
    }
}

/// Empties the file, unless another process emptied it first.
fn clear(file: &LineFile, full: u64) -> io::Result<()> {
    if file.length()? < full {
        Ok(())
    } else {
        file.clear()
    }
}

/// Makes the missing folders of the path. Existing ones may be links to folders.
fn make_folder(path: &Path) -> Result<(), AuditLogError> {
    let Some(folder) = path.parent() else {
        return Ok(());
    };
    let missing = folder.ancestors().take_while(|above| !above.exists());
    if missing.into_iter().any(Path::is_symlink) {
        return Err(AuditLogError::Link {
            path: folder.to_path_buf(),
        });
    }
    if folder.exists() {
        return Ok(());
    }
    disk::create_private_directories(folder).map_err(|_| AuditLogError::NoFolder {
        path: path.to_path_buf(),
    })
}

/// Opens the file and then checks the open handle, because the path may change between a check and an open.
fn open_file(path: &Path) -> Result<LineFile, AuditLogError> {
    let at = || path.to_path_buf();
    let absent = |source: io::Error| match source.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
            AuditLogError::NoFolder { path: at() }
        }
        _ => failed("open", path)(source),
    };
    match disk::look(path).map_err(absent)? {
        PathKind::Link => return Err(AuditLogError::Link { path: at() }),
        PathKind::Directory => return Err(AuditLogError::NotAFile { path: at() }),
        PathKind::Nothing | PathKind::Other => {}
    }
    let file = LineFile::open(path).map_err(absent)?;
    if !file.is_regular().map_err(failed("look at", path))? {
        return Err(AuditLogError::NotAFile { path: at() });
    }
    match file.privacy().map_err(failed("look at", path))? {
        FilePrivacy::OwnedBy(owner) => return Err(AuditLogError::OtherOwner { path: at(), owner }),
        FilePrivacy::OpenToOthers(mode) if mode & 0o022 != 0 => {
            return Err(AuditLogError::WritableByOthers { path: at(), mode });
        }
        FilePrivacy::OpenToOthers(_) | FilePrivacy::Private => {}
    }
    file.end_last_line().map_err(failed("write to", path))?;
    Ok(file)
}

fn failed(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> AuditLogError {
    let path = path.to_path_buf();
    move |source| AuditLogError::Io {
        doing,
        path,
        source,
    }
}
