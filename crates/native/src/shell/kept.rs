//! Stores a whole output in the form that a model reads, so that no colour sequence hides a secret from redaction.

use std::{io, sync::Arc};

use toolpost_model::{ArtifactError, ArtifactRef, ArtifactSink, CallContext, StoredArtifact};
use toolpost_processes::{clean, whole_characters};

use super::{log::OutputLog, told::count};

/// How much of an output is passed on at once, and the longest line that is cleaned as one.
const PIECE_BYTES: usize = 256 << 10;
/// How much decides whether it is text.
const HEAD_BYTES: usize = 8 << 10;

pub(crate) struct KeptOutput {
    pub(crate) about: ArtifactRef,
    pub(crate) lines: u64,
    stored: Arc<dyn StoredArtifact>,
}

impl KeptOutput {
    pub(crate) async fn read(&self, offset: u64, limit: usize) -> io::Result<Vec<u8>> {
        self.stored
            .read(offset, limit)
            .await
            .map_err(io::Error::other)
    }
}

/// Stores an output. An output that is not text is stored unchanged.
pub(crate) async fn keep(
    log: &OutputLog,
    context: &CallContext,
) -> Result<KeptOutput, ArtifactError> {
    let head = read(log, 0, HEAD_BYTES).await?;
    let is_text = !head.bytes.contains(&0);
    let media_type = if is_text {
        "text/plain; charset=utf-8"
    } else {
        "application/octet-stream"
    };
    let mut handing = OutputHandover {
        sink: context.create_artifact("output", media_type).await?,
        is_text,
        unfinished: Vec::new(),
        lines: 0,
        ends_in_line: false,
    };
    let mut at = 0;
    loop {
        let page = read(log, at, PIECE_BYTES).await?;
        if page.bytes.is_empty() {
            break;
        }
        if page.offset > at {
            handing.finish_line().await?;
            let mark = format!(
                "\n[… {} were not kept …]\n",
                count(page.offset - at, "byte")
            );
            handing.write(mark.as_bytes()).await?;
        }
        handing.take(&page.bytes).await?;
        at = page.end();
    }
    handing.finish_line().await?;
    let lines = handing.lines + u64::from(handing.ends_in_line);
    let about = handing.sink.finish().await?;
    let stored = context.open_artifact(about.id).await?;
    Ok(KeptOutput {
        about,
        lines,
        stored,
    })
}

async fn read(
    log: &OutputLog,
    at: u64,
    limit: usize,
) -> Result<super::log::OutputLogPage, ArtifactError> {
    log.read(at, limit)
        .await
        .map_err(|error| ArtifactError::Storage(error.to_string()))
}

/// An output on its way. It is cleaned line by line, because a sequence or a character may extend over two pieces.
struct OutputHandover {
    sink: Box<dyn ArtifactSink>,
    is_text: bool,
    /// The beginning of a line without its end.
    unfinished: Vec<u8>,
    lines: u64,
    ends_in_line: bool,
}

impl OutputHandover {
    async fn take(&mut self, bytes: &[u8]) -> Result<(), ArtifactError> {
        if !self.is_text {
            return self.write(bytes).await;
        }
        self.unfinished.extend_from_slice(bytes);
        let end = match self.unfinished.iter().rposition(|&byte| byte == b'\n') {
            Some(last) => last + 1,
            // A line without an end is not held for ever.
            None if self.unfinished.len() > PIECE_BYTES => whole_characters(&self.unfinished),
            None => return Ok(()),
        };
        let rest = self.unfinished.split_off(end);
        self.finish_line().await?;
        self.unfinished = rest;
        Ok(())
    }

    async fn finish_line(&mut self) -> Result<(), ArtifactError> {
        let whole = std::mem::take(&mut self.unfinished);
        let cleaned = clean(&whole);
        self.write(cleaned.text.as_bytes()).await
    }

    async fn write(&mut self, bytes: &[u8]) -> Result<(), ArtifactError> {
        self.lines += bytes.iter().filter(|&&byte| byte == b'\n').count() as u64;
        self.ends_in_line = bytes
            .last()
            .map_or(self.ends_in_line, |&last| last != b'\n');
        self.sink.write(bytes).await
    }
}
