//! `files.list_directory`: the entries of a directory, down to a few levels. Links are shown and not followed.

mod listing;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use toolpost_model::{
    Declaration, Effects, InputRefusal, ResourceAccess, ResultContent, ToolFailure, ToolOutput,
    Truncation, visible_line,
};
use toolpost_processes::{StopSign, Workspace, shown};

use self::listing::{DirectoryEntry, DirectoryListing};
use super::{
    declare, entry_type::EntryType, kept_by_rules, read_effects, read_error::FileReadError,
    tell_roots,
};
use crate::{declaration::is_zero, workspace_tool::WorkspaceTool};

const MAX_DEPTH: u8 = 5;
const MAX_LIMIT: usize = 5000;

pub(super) struct ListDirectory;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments<'a> {
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

impl WorkspaceTool for ListDirectory {
    type Arguments<'a> = Arguments<'a>;

    fn declaration(workspace: &Workspace) -> Declaration {
        let mut declaration = declare::<Arguments<'_>, ListResult>(
            "list_directory",
            "Lists what is in a directory, sorted by name, `depth` levels down. Directories end in `/`; links show \
             where they point and are not followed.",
            ResourceAccess::Read,
        );
        tell_roots(&mut declaration, workspace);
        declaration.title = Some("List directory".to_owned());
        declaration.search_hint = "ls dir tree folder files browse".to_owned();
        declaration.input.examples = vec![json!({}), json!({ "path": "src", "depth": 2 })];
        declaration
    }

    fn check(workspace: &Workspace, arguments: &Arguments<'_>) -> Result<(), InputRefusal> {
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
        let listing =
            listing::list(workspace, arguments, stop).map_err(FileReadError::into_failure)?;
        Ok(output(listing)?)
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
