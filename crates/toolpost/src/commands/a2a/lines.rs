//! Reads a file line by line, with a limit on the memory for a line.

use std::io::{self, BufRead, BufReader, Read};

/// The longest line that is read, in bytes.
pub(super) const LONGEST: usize = 16 << 20;

/// The most bytes of a line ending, and one more to detect a line over the limit.
const ENDING: u64 = 3;

/// Lines with their numbers.
pub(super) struct EventLineReader<R> {
    reader: BufReader<R>,
    line: Vec<u8>,
    number: u64,
    longest: usize,
}

#[derive(Debug)]
pub(super) enum EventInputLine<'a> {
    Text(&'a str),
    /// Empty, or a part of the stream's framing without an event.
    Blank,
    TooLong,
    /// It is not UTF-8.
    NoText,
}

impl<R: Read> EventLineReader<R> {
    pub(super) fn new(reader: R) -> Self {
        Self {
            reader: BufReader::with_capacity(64 << 10, reader),
            line: Vec::new(),
            number: 0,
            longest: LONGEST,
        }
    }

    /// Passes each line to `take`, with its number from 1 and whether another line can be read without a wait.
    pub(super) fn each<E: From<io::Error>>(
        mut self,
        mut take: impl FnMut(u64, EventInputLine<'_>, bool) -> Result<(), E>,
    ) -> Result<(), E> {
        while self.fill()? {
            let more = self.reader.buffer().contains(&b'\n');
            take(self.number, self.line(), more)?;
        }
        Ok(())
    }

    /// Reads a line up to the limit. `false` at the end.
    fn fill(&mut self) -> io::Result<bool> {
        self.line.clear();
        let most = self.longest as u64 + ENDING;
        if (&mut self.reader)
            .take(most)
            .read_until(b'\n', &mut self.line)?
            == 0
        {
            return Ok(false);
        }
        self.number += 1;
        if self.line.last() != Some(&b'\n') && self.line.len() as u64 == most {
            self.reader.skip_until(b'\n')?;
        }
        Ok(true)
    }

    fn line(&self) -> EventInputLine<'_> {
        let bytes = if self.number == 1 {
            without_mark(&self.line)
        } else {
            &self.line
        };
        let bytes = bytes.trim_ascii();
        if bytes.len() > self.longest {
            return EventInputLine::TooLong;
        }
        std::str::from_utf8(bytes).map_or(EventInputLine::NoText, event_data)
    }
}

/// The data of server-sent events, or the line itself. Events of several `data:` lines are not joined: no known sender
/// splits JSON that way.
fn event_data(line: &str) -> EventInputLine<'_> {
    let field = |name: &str| {
        line.strip_prefix(name)
            .is_some_and(|rest| rest.starts_with(':'))
    };
    if line.starts_with(':') || ["event", "id", "retry"].into_iter().any(field) {
        return EventInputLine::Blank;
    }
    match line
        .strip_prefix("data:")
        .unwrap_or(line)
        .trim_ascii_start()
    {
        "" | "[DONE]" => EventInputLine::Blank,
        text => EventInputLine::Text(text),
    }
}

/// The text without the byte order mark of some editors.
fn without_mark(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes)
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::EventLineReader;

    fn read(text: &[u8], longest: usize) -> Vec<String> {
        let lines = EventLineReader {
            longest,
            ..EventLineReader::new(text)
        };
        let mut read = Vec::new();
        let taken: io::Result<()> = lines.each(|number, line, _| {
            assert_eq!(number, read.len() as u64 + 1);
            read.push(format!("{line:?}"));
            Ok(())
        });
        taken.unwrap();
        read
    }

    #[test]
    fn lines_as_they_are_and_as_server_sent_events() {
        let text = "\u{feff}{\"a\":1}\r\n\n  \n: comment\nevent: tool-event\nid: 7\nretry:1\ndata: {}\ndata:[1]\ndata: [DONE]\n9:{}\nlast";
        let said = [
            "Text(\"{\\\"a\\\":1}\")",
            "Blank",
            "Blank",
            "Blank",
            "Blank",
            "Blank",
            "Blank",
            "Text(\"{}\")",
            "Text(\"[1]\")",
            "Blank",
            "Text(\"9:{}\")",
            "Text(\"last\")",
        ];
        assert_eq!(read(text.as_bytes(), 100), said);
    }

    #[test]
    fn what_is_too_long_or_no_text_is_passed_over() {
        assert_eq!(
            read(b"12345\n123456\n1234567890\n\xff\nx", 5),
            [
                "Text(\"12345\")",
                "TooLong",
                "TooLong",
                "NoText",
                "Text(\"x\")"
            ]
        );
        assert_eq!(read(b"12345\r\n", 5), ["Text(\"12345\")"]);
        assert_eq!(read(b"1234567890", 5), ["TooLong"]);
        assert_eq!(read(b"", 5), Vec::<String>::new());
    }
}
