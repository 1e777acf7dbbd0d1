//! The result of `grep`.

use std::{fmt::Write as _, sync::atomic::Ordering};

use schemars::JsonSchema;
use serde::Serialize;
use toolpost_model::{ResultContent, ToolOutput, Truncation, visible_line};
use toolpost_processes::{relative, shown};

use super::{
    Arguments, OutputMode,
    lines::{FileLines, GrepLine, listing},
    scan::GrepScanCounts,
};
use crate::{
    declaration::is_zero,
    files::kept_by_rules,
    search::{
        counted,
        newest::{SearchHit, SearchHits},
        page_of,
        start::SearchStart,
        walk::PassedOver,
    },
};

/// What matched, newest file first.
#[derive(Serialize, JsonSchema)]
pub(super) struct GrepResult {
    /// The file or directory that was searched, relative to the workspace and without links.
    path: String,
    /// What is told of each file.
    output_mode: OutputMode,
    /// The files of this page.
    files: Vec<GrepFileEntry>,
    /// How many files match in all, where the search came to its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    total_files: Option<u64>,
    /// How many lines match in all, with `content` and `count`.
    #[serde(skip_serializing_if = "Option::is_none")]
    total_lines: Option<u64>,
    /// The `offset` of the next page, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_offset: Option<u64>,
    /// How many files were searched.
    searched_files: u64,
    /// How many of them are binary and have no match in front of the first NUL.
    binary_files: u64,
    /// Files that could not be read, or have a line over 8 MiB, or are too large for `multiline`.
    unsearched_files: u64,
    /// Lines that are too long for a pattern of this size and were passed over.
    long_lines: u64,
    /// Directories and fitting files that ignore files left out.
    ignored: u64,
    /// Directories that could not be read, or lie too deep.
    unreadable: u64,
    /// Files and directories that rules keep from this call, whatever is in them.
    #[serde(skip_serializing_if = "is_zero")]
    #[schemars(default)]
    kept_by_rules: u64,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "File")]
struct GrepFileEntry {
    /// Where it is, relative to the workspace.
    path: String,
    /// When it was last written to.
    #[serde(skip_serializing_if = "Option::is_none")]
    modified: Option<String>,
    /// How many of its lines match, with `content` and `count`.
    #[serde(skip_serializing_if = "Option::is_none")]
    matching_lines: Option<u64>,
    /// The lines of this page, with `content`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    lines: Vec<GrepLine>,
    /// Bytes of the name that are no text were replaced, so `path` cannot be used to name it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schemars(default)]
    lossy_name: bool,
}

/// A completed search.
pub(super) struct FinishedGrep<'s> {
    pub(super) arguments: &'s Arguments<'s>,
    pub(super) start: &'s SearchStart,
    pub(super) found: &'s SearchHits,
    /// Only with `content`.
    pub(super) lines: Option<Vec<FileLines<'s>>>,
    pub(super) scanned: GrepScanCounts,
    pub(super) passed_over: &'s PassedOver,
    pub(super) late: bool,
}

