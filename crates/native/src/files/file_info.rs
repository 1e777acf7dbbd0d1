//! `files.file_info`: the type, size and digest of a file. Deferred, because agents rarely need it.

use std::io;

use jiff::Timestamp;
use rustix::fs::{FileType, Stat, fstat};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use toolpost_model::{
    Declaration, Effects, InputRefusal, LoadingStrategy, ResourceAccess, ToolFailure, ToolOutput,
    ToolProgress, visible_line,
};
use toolpost_processes::{
    ReadableTarget, StopSign, Workspace, digest, open_regular, relative, shown,
};

use super::{declare, entry_type::EntryType, read_effects, read_error::FileReadError};
use crate::workspace_tool::WorkspaceTool;

/// The most progress events of a call.
const PROGRESS_EVENTS: u64 = 20;
/// The least progress between two events.
const PROGRESS_BYTES: u64 = 64 * 1024;
/// How much is hashed of a file of unknown size, such as one in `/proc`.
const UNSIZED_BYTES: u64 = 64 * 1024 * 1024;

pub(super) struct FileInfo;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments<'a> {
    /// Path of the file or directory, relative to the workspace.
    path: &'a str,
}

/// What is known of a path.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Info")]
struct PathInfo {
    /// Relative to the workspace and without links.
    path: String,
    /// What it is, after links.
    #[serde(rename = "type")]
    entry_type: EntryType,
    /// Size in bytes.
    size: u64,
    /// Permission bits, octal.
    mode: String,
    /// Last change of the content, RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    modified: Option<String>,
    /// SHA-256 of a regular file. Missing where the file grew while it was read.
    #[serde(skip_serializing_if = "Option::is_none")]
    sha256: Option<String>,
}

impl WorkspaceTool for FileInfo {
    type Arguments<'a> = Arguments<'a>;

    fn declaration(_: &Workspace) -> Declaration {
        let mut declaration = declare::<Arguments<'_>, PathInfo>(
            "file_info",
            "Tells what a path is: type, size, permissions, time of the last change and, for a file, the SHA-256 of \
             its content.",
            ResourceAccess::Read,
        );
        declaration.title = Some("File info".to_owned());
        declaration.search_hint =
            "checksum digest hash stat metadata size mode mtime modified exists".to_owned();
        declaration.loading = LoadingStrategy::Deferred;
        declaration.interface.execution.streaming = true;
        declaration.input.examples = vec![json!({ "path": "target/app.bin" })];
        declaration
    }

    fn check(workspace: &Workspace, arguments: &Arguments<'_>) -> Result<(), InputRefusal> {
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
        let info = info(workspace, arguments.path, stop).map_err(FileReadError::into_failure)?;
        Ok(output(&info)?)
    }
}

fn info(workspace: &Workspace, given: &str, stop: &StopSign) -> Result<PathInfo, FileReadError> {
    let (place, found) = stop.locate_readable(workspace, given)?;
    let path = relative(&place).0.into_owned();
    match found {
        ReadableTarget::Directory(dir) => match fstat(&dir) {
            Ok(stat) => Ok(describe(path, &stat, None)),
            Err(error) => Err(FileReadError::unreadable(&path, io::Error::from(error))),
        },
        ReadableTarget::Entry { stat, .. }
            if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile =>
        {
            Ok(describe(path, &stat, None))
        }
        ReadableTarget::Entry { parent, name, .. } => {
            let (mut file, stat) = open_regular(&parent, &name, given)?;
            let mut reporter = ProgressReporter::new(size_of(&stat), stop);
            let limit = match size_of(&stat) {
                0 => UNSIZED_BYTES,
                size => size,
            };
            let sha256 = digest::of_file(&mut file, limit, stop, |done| reporter.tell(done))
                .map_err(|error| FileReadError::unreadable(&path, error))?;
            Ok(describe(path, &stat, sha256))
        }
    }
}

fn size_of(stat: &Stat) -> u64 {
    u64::try_from(stat.st_size).unwrap_or(0)
}

fn describe(path: String, stat: &Stat, sha256: Option<String>) -> PathInfo {
    let nanoseconds = i32::try_from(stat.st_mtime_nsec).unwrap_or(0);
    PathInfo {
        path,
        entry_type: EntryType::of(FileType::from_raw_mode(stat.st_mode)),
        size: size_of(stat),
        mode: format!("{:04o}", stat.st_mode & 0o7777),
        modified: Timestamp::new(stat.st_mtime, nanoseconds)
            .ok()
            .map(|moment| moment.to_string()),
        sha256,
    }
}

/// Reports progress in steps of a useful size.
struct ProgressReporter<'s> {
    total: u64,
    step: u64,
    next: u64,
    stop: &'s StopSign,
}

impl<'s> ProgressReporter<'s> {
    fn new(total: u64, stop: &'s StopSign) -> Self {
        let step = total.div_ceil(PROGRESS_EVENTS).max(PROGRESS_BYTES);
        Self {
            total,
            step,
            next: step,
            stop,
        }
    }

    fn tell(&mut self, done: u64) {
        if done < self.next && done != self.total {
            return;
        }
        self.next = (done / self.step + 1) * self.step;
        #[expect(clippy::cast_precision_loss, reason = "a percentage need not be exact")]
        let percent = (self.total > 0).then(|| done as f64 * 100.0 / self.total as f64);
        self.stop.progress(ToolProgress {
            message: "hashing".to_owned(),
            percent,
            done: Some(done),
            total: (self.total > 0).then_some(self.total),
        });
    }
}

fn output(info: &PathInfo) -> Result<ToolOutput, serde_json::Error> {
    let mut lines = vec![
        format!("path: {}", visible_line(&info.path)),
        format!("type: {}", info.entry_type.as_str()),
        format!("size: {} bytes", info.size),
        format!("mode: {}", info.mode),
    ];
    lines.extend(
        info.modified
            .as_ref()
            .map(|moment| format!("modified: {moment}")),
    );
    lines.extend(
        info.sha256
            .as_ref()
            .map(|digest| format!("sha256: {digest}")),
    );
    let summary = format!(
        "{} is a {} of {} bytes",
        shown(&info.path),
        info.entry_type.as_str(),
        info.size
    );
    Ok(ToolOutput::text(lines.join("\n"))
        .with_summary(summary)
        .with_structured(serde_json::to_value(info)?))
}
