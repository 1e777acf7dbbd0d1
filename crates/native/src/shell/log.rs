//! The output of a process, stored so that any part can be read again.
//!
//! The first bytes stay in memory, which is enough for most commands. A longer output goes to a spool file, up to a
//! limit; beyond it only the latest bytes are kept, and the rest is counted. Appending never waits for a reader.

use std::{collections::VecDeque, io, os::fd::OwnedFd, sync::Arc};

use parking_lot::Mutex;
use tokio::sync::watch;

use super::spool::SpoolDirectory;

/// How much stays in memory before a file is used.
const IN_MEMORY: usize = 256 * 1024;
/// How many of the latest bytes are kept beyond the limit.
const RECENT: usize = 64 * 1024;

pub(crate) struct OutputLog {
    kept: Mutex<OutputLogBuffer>,
    spool: SpoolDirectory,
    limit: u64,
    total: watch::Sender<u64>,
}

#[derive(Default)]
struct OutputLogBuffer {
    /// The first bytes, until there is a file.
    memory: Vec<u8>,
    file: Option<Arc<OwnedFd>>,
    in_file: u64,
    /// No more is stored: the limit is reached, or the disk is full.
    full: bool,
    /// The latest of the bytes that were not stored.
    recent: VecDeque<u8>,
    total: u64,
    lines: u64,
    ends_in_line: bool,
}

/// A part of the output.
pub(crate) struct OutputLogPage {
    pub(crate) bytes: Vec<u8>,
    /// Its position. Later than requested if earlier bytes are not stored any more.
    pub(crate) offset: u64,
    /// The number of all bytes that were written.
    pub(crate) total: u64,
}

impl OutputLogPage {
    /// The position of the next page.
    pub(crate) fn end(&self) -> u64 {
        self.offset + self.bytes.len() as u64
    }
}

/// The bytes that are written to the file next.
struct LogSpill {
    file: Option<Arc<OwnedFd>>,
    at: u64,
    data: Vec<u8>,
}

impl LogSpill {
    /// Writes the bytes. Returns the file, how many bytes fitted, and how many there were.
    fn write(self, spool: &SpoolDirectory, room: u64) -> io::Result<(Arc<OwnedFd>, usize, usize)> {
        let file = self.file.map_or_else(|| spool.create().map(Arc::new), Ok)?;
        let taken = spool.take((self.data.len() as u64).min(room));
        let fits = usize::try_from(taken).unwrap_or(usize::MAX);
        if let Err(error) = write_at(&file, &self.data[..fits], self.at) {
            spool.give_back(taken);
            return Err(error);
        }
        Ok((file, fits, self.data.len()))
    }
}

/// The location of a part.
enum OutputPartLocation {
    Here(Vec<u8>, u64),
    InFile(Arc<OwnedFd>, u64, usize),
}

impl OutputLog {
    pub(crate) fn new(spool: SpoolDirectory, limit: u64) -> Self {
        Self {
            kept: Mutex::default(),
            spool,
            limit,
            total: watch::Sender::new(0),
        }
    }

    /// Bytes written so far.
    pub(crate) fn total(&self) -> u64 {
        self.kept.lock().total
    }

    /// Lines written so far, including one without an end.
    pub(crate) fn lines(&self) -> u64 {
        let kept = self.kept.lock();
        kept.lines + u64::from(kept.ends_in_line)
    }

    /// Bytes that are not stored.
    pub(crate) fn dropped(&self) -> u64 {
        let kept = self.kept.lock();
        kept.total - kept.whole() - kept.recent.len() as u64
    }

    /// Bytes in the spool file.
    pub(crate) fn spooled(&self) -> u64 {
        self.kept.lock().in_file
    }

    /// Whether further output is not stored for long.
    pub(crate) fn is_full(&self) -> bool {
        self.kept.lock().full
    }

    /// Notifies of new output.
    pub(crate) fn watch(&self) -> watch::Receiver<u64> {
        self.total.subscribe()
    }

    /// Adds output. Only one task may call it: a spill is written without the lock, at the position that was read
    /// before, so two tasks would write to the same place.
    pub(crate) async fn append(&self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        let spill = {
            let mut kept = self.kept.lock();
            if kept.full {
                kept.remember(bytes);
                kept.count(bytes);
                None
            } else if kept.file.is_none() && kept.memory.len() + bytes.len() <= IN_MEMORY {
                kept.memory.extend_from_slice(bytes);
                kept.count(bytes);
                None
            } else {
                // Memory is copied and not taken: readers still find it while the file is written. It is cleared after
                // the write.
                Some(LogSpill {
                    file: kept.file.clone(),
                    at: kept.in_file,
                    data: [&kept.memory, bytes].concat(),
                })
            }
        };
        if let Some(spill) = spill {
            self.spill(spill, bytes).await;
        }
        let total = self.kept.lock().total;
        self.total.send_replace(total);
    }

