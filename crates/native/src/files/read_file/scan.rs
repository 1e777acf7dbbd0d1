//! Reads as much of a file as the call needs.

use std::io;

use cap_std::fs::File;
use rustix::fs::FileType;
use sha2::{Digest, Sha256};
use toolpost_processes::{
    PathError, ReadableTarget, StopSign, Workspace,
    digest::{hex, read_some},
    open_regular, relative, special,
};

use super::{
    Arguments,
    binary::{self, BinaryFile},
    text::{LineWindow, TextWindow},
};
use crate::files::read_error::FileReadError;

/// How much of a file decides whether it is text.
const HEAD_BYTES: usize = 8 * 1024;
/// How much is read between two checks of the stop sign.
pub(super) const CHUNK_BYTES: usize = 64 * 1024;
/// How far into a file lines are searched.
pub(in crate::files) const SCAN_BYTES: u64 = 64 * 1024 * 1024;
/// Files up to this size are read to their end even if fewer lines are shown, so that the number of lines and the
/// digest are known.
pub(super) const READ_ON_BYTES: u64 = 4 * 1024 * 1024;

/// A file that was read.
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

/// Reads the file and part that `arguments` name.
pub(super) fn read(
    workspace: &Workspace,
    arguments: &Arguments<'_>,
    stop: &StopSign,
) -> Result<ReadFileContent, FileReadError> {
    let given = arguments.path;
    let (place, found) = stop.locate_readable(workspace, given)?;
    let (mut file, stat) = match &found {
        ReadableTarget::Entry { parent, name, stat } => {
            match FileType::from_raw_mode(stat.st_mode) {
                FileType::RegularFile => open_regular(parent, name, given)?,
                other => return Err(special(given, other).into()),
            }
        }
        ReadableTarget::Directory(_) => {
            return Err(PathError::IsDirectory {
                given: given.to_owned(),
            }
            .into());
        }
    };
    let path = relative(&place).0.into_owned();
    let size = u64::try_from(stat.st_size).unwrap_or(0);
    let head = read_head(&mut file).map_err(|error| FileReadError::unreadable(&path, error))?;
    if binary::is_binary(&head, head.len() < HEAD_BYTES) {
        let file = binary::read(&mut file, head, size, stop)
            .map_err(|error| FileReadError::unreadable(&path, error))?;
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

/// The first bytes of a file; fewer only if the file is shorter.
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

/// The request for a text file after its head was read.
struct TextReadPlan {
    path: String,
    /// The system's size; 0 for files in `/proc` that have content.
    size: u64,
    offset: u64,
    limit: u64,
}

fn read_text(
    file: &mut File,
    head: Vec<u8>,
    plan: TextReadPlan,
    stop: &StopSign,
) -> Result<ReadFileContent, FileReadError> {
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
        count = read_some(file, &mut chunk)
            .map_err(|error| FileReadError::unreadable(&plan.path, error))?;
    };
    let window = window.finish(at_end);
    let TextReadPlan {
        path, size, offset, ..
    } = plan;
    if window.lines_shown == 0 && offset > 1 {
        return Err(match window.total_lines {
            Some(total) => FileReadError::PastTheEnd {
                path,
                total,
                offset,
            },
            None => FileReadError::TooFar { path, offset },
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
