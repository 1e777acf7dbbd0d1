//! The length of a run of bytes of one class.
//!
//! Secrets may begin within one another, as in `AKIAAKIA…`. Without a memory the same bytes would be read again for
//! each beginning, and a hostile text could multiply the cost of its search by the length of the longest secret. So the
//! last run of each class is remembered, and every byte is read once.

use super::shape::ByteClass;

/// The known runs of one window.
#[derive(Default)]
pub(super) struct ByteRuns {
    /// For each class, the last run that was read.
    read: Vec<(usize, ByteStretch)>,
    /// A stretch in which no private key ends.
    endless: ByteStretch,
    /// The number of bytes read.
    pub(super) steps: u64,
}

#[derive(Clone, Copy, Default)]
struct ByteStretch {
    from: usize,
    to: usize,
}

impl ByteStretch {
    /// The first unknown place from `at` on.
    fn beyond(self, at: usize) -> usize {
        if (self.from..=self.to).contains(&at) {
            self.to
        } else {
            at
        }
    }
}

/// The beginning of a private key's last line.
pub(super) const ENDING: &[u8] = b"-----END ";

impl ByteRuns {
    /// The number of bytes of a class from a place on, up to `most`.
    pub(super) fn run(&mut self, bytes: &[u8], at: usize, of: ByteClass, most: usize) -> usize {
        let limit = at.saturating_add(most).min(bytes.len());
        // A class is known by its address. The compiler may give a function several addresses, which costs a second
        // read, or give equal functions one address, which is harmless: they accept the same bytes.
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

    /// The beginning of a private key's last line, from `at` on and whole before `end`.
    pub(super) fn ending(&mut self, bytes: &[u8], at: usize, end: usize) -> Option<usize> {
        let begin = self.endless.beyond(at);
        let from = if begin == at { at } else { self.endless.from };
        let found = bytes
            .get(begin..end)
            .and_then(|rest| memchr::memmem::find(rest, ENDING));
        let to = match found {
            Some(place) => begin + place,
            // It may begin in the last bytes.
            None => begin.max(end.saturating_sub(ENDING.len() - 1)),
        };
        self.steps += (to - begin) as u64 + 1;
        self.endless = ByteStretch { from, to };
        found.map(|place| begin + place)
    }
}
