//! `search.glob`: finds files by name, newest first.

use std::{path::Path, sync::atomic::Ordering};

use parking_lot::Mutex;
use rustix::fs::{AtFlags, FileType, statat};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use toolpost_model::{
    Declaration, Effects, InputRefusal, ResultContent, ToolFailure, ToolOutput, Truncation,
    visible_line,
};
use toolpost_processes::{PathError, StopSign, Workspace, relative, shown};

use super::{
    SearchPageRange, counted, declare,
    error::SearchError,
    newest::{ModificationTime, NewestHits, SearchHits},
    page_of,
    pattern::{GlobPathPattern, spells_hidden},
    start::SearchStart,
    walk::{FileVisitor, FileWalkPlan, PassedOver, WalkedFile, walk},
    watch::SearchStopSignal,
};
use crate::{
    declaration::is_zero,
    files::{kept_by_rules, read_effects},
    workspace_tool::WorkspaceTool,
};

const MAX_LIMIT: usize = 5_000;

pub(super) struct GlobTool;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments<'a> {
    /// What the paths look like, from `path` on: `**/*.rs`, `src/**/*.{ts,tsx}`, `docs/*.md`. `*` and `?` stay
    /// within a name, `**` goes through directories. Without a `/`, names at any depth are meant.
    pattern: &'a str,
    /// The directory to search, relative to the workspace. The whole workspace if left out.
    #[serde(default = "root")]
    path: &'a str,
    /// How many files to show.
    #[serde(default = "default_limit")]
    #[schemars(range(min = 1, max = 5000))]
    limit: usize,
    /// How many files to pass over first: the `next_offset` of the page before.
    #[serde(default)]
    offset: usize,
    /// Also look at names that begin with a dot. A pattern that spells such a name needs no leave.
    #[serde(default)]
    include_hidden: bool,
    /// Also look at what `.gitignore` and `.ignore` leave out, such as `target` or `node_modules`.
    #[serde(default)]
    include_ignored: bool,
}

fn root<'a>() -> &'a str {
    "."
}

fn default_limit() -> usize {
    200
}

impl Arguments<'_> {
    fn page(&self) -> SearchPageRange {
        SearchPageRange {
            offset: self.offset,
            limit: self.limit,
        }
    }

    /// The directory where the search starts: `path` with the part of the pattern before its first wildcard.
    fn directory(&self, pattern: &GlobPathPattern) -> String {
        match pattern.directory.as_str() {
            "" => self.path.to_owned(),
            directory => Path::new(self.path)
                .join(directory)
                .to_string_lossy()
                .into_owned(),
        }
    }
}

/// The files that fit, newest first.
#[derive(Serialize, JsonSchema)]
struct GlobResult {
    /// The directory that was searched, relative to the workspace and without links.
    path: String,
    /// The files of this page.
    files: Vec<GlobEntry>,
    /// How many files fit in all, where the search came to its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    total: Option<u64>,
    /// The `offset` of the next page, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_offset: Option<u64>,
    /// Directories and fitting files that ignore files left out.
    ignored: u64,
    /// Directories that could not be read, or lie too deep.
    unreadable: u64,
    /// Files and directories that rules keep from this call, whether they would have fitted or not.
    #[serde(skip_serializing_if = "is_zero")]
    #[schemars(default)]
    kept_by_rules: u64,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "File")]
struct GlobEntry {
    /// Where it is, relative to the workspace.
    path: String,
    /// When it was last written to.
    #[serde(skip_serializing_if = "Option::is_none")]
    modified: Option<String>,
    /// Bytes of the name that are no text were replaced, so `path` cannot be used to name it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schemars(default)]
    lossy_name: bool,
}

impl WorkspaceTool for GlobTool {
    type Arguments<'a> = Arguments<'a>;

