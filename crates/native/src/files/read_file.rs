//! `files.read_file`: lines of a text file with their numbers, an image, or the head of a binary file.

mod binary;
mod report;
mod scan;
mod text;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use toolpost_model::{
    Declaration, Effects, InputRefusal, PersistStrategy, ResourceAccess, ToolFailure, ToolOutput,
};
use toolpost_processes::{StopSign, Workspace};

use self::report::ReadFileResult;
pub(crate) use self::text::LineWindow;
pub(super) use self::{report::lines, scan::SCAN_BYTES};
use super::{declare, read_effects, read_error::FileReadError, tell_roots};
use crate::workspace_tool::WorkspaceTool;

pub(super) struct ReadFile;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments<'a> {
    /// Path of the file, relative to the workspace.
    path: &'a str,
    /// First line to show, counted from 1.
    #[serde(default = "first_line")]
    #[schemars(range(min = 1))]
    offset: u64,
    /// Number of lines to show.
    #[serde(default = "default_limit")]
    #[schemars(range(min = 1))]
    limit: u64,
    /// Put each line's number and a tab in front of it. Without, the text comes exactly as it is.
    #[serde(default = "numbered")]
    line_numbers: bool,
}

fn first_line() -> u64 {
    1
}

fn default_limit() -> u64 {
    2000
}

fn numbered() -> bool {
    true
}

impl WorkspaceTool for ReadFile {
    type Arguments<'a> = Arguments<'a>;

    fn declaration(workspace: &Workspace) -> Declaration {
        let mut declaration = declare::<Arguments<'_>, ReadFileResult>(
            "read_file",
            "Reads a text file. Each line comes with its number and a tab in front, which do not belong to the file; \
             `line_numbers: false` leaves them out. `offset` and `limit` choose the lines; at most 2,000 lines and \
             32 KiB come back at once, and the answer says where to read on. Images are shown, of other binary files \
             the first bytes. `sha256` in the structured result can be given to the tools that write as \
             `expected_sha256`.",
            ResourceAccess::Read,
        );
        tell_roots(&mut declaration, workspace);
        declaration.title = Some("Read file".to_owned());
        declaration.search_hint = "open view cat show content lines head image".to_owned();
        declaration.input.examples = vec![
            json!({ "path": "README.md" }),
            json!({ "path": "src/main.rs", "offset": 120, "limit": 40 }),
            json!({ "path": "data.csv", "line_numbers": false }),
        ];
        // The result is not stored, because the file can be read again.
        declaration.interface.persistence.strategy = PersistStrategy::NeverPersist;
        declaration
    }

    fn check(workspace: &Workspace, arguments: &Arguments<'_>) -> Result<(), InputRefusal> {
        for (at, value) in [("/offset", arguments.offset), ("/limit", arguments.limit)] {
            if value == 0 {
                return Err(InputRefusal::invalid(
                    at,
                    "`0` is too small, the minimum is 1",
                ));
            }
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
        let read = scan::read(workspace, arguments, stop).map_err(FileReadError::into_failure)?;
        Ok(report::output(read, arguments.line_numbers)?)
    }
}
