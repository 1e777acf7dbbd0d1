//! The format with `*** Begin Patch`: plain paths, and hunks without line numbers.

use super::{FilePatch, FilePatchAction, Hunk, ParseError, PatchSyntaxProblem, finish, numbers};

pub(super) const BEGIN: &str = "*** Begin Patch";
const END: &str = "*** End Patch";
const ADD: &str = "*** Add File:";
const DELETE: &str = "*** Delete File:";
const UPDATE: &str = "*** Update File:";
const MOVE: &str = "*** Move to:";
const END_OF_FILE: &str = "*** End of File";

/// Parses the lines from `next` on, after `*** Begin Patch`.
pub(super) fn parse<'p>(lines: &[&'p str], next: usize) -> Result<Vec<FilePatch<'p>>, ParseError> {
    let mut reader = EnvelopePatchReader { lines, next };
    let mut files = Vec::new();
    loop {
        let number = reader.next + 1;
        let Some(line) = reader.take() else {
            return Err(PatchSyntaxProblem::NoEnd.at(number));
        };
        let header = line.trim_end();
        if header.is_empty() {
            continue;
        }
        if header == END {
            let rest = &lines[reader.next..];
            return match rest.iter().position(|line| !line.trim().is_empty()) {
                None => Ok(files),
                Some(at) => {
                    Err(PatchSyntaxProblem::BehindEnd(rest[at].to_owned()).at(reader.next + at + 1))
                }
            };
        }
        let file = if let Some(path) = header.strip_prefix(ADD) {
            FilePatch {
                path: name(path, number)?,
                change: reader.added()?,
            }
        } else if let Some(path) = header.strip_prefix(DELETE) {
            FilePatch {
                path: name(path, number)?,
                change: FilePatchAction::Delete { hunks: Vec::new() },
            }
        } else if let Some(path) = header.strip_prefix(UPDATE) {
            let path = name(path, number)?;
            let change = reader.updated()?;
            if matches!(&change, FilePatchAction::Update { hunks, move_to: None } if hunks.is_empty())
            {
                return Err(PatchSyntaxProblem::NoHunk(path.to_owned()).at(number));
            }
            FilePatch { path, change }
        } else {
            return Err(PatchSyntaxProblem::NoHeader(line.to_owned()).at(number));
        };
        files.push(file);
    }
}

fn name(text: &str, number: usize) -> Result<&str, ParseError> {
    match text.trim() {
        "" => Err(PatchSyntaxProblem::NoPath.at(number)),
        path => Ok(path),
    }
}

struct EnvelopePatchReader<'l, 'p> {
    lines: &'l [&'p str],
    next: usize,
}

impl<'p> EnvelopePatchReader<'_, 'p> {
    fn peek(&self) -> Option<&'p str> {
        self.lines.get(self.next).copied()
    }

    fn take(&mut self) -> Option<&'p str> {
        let line = self.peek()?;
        self.next += 1;
        Some(line)
    }

    /// Whether the next line begins another part of the patch.
    fn at_header(&self) -> bool {
        self.peek()
            .is_none_or(|line| line.starts_with("*** ") && line.trim_end() != END_OF_FILE)
    }

    fn added(&mut self) -> Result<FilePatchAction<'p>, ParseError> {
        let mut content = String::new();
        while !self.at_header() {
            let number = self.next + 1;
            let line = self.take().unwrap_or_default();
            match line.strip_prefix('+') {
                Some(text) => {
                    content.push_str(text);
                    content.push('\n');
                }
                None if line.trim().is_empty() && self.at_header() => {}
                None => return Err(PatchSyntaxProblem::NoAddedLine(line.to_owned()).at(number)),
            }
        }
        Ok(FilePatchAction::Add {
            content,
            executable: false,
        })
    }

    fn updated(&mut self) -> Result<FilePatchAction<'p>, ParseError> {
        let mut move_to = None;
        if let Some(target) = self
            .peek()
            .and_then(|line| line.trim_end().strip_prefix(MOVE))
        {
            self.next += 1;
            move_to = Some(name(target, self.next)?);
        }
        let mut hunks = Vec::new();
        let mut hunk = None::<Hunk<'p>>;
        let mut blank = 0;
        while !self.at_header() {
            let number = self.next + 1;
            let line = self.take().unwrap_or_default();
            if let Some(header) = line.strip_prefix("@@") {
                let complete = hunk.take_if(|hunk| !hunk.is_empty());
                close(&mut hunks, complete, blank)?;
                let current = hunk.get_or_insert_with(|| Hunk {
                    patch_line: number,
                    ..Hunk::default()
                });
                begin(current, header);
            } else if line.trim_end() == END_OF_FILE {
                if let Some(hunk) = &mut hunk {
                    hunk.drop_blank_end(blank);
                    hunk.at_end = true;
                }
            } else {
                let current = hunk.get_or_insert_with(|| Hunk {
                    patch_line: number,
                    ..Hunk::default()
                });
                // A hunk that has reached the end of the file has no more lines.
                if current.at_end && !line.trim().is_empty()
                    || !current.at_end && !current.take(line)
                {
                    return Err(PatchSyntaxProblem::NoHunkLine(line.to_owned()).at(number));
                }
            }
            blank = if line.is_empty() { blank + 1 } else { 0 };
        }
        close(&mut hunks, hunk, blank)?;
        Ok(FilePatchAction::Update { hunks, move_to })
    }
}

/// Parses the text after `@@`: numbers as in the other format, or a line above the hunk.
fn begin<'p>(hunk: &mut Hunk<'p>, header: &'p str) {
    let text = header.trim();
    match numbers(text) {
        Some(numbers) => hunk.stated = Some(numbers.start),
        None => match text.strip_suffix("@@").unwrap_or(text).trim() {
            "" => {}
            above => hunk.below.push(above),
        },
    }
}

fn close<'p>(
    hunks: &mut Vec<Hunk<'p>>,
    hunk: Option<Hunk<'p>>,
    blank: usize,
) -> Result<(), ParseError> {
    let Some(mut hunk) = hunk else { return Ok(()) };
    if !hunk.at_end {
        hunk.drop_blank_end(blank);
    }
    // Only blank lines between two parts of the patch.
    if hunk.is_empty() && hunk.below.is_empty() && hunk.stated.is_none() {
        return Ok(());
    }
    finish(hunks, hunk)
}