impl FinishedGrep<'_> {
    pub(super) fn output(mut self) -> Result<ToolOutput, serde_json::Error> {
        let lines = self.lines.take();
        let (files, unit, shown_units, all) = match lines {
            Some(lines) => {
                let matching =
                    |file: &FileLines<'_>| file.lines.iter().filter(|line| !line.context).count();
                let shown: usize = lines.iter().map(matching).sum();
                let files = lines
                    .into_iter()
                    .map(|file| self.file(file.hit, file.lines))
                    .collect();
                (files, "lines", shown as u64, self.found.lines)
            }
            None => {
                let page = page_of(&self.found.hits, self.arguments.offset);
                let files: Vec<GrepFileEntry> =
                    page.map(|hit| self.file(hit, Vec::new())).collect();
                let shown = files.len() as u64;
                (files, "entries", shown, self.found.files)
            }
        };
        let end = self.arguments.offset as u64 + shown_units;
        let result = self.result(files, (shown_units > 0 && all > end).then_some(end));
        let total = (!self.late).then_some(all);
        let truncated = self.hint(&result).map(|hint| Truncation {
            shown: shown_units,
            total,
            unit: unit.to_owned(),
            hint: Some(hint),
            artifact: None,
        });
        let summary = self.summary(&result, shown_units, total);
        let mut text = text(&result);
        match truncated
            .as_ref()
            .and_then(|truncated| truncated.hint.as_deref())
        {
            Some(hint) => text.push_str(&format!("[{summary}; {hint}]\n")),
            None if result.files.is_empty() => text.push_str(&format!("[{summary}]\n")),
            None => {}
        }
        if !result.files.is_empty() && result.unsearched_files + result.long_lines > 0 {
            let _ = writeln!(
                text,
                "[skipped: {}, {}]",
                counted(
                    result.unsearched_files,
                    "file that could not be searched",
                    "files that could not be searched"
                ),
                counted(
                    result.long_lines,
                    "line too long for the pattern",
                    "lines too long for the pattern"
                ),
            );
        }
        if result.kept_by_rules > 0 {
            let _ = writeln!(text, "[{}]", kept_by_rules(result.kept_by_rules));
        }
        Ok(ToolOutput {
            content: vec![ResultContent::text(text)],
            structured: Some(serde_json::to_value(&result)?),
            summary: Some(summary),
            truncated,
            partial: self.late,
            is_empty: result.files.is_empty(),
            ..ToolOutput::default()
        })
    }

    fn counts_lines(&self) -> bool {
        match self.arguments.output_mode {
            OutputMode::Content | OutputMode::Count => true,
            OutputMode::FilesWithMatches => false,
        }
    }

    fn file(&self, hit: &SearchHit, lines: Vec<GrepLine>) -> GrepFileEntry {
        let (path, lossy_name) = relative(&hit.place);
        GrepFileEntry {
            path: path.into_owned(),
            modified: hit.modified.timestamp().map(|at| at.to_string()),
            matching_lines: self.counts_lines().then_some(hit.lines),
            lines,
            lossy_name,
        }
    }

    fn result(&self, files: Vec<GrepFileEntry>, next_offset: Option<u64>) -> GrepResult {
        let passed_over = self.passed_over;
        let path = match &self.start.file {
            None => self.start.place.clone(),
            Some(name) => self.start.place.join(name),
        };
        GrepResult {
            path: relative(&path).0.into_owned(),
            output_mode: self.arguments.output_mode,
            files,
            total_files: (!self.late).then_some(self.found.files),
            total_lines: (!self.late && self.counts_lines()).then_some(self.found.lines),
            next_offset,
            searched_files: self.scanned.files,
            binary_files: self.scanned.binary,
            unsearched_files: self.scanned.unsearched,
            long_lines: self.scanned.long_lines,
            ignored: passed_over.ignored.load(Ordering::Relaxed),
            unreadable: passed_over.unreadable.load(Ordering::Relaxed)
                + passed_over.not_entered.load(Ordering::Relaxed),
            kept_by_rules: passed_over.kept.load(Ordering::Relaxed),
        }
    }

    fn hint(&self, result: &GrepResult) -> Option<String> {
        match (self.late, result.next_offset) {
            (true, _) => Some(
                "the time ran out before all was searched; narrow it by `path`, `glob` or `type`"
                    .to_owned(),
            ),
            (false, Some(next)) => {
                Some(format!("go on with `offset={next}`, or narrow the search"))
            }
            (false, None) => None,
        }
    }

    fn summary(&self, result: &GrepResult, count: u64, total: Option<u64>) -> String {
        let pattern = shown(self.arguments.pattern);
        let place = shown(&result.path);
        let of_lines = self.arguments.output_mode == OutputMode::Content;
        let (one, many) = if of_lines {
            ("line", "lines")
        } else {
            ("file", "files")
        };
        match (count, total) {
            (0, Some(0)) => format!(
                "nothing in {place} matches `{pattern}`{}",
                self.why_nothing(result)
            ),
            (0, Some(total)) => {
                format!(
                    "`offset={}` is past the end, {} `{pattern}`",
                    self.arguments.offset,
                    matching(total, one, many)
                )
            }
            (count, Some(total)) if count == total => {
                format!("{} `{pattern}` in {place}", matching(count, one, many))
            }
            (count, Some(total)) => {
                format!("{count} of {total} {many} that match `{pattern}` in {place}")
            }
            (count, None) => format!(
                "{} `{pattern}` in {place} so far",
                matching(count, one, many)
            ),
        }
    }

    /// The explanation for a caller who expected a match.
    fn why_nothing(&self, result: &GrepResult) -> String {
        let mut told = format!(
            " ({} searched",
            counted(result.searched_files, "file", "files")
        );
        for (count, what) in [
            (result.binary_files, "binary"),
            (result.unsearched_files, "could not be searched"),
            (result.long_lines, "long lines skipped"),
            (
                result.ignored,
                "left out by ignore files, set `include_ignored` to include them",
            ),
        ] {
            if count > 0 {
                let _ = write!(told, ", {count} {what}");
            }
        }
        told.push(')');
        told
    }
}

fn matching(count: u64, one: &str, many: &str) -> String {
    match count {
        1 => format!("1 {one} matches"),
        count => format!("{count} {many} match"),
    }
}

/// The text for the model: paths, with their lines beneath them as in `grep`.
fn text(result: &GrepResult) -> String {
    let mut text = String::new();
    for (place, file) in result.files.iter().enumerate() {
        let path = visible_line(&file.path);
        let _ = match (result.output_mode, file.matching_lines) {
            (OutputMode::Count, Some(count)) => writeln!(text, "{path}: {count}"),
            (OutputMode::Content, _) if place > 0 => writeln!(text, "\n{path}"),
            (OutputMode::Content | OutputMode::Count | OutputMode::FilesWithMatches, _) => {
                writeln!(text, "{path}")
            }
        };
        text.push_str(&listing(&file.lines));
    }
    text
}
