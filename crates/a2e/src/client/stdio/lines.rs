//! Splits bytes into lines of bounded length.

/// The kept part of a line that is too long.
const HEAD: usize = 4 << 10;

/// Splits incoming pieces into lines.
pub(super) struct LineSplitter {
    limit: usize,
    /// The beginning of an incomplete line.
    pending: Vec<u8>,
    /// Set when the line is too long; only its beginning is kept.
    too_long: bool,
}

/// One line, without its line end.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum SplitLine<'a> {
    Line(&'a [u8]),
    /// The beginning of a line that is too long.
    TooLong(&'a [u8]),
}

impl LineSplitter {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            limit,
            pending: Vec::new(),
            too_long: false,
        }
    }

    pub(super) fn feed(&mut self, mut piece: &[u8], each: &mut impl FnMut(SplitLine<'_>)) {
        while let Some(end) = memchr::memchr(b'\n', piece) {
            let line = &piece[..end];
            let rest = &piece[end + 1..];
            if self.pending.is_empty() && line.len() <= self.limit {
                whole(line, each);
            } else {
                self.keep(line);
                self.finish(each);
            }
            piece = rest;
        }
        self.keep(piece);
    }

    /// Ends the last line at the end of the input.
    pub(super) fn finish(&mut self, each: &mut impl FnMut(SplitLine<'_>)) {
        if std::mem::take(&mut self.too_long) {
            each(SplitLine::TooLong(&self.pending));
        } else {
            whole(&self.pending, each);
        }
        self.pending.clear();
        // The memory of one very large answer is released.
        self.pending.shrink_to(1 << 20);
    }

    fn keep(&mut self, piece: &[u8]) {
        if self.too_long {
            return;
        }
        if self.pending.len() + piece.len() <= self.limit {
            self.pending.extend_from_slice(piece);
            return;
        }
        self.too_long = true;
        let room = HEAD.min(self.limit).saturating_sub(self.pending.len());
        self.pending
            .extend_from_slice(&piece[..room.min(piece.len())]);
        self.pending.truncate(HEAD);
        self.pending.shrink_to(HEAD);
    }
}

/// Passes on a line, unless it is empty.
fn whole(line: &[u8], each: &mut impl FnMut(SplitLine<'_>)) {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    if !line.trim_ascii().is_empty() {
        each(SplitLine::Line(line));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn split(text: &[u8], cuts: &[usize], limit: usize) -> Vec<(bool, Vec<u8>)> {
        let mut found = Vec::new();
        let mut each = |line: SplitLine<'_>| match line {
            SplitLine::Line(line) => found.push((true, line.to_vec())),
            SplitLine::TooLong(head) => found.push((false, head.to_vec())),
        };
        let mut splitter = LineSplitter::new(limit);
        let mut rest = text;
        let mut cuts = cuts.iter().cycle();
        while !rest.is_empty() {
            let (piece, after) = rest.split_at((*cuts.next().unwrap()).clamp(1, rest.len()));
            splitter.feed(piece, &mut each);
            rest = after;
        }
        splitter.finish(&mut each);
        found
    }

    proptest! {
        #[test]
        fn pieces_do_not_matter(
            text in proptest::collection::vec(prop_oneof![Just(b'\n'), Just(b'\r'), Just(b'x'), any::<u8>()], 0..200),
            cuts in proptest::collection::vec(1_usize..20, 1..8),
        ) {
            prop_assert_eq!(split(&text, &cuts, 10), split(&text, &[usize::MAX], 10));
        }
    }

    #[test]
    fn long_lines_are_cut() {
        let text = b"short\r\n\n0123456789\n01234567890\nafter";
        let expected = [
            (true, b"short".to_vec()),
            (true, b"0123456789".to_vec()),
            (false, b"0123456789".to_vec()),
            (true, b"after".to_vec()),
        ];
        for cut in 1..text.len() {
            assert_eq!(split(text, &[cut], 10), expected, "{cut}");
        }
    }
}
