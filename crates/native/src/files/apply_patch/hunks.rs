//! Applies hunks to a text. Every old line must be in the text; only its position may differ. No I/O.

use std::{borrow::Cow, fmt};

use super::patch::{Hunk, HunkLineSide};
use crate::files::lines::{LineIndex, TextLine, TextLineEnding, split, words};
use toolpost_processes::{CallStopError, shown};

/// The most places that the message about an ambiguous hunk lists.
const TOLD_PLACES: usize = 5;
/// The most lines of a text. Placing hunks takes many times the size of a line.
pub(super) const MOST_LINES: usize = 1_000_000;
/// Some text files begin with it; patches never contain it.
const BYTE_ORDER_MARK: char = '\u{feff}';

/// A hunk that does not fit.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct HunkMisfit {
    /// The hunk's line in the patch.
    pub(super) patch_line: usize,
    pub(super) kind: MisfitKind,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum MisfitKind {
    /// The first line that differs, at the place with the longest match.
    NotFound {
        line: usize,
        expected: String,
        found: Option<String>,
    },
    /// All lines are there, with other blanks.
    Blanks {
        line: usize,
    },
    /// It belongs before a hunk that was already applied.
    OutOfOrder {
        line: usize,
    },
    Ambiguous {
        lines: Vec<usize>,
    },
    /// The line after `@@` is not in the file.
    NothingAbove {
        text: String,
    },
    /// Lines are to be added beyond the end of the file.
    BeyondEnd {
        line: usize,
        lines: usize,
    },
}

impl MisfitKind {
    pub(super) fn code(&self) -> &'static str {
        match self {
            Self::Ambiguous { .. } => "ambiguous",
            Self::NotFound { .. }
            | Self::Blanks { .. }
            | Self::OutOfOrder { .. }
            | Self::NothingAbove { .. }
            | Self::BeyondEnd { .. } => "no_match",
        }
    }
}

impl fmt::Display for MisfitKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFound {
                line,
                expected,
                found: Some(found),
            } => {
                write!(
                    f,
                    "line {line} is `{}`, expected `{}`",
                    shown(found),
                    shown(expected)
                )
            }
            Self::NotFound {
                line,
                expected,
                found: None,
            } => {
                write!(
                    f,
                    "the file ends before line {line}, expected `{}`",
                    shown(expected)
                )
            }
            Self::Blanks { line } => {
                write!(f, "the lines from {line} on differ from it only in blanks")
            }
            Self::OutOfOrder { line } => {
                write!(
                    f,
                    "its lines are at line {line}, before those of an earlier hunk"
                )
            }
            Self::Ambiguous { lines } => {
                let told: Vec<_> = lines
                    .iter()
                    .take(TOLD_PLACES)
                    .map(usize::to_string)
                    .collect();
                let more = if lines.len() > TOLD_PLACES {
                    " and more"
                } else {
                    ""
                };
                write!(
                    f,
                    "its lines occur several times, from lines {}{more} on",
                    told.join(", ")
                )
            }
            Self::NothingAbove { text } => {
                write!(f, "there is no line `{}` for its `@@`", shown(text))
            }
            Self::BeyondEnd { line, lines } => {
                write!(f, "it adds after line {line}, but the file has {lines}")
            }
        }
    }
}

/// Why there is no new text.
#[derive(Debug)]
pub(super) enum HunkError {
    Misfit(HunkMisfit),
    /// The text has too many lines.
    TooManyLines,
    Stopped(CallStopError),
}

impl From<CallStopError> for HunkError {
    fn from(stopped: CallStopError) -> Self {
        Self::Stopped(stopped)
    }
}

/// Applies hunks in their order. `go_on` is called before each, because a hunk is searched in the whole text.
pub(super) fn apply(
    content: &str,
    hunks: &[Hunk<'_>],
    go_on: &dyn Fn() -> Result<(), CallStopError>,
) -> Result<String, HunkError> {
    let text = content.strip_prefix(BYTE_ORDER_MARK).unwrap_or(content);
    if text.bytes().filter(|byte| *byte == b'\n').count() >= MOST_LINES {
        return Err(HunkError::TooManyLines);
    }
    let lines = split(text);
    let index = LineIndex::new(lines.iter().map(|line| line.text));
    let mut patched = HunkApplication {
        lines: &lines,
        result: Vec::new(),
        done: 0,
        drift: 0,
        end: EndOfFile::AsBefore,
    };
    for hunk in hunks {
        go_on()?;
        let misfit = |kind| {
            HunkError::Misfit(HunkMisfit {
                patch_line: hunk.patch_line,
                kind,
            })
        };
        let at = patched.find(&index, hunk).map_err(misfit)?;
        patched.put(hunk, at);
    }
    let mut result = String::with_capacity(content.len() + 1024);
    result.push_str(&content[..content.len() - text.len()]);
    patched.finish(&mut result);
    Ok(result)
}

struct HunkApplication<'t> {
    lines: &'t [TextLine<'t>],
    result: Vec<TextLine<'t>>,
    /// How many old lines are processed.
    done: usize,
    /// The distance of the last hunk from its stated line.
    drift: isize,
    end: EndOfFile,
}

/// The end of the new text.
#[derive(Clone, Copy, PartialEq, Eq)]
enum EndOfFile {
    /// With a newline if the old text has one.
    AsBefore,
    Newline,
    Open,
}

