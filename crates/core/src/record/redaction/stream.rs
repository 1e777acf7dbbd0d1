//! A text that arrives in pieces. What could be the beginning of a secret is held back until more of it is there.

use std::sync::Arc;

use toolpost_model::Redactions;

use super::{RedactionWindow, Redactor, SecretFinding, replace, settled};

/// Takes the secrets out of a stream. However the stream is cut into pieces, what comes out is the same as if it had
/// come as one. Holds no more than what could still turn out to be a secret, which is bounded by the longest secret
/// that is looked for.
pub struct StreamRedactor {
    redactor: Arc<dyn Redactor>,
    /// What came and is not decided.
    held: Vec<u8>,
    /// How many bytes of `held` belong to a secret whose mark was written.
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

    /// Takes the next piece, and adds to `clean` what is known to hold no secret, with marks for those that were found.
    pub fn push(&mut self, piece: &[u8], clean: &mut Vec<u8>) {
        if self.held.is_empty() {
            // The usual case: nothing is copied but what goes out and the few bytes that are held back.
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

    /// Ends the stream, and says what was taken out of all of it. Another may begin with the next push.
    pub fn finish(&mut self, clean: &mut Vec<u8>) -> Redactions {
        let held = std::mem::take(&mut self.held);
        self.pass(&held, true, clean);
        self.cover = 0;
        std::mem::take(&mut self.counts)
    }

    /// How many bytes are held back.
    pub fn held(&self) -> usize {
        self.held.len()
    }

    /// Writes what is decided of a window, and says how much that was.
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
