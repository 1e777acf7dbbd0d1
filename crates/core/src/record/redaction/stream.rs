//! The redaction of a text that arrives in pieces. A possible beginning of a secret is held back until more bytes
//! decide.

use std::sync::Arc;

use toolpost_model::Redactions;

use super::{RedactionWindow, Redactor, SecretFinding, replace, settled};

/// Redacts a stream. The output does not depend on the cuts between pieces. Holds only bytes that could still become a
/// secret, at most the longest secret that is searched for.
pub struct StreamRedactor {
    redactor: Arc<dyn Redactor>,
    /// Bytes that are not decided.
    held: Vec<u8>,
    /// The number of bytes of `held` that belong to a secret with a written mark.
    cover: usize,
    found: Vec<SecretFinding>,
    counts: Redactions,
}

impl StreamRedactor {
    /// Begins a stream.
    pub fn new(redactor: Arc<dyn Redactor>) -> Self {
        Self {
            redactor,
            held: Vec::new(),
            cover: 0,
            found: Vec::new(),
            counts: Redactions::default(),
        }
    }

    /// Adds the next piece, and writes the decided bytes to `clean`, with marks in place of secrets.
    pub fn push(&mut self, piece: &[u8], clean: &mut Vec<u8>) {
        if self.held.is_empty() {
            // The usual case: only the output and the few held bytes are copied.
            let decided = self.pass(piece, false, clean);
            self.held.extend_from_slice(&piece[decided..]);
        } else {
            let mut held = std::mem::take(&mut self.held);
            held.extend_from_slice(piece);
            let decided = self.pass(&held, false, clean);
            held.drain(..decided);
            self.held = held;
        }
    }

    /// Ends the stream, and returns the counts of its secrets. The next push begins a new stream.
    pub fn finish(&mut self, clean: &mut Vec<u8>) -> Redactions {
        let held = std::mem::take(&mut self.held);
        self.pass(&held, true, clean);
        self.cover = 0;
        std::mem::take(&mut self.counts)
    }

    /// The number of held bytes.
    pub fn held(&self) -> usize {
        self.held.len()
    }

    /// Writes the decided bytes of a window, and returns their number.
    fn pass(&mut self, bytes: &[u8], is_last: bool, clean: &mut Vec<u8>) -> usize {
        self.found.clear();
        let decided = self
            .redactor
            .find(RedactionWindow { bytes, is_last }, &mut self.found);
        let decided = settled(&self.found, decided);
        replace(
            bytes,
            decided,
            &mut self.found,
            &mut self.cover,
            &mut self.counts,
            clean,
        );
        self.cover -= self.cover.min(decided);
        decided
    }
}
