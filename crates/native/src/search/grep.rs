//! `search.grep`: finds lines and files by content, newest file first.
//!
//! A search has two passes. The first reads all files and only counts; the second reads the lines from the few files
//! that are shown. The memory of a search therefore depends on the shown part and not on the number of hits.

mod careful;
mod expression;
mod file_types;
mod lines;
mod report;
mod scan;

use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use toolpost_model::{Declaration, Effects, InputRefusal, ToolFailure, ToolOutput};
use toolpost_processes::{PathError, StopSign, Workspace};

pub(crate) use self::lines::{GrepLine, listing};
pub(super) use self::{
    expression::{ExpressionError, ExpressionOptions, SearchExpression, compile},
    file_types::FileTypeError,
    lines::{ContextLines, MatchLineQuery, collect_from},
};
use self::{
    file_types::FileType,
    report::{FinishedGrep, GrepResult},
    scan::{GrepFileScanner, GrepScanCounts, GrepScanQuery},
};
use super::{
    SearchPageRange, declare,
    error::SearchError,
    newest::NewestHits,
    pattern::{PathFilter, spells_hidden},
    start::SearchStart,
    walk::{FileWalkPlan, PassedOver, open_file, walk},
    watch::SearchStopSignal,
};
use crate::{files::read_effects, workspace_tool::WorkspaceTool};

const MAX_LIMIT: usize = 2_000;
/// The most lines of context, on each side.
const MAX_AROUND: usize = 50;

pub(super) struct Grep;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments<'a> {
    /// What to look for: a regular expression without look-around and backreferences, matched line by line.
    pattern: &'a str,
    /// The file or directory to search, relative to the workspace. The whole workspace if left out.
    #[serde(default = "root")]
    path: &'a str,
    /// Search only files whose path fits, such as `*.ts` or `src/**/*.{c,h}`; with `!` in front, all others.
    glob: Option<&'a str>,
    /// Search only files of a language or format, by ripgrep's names: `rust`, `py`, `js`, `ts`, `go`, `java`,
    /// `cpp`, `md`, `json`, `yaml`, `toml` …
    #[serde(rename = "type")]
    file_type: Option<&'a str>,
    /// `files_with_matches` lists files, `content` shows the lines, `count` tells how many lines match in each
    /// file.
    #[serde(default)]
    output_mode: OutputMode,
    /// Take the pattern as plain text: no sign in it has a meaning.
    #[serde(default)]
    literal: bool,
    /// Do not tell upper from lower case.
    #[serde(default)]
    case_insensitive: bool,
    /// Let a match reach over several lines; `.` then matches line breaks too.
    #[serde(default)]
    multiline: bool,
    /// Lines to show on both sides of a match, with `content`.
    #[schemars(range(max = 50))]
    context: Option<usize>,
    /// Lines to show before a match, with `content`.
    #[schemars(range(max = 50))]
    before: Option<usize>,
    /// Lines to show after a match, with `content`.
    #[schemars(range(max = 50))]
    after: Option<usize>,
    /// How many files to show, or with `content` how many matching lines.
    #[serde(default = "default_limit")]
    #[schemars(range(min = 1, max = 2000))]
    limit: usize,
    /// How many of them to pass over first: the `next_offset` of the page before.
    #[serde(default)]
    offset: usize,
    /// Also search files and directories whose names begin with a dot.
    #[serde(default)]
    include_hidden: bool,
    /// Also search what `.gitignore` and `.ignore` leave out, such as `target` or `node_modules`.
    #[serde(default)]
    include_ignored: bool,
}

/// What to tell of what was found.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum OutputMode {
    /// The lines.
    Content,
    /// The files.
    #[default]
    FilesWithMatches,
    /// The files and how many lines match in each.
    Count,
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

    fn reading(&self) -> ExpressionOptions {
        ExpressionOptions {
            literal: self.literal,
            case_insensitive: self.case_insensitive,
            multiline: self.multiline,
        }
    }

    fn around(&self) -> ContextLines {
        let both = self.context.unwrap_or(0);
        ContextLines {
            before: self.before.unwrap_or(both),
            after: self.after.unwrap_or(both),
        }
    }
}

impl WorkspaceTool for Grep {
    type Arguments<'a> = Arguments<'a>;

