//! Parses a patch into files and hunks. There are two formats with the same meaning.

mod envelope;
mod unified;

use toolpost_processes::shown;

/// More lines than any file that can be patched. Larger numbers are as wrong as this one, which is safe to calculate
/// with.
const LAST_LINE: usize = u32::MAX as usize;
/// The most files of one patch.
const MAX_FILES: usize = 200;
/// The most lines of a patch. Parsing takes many times the size of a line.
const MAX_LINES: usize = 500_000;
/// The most lines after `@@` for one hunk: each is searched in the whole file.
const MAX_ABOVE: usize = 32;

/// A parsed patch.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Patch<'p> {
    pub(super) files: Vec<FilePatch<'p>>,
}

/// The change of one file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct FilePatch<'p> {
    /// The path as written.
    pub(super) path: &'p str,
    pub(super) change: FilePatchAction<'p>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum FilePatchAction<'p> {
    Add {
        content: String,
        executable: bool,
    },
    /// If there are hunks, they must remove all lines.
    Delete {
        hunks: Vec<Hunk<'p>>,
    },
    Update {
        hunks: Vec<Hunk<'p>>,
        move_to: Option<&'p str>,
    },
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Hunk<'p> {
    /// Its line in the patch, for messages.
    pub(super) patch_line: usize,
    /// The stated first line in the old file, counted from 1.
    pub(super) stated: Option<usize>,
    /// Lines above it in the file, outermost first.
    pub(super) below: Vec<&'p str>,
    pub(super) lines: Vec<(HunkLineSide, &'p str)>,
    /// Whether it reaches the end of the file.
    pub(super) at_end: bool,
    /// Whether the old and the new content end without a newline.
    pub(super) open_end: (bool, bool),
}

/// The side of a hunk's line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HunkLineSide {
    Both,
    Old,
    New,
}

impl<'p> Hunk<'p> {
    /// The lines that must be in the file.
    pub(super) fn old_lines(&self) -> impl Iterator<Item = &'p str> {
        self.lines
            .iter()
            .filter(|(side, _)| *side != HunkLineSide::New)
            .map(|(_, text)| *text)
    }

    /// Reads one line of a hunk. `false` if it is not one.
    fn take(&mut self, line: &'p str) -> bool {
        let (side, text) = match line.as_bytes().first() {
            Some(b' ') => (HunkLineSide::Both, &line[1..]),
            Some(b'-') => (HunkLineSide::Old, &line[1..]),
            Some(b'+') => (HunkLineSide::New, &line[1..]),
            // Trailing blanks get lost in transit; an empty line can only be an empty line of context.
            None => (HunkLineSide::Both, ""),
            Some(_) => return false,
        };
        self.lines.push((side, text));
        true
    }

    /// Removes empty lines between hunks and files, which are not context.
    fn drop_blank_end(&mut self, blank_lines: usize) {
        self.lines
            .truncate(self.lines.len() - blank_lines.min(self.lines.len()));
    }

    fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }
}

/// A patch that cannot be parsed.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line} of the patch: {problem}")]
pub(super) struct ParseError {
    pub(super) line: usize,
    pub(super) problem: PatchSyntaxProblem,
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum PatchSyntaxProblem {
    #[error(
        "it contains no change; begin with `*** Begin Patch`, or with `--- a/FILE` and `+++ b/FILE`"
    )]
    NoPatch,
    #[error("`*** End Patch` is missing, so the patch may be cut off")]
    NoEnd,
    #[error("`{}` comes after the end of the patch", shown(.0))]
    BehindEnd(String),
    #[error("`{}` is not `*** Add File:`, `*** Update File:`, `*** Delete File:` or `*** End Patch`", shown(.0))]
    NoHeader(String),
    #[error("`{}` begins with none of ` `, `+`, `-` and `@@`", shown(.0))]
    NoHunkLine(String),
    #[error("`{}`: every line of a new file begins with `+`", shown(.0))]
    NoAddedLine(String),
    #[error("the path is missing")]
    NoPath,
    #[error("`{}` is quoted; write the path without quotes", shown(.0))]
    QuotedPath(String),
    #[error("no hunk changes `{}`", shown(.0))]
    NoHunk(String),
    #[error("this hunk has no lines")]
    EmptyHunk,
    #[error("this hunk changes nothing: it has neither `+` nor `-`")]
    OnlyContext,
    #[error("`---` is not followed by `+++`")]
    NoNewName,
    #[error("this hunk belongs to no file; `--- a/FILE` and `+++ b/FILE` are missing")]
    NoFile,
    #[error("binary changes cannot be applied")]
    Binary,
    #[error("`{}` cannot be applied: only content is patched, not modes, links or copies", shown(.0))]
    Unsupported(String),
    #[error("more than {MAX_FILES} files")]
    TooManyFiles,
    #[error("more than {MAX_LINES} lines; split the patch")]
    TooManyLines,
    #[error("this hunk has more than {MAX_ABOVE} lines with `@@` before it")]
    TooManyAbove,
}

