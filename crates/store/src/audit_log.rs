//! The audit log: a file of JSON objects, one a line, that other programs read.
//!
//! It is not the record. The journal is chained, synced and asked; this is a plain file that grows to a size,
//! is moved aside and begun anew, for the shippers and rotators people have in place. They may move or delete
//! it under us, so the file is looked for again from time to time.
//!
//! [`AuditLog`] writes on the caller's thread. A face that must not wait uses [`AuditWriter`], which has a
//! thread of its own.

mod writer;

use std::{
    io,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use parking_lot::Mutex;

use crate::disk::{self, FilePrivacy, LineFile, PathKind};

pub use writer::AuditWriter;

/// Between two looks at whether the file is still in its place, and two tries to move it aside.
const PAUSE: Duration = Duration::from_secs(1);

/// How large the log grows, and what is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuditRotation {
    /// A line that would make the file larger than this goes into a new one.
    pub max_bytes: u64,
    /// How many files moved aside are kept, from `….1`, the newest, on. With 0 the file starts over.
    pub backup_count: u32,
}

/// Why there is no audit log to be had, or a line is not in it.
#[derive(Debug, thiserror::Error)]
pub enum AuditLogError {
    /// Its folder is missing and cannot be made, or is no folder.
    #[error(
        "there is no folder for the audit log `{path}`\nhint: make the folder, or change `a2e.audit.path`"
    )]
    NoFolder {
        /// The file.
        path: PathBuf,
    },
    /// Its name is a link, so somebody else may decide where it leads.
    #[error("audit log `{path}` is a symbolic link\nhint: name the file it leads to")]
    Link {
        /// The link.
        path: PathBuf,
    },
    /// Its name is taken by something else.
    #[error("audit log `{path}` is not a regular file\nhint: change `a2e.audit.path`")]
    NotAFile {
        /// What was found.
        path: PathBuf,
    },
    /// Another user could change what is in it.
    #[error(
        "audit log `{path}` belongs to user {owner}\nhint: move it away or change `a2e.audit.path`"
    )]
    OtherOwner {
        /// The file.
        path: PathBuf,
        /// Its owner's number.
        owner: u32,
    },
    /// Others may write to it. That they read it may be meant: a shipper does.
    #[error(
        "audit log `{path}` can be written by other users (mode {mode:03o})\nhint: chmod go-w '{path}'"
    )]
    WritableByOthers {
        /// The file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// The text would be several lines.
    #[error("a line of the audit log holds a line break")]
    NotALine,
    /// The system refused.
    #[error("cannot {doing} audit log `{path}`")]
    Io {
        /// What was tried.
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// A log that is open. Several threads may append to one, and several processes to one file.
pub struct AuditLog {
    path: PathBuf,
    rotation: AuditRotation,
    current: Mutex<AuditLogFile>,
}

/// The file that lines go to.
struct AuditLogFile {
    file: LineFile,
    /// When it was last seen in its place; `None` where there is reason to look at once.
    seen: Option<Instant>,
    /// When it last could not be moved aside.
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
    /// Opens the log, and makes the file (0600) and its folder (0700) where there is none. A folder is never made through
    /// a link that leads nowhere.
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

    /// The file, from the root.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Adds a line, given without its end. When this returns it is with the system, not yet synced.
    ///
    /// A line is in one file or the other, whole. Only where somebody else deletes the file are lines lost:
    /// those of the second until that is noticed.
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

    /// Opens the file anew where it is no longer in its place.
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

    /// Begins a new file where the line would not fit. A log that cannot be moved aside grows on: too large
    /// a file is better than a line that is not there.
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
            tracing::warn!(error = &error as &dyn std::error::Error, %path, "the audit log grows beyond its size");
            current.stuck = Some(Instant::now());
        }
        Ok(())
    }

    /// Moves the file aside, which had this length when it was found to be full.
    fn rotate(&self, current: &mut AuditLogFile, full: u64) -> Result<(), AuditLogError> {
        let moving = |error| failed("move", &self.path)(error);
        // Another process may be at the same. Whoever comes second must not move the new file, too.
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
        // The name may be gone now, even after an error.
        current.seen = None;
        done.map_err(moving)?;
        self.follow(current)
    }

    /// Each file takes the place of the one before it, up to the first place that is free or the last there is.
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

/// Lets the file start over, unless somebody else has done so in the meantime.
fn clear(file: &LineFile, full: u64) -> io::Result<()> {
    if file.length()? < full {
        Ok(())
    } else {
        file.clear()
    }
}

/// Makes the missing folders on the way to the file. Existing ones may be links to folders.
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

/// Opens the file and looks at what was opened, which no longer changes with the name.
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