    fn declaration(_: &Workspace) -> Declaration {
        let mut declaration = declare::<Arguments<'_>, GlobResult>(
            "glob",
            "Finds files by name pattern, the most recently changed first, and lists their paths relative to the \
             workspace. Use it to find out where something is when part of its name is known; use `grep` to look \
             for content and `list_directory` to see all of one directory. Hidden files and what `.gitignore` or \
             `.ignore` leave out are passed over unless asked for; links are not followed. A result that was cut \
             says which `offset` shows the rest.",
        );
        declaration.title = Some("Find files".to_owned());
        declaration.search_hint =
            "find files by name pattern wildcard extension locate path recent".to_owned();
        declaration.input.examples = vec![
            json!({ "pattern": "**/*.rs" }),
            json!({ "pattern": "*.{test,spec}.ts", "path": "packages/web" }),
            json!({ "pattern": ".github/**/*.yml" }),
            json!({ "pattern": "target/debug/*.d", "include_ignored": true, "limit": 20 }),
        ];
        declaration
    }

    fn check(workspace: &Workspace, arguments: &Arguments<'_>) -> Result<(), InputRefusal> {
        arguments.page().check(MAX_LIMIT)?;
        let pattern = GlobPathPattern::parse(arguments.pattern)
            .map_err(|error| error.into_refusal("/pattern"))?;
        workspace.check_path(arguments.path)?;
        workspace
            .request(&arguments.directory(&pattern))
            .map(|_| ())
            .map_err(|refusal| refusal.into_refusal_at("/pattern"))
    }

    fn effects(workspace: &Workspace, arguments: &Arguments<'_>) -> Option<Effects> {
        let pattern = GlobPathPattern::parse(arguments.pattern).ok()?;
        read_effects(workspace, &arguments.directory(&pattern))
    }

    fn run(
        workspace: &Workspace,
        arguments: &Arguments<'_>,
        stop: &StopSign,
    ) -> Result<ToolOutput, ToolFailure> {
        find(workspace, arguments, stop).map_err(SearchError::into_failure)
    }
}

fn find(
    workspace: &Workspace,
    arguments: &Arguments<'_>,
    stop: &StopSign,
) -> Result<ToolOutput, SearchError> {
    let pattern = GlobPathPattern::parse(arguments.pattern)?;
    let watch = SearchStopSignal::new(stop);
    let found = Mutex::new(NewestHits::new(arguments.page().reach()));
    let passed_over = PassedOver::default();
    let path = match start(workspace, arguments, &pattern, stop)? {
        None => arguments.directory(&pattern),
        Some(start) => {
            let plan = FileWalkPlan {
                workspace,
                start: &start,
                include_hidden: arguments.include_hidden || spells_hidden(arguments.pattern),
                include_ignored: arguments.include_ignored,
                depth: pattern.depth,
                wanted: &|from_start, _| pattern.fits(from_start),
            };
            walk(&plan, &watch, &passed_over, || GlobVisitor {
                found: &found,
            });
            relative(&start.place).0.into_owned()
        }
    };
    watch.check()?;
    let found = found.into_inner().into_found();
    output(arguments, path, &found, &passed_over, watch.is_late()).map_err(SearchError::Result)
}

/// `None` if the pattern begins with a directory that does not exist, so nothing matches.
fn start(
    workspace: &Workspace,
    arguments: &Arguments<'_>,
    pattern: &GlobPathPattern,
    stop: &StopSign,
) -> Result<Option<SearchStart>, SearchError> {
    let missing = |error: &PathError| {
        matches!(
            error,
            PathError::NotFound { .. } | PathError::NotADirectory { .. }
        )
    };
    match SearchStart::find(workspace, &arguments.directory(pattern), stop) {
        Ok(start) if start.file.is_none() => Ok(Some(start)),
        Err(error) if !missing(&error) || pattern.directory.is_empty() => Err(error.into()),
        Ok(_) if pattern.directory.is_empty() => Err(SearchError::IsFile {
            given: arguments.path.to_owned(),
        }),
        // Only the pattern's directory may be missing; `path` itself must exist.
        Ok(_) | Err(_) => SearchStart::find(workspace, arguments.path, stop)
            .map(|_| None)
            .map_err(SearchError::from),
    }
}

struct GlobVisitor<'c> {
    found: &'c Mutex<NewestHits>,
}

