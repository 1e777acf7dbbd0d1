//! Events from a file or from standard input, one JSON text a line.
//!
//! A recorded stream of server-sent events is taken as well: a line of JSON never begins like a field of those.

use std::{
    io::{self, BufRead, BufReader, Read},
    path::{Path, PathBuf},
    time::Duration,
};

use super::{
    Beginning,
    heard::{Heard, Telling},
};
use crate::environment::GrowingFile;

/// Longer lines are left out.
pub(super) const LONGEST: usize = 16 << 20;
/// How often a followed file is looked at.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

/// A file to read.
pub(super) struct FileInput {
    pub(super) path: PathBuf,
    pub(super) from: Beginning,
    pub(super) follow: bool,
}

/// Reads standard input to its end. On a thread of its own, since nothing can interrupt it.
pub(super) fn read_stdin(to: Telling) {
    std::thread::spawn(move || {
        let mut lines = Lines::new(io::stdin());
        let end = tell_all(&mut lines, &to).and_then(|_| tell_rest(&mut lines, &to));
        let _ = to.blocking_send(Heard::End(end));
    });
}

/// Reads a file to its end, or for ever.
pub(super) fn read_file(input: FileInput, to: Telling) {
    std::thread::spawn(move || {
        let end = follow(&input, &to);
        let _ = to.blocking_send(Heard::End(end));
    });
}

fn follow(input: &FileInput, to: &Telling) -> anyhow::Result<()> {
    let mut file = GrowingFile::open(&input.path)?;
    match input.from {
        Beginning::Start => {}
        Beginning::Now => file.skip()?,
    }
    let mut lines = Lines::new(file);
    while tell_all(&mut lines, to)? == Audience::Listens {
        if !input.follow {
            return tell_rest(&mut lines, to);
        }
        if lines.source().renew()? {
            lines.forget();
            let note = format!("`{}` begins anew", name(&input.path));
            if to.blocking_send(Heard::Note(note)).is_err() {
                return Ok(());
            }
        } else {
            std::thread::sleep(LOOK_AGAIN);
        }
    }
    Ok(())
}

fn name(path: &Path) -> String {
    path.display().to_string()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Audience {
    Listens,
    Left,
}

/// Tells every whole line there is.
fn tell_all<R: Read>(lines: &mut Lines<R>, to: &Telling) -> anyhow::Result<Audience> {
    while let Some(line) = lines.next_line()? {
        if let Some(heard) = heard(line)
            && to.blocking_send(heard).is_err()
        {
            return Ok(Audience::Left);
        }
    }
    Ok(Audience::Listens)
}

/// Tells a last line that nobody ended.
fn tell_rest<R: Read>(lines: &mut Lines<R>, to: &Telling) -> anyhow::Result<()> {
    if let Some(heard) = lines.rest().and_then(heard) {
        let _ = to.blocking_send(heard);
    }
    Ok(())
}

fn heard(line: Line) -> Option<Heard> {
    let note = |why: &str| {
        Some(Heard::Note(format!(
            "line {} is left out: {why}",
            line.number
        )))
    };
    let Some(bytes) = line.bytes else {
        return note("it is too long");
    };
    let Ok(text) = String::from_utf8(bytes) else {
        return note("it is not text");
    };
    payload(&text).map(|text| Heard::Json(text.to_owned(), Some(line.number)))
}

/// The JSON of a line, where it holds some.
pub(super) fn payload(line: &str) -> Option<&str> {
    let line = line.trim().trim_start_matches('\u{feff}');
    let data = match line.split_once(':') {
        Some(("data", data)) => data.trim(),
        Some(("" | "event" | "id" | "retry", _)) => return None,
        Some(_) | None => line,
    };
    // What ends a stream for AI SDK's clients.
    (!data.is_empty() && data != "[DONE]").then_some(data)
}

/// A line with its number, from 1 on. One that was too long has nothing.
struct Line {
    number: u64,
    bytes: Option<Vec<u8>>,
}

/// Lines of bounded length from something that may grow.
struct Lines<R> {
    source: BufReader<R>,
    number: u64,
    begun: Vec<u8>,
    too_long: bool,
}

impl<R: Read> Lines<R> {
    fn new(source: R) -> Self {
        Self {
            source: BufReader::new(source),
            number: 0,
            begun: Vec::new(),
            too_long: false,
        }
    }

    fn source(&mut self) -> &mut R {
        self.source.get_mut()
    }

    /// The source begins anew.
    fn forget(&mut self) {
        (self.number, self.too_long) = (0, false);
        self.begun.clear();
    }

    /// The next whole line. `None`: there is none now.
    fn next_line(&mut self) -> io::Result<Option<Line>> {
        loop {
            let piece = match self.source.fill_buf() {
                Ok(piece) => piece,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            if piece.is_empty() {
                return Ok(None);
            }
            let end = piece.iter().position(|byte| *byte == b'\n');
            let part = &piece[..end.unwrap_or(piece.len())];
            if self.too_long || self.begun.len() + part.len() > LONGEST {
                self.too_long = true;
                self.begun = Vec::new();
            } else {
                self.begun.extend_from_slice(part);
            }
            let taken = end.map_or(piece.len(), |end| end + 1);
            self.source.consume(taken);
            if end.is_some() {
                return Ok(Some(self.line()));
            }
        }
    }

    /// What stands behind the last line end.
    fn rest(&mut self) -> Option<Line> {
        (self.too_long || !self.begun.is_empty()).then(|| self.line())
    }

    fn line(&mut self) -> Line {
        self.number += 1;
        let bytes = std::mem::take(&mut self.begun);
        let too_long = std::mem::take(&mut self.too_long);
        Line {
            number: self.number,
            bytes: (!too_long).then_some(bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{LONGEST, Lines, payload};

    #[test]
    fn what_a_line_holds() {
        for (line, expected) in [
            (r#"{"type":"tool-call"}"#, Some(r#"{"type":"tool-call"}"#)),
            ("  {} \r", Some("{}")),
            (r#"data: {"a":1}"#, Some(r#"{"a":1}"#)),
            ("data:{}", Some("{}")),
            ("data: [DONE]", None),
            ("event: tool-event", None),
            ("id: 7", None),
            (": still here", None),
            ("retry: 1", None),
            ("", None),
            ("\u{feff}{}", Some("{}")),
            // Told to whoever watches as broken, not swallowed.
            ("hello: you", Some("hello: you")),
        ] {
            assert_eq!(payload(line), expected, "{line:?}");
        }
    }

    #[test]
    fn lines_end_where_they_end() {
        let mut lines = Lines::new(&b"one\n\ntwo"[..]);
        let mut next = || {
            lines
                .next_line()
                .unwrap()
                .map(|line| (line.number, line.bytes))
        };
        assert_eq!(next(), Some((1, Some(b"one".to_vec()))));
        assert_eq!(next(), Some((2, Some(Vec::new()))));
        assert_eq!(next(), None);
        let rest = lines.rest().unwrap();
        assert_eq!((rest.number, rest.bytes), (3, Some(b"two".to_vec())));
        assert!(lines.rest().is_none());
    }

    #[test]
    fn a_line_that_is_too_long_is_left_out_and_held_by_nobody() {
        let mut text = vec![b'x'; LONGEST + 1];
        text.extend_from_slice(b"\nshort\n");
        let mut lines = Lines::new(&text[..]);
        let long = lines.next_line().unwrap().unwrap();
        assert_eq!((long.number, long.bytes), (1, None));
        assert_eq!(
            lines.next_line().unwrap().unwrap().bytes,
            Some(b"short".to_vec())
        );
    }
}