    /// Writes to the file as much as fits. The bytes are counted only after that, so that readers never look for them
    /// in the file too early.
    async fn spill(&self, spill: LogSpill, bytes: &[u8]) {
        let spool = self.spool.clone();
        let room = self.limit.saturating_sub(spill.at);
        let written = tokio::task::spawn_blocking(move || spill.write(&spool, room)).await;
        let mut kept = self.kept.lock();
        match written {
            Ok(Ok((file, fits, length))) => {
                kept.file = Some(file);
                kept.memory = Vec::new();
                kept.in_file += fits as u64;
                kept.full = fits < length;
                kept.remember(&bytes[bytes.len() - (length - fits).min(bytes.len())..]);
            }
            // A full disk must not stop the command: its output is kept as far as memory allows.
            Ok(Err(_)) | Err(_) => {
                kept.full = true;
                kept.remember(bytes);
            }
        }
        kept.count(bytes);
    }

    /// Reads up to `limit` bytes from `offset` on.
    pub(crate) async fn read(&self, offset: u64, limit: usize) -> io::Result<OutputLogPage> {
        let (place, total) = {
            let kept = self.kept.lock();
            (kept.place(offset.min(kept.total), limit), kept.total)
        };
        match place {
            OutputPartLocation::Here(bytes, offset) => Ok(OutputLogPage {
                bytes,
                offset,
                total,
            }),
            OutputPartLocation::InFile(file, offset, length) => {
                let read =
                    tokio::task::spawn_blocking(move || read_at(&file, offset, length)).await;
                Ok(OutputLogPage {
                    bytes: read.map_err(io::Error::other)??,
                    offset,
                    total,
                })
            }
        }
    }
}

impl Drop for OutputLog {
    fn drop(&mut self) {
        self.spool.give_back(self.kept.lock().in_file);
    }
}

impl OutputLogBuffer {
    /// The position up to which the output is stored without a gap.
    fn whole(&self) -> u64 {
        if self.file.is_some() {
            self.in_file
        } else {
            self.memory.len() as u64
        }
    }

    fn count(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        self.lines += bytes.iter().filter(|&&byte| byte == b'\n').count() as u64;
        self.ends_in_line = bytes.last() != Some(&b'\n');
    }

    fn remember(&mut self, bytes: &[u8]) {
        self.recent
            .extend(&bytes[bytes.len().saturating_sub(RECENT)..]);
        let over = self.recent.len().saturating_sub(RECENT);
        self.recent.drain(..over);
    }

    fn place(&self, offset: u64, limit: usize) -> OutputPartLocation {
        let whole = self.whole();
        if offset < whole {
            let length = limit.min(usize::try_from(whole - offset).unwrap_or(usize::MAX));
            return match &self.file {
                Some(file) => OutputPartLocation::InFile(Arc::clone(file), offset, length),
                None => {
                    let start = usize::try_from(offset)
                        .unwrap_or(usize::MAX)
                        .min(self.memory.len());
                    OutputPartLocation::Here(self.memory[start..start + length].to_vec(), offset)
                }
            };
        }
        let recent_from = self.total - self.recent.len() as u64;
        let offset = offset.max(recent_from);
        let skip = usize::try_from(offset - recent_from).unwrap_or(usize::MAX);
        OutputPartLocation::Here(
            self.recent.iter().skip(skip).take(limit).copied().collect(),
            offset,
        )
    }
}

fn write_at(file: &OwnedFd, mut data: &[u8], mut at: u64) -> io::Result<()> {
    while !data.is_empty() {
        let written = rustix::io::retry_on_intr(|| rustix::io::pwrite(file, data, at))?;
        if written == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        data = &data[written..];
        at += written as u64;
    }
    Ok(())
}

fn read_at(file: &OwnedFd, offset: u64, length: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; length];
    let mut filled = 0;
    while filled < length {
        let read = rustix::io::retry_on_intr(|| {
            rustix::io::pread(file, &mut bytes[filled..], offset + filled as u64)
        })?;
        if read == 0 {
            break;
        }
        filled += read;
    }
    bytes.truncate(filled);
    Ok(bytes)
}

#[cfg(test)]
mod tests;
