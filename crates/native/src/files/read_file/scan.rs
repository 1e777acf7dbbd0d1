//! Reads as much of a file as is wanted, and no more.

use std::io;

use cap_std::fs::File;
use rustix::fs::FileType;
use sha2::{Digest, Sha256};
use toolpost_model::{ErrorClass, ResourceAccess, ToolFailure};
use toolpost_processes::{
    CallStopError, FileWorkInterruption, PathError, PathTarget, StopSign, Workspace,
    digest::{hex, read_some},
    io_code, open_regular, relative, shown, special,
};

use super::{
    Arguments,
    binary::{self, BinaryFile},
    report::lines,
    text::{LineWindow, TextWindow},
};

/// How much of a file decides whether it is text.
const HEAD_BYTES: usize = 8 * 1024;
/// How much is read between two looks at the stop sign.
pub(super) const CHUNK_BYTES: usize = 64 * 1024;
/// How far into a file lines are looked for.
pub(super) const SCAN_BYTES: u64 = 64 * 1024 * 1024;
/// Files up to this size are read to their end even when fewer lines are shown, so that the number of lines and
/// the digest are known.
pub(super) const READ_ON_BYTES: u64 = 4 * 1024 * 1024;

/// Why a file was not read.
#[derive(Debug, thiserror::Error)]
pub(super) enum ReadFileError {
    #[error(transparent)]
    Path(#[from] PathError),
    #[error(transparent)]
    Stopped(#[from] CallStopError),
    #[error("`{}` has only {}, so there is no line {offset}", shown(.path), lines(*.total))]
    PastTheEnd {
        path: String,
        total: u64,
        offset: u64,
    },
    #[error("line {offset} of `{}` is beyond the first {} MiB, and no more is scanned", shown(.path), SCAN_BYTES >> 20)]
    TooFar { path: String, offset: u64 },
    #[error("cannot read `{}`: {source}", shown(.path))]
    Io { path: String, source: io::Error },
}

impl ReadFileError {
    pub(super) fn into_failure(self) -> ToolFailure {
        let message = self.to_string();
        match self {
            Self::Path(error) => error.into_failure(),
            Self::Stopped(stopped) => stopped.into_failure(),
            Self::PastTheEnd { .. } => {
                ToolFailure::of(ErrorClass::InvalidArguments, message).code("past_the_end")
            }
            Self::TooFar { .. } => ToolFailure::new(message).code("too_large"),
            Self::Io { source, .. } => ToolFailure::new(message).code(io_code(&source)),
        }
        .untouched()
    }
}

/// A file that was read, and how.
pub(super) enum ReadFileContent {
    Text {
        path: String,
        size: u64,
        window: TextWindow,
        sha256: Option<String>,
    },
    Binary {
        path: String,
        file: BinaryFile,
    },
}

/// Reads what `arguments` ask for.
pub(super) fn read(
    workspace: &Workspace,
    arguments: &Arguments<'_>,
    stop: &StopSign,
) -> Result<ReadFileContent, ReadFileError> {
    let given = arguments.path;
    let located = workspace.locate(&workspace.request(given).map_err(PathError::from)?)?;
    stop.require(
        workspace,
        (given, &located.whole_path()),
        ResourceAccess::Read,
    )?;
    let (mut file, stat) = match &located.found {
        PathTarget::Entry { parent, name, stat } => match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => open_regular(parent, name, given)?,
            other => return Err(special(given, other).into()),
        },
        PathTarget::Directory(_) => {
            return Err(PathError::IsDirectory {
                given: given.to_owned(),
            }
            .into());
        }
        PathTarget::Missing { parent, rest } => {
            return Err(PathError::not_found(
                given.to_owned(),
                (parent, &located.path),
                rest,
                |place| stop.may(workspace, place, ResourceAccess::Read),
            )
            .into());
        }
    };
    let path = relative(&located.path).0.into_owned();
    let size = u64::try_from(stat.st_size).unwrap_or(0);
    let failed = |source| ReadFileError::Io {
        path: path.clone(),
        source,
    };
    let head = read_head(&mut file).map_err(failed)?;
    if binary::is_binary(&head, head.len() < HEAD_BYTES) {
        let file = binary::read(&mut file, head, size, stop).map_err(|error| match error {
            FileWorkInterruption::Stopped(stopped) => ReadFileError::Stopped(stopped),
            FileWorkInterruption::Io(source) => failed(source),
        })?;
        return Ok(ReadFileContent::Binary { path, file });
    }
    read_text(
        &mut file,
        head,
        TextReadPlan {
            path,
            size,
            offset: arguments.offset,
            limit: arguments.limit,
        },
        stop,
    )
}

/// The first bytes of a file, fewer only where it has no more.
fn read_head(file: &mut File) -> io::Result<Vec<u8>> {
    let mut head = vec![0; HEAD_BYTES];
    let mut filled = 0;
    while filled < HEAD_BYTES {
        match read_some(file, &mut head[filled..])? {
            0 => break,
            count => filled += count,
        }
    }
    head.truncate(filled);
    Ok(head)
}

/// What is wanted of a text file whose head was read.
struct TextReadPlan {
    path: String,
    /// As the system told it; `/proc` says 0 and has more.
    size: u64,
    offset: u64,
    limit: u64,
}

fn read_text(
    file: &mut File,
    head: Vec<u8>,
    plan: TextReadPlan,
    stop: &StopSign,
) -> Result<ReadFileContent, ReadFileError> {
    let mut window = LineWindow::new(plan.offset, plan.limit);
    let mut hasher = (plan.size <= READ_ON_BYTES).then(Sha256::new);
    let mut scanned = 0_u64;
    let mut chunk = head;
    let mut count = chunk.len();
    let at_end = loop {
        if count == 0 {
            break true;
        }
        window.feed(&chunk[..count]);
        scanned += count as u64;
        hasher = hasher.filter(|_| scanned <= READ_ON_BYTES);
        if let Some(hasher) = &mut hasher {
            hasher.update(&chunk[..count]);
        }
        if (window.is_complete() && hasher.is_none()) || scanned >= SCAN_BYTES {
            break false;
        }
        stop.check()?;
        chunk.resize(CHUNK_BYTES, 0);
        count = read_some(file, &mut chunk).map_err(|source| ReadFileError::Io {
            path: plan.path.clone(),
            source,
        })?;
    };
    let window = window.finish(at_end);
    let TextReadPlan {
        path, size, offset, ..
    } = plan;
    if window.lines_shown == 0 && offset > 1 {
        return Err(match window.total_lines {
            Some(total) => ReadFileError::PastTheEnd {
                path,
                total,
                offset,
            },
            None => ReadFileError::TooFar { path, offset },
        });
    }
    let size = if at_end { scanned } else { size.max(scanned) };
    Ok(ReadFileContent::Text {
        path,
        size,
        window,
        sha256: hasher.filter(|_| at_end).map(hex),
    })
}