impl<'t> HunkApplication<'t> {
    /// The position of a hunk: the stated one, or the only other one.
    fn find(&self, index: &LineIndex<'_>, hunk: &Hunk<'_>) -> Result<usize, MisfitKind> {
        let wanted: Vec<&str> = hunk.old_lines().collect();
        let from = self.below(hunk)?;
        if wanted.is_empty() {
            return self.gap(hunk, from);
        }
        let stated = hunk
            .stated
            .and_then(|line| line.saturating_sub(1).checked_add_signed(self.drift));
        if let Some(at) = stated.filter(|at| *at >= self.done && index.stands_at(&wanted, *at)) {
            return Ok(at);
        }
        if hunk.at_end {
            let at = self.lines.len().saturating_sub(wanted.len());
            if at >= from && index.stands_at(&wanted, at) {
                return Ok(at);
            }
        }
        let search = index.search(&wanted, from, TOLD_PLACES + 1);
        match search.found.as_slice() {
            [] => Err(self.explain(index, &wanted, search.longest)),
            [only] => Ok(*only),
            // The line after `@@` selects one: the first match below it.
            [first, ..] if !hunk.below.is_empty() => Ok(*first),
            several => Err(MisfitKind::Ambiguous {
                lines: several.iter().map(|at| at + 1).collect(),
            }),
        }
    }

    /// The start of the search: below the lines that the hunk's `@@` names.
    fn below(&self, hunk: &Hunk<'_>) -> Result<usize, MisfitKind> {
        hunk.below.iter().try_fold(self.done, |from, text| {
            let rest = &self.lines[from..];
            let exact = rest.iter().position(|line| line.text == *text);
            let at = exact.or_else(|| rest.iter().position(|line| line.text.trim() == text.trim()));
            // The line may be context of the previous hunk, which was already consumed.
            let at = at.map(|at| from + at + 1).or_else(|| {
                self.lines[..from]
                    .iter()
                    .rposition(|line| line.text.trim() == text.trim())
                    .map(|_| from)
            });
            at.ok_or_else(|| MisfitKind::NothingAbove {
                text: (*text).to_owned(),
            })
        })
    }

    /// The position of a hunk that only adds lines.
    fn gap(&self, hunk: &Hunk<'_>, from: usize) -> Result<usize, MisfitKind> {
        match hunk.stated {
            _ if hunk.at_end => Ok(self.lines.len()),
            Some(line) => match line.checked_add_signed(self.drift) {
                Some(at) if (self.done..=self.lines.len()).contains(&at) => Ok(at),
                Some(_) | None => Err(MisfitKind::BeyondEnd {
                    line,
                    lines: self.lines.len(),
                }),
            },
            None if !hunk.below.is_empty() => Ok(from),
            None => Ok(self.lines.len()),
        }
    }

    fn explain(
        &self,
        index: &LineIndex<'_>,
        wanted: &[&str],
        longest: (usize, usize),
    ) -> MisfitKind {
        if let [before, ..] = index.search(wanted, 0, 1).found.as_slice() {
            return MisfitKind::OutOfOrder { line: before + 1 };
        }
        let loose: Vec<Cow<'_, str>> = self.lines[self.done..]
            .iter()
            .map(|line| words(line.text))
            .collect();
        let loosely: Vec<Cow<'_, str>> = wanted.iter().map(|line| words(line)).collect();
        let loosely: Vec<&str> = loosely.iter().map(|line| &**line).collect();
        let blanks = LineIndex::new(loose.iter().map(|line| &**line)).search(&loosely, 0, 1);
        if let [at, ..] = blanks.found.as_slice() {
            return MisfitKind::Blanks {
                line: self.done + at + 1,
            };
        }
        let (at, count) = longest;
        let line = if count == 0 { self.done } else { at + count };
        MisfitKind::NotFound {
            line: line + 1,
            expected: wanted.get(count).copied().unwrap_or_default().to_owned(),
            found: self.lines.get(line).map(|line| line.text.to_owned()),
        }
    }

    fn put(&mut self, hunk: &Hunk<'t>, at: usize) {
        self.result.extend_from_slice(&self.lines[self.done..at]);
        let end = self.end_around(at);
        self.done = at;
        for (side, text) in &hunk.lines {
            match side {
                HunkLineSide::Both => {
                    self.result.push(self.lines[self.done]);
                    self.done += 1;
                }
                HunkLineSide::Old => self.done += 1,
                HunkLineSide::New => self.result.push(TextLine { text, end }),
            }
        }
        if let Some(line) = hunk.stated {
            let said = line.saturating_sub(usize::from(hunk.old_lines().next().is_some()));
            self.drift = at.cast_signed() - said.cast_signed();
        }
        if self.done == self.lines.len() {
            self.end = match hunk.open_end {
                (_, true) => EndOfFile::Open,
                (true, false) => EndOfFile::Newline,
                (false, false) => EndOfFile::AsBefore,
            };
        }
    }

    /// The line ending around a hunk.
    fn end_around(&self, at: usize) -> TextLineEnding {
        let around = [
            self.lines.get(at),
            at.checked_sub(1).map(|before| &self.lines[before]),
            self.lines.first(),
        ];
        let ends = around.into_iter().flatten().map(|line| line.end);
        ends.into_iter()
            .find(|end| *end != TextLineEnding::Open)
            .unwrap_or(TextLineEnding::Newline)
    }

    fn finish(mut self, result: &mut String) {
        self.result.extend_from_slice(&self.lines[self.done..]);
        let was_open = self
            .lines
            .last()
            .is_some_and(|line| line.end == TextLineEnding::Open);
        let open = match self.end {
            EndOfFile::AsBefore => was_open,
            EndOfFile::Open => true,
            EndOfFile::Newline => false,
        };
        let end = self.end_around(self.lines.len());
        let last = self.result.len().saturating_sub(1);
        for (at, line) in self.result.iter().enumerate() {
            result.push_str(line.text);
            let ends = if line.end == TextLineEnding::Open {
                end
            } else {
                line.end
            };
            result.push_str(if at == last && open {
                ""
            } else {
                ends.as_str()
            });
        }
    }
}
