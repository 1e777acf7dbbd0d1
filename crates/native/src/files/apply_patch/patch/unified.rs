//! The format of `diff -u` and `git diff`.
//!
//! The counts in `@@ -1,3 +1,4 @@` only serve to tell a removed line from the next header. Models miscount, and the
//! lines themselves, all of which must be found, determine the change.

use super::{
    FilePatch, FilePatchAction, Hunk, HunkLineSide, HunkNumbers, ParseError, PatchSyntaxProblem,
    finish, numbers,
};

/// Parses all lines. Text before the first file, such as the message of a mailed patch, is ignored.
pub(super) fn parse<'p>(lines: &[&'p str]) -> Result<Vec<FilePatch<'p>>, ParseError> {
    let mut reader = UnifiedDiffReader { lines, next: 0 };
    let mut files = Vec::new();
    while let Some(line) = reader.line() {
        let number = reader.next + 1;
        if line.starts_with("diff --git ") {
            files.push(reader.git_file()?);
        } else if reader.at_names() {
            files.push(reader.plain_file(&GitFileHeader::default())?);
        } else if line.starts_with("--- ") && !files.is_empty() {
            return Err(PatchSyntaxProblem::NoNewName.at(number));
        } else if line.starts_with("@@") {
            return Err(PatchSyntaxProblem::NoFile.at(number));
        } else if files.is_empty() || is_between_files(line) {
            reader.next += 1;
        } else if line == "-- " {
            break;
        } else {
            return Err(PatchSyntaxProblem::NoHunkLine(line.to_owned()).at(number));
        }
    }
    Ok(files)
}

fn is_between_files(line: &str) -> bool {
    let tools = ["diff ", "Index: ", "=====", "Only in "];
    line.trim().is_empty() || tools.iter().any(|start| line.starts_with(start))
}

/// Git's header lines before the hunks of a file.
#[derive(Default)]
struct GitFileHeader<'p> {
    paths: Option<&'p str>,
    new: bool,
    deleted: bool,
    executable: bool,
    from: Option<&'p str>,
    to: Option<&'p str>,
}

struct UnifiedDiffReader<'l, 'p> {
    lines: &'l [&'p str],
    next: usize,
}

