//! How far a run of bytes of one class reaches. Secrets may begin within one another, as in `AKIAAKIA…`, so that the same
//! bytes would be read once for each beginning; what was read is remembered, and read once.

use super::shape::ByteClass;

/// What is known of one window.
#[derive(Default)]
pub(super) struct ByteRuns {
    /// For each class, the stretch that was read last and is of it as a whole.
    read: Vec<(usize, ByteStretch)>,
    /// A stretch in which no private key ends.
    endless: ByteStretch,
    /// How many bytes were read.
    pub(super) steps: u64,
}

#[derive(Clone, Copy, Default)]
struct ByteStretch {
    from: usize,
    to: usize,
}

impl ByteStretch {
    /// Where to go on from `at`: what lies between is known.
    fn beyond(self, at: usize) -> usize {
        if (self.from..=self.to).contains(&at) {
            self.to
        } else {
            at
        }
    }
}

/// What the last line of a private key begins with.
pub(super) const ENDING: &[u8] = b"-----END ";

impl ByteRuns {
    /// How many bytes of a class stand at a place, up to `most`.
    pub(super) fn run(&mut self, bytes: &[u8], at: usize, of: ByteClass, most: usize) -> usize {
        let limit = at.saturating_add(most).min(bytes.len());
        // One class may have several addresses, or several one: then they have the same bytes.
        let class = of as usize;
        let known = match self.read.iter().position(|(known, _)| *known == class) {
            Some(place) => place,
            None => {
                self.read.push((class, ByteStretch { from: at, to: at }));
                self.read.len() - 1
            }
        };
        let stretch = &mut self.read[known].1;
        let begin = stretch.beyond(at);
        if begin >= limit {
            return limit - at;
        }
        let more = bytes[begin..limit]
            .iter()
            .take_while(|&&byte| of(byte))
            .count();
        self.steps += more as u64 + 1;
        *stretch = ByteStretch {
            from: if begin == at { at } else { stretch.from },
            to: begin + more,
        };
        begin + more - at
    }

    /// Where the last line of a private key begins, at or behind `at` and as a whole before `end`.
    pub(super) fn ending(&mut self, bytes: &[u8], at: usize, end: usize) -> Option<usize> {
        let begin = self.endless.beyond(at);
        let from = if begin == at { at } else { self.endless.from };
        let found = bytes
            .get(begin..end)
            .and_then(|rest| memchr::memmem::find(rest, ENDING));
        let to = match found {
            Some(place) => begin + place,
            // It may begin at the very end.
            None => begin.max(end.saturating_sub(ENDING.len() - 1)),
        };
        self.steps += (to - begin) as u64 + 1;
        self.endless = ByteStretch { from, to };
        found.map(|place| begin + place)
    }
}