impl FileVisitor for GlobVisitor<'_> {
    fn file(&mut self, met: &WalkedFile<'_>) {
        // The file vanished or was swapped since it was listed, so it does not exist any more.
        let Ok(stat) = statat(met.dir, met.name, AtFlags::SYMLINK_NOFOLLOW) else {
            return;
        };
        if FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile {
            let mut found = self.found.lock();
            found.offer(ModificationTime::of(&stat), met.place, 0);
        }
    }
}

fn output(
    arguments: &Arguments<'_>,
    path: String,
    found: &SearchHits,
    passed_over: &PassedOver,
    late: bool,
) -> Result<ToolOutput, serde_json::Error> {
    let files: Vec<GlobEntry> = page_of(&found.hits, arguments.offset).map(file).collect();
    let shown_files = files.len() as u64;
    let total = (!late).then_some(found.files);
    let end = arguments.offset as u64 + shown_files;
    let next_offset = (found.files > end).then_some(end);
    let unreadable = &passed_over.unreadable;
    let result = GlobResult {
        path,
        files,
        total,
        next_offset,
        ignored: passed_over.ignored.load(Ordering::Relaxed),
        unreadable: unreadable.load(Ordering::Relaxed)
            + passed_over.not_entered.load(Ordering::Relaxed),
        kept_by_rules: passed_over.kept.load(Ordering::Relaxed),
    };
    let truncated = truncation(&result, shown_files, late);
    let mut text: String = result
        .files
        .iter()
        .map(|file| format!("{}\n", visible_line(&file.path)))
        .collect();
    let summary = summary(arguments, &result);
    match &truncated {
        Some(Truncation {
            hint: Some(hint), ..
        }) => text.push_str(&format!("[{summary}; {hint}]\n")),
        Some(_) | None if result.files.is_empty() => text.push_str(&format!("[{summary}]\n")),
        Some(_) | None => {}
    }
    if result.kept_by_rules > 0 {
        text.push_str(&format!("[{}]\n", kept_by_rules(result.kept_by_rules)));
    }
    Ok(ToolOutput {
        content: vec![ResultContent::text(text)],
        structured: Some(serde_json::to_value(&result)?),
        summary: Some(summary),
        truncated,
        partial: late,
        is_empty: result.files.is_empty(),
        ..ToolOutput::default()
    })
}

fn file(hit: &super::newest::SearchHit) -> GlobEntry {
    let (path, lossy_name) = relative(&hit.place);
    let modified = hit.modified.timestamp().map(|at| at.to_string());
    GlobEntry {
        path: path.into_owned(),
        modified,
        lossy_name,
    }
}

fn truncation(result: &GlobResult, shown: u64, late: bool) -> Option<Truncation> {
    let hint = match (late, result.next_offset) {
        (true, _) => {
            "the time ran out before all was searched; give a narrower `path` or `pattern`"
                .to_owned()
        }
        (false, Some(next)) => format!("go on with `offset={next}`"),
        (false, None) => return None,
    };
    Some(Truncation {
        shown,
        total: result.total,
        unit: "entries".to_owned(),
        hint: Some(hint),
        artifact: None,
    })
}

fn summary(arguments: &Arguments<'_>, result: &GlobResult) -> String {
    let pattern = shown(arguments.pattern);
    let place = shown(&result.path);
    match (result.files.len() as u64, result.total) {
        (0, Some(0)) if result.ignored > 0 => format!(
            "no file in {place} fits `{pattern}`; {} left out by ignore files, set `include_ignored` to include them",
            counted(result.ignored, "name was", "names were")
        ),
        (0, Some(0)) => format!("no file in {place} fits `{pattern}`"),
        (0, Some(total)) => format!(
            "`offset={}` is past the end, {total} fit `{pattern}`",
            arguments.offset
        ),
        (count, Some(total)) if count == total => {
            format!(
                "{} in {place} fit `{pattern}`",
                counted(count, "file", "files")
            )
        }
        (count, Some(total)) => format!("{count} of {total} files in {place} that fit `{pattern}`"),
        (count, None) => format!(
            "{} found in {place} that fit `{pattern}`",
            counted(count, "file", "files")
        ),
    }
}