impl<'p> UnifiedDiffReader<'_, 'p> {
    fn line(&self) -> Option<&'p str> {
        self.lines.get(self.next).copied()
    }

    /// Whether the next lines are `---` and `+++`.
    fn at_names(&self) -> bool {
        let follows = self.lines.get(self.next + 1);
        self.line().is_some_and(|line| line.starts_with("--- "))
            && follows.is_some_and(|line| line.starts_with("+++ "))
    }

    fn git_file(&mut self) -> Result<FilePatch<'p>, ParseError> {
        let first = self.next + 1;
        let mut header = GitFileHeader {
            paths: self.line().and_then(same_path),
            ..GitFileHeader::default()
        };
        self.next += 1;
        while let Some(line) = self.line() {
            if line.starts_with("diff --git ") || line.starts_with("@@") || self.at_names() {
                break;
            }
            self.extended(&mut header, line)?;
            self.next += 1;
        }
        if self.at_names() && self.names_belong_to(&header) {
            return self.plain_file(&header);
        }
        // Without hunks it is an empty file that is added or deleted, or a new name.
        let path = header
            .from
            .or(header.paths)
            .ok_or_else(|| PatchSyntaxProblem::NoPath.at(first))?;
        let change = match header {
            GitFileHeader {
                new: true,
                executable,
                ..
            } => FilePatchAction::Add {
                content: String::new(),
                executable,
            },
            GitFileHeader { deleted: true, .. } => FilePatchAction::Delete { hunks: Vec::new() },
            GitFileHeader { to: Some(to), .. } => FilePatchAction::Update {
                hunks: Vec::new(),
                move_to: Some(to),
            },
            GitFileHeader { .. } => {
                return Err(PatchSyntaxProblem::NoHunk(path.to_owned()).at(first));
            }
        };
        Ok(FilePatch { path, change })
    }

    /// Whether `---` and `+++` name the file of `diff --git`. A file without hunks has neither line, and the next ones
    /// may belong to another file.
    fn names_belong_to(&self, header: &GitFileHeader<'p>) -> bool {
        let named = |at: usize, prefix: &str| {
            let name = self
                .lines
                .get(at)
                .and_then(|line| line.get(4..))
                .unwrap_or_default();
            let name = name.split('\t').next().unwrap_or_default().trim_end();
            header
                .paths
                .is_none_or(|path| name.strip_prefix(prefix).unwrap_or(name) == path)
        };
        named(self.next, "a/") || named(self.next + 1, "b/")
    }

    fn extended(&self, header: &mut GitFileHeader<'p>, line: &'p str) -> Result<(), ParseError> {
        let number = self.next + 1;
        let path = |text: &'p str| plain(text, number);
        if let Some(mode) = line.strip_prefix("new file mode ") {
            header.new = true;
            header.executable = match mode.trim() {
                "100644" => false,
                "100755" => true,
                _ => return Err(PatchSyntaxProblem::Unsupported(line.to_owned()).at(number)),
            };
        } else if line.starts_with("deleted file mode ") {
            header.deleted = true;
        } else if let Some(from) = line.strip_prefix("rename from ") {
            header.from = Some(path(from)?);
        } else if let Some(to) = line.strip_prefix("rename to ") {
            header.to = Some(path(to)?);
        } else if line.starts_with("GIT binary patch") || line.starts_with("Binary files ") {
            return Err(PatchSyntaxProblem::Binary.at(number));
        } else if ["old mode ", "new mode ", "copy from ", "copy to "]
            .iter()
            .any(|word| line.starts_with(word))
        {
            return Err(PatchSyntaxProblem::Unsupported(line.to_owned()).at(number));
        }
        Ok(())
    }

    /// Parses `---`, `+++` and the hunks.
    fn plain_file(&mut self, header: &GitFileHeader<'p>) -> Result<FilePatch<'p>, ParseError> {
        let first = self.next + 1;
        let side = |line: Option<&&'p str>| line.and_then(|line| line.get(4..)).unwrap_or_default();
        let old = plain(side(self.lines.get(self.next)), first)?;
        let new = plain(side(self.lines.get(self.next + 1)), first + 1)?;
        self.next += 2;
        let hunks = self.hunks()?;
        let (old, new) = match (old, new) {
            ("/dev/null", new) => (None, Some(new.strip_prefix("b/").unwrap_or(new))),
            (old, "/dev/null") => (Some(old.strip_prefix("a/").unwrap_or(old)), None),
            (old, new) => match (old.strip_prefix("a/"), new.strip_prefix("b/")) {
                (Some(old), Some(new)) => (Some(old), Some(new)),
                (Some(_), None) | (None, _) => (Some(old), Some(new)),
            },
        };
        let no_hunk = |path: &str| PatchSyntaxProblem::NoHunk(path.to_owned()).at(first);
        match (old, new) {
            (None, None) => Err(PatchSyntaxProblem::NoPath.at(first)),
            (None, Some(path)) => {
                let content = added_content(&hunks)?;
                Ok(FilePatch {
                    path,
                    change: FilePatchAction::Add {
                        content,
                        executable: header.executable,
                    },
                })
            }
            (Some(path), _) if hunks.is_empty() => Err(no_hunk(path)),
            (Some(path), None) => Ok(FilePatch {
                path,
                change: FilePatchAction::Delete { hunks },
            }),
            (Some(old), Some(new)) => {
                let moved = header.to.is_some() || old != new;
                let path = header.from.unwrap_or(old);
                let move_to = moved.then(|| header.to.unwrap_or(new));
                Ok(FilePatch {
                    path,
                    change: FilePatchAction::Update { hunks, move_to },
                })
            }
        }
    }

    fn hunks(&mut self) -> Result<Vec<Hunk<'p>>, ParseError> {
        let mut hunks = Vec::new();
        while let Some(line) = self.line() {
            let Some(header) = line.strip_prefix("@@") else {
                break;
            };
            let patch_line = self.next + 1;
            self.next += 1;
            let numbers = numbers(header.trim());
            let mut hunk = Hunk {
                patch_line,
                ..Hunk::default()
            };
            match &numbers {
                Some(numbers) => hunk.stated = Some(numbers.start),
                None => {
                    let above = header.trim();
                    let above = above.strip_suffix("@@").unwrap_or(above).trim();
                    hunk.below.extend((!above.is_empty()).then_some(above));
                }
            }
            self.hunk_lines(&mut hunk, numbers)?;
            finish(&mut hunks, hunk)?;
        }
        Ok(hunks)
    }

    fn hunk_lines(
        &mut self,
        hunk: &mut Hunk<'p>,
        numbers: Option<HunkNumbers>,
    ) -> Result<(), ParseError> {
        let mut old = 0;
        let mut new = 0;
        let mut blank = 0;
        while let Some(line) = self.line() {
            let counted = numbers
                .as_ref()
                .is_some_and(|numbers| old >= numbers.old && new >= numbers.new);
            let follows_names = self
                .lines
                .get(self.next + 2)
                .is_some_and(|line| line.starts_with("@@"));
            let next_file = self.at_names() && (counted || follows_names);
            let ends = line.starts_with("@@") || line.starts_with("diff ") || next_file;
            if ends || (counted && (line == "-- " || is_between_files(line))) {
                break;
            }
            if line.starts_with('\\') {
                match hunk.lines.last() {
                    Some((HunkLineSide::Both, _)) => hunk.open_end = (true, true),
                    Some((HunkLineSide::Old, _)) => hunk.open_end.0 = true,
                    Some((HunkLineSide::New, _)) => hunk.open_end.1 = true,
                    None => {
                        return Err(
                            PatchSyntaxProblem::NoHunkLine(line.to_owned()).at(self.next + 1)
                        );
                    }
                }
            } else if hunk.take(line) {
                let side = hunk.lines.last().map(|(side, _)| *side);
                old += usize::from(side != Some(HunkLineSide::New));
                new += usize::from(side != Some(HunkLineSide::Old));
                blank = if line.is_empty() { blank + 1 } else { 0 };
            } else {
                return Err(PatchSyntaxProblem::NoHunkLine(line.to_owned()).at(self.next + 1));
            }
            self.next += 1;
        }
        // Blank lines beyond the announced number come after the hunk.
        let announced = numbers.map_or(0, |numbers| numbers.old);
        hunk.drop_blank_end(blank.min(old.saturating_sub(announced)));
        Ok(())
    }
}

