//! `files.list_directory`: what is in a directory, down to a few levels. Links are shown, not followed.

mod listing;

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use toolpost_model::{
    CallInput, Declaration, Effects, InputRefusal, ResourceAccess, ResultContent, Tool, ToolCall,
    ToolFailure, ToolOutput, Truncation, visible_line,
};
use toolpost_processes::{Workspace, on_worker, shown};

use self::listing::{DirectoryEntry, DirectoryListing, ListError};
use super::{
    arguments, checked_arguments, declare, entry_type::EntryType, kept_by_rules, read_effects,
    tell_roots,
};

const MAX_DEPTH: u8 = 5;
const MAX_LIMIT: usize = 5000;

pub(super) struct ListDirectory {
    workspace: Arc<Workspace>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments<'a> {
    /// Path of the directory, relative to the workspace.
    #[serde(default = "root")]
    path: &'a str,
    /// How many levels to show.
    #[serde(default = "one_level")]
    #[schemars(range(min = 1, max = 5))]
    depth: u8,
    /// How many entries to show at most.
    #[serde(default = "default_limit")]
    #[schemars(range(min = 1, max = 5000))]
    limit: usize,
}

fn root<'a>() -> &'a str {
    "."
}

fn one_level() -> u8 {
    1
}

fn default_limit() -> usize {
    500
}

/// The directory and what is in it.
#[derive(Serialize, JsonSchema)]
struct ListResult {
    /// The directory, relative to the workspace and without links.
    path: String,
    /// What is in it, sorted by name, each directory followed by what is in it.
    entries: Vec<DirectoryEntry>,
    /// How many entries are not listed because rules keep them from this call.
    #[serde(skip_serializing_if = "is_zero")]
    #[schemars(default)]
    kept_by_rules: u64,
}

impl ListDirectory {
    pub(super) fn new(workspace: Arc<Workspace>) -> Self {
        Self { workspace }
    }
}

impl Tool for ListDirectory {
    fn declaration(&self) -> Declaration {
        let mut declaration = declare::<Arguments<'_>, ListResult>(
            "list_directory",
            "Lists what is in a directory, sorted by name, `depth` levels down. Directories end in `/`; links show \
             where they point and are not followed.",
            ResourceAccess::Read,
        );
        tell_roots(&mut declaration, &self.workspace);
        declaration.title = Some("List directory".to_owned());
        declaration.search_hint = "ls dir tree folder files browse".to_owned();
        declaration.input.examples = vec![json!({}), json!({ "path": "src", "depth": 2 })];
        declaration
    }

    fn check(&self, input: &CallInput) -> Result<(), InputRefusal> {
        let arguments: Arguments<'_> = checked_arguments(input)?;
        if !(1..=MAX_DEPTH).contains(&arguments.depth) {
            let message = format!(
                "`{}` is out of range, 1 to {MAX_DEPTH} levels can be shown",
                arguments.depth
            );
            return Err(InputRefusal::invalid("/depth", message));
        }
        if !(1..=MAX_LIMIT).contains(&arguments.limit) {
            let message = format!(
                "`{}` is out of range, 1 to {MAX_LIMIT} entries can be shown",
                arguments.limit
            );
            return Err(InputRefusal::invalid("/limit", message));
        }
        self.workspace
            .request(arguments.path)
            .map(|_| ())
            .map_err(|refusal| refusal.into_refusal())
    }

    fn effects(&self, input: &CallInput) -> Option<Effects> {
        read_effects(
            &self.workspace,
            input.arguments().str("path").unwrap_or(root()),
        )
    }

    async fn execute(&self, call: ToolCall) -> Result<ToolOutput, ToolFailure> {
        let workspace = self.workspace.clone();
        let input = call.input;
        on_worker(&self.workspace, call.context, move |stop| {
            let arguments: Arguments<'_> =
                arguments(&input).map_err(|error| ToolFailure::invalid(error.to_string()))?;
            let listing =
                listing::list(&workspace, &arguments, stop).map_err(ListError::into_failure)?;
            Ok(output(listing)?)
        })
        .await
    }
}

fn output(listing: DirectoryListing) -> Result<ToolOutput, serde_json::Error> {
    let shown_entries = listing.entries.len() as u64;
    let truncated = listing.cut.then(|| Truncation {
        shown: shown_entries,
        total: listing.total,
        unit: "entries".to_owned(),
        hint: Some("list a directory further down, or raise `limit`".to_owned()),
        artifact: None,
    });
    let mut text: String = listing.entries.iter().map(line).collect();
    if listing.kept > 0 {
        text.push_str(&format!("[{}]\n", kept_by_rules(listing.kept)));
    }
    let summary = match shown_entries {
        0 if listing.kept > 0 => {
            format!(
                "nothing to show in {}, {}",
                shown(&listing.path),
                kept_by_rules(listing.kept)
            )
        }
        0 => format!("{} is empty", shown(&listing.path)),
        count => {
            let more = if truncated.is_some() {
                ", there are more"
            } else {
                ""
            };
            format!(
                "{count} {} in {}{more}",
                if count == 1 { "entry" } else { "entries" },
                shown(&listing.path)
            )
        }
    };
    let result = ListResult {
        path: listing.path,
        entries: listing.entries,
        kept_by_rules: listing.kept,
    };
    let output = ToolOutput {
        content: vec![ResultContent::text(text)],
        structured: Some(serde_json::to_value(&result)?),
        summary: Some(summary),
        truncated,
        ..ToolOutput::default()
    };
    Ok(if shown_entries == 0 {
        output.with_nothing_to_show()
    } else {
        output
    })
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// One line of the text.
fn line(entry: &DirectoryEntry) -> String {
    let name = visible_line(&entry.name);
    match (entry.entry_type, &entry.target, entry.unreadable) {
        (EntryType::Directory, _, true) => format!("{name}/ (cannot be read)\n"),
        (EntryType::Directory, _, false) => format!("{name}/\n"),
        (EntryType::Symlink, Some(target), _) => format!("{name} -> {}\n", visible_line(target)),
        (EntryType::Symlink | EntryType::File | EntryType::Other, _, _) => format!("{name}\n"),
    }
}
