//! A patch as it was sent: which files, and which hunks. Two forms are read; what they say is the same.

mod envelope;
mod unified;

use toolpost_processes::shown;

/// No file that can be patched has as many lines; larger numbers are as wrong as this one, and safe to count with.
const LAST_LINE: usize = u32::MAX as usize;
/// Most files changed by one patch.
const MAX_FILES: usize = 200;
/// Most lines of a patch. Each takes many times its own size when it is read.
const MAX_LINES: usize = 500_000;
/// Most lines behind `@@` that lead to one hunk: each is looked for in the whole file.
const MAX_ABOVE: usize = 32;

/// A patch that was read.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Patch<'p> {
    pub(super) files: Vec<FilePatch<'p>>,
}

/// What happens to one file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct FilePatch<'p> {
    /// The file, as written.
    pub(super) path: &'p str,
    pub(super) change: FilePatchAction<'p>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum FilePatchAction<'p> {
    Add {
        content: String,
        executable: bool,
    },
    /// Hunks, where there are any, must remove everything.
    Delete {
        hunks: Vec<Hunk<'p>>,
    },
    Update {
        hunks: Vec<Hunk<'p>>,
        move_to: Option<&'p str>,
    },
}

/// Lines that belong together.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Hunk<'p> {
    /// Where it stands in the patch, for messages.
    pub(super) patch_line: usize,
    /// The line of the old file it says it begins at, counted from 1.
    pub(super) stated: Option<usize>,
    /// Lines that stand above it in the file, outermost first.
    pub(super) below: Vec<&'p str>,
    pub(super) lines: Vec<(HunkLineSide, &'p str)>,
    /// It reaches the end of the file.
    pub(super) at_end: bool,
    /// The old, the new content ends without a newline.
    pub(super) open_end: (bool, bool),
}

/// Where a line of a hunk belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HunkLineSide {
    Both,
    Old,
    New,
}

impl<'p> Hunk<'p> {
    /// The lines that must stand in the file.
    pub(super) fn old_lines(&self) -> impl Iterator<Item = &'p str> {
        self.lines
            .iter()
            .filter(|(side, _)| *side != HunkLineSide::New)
            .map(|(_, text)| *text)
    }

    /// Reads one line of a hunk. `false`: it is none.
    fn take(&mut self, line: &'p str) -> bool {
        let (side, text) = match line.as_bytes().first() {
            Some(b' ') => (HunkLineSide::Both, &line[1..]),
            Some(b'-') => (HunkLineSide::Old, &line[1..]),
            Some(b'+') => (HunkLineSide::New, &line[1..]),
            // Blanks at the end of a line get lost on the way; an empty line can only have been an empty context.
            None => (HunkLineSide::Both, ""),
            Some(_) => return false,
        };
        self.lines.push((side, text));
        true
    }

    /// Empty lines between hunks and files are no context.
    fn drop_blank_end(&mut self, blank_lines: usize) {
        self.lines
            .truncate(self.lines.len() - blank_lines.min(self.lines.len()));
    }

    fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }
}

/// Why a patch cannot be read.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line} of the patch: {problem}")]
pub(super) struct ParseError {
    pub(super) line: usize,
    pub(super) problem: PatchSyntaxProblem,
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum PatchSyntaxProblem {
    #[error(
        "there is no change in it; begin with `*** Begin Patch`, or with `--- a/FILE` and `+++ b/FILE`"
    )]
    NoPatch,
    #[error("`*** End Patch` is missing, so the patch may be cut off")]
    NoEnd,
    #[error("`{}` stands behind the end of the patch", shown(.0))]
    BehindEnd(String),
    #[error("`{}` is not `*** Add File:`, `*** Update File:`, `*** Delete File:` or `*** End Patch`", shown(.0))]
    NoHeader(String),
    #[error("`{}` begins with none of ` `, `+`, `-` and `@@`", shown(.0))]
    NoHunkLine(String),
    #[error("`{}`: every line of a new file begins with `+`", shown(.0))]
    NoAddedLine(String),
    #[error("the path is missing")]
    NoPath,
    #[error("`{}` is quoted; write the path as it is", shown(.0))]
    QuotedPath(String),
    #[error("`{}` is changed by no hunk", shown(.0))]
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
    #[error("more than {MAX_ABOVE} lines behind `@@` stand above this hunk")]
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
    /// Reads either form.
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

    /// Every path it names.
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

/// The numbers of `@@ -12,3 +12,4 @@`: where the old lines begin, and how many there are on each side.
struct HunkNumbers {
    start: usize,
    old: usize,
    new: usize,
}

/// Reads the rest of a line behind `@@`.
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

/// Checks a hunk that is complete and adds it.
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
