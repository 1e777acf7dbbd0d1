//! Output as events: a few a second, of bounded size.
//!
//! Events end between lines if possible. That keeps characters and terminal sequences whole. It also keeps a secret on
//! one line within one event. The host's redaction holds back the end of an event in case a secret continues in the
//! next one, but after skipped bytes nothing continues, and half a secret is not recognised.

use std::time::{Duration, Instant};

use toolpost_model::{CallContext, OutputChunk, OutputStream};

use super::clean::{clean, whole_characters};

/// The least time between two events.
const EVERY: Duration = Duration::from_millis(80);
/// A line without an end is sent after this time without output.
const SILENCE: Duration = Duration::from_secs(1);
/// The most raw bytes of one event.
const SHOWN: usize = 8 * 1024;
/// The most bytes that wait for the next event. Older bytes are skipped.
const WAITING: usize = 64 * 1024;

/// The events of one stream of one process.
pub struct OutputEvents {
    context: CallContext,
    stream: OutputStream,
    waiting: Vec<u8>,
    skipped: u64,
    /// Counts of everything that was added.
    bytes: u64,
    lines: u64,
    last_sent: Option<Instant>,
    last_added: Instant,
}

impl OutputEvents {
    /// The events of `stream` for the listeners of one call.
    pub fn new(context: CallContext, stream: OutputStream) -> Self {
        Self {
            context,
            stream,
            waiting: Vec::new(),
            skipped: 0,
            bytes: 0,
            lines: 0,
            last_sent: None,
            last_added: Instant::now(),
        }
    }

    /// Adds output. `send` turns it into events.
    pub fn add(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        self.lines += line_ends(bytes);
        self.waiting.extend_from_slice(bytes);
        self.last_added = Instant::now();
        self.keep_latest(WAITING);
    }

    /// The time at which `send` should be called; `None` until more output is added.
    pub fn due(&self) -> Option<Instant> {
        if self.waiting.is_empty() {
            return None;
        }
        let next = self.last_sent.map_or(self.last_added, |sent| sent + EVERY);
        let whole = self.waiting.contains(&b'\n') || self.waiting.len() >= SHOWN;
        Some(if whole {
            next
        } else {
            next.max(self.last_added + SILENCE)
        })
    }

    /// Sends the output that is due: whole lines, or a line that has waited long enough for its end.
    pub fn send(&mut self) {
        let end = match self.waiting.iter().rposition(|&byte| byte == b'\n') {
            Some(at) => at + 1,
            None => whole_characters(&self.waiting),
        };
        self.send_first(end);
    }

    /// Sends the remaining output.
    pub fn finish(&mut self) {
        self.send_first(self.waiting.len());
    }

    fn send_first(&mut self, end: usize) {
        let rest = self.waiting.split_off(end);
        self.keep_latest(SHOWN);
        let sent = std::mem::replace(&mut self.waiting, rest);
        self.last_sent = Some(Instant::now());
        if sent.is_empty() && self.skipped == 0 {
            return;
        }
        self.context.output(OutputChunk {
            stream: self.stream,
            text: clean(&sent).text,
            bytes: self.bytes - self.waiting.len() as u64,
            lines: self.lines - line_ends(&self.waiting),
            skipped: std::mem::take(&mut self.skipped),
        });
    }

    /// Drops the oldest bytes beyond `limit`.
    fn keep_latest(&mut self, limit: usize) {
        let Some(over) = self
            .waiting
            .len()
            .checked_sub(limit)
            .filter(|over| *over > 0)
        else {
            return;
        };
        let line = self.waiting[over..].iter().position(|&byte| byte == b'\n');
        let from = line
            .map_or(over, |at| over + at + 1)
            .min(self.waiting.len());
        let from = if from == self.waiting.len() {
            over
        } else {
            from
        };
        self.waiting.drain(..from);
        self.skipped += from as u64;
    }
}

fn line_ends(bytes: &[u8]) -> u64 {
    bytes.iter().filter(|&&byte| byte == b'\n').count() as u64
}
