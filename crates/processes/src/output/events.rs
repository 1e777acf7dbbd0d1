//! Output on its way to whoever watches: a few events a second, each of bounded size.
//!
//! Events end between lines where they can. That keeps characters and terminal sequences whole, and a secret that is
//! known to the redactor is not torn in two.

use std::time::{Duration, Instant};

use toolpost_model::{CallContext, OutputChunk, OutputStream};

use super::clean::{clean, whole_characters};

/// At most one event in this time.
const EVERY: Duration = Duration::from_millis(80);
/// A line without an end is shown after so long a silence.
const SILENCE: Duration = Duration::from_secs(1);
/// Most raw bytes of one event.
const SHOWN: usize = 8 * 1024;
/// Most that waits for the next event; of more than that the latest counts.
const WAITING: usize = 64 * 1024;

/// The events of one stream of one process.
pub struct OutputEvents {
    context: CallContext,
    stream: OutputStream,
    waiting: Vec<u8>,
    skipped: u64,
    /// Of all that was added.
    bytes: u64,
    lines: u64,
    last_sent: Option<Instant>,
    last_added: Instant,
}

impl OutputEvents {
    /// Events of `stream` for the listeners of one call.
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

    /// Takes a piece of output; `send` makes events of it.
    pub fn add(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        self.lines += line_ends(bytes);
        self.waiting.extend_from_slice(bytes);
        self.last_added = Instant::now();
        self.keep_latest(WAITING);
    }

    /// When `send` should be called. `None`: not before more was added.
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

    /// Sends what is due: whole lines, or what has waited long enough for its end.
    pub fn send(&mut self) {
        let end = match self.waiting.iter().rposition(|&byte| byte == b'\n') {
            Some(at) => at + 1,
            None => whole_characters(&self.waiting),
        };
        self.send_first(end);
    }

    /// Sends what is left.
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

    /// Forgets the oldest bytes beyond `limit`.
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