impl PatchSyntaxProblem {
    fn at(self, line: usize) -> ParseError {
        ParseError {
            line,
            problem: self,
        }
    }
}

impl<'p> Patch<'p> {
    /// Parses either format.
    pub(super) fn parse(text: &'p str) -> Result<Self, ParseError> {
        if text.lines().nth(MAX_LINES).is_some() {
            return Err(PatchSyntaxProblem::TooManyLines.at(MAX_LINES + 1));
        }
        let lines: Vec<&str> = text.lines().collect();
        let begin = lines
            .iter()
            .position(|line| !line.trim().is_empty())
            .unwrap_or(0);
        let files = match lines.get(begin).map(|line| line.trim()) {
            Some(envelope::BEGIN) => envelope::parse(&lines, begin + 1)?,
            Some(_) | None => unified::parse(&lines)?,
        };
        if files.is_empty() {
            return Err(PatchSyntaxProblem::NoPatch.at(begin + 1));
        }
        if files.len() > MAX_FILES {
            return Err(PatchSyntaxProblem::TooManyFiles.at(begin + 1));
        }
        Ok(Self { files })
    }

    /// All paths in the patch.
    pub(super) fn paths(&self) -> impl Iterator<Item = &'p str> {
        self.files.iter().flat_map(|file| {
            let moved = match &file.change {
                FilePatchAction::Update { move_to, .. } => *move_to,
                FilePatchAction::Add { .. } | FilePatchAction::Delete { .. } => None,
            };
            [Some(file.path), moved].into_iter().flatten()
        })
    }
}

/// The numbers of `@@ -12,3 +12,4 @@`: the first old line, and the number of lines on each side.
struct HunkNumbers {
    start: usize,
    old: usize,
    new: usize,
}

/// Parses the rest of a line after `@@`.
fn numbers(header: &str) -> Option<HunkNumbers> {
    let mut words = header.split_whitespace();
    let side = |word: &str, sign: char| -> Option<(usize, usize)> {
        let (start, count) = match word.strip_prefix(sign)?.split_once(',') {
            Some((start, count)) => (start, count.parse().ok()?),
            None => (word.strip_prefix(sign)?, 1),
        };
        Some((start.parse().ok()?, count))
    };
    let (start, old) = side(words.next()?, '-')?;
    let (_, new) = side(words.next()?, '+')?;
    Some(HunkNumbers {
        start: start.min(LAST_LINE),
        old,
        new,
    })
}

/// Checks a complete hunk and adds it.
fn finish<'p>(hunks: &mut Vec<Hunk<'p>>, hunk: Hunk<'p>) -> Result<(), ParseError> {
    if hunk.below.len() > MAX_ABOVE {
        return Err(PatchSyntaxProblem::TooManyAbove.at(hunk.patch_line));
    }
    if hunk.is_empty() {
        return Err(PatchSyntaxProblem::EmptyHunk.at(hunk.patch_line));
    }
    if hunk
        .lines
        .iter()
        .all(|(side, _)| *side == HunkLineSide::Both)
    {
        return Err(PatchSyntaxProblem::OnlyContext.at(hunk.patch_line));
    }
    hunks.push(hunk);
    Ok(())
}
