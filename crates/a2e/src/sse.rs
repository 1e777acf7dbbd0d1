//! Parses server-sent events incrementally: any cut between pieces, any of the three line ends, several data lines in
//! an event. Each byte is processed once, and all buffers are bounded.
//!
//! The client reads a host's messages with this parser. The parser opens no connection and does not depend on A2E's
//! messages, so it can read any stream of events.
//!
//! The crate `sse-stream` does not fit: it keeps a line of any length, fails on text that is not UTF-8, and reports
//! neither comments nor the beginning of an event that is too long, which names the call that failed.

/// The kept part of an event that is too long.
const HEAD: usize = 4 << 10;
/// Longer event ids are ignored.
const ID_LIMIT: usize = 1 << 10;
/// The prefix of a data line.
const FIELD: usize = "data: ".len();
/// Buffers up to this size are kept for the next event.
const KEPT: usize = 1 << 20;

/// An item of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sse<'a> {
    /// The data lines of one event, joined.
    Event(&'a [u8]),
    /// The beginning of an event that is too long.
    TooLong(&'a [u8]),
    /// A comment, which shows that the host is alive.
    Comment,
}

/// Parses one stream. Call [`SseParser::restart`] for a new stream.
#[derive(Debug)]
pub struct SseParser {
    limit: usize,
    /// The beginning of an incomplete line.
    line: Vec<u8>,
    /// The data of the current event, each line with its line end.
    data: Vec<u8>,
    too_long: bool,
    /// The id of the current event.
    id: Option<String>,
    /// The id of the last whole event.
    last_id: Option<String>,
    /// Whether the last byte was a carriage return; a newline that follows belongs to it.
    after_return: bool,
}

impl SseParser {
    /// A parser for events with at most `limit` bytes of data. Of longer events it reports only the beginning.
    pub fn new(limit: usize) -> Self {
        Self {
            limit,
            line: Vec::new(),
            data: Vec::new(),
            too_long: false,
            id: None,
            last_id: None,
            after_return: false,
        }
    }

    /// The id of the last whole event, for resuming the stream after it.
    pub fn last_id(&self) -> Option<&str> {
        self.last_id.as_deref()
    }

    /// Prepares for a new stream. An incomplete event is dropped; the host sends it again.
    pub fn restart(&mut self) {
        let last_id = self.last_id.take();
        *self = Self {
            last_id,
            ..Self::new(self.limit)
        };
    }

    /// Takes in the next bytes of the stream and passes each complete item to `each`.
    pub fn feed(&mut self, mut piece: &[u8], each: &mut impl FnMut(Sse<'_>)) {
        if std::mem::take(&mut self.after_return) {
            piece = match piece {
                [] => return self.after_return = true,
                [b'\n', rest @ ..] => rest,
                rest => rest,
            };
        }
        while let Some(end) = memchr::memchr2(b'\n', b'\r', piece) {
            let line = &piece[..end];
            let ending = piece[end];
            let rest = &piece[end + 1..];
            if self.line.is_empty() && !self.too_long {
                self.take_line(line, each);
            } else {
                self.keep(line);
                let line = std::mem::take(&mut self.line);
                self.take_line(&line, each);
                self.line = reuse(line);
            }
            piece = match (ending, rest) {
                (b'\r', []) => return self.after_return = true,
                (b'\r', [b'\n', rest @ ..]) => rest,
                (_, rest) => rest,
            };
        }
        self.keep(piece);
    }

    /// Keeps a part of a line. In an event that is too long, only the beginning is kept.
    fn keep(&mut self, part: &[u8]) {
        if self.too_long && self.line.len() + part.len() > HEAD {
            // In a skipped event, the parser only needs to know whether a line is empty.
            let room = HEAD - self.line.len().min(HEAD);
            self.line.extend_from_slice(&part[..room.min(part.len())]);
        } else if self.data.len() + self.line.len() + part.len() > self.limit + FIELD {
            self.give_up();
            self.line.truncate(HEAD);
            let room = HEAD - self.line.len();
            self.line.extend_from_slice(&part[..room.min(part.len())]);
        } else {
            self.line.extend_from_slice(part);
        }
    }

    fn give_up(&mut self) {
        self.too_long = true;
        self.data.truncate(HEAD);
        self.data.shrink_to(HEAD);
    }

    fn take_line(&mut self, line: &[u8], each: &mut impl FnMut(Sse<'_>)) {
        let (field, value) = match memchr::memchr(b':', line) {
            None if line.is_empty() => return self.dispatch(each),
            None => (line, &line[..0]),
            Some(0) => return each(Sse::Comment),
            Some(colon) => {
                let value = &line[colon + 1..];
                (&line[..colon], value.strip_prefix(b" ").unwrap_or(value))
            }
        };
        match field {
            b"data" => self.take_data(value),
            b"id" if value.len() <= ID_LIMIT && !value.contains(&0) => {
                self.id = std::str::from_utf8(value).ok().map(str::to_owned);
            }
            // `event` and `retry` have no meaning here, and unknown fields are ignored.
            _ => {}
        }
    }

    fn take_data(&mut self, value: &[u8]) {
        if !self.too_long && self.data.len() + value.len() > self.limit {
            self.give_up();
        }
        let room = if self.too_long {
            HEAD.saturating_sub(self.data.len())
        } else {
            value.len()
        };
        self.data.extend_from_slice(&value[..room.min(value.len())]);
        if !self.too_long {
            self.data.push(b'\n');
        }
    }

    fn dispatch(&mut self, each: &mut impl FnMut(Sse<'_>)) {
        let data = std::mem::take(&mut self.data);
        if std::mem::take(&mut self.too_long) {
            each(Sse::TooLong(&data));
        } else if let Some(data) = data.strip_suffix(b"\n") {
            each(Sse::Event(data));
        }
        self.data = reuse(data);
        if let Some(id) = self.id.take() {
            // An empty id resets the last one.
            self.last_id = Some(id).filter(|id| !id.is_empty());
        }
    }
}

/// Empties a buffer for reuse and releases the memory of a very large one.
fn reuse(mut buffer: Vec<u8>) -> Vec<u8> {
    buffer.clear();
    buffer.shrink_to(KEPT);
    buffer
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Debug, PartialEq, Eq)]
    enum Said {
        Event(String),
        TooLong,
        Comment,
    }

    /// The items and the last id after parsing a text that is cut into pieces of these sizes.
    fn said(text: &[u8], cuts: &[usize], limit: usize) -> (Vec<Said>, Option<String>) {
        let mut parser = SseParser::new(limit);
        let mut found = Vec::new();
        let mut each = |sse: Sse<'_>| {
            found.push(match sse {
                Sse::Event(data) => Said::Event(String::from_utf8_lossy(data).into_owned()),
                Sse::TooLong(_) => Said::TooLong,
                Sse::Comment => Said::Comment,
            });
        };
        let mut rest = text;
        let mut cuts = cuts.iter().cycle();
        while !rest.is_empty() {
            let (piece, after) = rest.split_at((*cuts.next().unwrap()).clamp(1, rest.len()));
            parser.feed(piece, &mut each);
            rest = after;
        }
        (found, parser.last_id)
    }

    fn check(text: &str, expected: &[Said], id: Option<&str>) {
        for cut in 1..=text.len() {
            let (found, last_id) = said(text.as_bytes(), &[cut], 100);
            assert_eq!(
                (&*found, last_id.as_deref()),
                (expected, id),
                "cut after {cut}: {text:?}"
            );
        }
    }

    fn event(text: &str) -> Said {
        Said::Event(text.to_owned())
    }

    #[test]
    fn fields() {
        check("data: {}\n\n", &[event("{}")], None);
        check(
            "data:{}\r\n\r\ndata: b\r\rdata: c\n\n",
            &[event("{}"), event("b"), event("c")],
            None,
        );
        check(
            "data: a\ndata:  b\ndata\ndata: c\n\n",
            &[event("a\n b\n\nc")],
            None,
        );
        check(
            ": alive\n\n:\n\nid: 1-7\nevent: x\nretry: 3\nother\n\n",
            &[Said::Comment, Said::Comment],
            Some("1-7"),
        );
        check(
            "id: 1\ndata: a\n\nid: 2\ndata: half",
            &[event("a")],
            Some("1"),
        );
        check(
            "id: 1\ndata: a\n\nid\ndata: b\n\n",
            &[event("a"), event("b")],
            None,
        );
        check("data: a:b: c\n\n\n\n\n", &[event("a:b: c")], None);
        check("data: \n\n", &[event("")], None);
    }

    #[test]
    fn long_events_are_skipped_whole() {
        let long = "x".repeat(101);
        check(
            &format!("id: 1\ndata: {long}\n\ndata: b\n\n"),
            &[Said::TooLong, event("b")],
            Some("1"),
        );
        let lines = "data: 0123456789\n".repeat(12);
        check(
            &format!("{lines}\ndata: b\n\n"),
            &[Said::TooLong, event("b")],
            None,
        );
        check(
            &format!(": {}\n\ndata: b\n\n", "y".repeat(50)),
            &[Said::Comment, event("b")],
            None,
        );
    }

    #[test]
    fn memory_is_bounded() {
        let mut parser = SseParser::new(1 << 10);
        for _ in 0..10_000 {
            parser.feed(&[b'x'; 1_000], &mut |_| {});
        }
        assert!(parser.line.capacity() + parser.data.capacity() < 64 << 10);
    }

    proptest! {
        #[test]
        fn pieces_do_not_matter(
            parts in proptest::collection::vec(
                prop_oneof![
                    Just("\n"), Just("\r\n"), Just("\r"), Just("data: "), Just("data:"), Just("id: 4"), Just(": x"),
                    Just("{\"a\":1}"), Just("\u{2028}é"), Just("\n\n"), Just("event: e"),
                ],
                0..60,
            ),
            cuts in proptest::collection::vec(1_usize..9, 1..8),
        ) {
            let text = parts.concat();
            prop_assert_eq!(said(text.as_bytes(), &cuts, 4_000), said(text.as_bytes(), &[usize::MAX], 4_000));
        }

        #[test]
        fn messages_come_out_as_they_went_in(
            messages in proptest::collection::vec("[ -~\u{e9}\u{2028}]{0,80}(\n[ -~]{0,80}){0,3}", 1..8),
            ending in prop_oneof![Just("\n"), Just("\r\n"), Just("\r")],
            cuts in proptest::collection::vec(1_usize..30, 1..8),
        ) {
            let mut text = String::new();
            for message in &messages {
                for line in message.split('\n') {
                    text.push_str(&format!("data: {line}{ending}"));
                }
                text.push_str(ending);
            }
            let (found, _) = said(text.as_bytes(), &cuts, 4_000);
            prop_assert_eq!(found, messages.into_iter().map(Said::Event).collect::<Vec<_>>());
        }
    }
}
