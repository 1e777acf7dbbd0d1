//! The output of a component as events of its call: a few a second, of bounded size. The end of standard error is kept
//! for the failure, because guests print their reason there before they trap.

use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::{Duration, Instant},
};

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::io::AsyncWrite;
use toolpost_model::{CallContext, OutputChunk, OutputStream as Stream};
use wasmtime_wasi::{
    async_trait,
    cli::{IsTerminal, StdoutStream},
    p2::{OutputStream, Pollable, StreamResult},
};

/// The least time between two events of a stream.
const EVERY: Duration = Duration::from_millis(80);
/// The most raw bytes of one event. Earlier bytes are skipped.
const SHOWN: usize = 8 * 1024;
/// Bytes of one write.
const ROOM: usize = 64 * 1024;
/// The bytes of standard error that a failure carries.
const TAIL: usize = 2 * 1024;

/// Both output streams of an instance.
#[derive(Clone, Default)]
pub(crate) struct GuestOutput(Arc<Mutex<GuestOutputState>>);

#[derive(Default)]
struct GuestOutputState {
    context: Option<CallContext>,
    stdout: PendingOutput,
    stderr: PendingOutput,
    tail: Vec<u8>,
}

/// Output of one stream that no event carries yet.
#[derive(Default)]
struct PendingOutput {
    waiting: Vec<u8>,
    skipped: u64,
    bytes: u64,
    lines: u64,
    last_told: Option<Instant>,
}

impl GuestOutput {
    /// Starts the output of a call, or of a module that is loaded, and drops the state of the one before.
    pub(crate) fn begin(&self, context: Option<CallContext>) {
        *self.0.lock() = GuestOutputState {
            context,
            ..GuestOutputState::default()
        };
    }

    /// Sends the output that is due.
    pub(crate) fn pass_on(&self) {
        self.0.lock().tell(|written| written.is_due());
    }

    /// Sends the remaining output, and returns the end of standard error.
    pub(crate) fn finish(&self) -> String {
        let mut streams = self.0.lock();
        streams.tell(|_| true);
        plain(&std::mem::take(&mut streams.tail)).trim().to_owned()
    }

    pub(crate) fn stdout(&self) -> GuestOutputPipe {
        GuestOutputPipe {
            output: self.clone(),
            stream: Stream::Stdout,
        }
    }

    pub(crate) fn stderr(&self) -> GuestOutputPipe {
        GuestOutputPipe {
            output: self.clone(),
            stream: Stream::Stderr,
        }
    }

    fn write(&self, stream: Stream, bytes: &[u8]) {
        let mut streams = self.0.lock();
        if stream == Stream::Stderr {
            streams.tail.extend_from_slice(bytes);
            let over = streams.tail.len().saturating_sub(TAIL);
            streams.tail.drain(..over);
        }
        if streams.context.is_none() {
            return;
        }
        let written = match stream {
            Stream::Stderr => &mut streams.stderr,
            Stream::Stdout | Stream::Combined => &mut streams.stdout,
        };
        written.add(bytes);
        streams.tell(|written| written.is_due());
    }
}

impl GuestOutputState {
    fn tell(&mut self, when: impl Fn(&PendingOutput) -> bool) {
        let Some(context) = &self.context else { return };
        for (stream, written) in [
            (Stream::Stdout, &mut self.stdout),
            (Stream::Stderr, &mut self.stderr),
        ] {
            if when(written)
                && let Some(chunk) = written.chunk(stream)
            {
                context.output(chunk);
            }
        }
    }
}

impl PendingOutput {
    fn add(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        self.lines += bytes.iter().filter(|&&byte| byte == b'\n').count() as u64;
        self.waiting.extend_from_slice(bytes);
        let over = self.waiting.len().saturating_sub(SHOWN);
        self.waiting.drain(..over);
        self.skipped += over as u64;
    }

    /// Whole lines are sent as they arrive, but no more often than a reader can follow.
    fn is_due(&self) -> bool {
        let rested = self.last_told.is_none_or(|told| told.elapsed() >= EVERY);
        rested && self.waiting.contains(&b'\n')
    }

    fn chunk(&mut self, stream: Stream) -> Option<OutputChunk> {
        if self.waiting.is_empty() {
            return None;
        }
        self.last_told = Some(Instant::now());
        let text = plain(&std::mem::take(&mut self.waiting));
        let skipped = std::mem::take(&mut self.skipped);
        Some(OutputChunk {
            stream,
            text,
            bytes: self.bytes,
            lines: self.lines,
            skipped,
        })
    }
}

/// The valid text without control characters and terminal sequences.
fn plain(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if c == '\u{1b}' {
            // Colours and cursor movements are `ESC [ parameters letter` or two characters.
            if chars.next() == Some('[') {
                while chars.next_if(|c| !('@'..='~').contains(c)).is_some() {}
                chars.next();
            }
        } else if !c.is_control() || matches!(c, '\n' | '\t') {
            plain.push(c);
        }
    }
    plain
}

/// A guest's end of a stream. Writing to it never blocks the guest.
pub(crate) struct GuestOutputPipe {
    output: GuestOutput,
    stream: Stream,
}

impl IsTerminal for GuestOutputPipe {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl StdoutStream for GuestOutputPipe {
    fn async_stream(&self) -> Box<dyn AsyncWrite + Send + Sync> {
        Box::new(Self {
            output: self.output.clone(),
            stream: self.stream,
        })
    }

    fn p2_stream(&self) -> Box<dyn OutputStream> {
        Box::new(Self {
            output: self.output.clone(),
            stream: self.stream,
        })
    }
}

#[async_trait]
impl Pollable for GuestOutputPipe {
    async fn ready(&mut self) {}
}

#[async_trait]
impl OutputStream for GuestOutputPipe {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        self.output.write(self.stream, &bytes);
        Ok(())
    }

    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        Ok(ROOM)
    }
}

impl AsyncWrite for GuestOutputPipe {
    fn poll_write(
        self: Pin<&mut Self>,
        _context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.output.write(self.stream, bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn what_is_told_is_plain_text() {
        for (bytes, expected) in [
            (&b"one\ttwo\n"[..], "one\ttwo\n"),
            (b"\x1b[31mred\x1b[0m\r\n", "red\n"),
            (b"\x1b", ""),
            (b"\x1b[", ""),
            (b"a\x1bMb\x00c\x07", "abc"),
            (b"\xff\xfe", "\u{fffd}\u{fffd}"),
        ] {
            assert_eq!(plain(bytes), expected);
        }
    }
}
