//! A kept result as a stream of bytes, for work on a thread of its own.

use std::{
    cell::Cell,
    io::{self, Read},
    rc::Rc,
    sync::Arc,
};

use tokio::runtime::Handle;
use toolpost_model::StoredArtifact;
use toolpost_processes::StopSign;

use super::PIECE_BYTES;

/// Reads a result from its beginning, piece by piece. Fails when the call is canceled, or when more is read than
/// [`ResultReadBound`] allows.
pub(super) struct ResultReader<'s> {
    stored: Arc<dyn StoredArtifact>,
    /// The storage answers on the host's runtime; this waits for it on a blocking thread.
    runtime: Handle,
    stop: &'s StopSign,
    piece: Vec<u8>,
    taken: usize,
    offset: u64,
    bound: ResultReadBound,
}

/// The limit of a reader, set by the consumer of its bytes.
#[derive(Clone, Default)]
pub(super) struct ResultReadBound {
    passed: Rc<Cell<u64>>,
    until: Rc<Cell<Option<u64>>>,
}

impl ResultReadBound {
    /// Allows roughly this many further bytes: bytes between reader and parser count already.
    pub(super) fn set(&self, bytes: u64) {
        self.until
            .set(Some(self.passed.get().saturating_add(bytes)));
    }

    /// Removes the limit.
    pub(super) fn lift(&self) {
        self.until.set(None);
    }

    /// Removes the limit, unless reading ended there: then it stays visible.
    pub(super) fn lift_unless_met(&self) {
        if !self.was_met() {
            self.lift();
        }
    }

    /// Whether the limit ended the reading.
    pub(super) fn was_met(&self) -> bool {
        self.until
            .get()
            .is_some_and(|until| self.passed.get() >= until)
    }
}

impl<'s> ResultReader<'s> {
    pub(super) fn new(
        stored: Arc<dyn StoredArtifact>,
        runtime: Handle,
        stop: &'s StopSign,
    ) -> Self {
        let piece = Vec::new();
        let bound = ResultReadBound::default();
        Self {
            stored,
            runtime,
            stop,
            piece,
            taken: 0,
            offset: 0,
            bound,
        }
    }

    pub(super) fn bound(&self) -> ResultReadBound {
        self.bound.clone()
    }

    fn refill(&mut self) -> io::Result<()> {
        self.stop.check().map_err(io::Error::other)?;
        let read = self
            .runtime
            .block_on(self.stored.read(self.offset, PIECE_BYTES));
        self.piece = read.map_err(io::Error::other)?;
        self.offset += self.piece.len() as u64;
        self.taken = 0;
        Ok(())
    }
}

impl Read for ResultReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.bound.was_met() {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        if self.taken == self.piece.len() {
            self.refill()?;
        }
        let rest = &self.piece[self.taken..];
        let count = rest.len().min(buffer.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        self.taken += count;
        self.bound
            .passed
            .set(self.bound.passed.get() + count as u64);
        Ok(count)
    }
}
