//! `results.search_result`: the matching lines of a kept result.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::runtime::Handle;
use toolpost_model::{
    CallInput, Declaration, Effects, InputRefusal, ResultContent, Tool, ToolCall, ToolFailure,
    ToolOutput, Truncation,
};
use toolpost_processes::{Workspace, on_worker};

use super::{check_ref, declare, effects, open, reader::ResultReader};
use crate::{
    arguments::{checked_arguments, read_arguments},
    declaration::is_zero,
    search::{GrepLine, TextSearch, listing, search_text},
};

/// The most lines of context, on each side.
const MAX_AROUND: usize = 50;
const MAX_LIMIT: usize = 2_000;

pub(super) struct SearchResult {
    workspace: Arc<Workspace>,
}

#[derive(Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The kept result, as the answer that names it does: `art_…`.
    #[serde(rename = "ref")]
    reference: String,
    /// What to look for: a regular expression without look-around and backreferences, matched line by line.
    pattern: String,
    /// Take the pattern as plain text: no sign in it has a meaning.
    #[serde(default)]
    literal: bool,
    /// Do not tell upper from lower case.
    #[serde(default)]
    case_insensitive: bool,
    /// Lines to show on both sides of a match.
    #[serde(default)]
    #[schemars(range(max = 50))]
    context: usize,
    /// How many matching lines to show.
    #[serde(default = "usual_limit")]
    #[schemars(range(min = 1, max = 2000))]
    limit: usize,
    /// How many of them to pass over first: the `next_offset` of the page before.
    #[serde(default)]
    offset: usize,
}

fn usual_limit() -> usize {
    100
}

impl Arguments {
    fn search(&self) -> TextSearch<'_> {
        TextSearch {
            pattern: &self.pattern,
            literal: self.literal,
            case_insensitive: self.case_insensitive,
            around: self.context,
            offset: self.offset,
            limit: self.limit,
        }
    }
}

/// What was found.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Matches")]
struct SearchResultMatches {
    /// The kept result.
    #[serde(rename = "ref")]
    reference: String,
    /// Matching lines shown, those around them not counted.
    matches: usize,
    /// The lines in their order. `line` is the `offset` for `read_result`.
    lines: Vec<GrepLine>,
    /// The `offset` of the next page, where there may be more.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_offset: Option<usize>,
    /// Lines that are too long for the expression and were passed over.
    #[serde(skip_serializing_if = "is_zero")]
    #[schemars(default)]
    long_lines: u64,
    /// The time was over before all was searched.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schemars(default)]
    unfinished: bool,
    /// It holds bytes that are no text; it was searched up to the first of them.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schemars(default)]
    binary: bool,
}

impl SearchResult {
    pub(super) fn new(workspace: Arc<Workspace>) -> Self {
        Self { workspace }
    }
}

impl Tool for SearchResult {
    fn declaration(&self) -> Declaration {
        let mut declaration = declare::<Arguments, SearchResultMatches>(
            "search_result",
            "Searches a result that was too large to be shown and was kept, and shows the lines that match with their \
             numbers, which `read_result` takes as `offset`. `context` shows lines around them, `limit` and `offset` \
             page through many.",
        );
        declaration.title = Some("Search kept result".to_owned());
        declaration.search_hint =
            "grep find artifact kept large truncated output regex lines".to_owned();
        let id = "art_019f3c00112270008000000000000001_1";
        declaration.input.examples = vec![
            json!({ "ref": id, "pattern": "error|warning", "case_insensitive": true, "context": 2 }),
            json!({ "ref": id, "pattern": "f(x)", "literal": true }),
        ];
        declaration
    }

    fn check(&self, input: &CallInput) -> Result<(), InputRefusal> {
        check_ref(input)?;
        let arguments: Arguments = checked_arguments(input)?;
        for (at, value, range) in [
            ("/limit", arguments.limit, 1..=MAX_LIMIT),
            ("/context", arguments.context, 0..=MAX_AROUND),
        ] {
            if !range.contains(&value) {
                let (least, most) = range.into_inner();
                return Err(InputRefusal::invalid(
                    at,
                    format!("`{value}` is not between {least} and {most}"),
                ));
            }
        }
        arguments.search().check()
    }

    fn effects(&self, _: &CallInput) -> Option<Effects> {
        Some(effects())
    }

    async fn execute(&self, call: ToolCall) -> Result<ToolOutput, ToolFailure> {
        let arguments: Arguments = read_arguments(&call.input)?;
        let stored = open(&call.context, &arguments.reference).await?;
        let (reading, runtime, wanted) =
            (Arc::clone(&stored), Handle::current(), arguments.clone());
        let found = on_worker(&self.workspace, call.context.clone(), move |stop| {
            let reader = ResultReader::new(reading, runtime, stop);
            search_text(&wanted.search(), reader, stop)
        })
        .await?;
        let shown = listing(&found.lines);
        let next_offset = found.is_full.then_some(arguments.offset + found.matches);
        let name = &stored.about().name;
        let summary = match (found.matches, arguments.offset) {
            (0, 0) => format!(
                "nothing in `{name}` matches `{}`",
                arguments.pattern.escape_debug()
            ),
            (count, _) => format!("{count} matching lines of `{name}`"),
        };
        let matches = SearchResultMatches {
            reference: arguments.reference,
            matches: found.matches,
            lines: found.lines,
            next_offset,
            long_lines: found.long_lines,
            unfinished: found.is_late,
            binary: found.is_binary,
        };
        let truncated = next_offset.map(|next| Truncation {
            shown: matches.matches as u64,
            total: None,
            unit: "lines".to_owned(),
            hint: Some(format!("see more with `offset={next}`")),
            artifact: Some(stored.about().id),
        });
        let text = if shown.is_empty() {
            format!("{summary}\n")
        } else {
            shown
        };
        Ok(ToolOutput {
            content: vec![ResultContent::text(text)],
            structured: Some(serde_json::to_value(&matches)?),
            summary: Some(summary),
            is_empty: matches.matches == 0,
            truncated,
            ..ToolOutput::default()
        })
    }
}
