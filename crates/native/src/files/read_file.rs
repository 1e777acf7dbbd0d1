//! `files.read_file`: lines of a text file with their numbers, an image, or the head of something binary.

mod binary;
mod report;
mod scan;
mod text;

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use toolpost_model::{
    CallInput, Declaration, Effects, InputRefusal, PersistStrategy, ResourceAccess, Tool, ToolCall,
    ToolFailure, ToolOutput,
};
use toolpost_processes::{Workspace, on_worker};

pub(crate) use self::text::LineWindow;
use self::{report::ReadFileResult, scan::ReadFileError};
use super::{arguments, checked_arguments, declare, read_effects, tell_roots};

pub(super) struct ReadFile {
    workspace: Arc<Workspace>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments<'a> {
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

impl ReadFile {
    pub(super) fn new(workspace: Arc<Workspace>) -> Self {
        Self { workspace }
    }
}

impl Tool for ReadFile {
    fn declaration(&self) -> Declaration {
        let mut declaration = declare::<Arguments<'_>, ReadFileResult>(
            "read_file",
            "Reads a text file. Each line comes with its number and a tab in front, which do not belong to the file; \
             `line_numbers: false` leaves them out. `offset` and `limit` choose the lines; at most 2,000 lines and \
             32 KiB come back at once, and the answer says where to read on. Images are shown, of other binary files \
             the first bytes. `sha256` in the structured result can be given to the tools that write as \
             `expected_sha256`.",
            ResourceAccess::Read,
        );
        tell_roots(&mut declaration, &self.workspace);
        declaration.title = Some("Read file".to_owned());
        declaration.search_hint = "open view cat show content lines head image".to_owned();
        declaration.input.examples = vec![
            json!({ "path": "README.md" }),
            json!({ "path": "src/main.rs", "offset": 120, "limit": 40 }),
            json!({ "path": "data.csv", "line_numbers": false }),
        ];
        // What it gives back is a file that it can be asked for again.
        declaration.interface.persistence.strategy = PersistStrategy::NeverPersist;
        declaration
    }

    fn check(&self, input: &CallInput) -> Result<(), InputRefusal> {
        let arguments: Arguments<'_> = checked_arguments(input)?;
        for (at, value) in [("/offset", arguments.offset), ("/limit", arguments.limit)] {
            if value == 0 {
                return Err(InputRefusal::invalid(
                    at,
                    "`0` is too small, the least is 1",
                ));
            }
        }
        self.workspace
            .request(arguments.path)
            .map(|_| ())
            .map_err(|refusal| refusal.into_refusal())
    }

    fn effects(&self, input: &CallInput) -> Option<Effects> {
        read_effects(&self.workspace, input.arguments().str("path")?)
    }

    async fn execute(&self, call: ToolCall) -> Result<ToolOutput, ToolFailure> {
        let workspace = self.workspace.clone();
        let input = call.input;
        on_worker(&self.workspace, call.context, move |stop| {
            let arguments: Arguments<'_> =
                arguments(&input).map_err(|error| ToolFailure::invalid(error.to_string()))?;
            let read =
                scan::read(&workspace, &arguments, stop).map_err(ReadFileError::into_failure)?;
            Ok(report::output(read, arguments.line_numbers)?)
        })
        .await
    }
}