/// The path of a `---` or `+++` line, without the time after it.
fn plain(text: &str, number: usize) -> Result<&str, ParseError> {
    let path = text.split('\t').next().unwrap_or_default().trim_end();
    match path {
        "" => Err(PatchSyntaxProblem::NoPath.at(number)),
        quoted if quoted.starts_with('"') => {
            Err(PatchSyntaxProblem::QuotedPath(quoted.to_owned()).at(number))
        }
        path => Ok(path),
    }
}

/// The path in `diff --git a/PATH b/PATH`, if both are equal.
fn same_path(line: &str) -> Option<&str> {
    let both = line.strip_prefix("diff --git a/")?;
    let path = both.get(..both.len().checked_sub(3)? / 2)?;
    (both.get(path.len()..)?.strip_prefix(" b/")? == path).then_some(path)
}

/// The content of a new file.
fn added_content(hunks: &[Hunk<'_>]) -> Result<String, ParseError> {
    let mut content = String::new();
    for hunk in hunks {
        for (side, text) in &hunk.lines {
            if *side != HunkLineSide::New {
                return Err(PatchSyntaxProblem::NoAddedLine((*text).to_owned()).at(hunk.patch_line));
            }
            content.push_str(text);
            content.push('\n');
        }
    }
    if hunks.last().is_some_and(|hunk| hunk.open_end.1) {
        content.pop();
    }
    Ok(content)
}