    fn declaration(_: &Workspace) -> Declaration {
        let mut declaration = declare::<Arguments<'_>, GrepResult>(
            "grep",
            "Searches the content of files for a regular expression, quickly and in parallel. By default lists the \
             files that match, the most recently changed first; `output_mode: content` shows the matching lines \
             with their numbers under the path of each file, `count` how many there are. Narrow it by `path`, \
             `glob` or `type` rather than by paging. Set `literal` to search for code with brackets or dots as it \
             stands. Hidden files, binary files and what `.gitignore` or `.ignore` leave out are passed over; \
             long lines are cut around the match. A result that was cut says which `offset` shows the rest.",
        );
        declaration.title = Some("Search in files".to_owned());
        declaration.search_hint =
            "ripgrep rg search content text regex find usages references occurrences lines code"
                .to_owned();
        declaration.input.examples = vec![
            json!({ "pattern": r"fn \w+_at\(", "type": "rust" }),
            json!({ "pattern": "TODO|deprecated", "output_mode": "content", "context": 2, "glob": "src/**" }),
            json!({ "pattern": "users[0].name", "literal": true, "output_mode": "content" }),
            json!({ "pattern": r"struct \w+ \{.*?\n\}", "multiline": true, "path": "src/lib.rs", "output_mode": "content" }),
            json!({ "pattern": "deprecated", "case_insensitive": true, "output_mode": "count", "limit": 20 }),
        ];
        declaration
    }

    fn check(workspace: &Workspace, arguments: &Arguments<'_>) -> Result<(), InputRefusal> {
        arguments.page().check(MAX_LIMIT)?;
        for (at, lines) in [
            ("/context", arguments.context),
            ("/before", arguments.before),
            ("/after", arguments.after),
        ] {
            if let Some(lines) = lines.filter(|lines| *lines > MAX_AROUND) {
                let message = format!(
                    "`{lines}` is too many, {MAX_AROUND} lines can be shown around a match"
                );
                return Err(InputRefusal::invalid(at, message));
            }
        }
        compile(arguments.pattern, arguments.reading()).map_err(ExpressionError::into_refusal)?;
        arguments
            .glob
            .map(PathFilter::parse)
            .transpose()
            .map_err(|error| error.into_refusal("/glob"))?;
        arguments
            .file_type
            .map(FileType::parse)
            .transpose()
            .map_err(FileTypeError::into_refusal)?;
        workspace.check_path(arguments.path)
    }

    fn effects(workspace: &Workspace, arguments: &Arguments<'_>) -> Option<Effects> {
        read_effects(workspace, arguments.path)
    }

    fn run(
        workspace: &Workspace,
        arguments: &Arguments<'_>,
        stop: &StopSign,
    ) -> Result<ToolOutput, ToolFailure> {
        search(workspace, arguments, stop).map_err(SearchError::into_failure)
    }
}

fn search(
    workspace: &Workspace,
    arguments: &Arguments<'_>,
    stop: &StopSign,
) -> Result<ToolOutput, SearchError> {
    let expression = compile(arguments.pattern, arguments.reading())?;
    let start = SearchStart::find(workspace, arguments.path, stop)?;
    let watch = SearchStopSignal::new(stop);
    let found = Mutex::new(NewestHits::new(arguments.page().reach()));
    let scanned = Mutex::new(GrepScanCounts::default());
    let passed_over = PassedOver::default();
    let wanted = GrepScanQuery {
        expression: &expression,
        first_only: arguments.output_mode == OutputMode::FilesWithMatches,
    };
    let scan = || GrepFileScanner::new(&wanted, &watch, &found, &scanned);
    match &start.file {
        Some(name) => {
            let given = || arguments.path.to_owned();
            watch.look();
            let (file, stat) = open_file(&start.dir, name).map_err(|error| PathError::Io {
                given: given(),
                source: error.into(),
            })?;
            scan().search(file, &stat, &start.place.join(name));
        }
        None => search_tree((workspace, &start), arguments, &watch, &passed_over, scan)?,
    }
    watch.check()?;
    let found = found.into_inner().into_found();
    let lines = match arguments.output_mode {
        OutputMode::Content => {
            let around = arguments.around();
            let page = arguments.page();
            let wanted = MatchLineQuery {
                expression: &expression,
                around,
                page,
            };
            Some(lines::collect(&wanted, &start, &found.hits, &watch))
        }
        OutputMode::FilesWithMatches | OutputMode::Count => None,
    };
    watch.check()?;
    let searched = FinishedGrep {
        arguments,
        start: &start,
        found: &found,
        lines,
        scanned: scanned.into_inner(),
        passed_over: &passed_over,
        late: watch.is_late(),
    };
    searched.output().map_err(SearchError::Result)
}

fn search_tree<'s>(
    (workspace, start): (&Workspace, &SearchStart),
    arguments: &Arguments<'_>,
    watch: &SearchStopSignal<'_>,
    passed_over: &PassedOver,
    scan: impl Fn() -> GrepFileScanner<'s> + Sync,
) -> Result<(), SearchError> {
    let filter = arguments.glob.map(PathFilter::parse).transpose()?;
    let file_type = arguments.file_type.map(FileType::parse).transpose()?;
    let plan = FileWalkPlan {
        workspace,
        start,
        include_hidden: arguments.include_hidden || arguments.glob.is_some_and(spells_hidden),
        include_ignored: arguments.include_ignored,
        depth: usize::MAX,
        wanted: &|from_start, place| {
            file_type
                .as_ref()
                .is_none_or(|file_type| file_type.fits(place))
                && filter
                    .as_ref()
                    .is_none_or(|filter| filter.fits(from_start, place))
        },
    };
    walk(&plan, watch, passed_over, scan);
    Ok(())
}
