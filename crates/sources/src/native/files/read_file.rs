//! `files.read_file`: lines of a text file exactly as they are, an image, or the head of something binary.

mod binary;
mod text;

use std::{io, sync::Arc};

use cap_std::fs::File;
use rustix::fs::FileType;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use sha2::{Digest, Sha256};
use toolpost_model::{
    Access, CallInput, Content, Declaration, Effects, ErrorClass, Refusal, Tool, ToolCall, ToolFailure,
    ToolOutput, Truncation,
};

use self::{
    binary::BinaryFile,
    text::{LineWindow, Window},
};
use super::{
    arguments, checked_arguments, declare,
    digest::{hex, read_some},
    failure::{PathError, io_code, special},
    names::{relative, shown},
    read_effects,
    worker::{StopSign, Stopped, on_worker},
    workspace::{Found, Workspace, open_regular},
};

/// How much of a file decides whether it is text.
const HEAD_BYTES: usize = 8 * 1024;
/// How much is read between two looks at the stop sign.
const CHUNK_BYTES: usize = 64 * 1024;
/// How far into a file lines are looked for.
const SCAN_BYTES: u64 = 64 * 1024 * 1024;
/// Files up to this size are read to their end even when fewer lines are shown, so that the number of lines and
/// the digest are known.
const READ_ON_BYTES: u64 = 4 * 1024 * 1024;

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
}

fn first_line() -> u64 {
    1
}

fn default_limit() -> u64 {
    2000
}

/// The structured result.
#[derive(Serialize, JsonSchema)]
struct ReadResult {
    /// The file, relative to the workspace and without links.
    path: String,
    /// Size of the file in bytes.
    size: u64,
    /// `utf-8`, or `binary` for everything else.
    encoding: Encoding,
    /// Number of the first line shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    first_line: Option<u64>,
    /// How many lines are shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    lines_shown: Option<u64>,
    /// How many lines the file has, where it was read to its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    total_lines: Option<u64>,
    /// The `offset` to read on with, where there is more.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_offset: Option<u64>,
    /// How many of the lines shown are too long and were cut.
    #[serde(skip_serializing_if = "Option::is_none")]
    cut_lines: Option<u64>,
    /// Bytes that are not UTF-8 were replaced in what is shown.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schemars(default)]
    lossy: bool,
    /// What a binary file seems to be.
    #[serde(skip_serializing_if = "Option::is_none")]
    media_type: Option<&'static str>,
    /// SHA-256 of the whole file, where all of it was read.
    #[serde(skip_serializing_if = "Option::is_none")]
    sha256: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Serialize, JsonSchema)]
enum Encoding {
    #[serde(rename = "utf-8")]
    Utf8,
    #[serde(rename = "binary")]
    Binary,
}

/// Why a file was not read.
#[derive(Debug, thiserror::Error)]
enum ReadError {
    #[error(transparent)]
    Path(#[from] PathError),
    #[error(transparent)]
    Stopped(#[from] Stopped),
    #[error("`{}` has only {}, so there is no line {offset}", shown(.path), lines(*.total))]
    PastTheEnd { path: String, total: u64, offset: u64 },
    #[error("line {offset} of `{}` is beyond the first {} MiB, and no more is scanned", shown(.path), SCAN_BYTES >> 20)]
    TooFar { path: String, offset: u64 },
    #[error("cannot read `{}`: {source}", shown(.path))]
    Io { path: String, source: io::Error },
}

impl ReadError {
    fn into_failure(self) -> ToolFailure {
        let message = self.to_string();
        match self {
            Self::Path(error) => error.into_failure(),
            Self::Stopped(stopped) => stopped.into_failure(),
            Self::PastTheEnd { .. } => {
                ToolFailure::of(ErrorClass::InvalidArguments, message).code("past_the_end")
            }
            Self::TooFar { .. } => ToolFailure::new(message).code("too_large"),
            Self::Io { source, .. } => ToolFailure::new(message).code(io_code(&source)),
        }
        .untouched()
    }
}

impl ReadFile {
    pub(super) fn new(workspace: Arc<Workspace>) -> Self {
        Self { workspace }
    }
}

impl Tool for ReadFile {
    fn declaration(&self) -> Declaration {
        let mut declaration = declare::<Arguments<'_>, ReadResult>(
            "read_file",
            "Reads a text file and gives its lines exactly as they are. `offset` and `limit` choose the lines; at \
             most 256 KiB come back at once. Images are shown, other binary files are described.",
            Access::Read,
        );
        declaration.title = Some("Read file".to_owned());
        declaration.search_hint = "open view cat show content lines head image".to_owned();
        declaration.input.examples = vec![
            json!({ "path": "README.md" }),
            json!({ "path": "src/main.rs", "offset": 120, "limit": 40 }),
        ];
        declaration
    }

    fn check(&self, input: &CallInput) -> Result<(), Refusal> {
        let arguments: Arguments<'_> = checked_arguments(input)?;
        for (at, value) in [("/offset", arguments.offset), ("/limit", arguments.limit)] {
            if value == 0 {
                return Err(Refusal::invalid(at, "`0` is too small, the least is 1"));
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
        on_worker(call.context, move |stop| {
            let arguments: Arguments<'_> =
                arguments(&input).map_err(|error| ToolFailure::invalid(error.to_string()))?;
            let read = read(&workspace, &arguments, stop).map_err(ReadError::into_failure)?;
            Ok(read.into_output()?)
        })
        .await
    }
}

/// A file that was read, and how.
enum Read {
    Text {
        path: String,
        size: u64,
        window: Window,
        sha256: Option<String>,
    },
    Binary {
        path: String,
        file: BinaryFile,
    },
}

fn read(workspace: &Workspace, arguments: &Arguments<'_>, stop: &StopSign) -> Result<Read, ReadError> {
    let given = arguments.path;
    let located = workspace.locate(&workspace.request(given).map_err(PathError::from)?)?;
    let (mut file, stat) = match &located.found {
        Found::Entry { parent, name, stat } => match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => open_regular(parent, name, given)?,
            other => return Err(special(given, other).into()),
        },
        Found::Directory(_) => {
            return Err(PathError::IsDirectory {
                given: given.to_owned(),
            }
            .into());
        }
        Found::Missing { parent, rest } => {
            return Err(PathError::not_found(given.to_owned(), parent, &located.path, rest).into());
        }
    };
    let path = relative(&located.path).0.into_owned();
    let size = u64::try_from(stat.st_size).unwrap_or(0);
    let failed = |source| ReadError::Io {
        path: path.clone(),
        source,
    };
    let head = read_head(&mut file).map_err(failed)?;
    if binary::is_binary(&head, head.len() < HEAD_BYTES) {
        let file = binary::read(&mut file, head, size, stop).map_err(|error| match error {
            binary::BinaryError::Stopped(stopped) => ReadError::Stopped(stopped),
            binary::BinaryError::Io(source) => failed(source),
        })?;
        return Ok(Read::Binary { path, file });
    }
    read_text(
        &mut file,
        head,
        Plan {
            path,
            size,
            offset: arguments.offset,
            limit: arguments.limit,
        },
        stop,
    )
}

/// The first bytes of a file, fewer only where it has no more.
fn read_head(file: &mut File) -> io::Result<Vec<u8>> {
    let mut head = vec![0; HEAD_BYTES];
    let mut filled = 0;
    while filled < HEAD_BYTES {
        match read_some(file, &mut head[filled..])? {
            0 => break,
            count => filled += count,
        }
    }
    head.truncate(filled);
    Ok(head)
}

/// What is wanted of a text file whose head was read.
struct Plan {
    path: String,
    /// As the system told it; `/proc` says 0 and has more.
    size: u64,
    offset: u64,
    limit: u64,
}

fn read_text(file: &mut File, head: Vec<u8>, plan: Plan, stop: &StopSign) -> Result<Read, ReadError> {
    let mut window = LineWindow::new(plan.offset, plan.limit);
    let mut hasher = (plan.size <= READ_ON_BYTES).then(Sha256::new);
    let mut scanned = 0_u64;
    let mut chunk = head;
    let mut count = chunk.len();
    let at_end = loop {
        if count == 0 {
            break true;
        }
        window.feed(&chunk[..count]);
        scanned += count as u64;
        hasher = hasher.filter(|_| scanned <= READ_ON_BYTES);
        if let Some(hasher) = &mut hasher {
            hasher.update(&chunk[..count]);
        }
        if (window.is_complete() && hasher.is_none()) || scanned >= SCAN_BYTES {
            break false;
        }
        stop.check()?;
        chunk.resize(CHUNK_BYTES, 0);
        count = read_some(file, &mut chunk).map_err(|source| ReadError::Io {
            path: plan.path.clone(),
            source,
        })?;
    };
    let window = window.finish(at_end);
    let Plan {
        path, size, offset, ..
    } = plan;
    if window.lines_shown == 0 && offset > 1 {
        return Err(match window.total_lines {
            Some(total) => ReadError::PastTheEnd { path, total, offset },
            None => ReadError::TooFar { path, offset },
        });
    }
    let size = if at_end { scanned } else { size.max(scanned) };
    Ok(Read::Text {
        path,
        size,
        window,
        sha256: hasher.filter(|_| at_end).map(hex),
    })
}

impl Read {
    fn into_output(self) -> Result<ToolOutput, serde_json::Error> {
        match self {
            Self::Text {
                path,
                size,
                window,
                sha256,
            } => text_output(path, size, window, sha256),
            Self::Binary { path, file } => binary_output(path, file),
        }
    }
}

fn text_output(
    path: String,
    size: u64,
    window: Window,
    sha256: Option<String>,
) -> Result<ToolOutput, serde_json::Error> {
    let result = ReadResult {
        path,
        size,
        encoding: Encoding::Utf8,
        first_line: Some(window.first_line),
        lines_shown: Some(window.lines_shown),
        total_lines: window.total_lines,
        next_offset: window.next_line,
        cut_lines: (window.cut_lines > 0).then_some(window.cut_lines),
        lossy: window.lossy,
        media_type: None,
        sha256,
    };
    let summary = text_summary(&result);
    Ok(ToolOutput {
        truncated: text_truncation(&result),
        structured: Some(serde_json::to_value(&result)?),
        content: vec![Content::text(window.text)],
        summary: Some(summary),
        ..ToolOutput::default()
    })
}

fn text_summary(result: &ReadResult) -> String {
    let path = shown(&result.path);
    let (first, count) = (result.first_line.unwrap_or(1), result.lines_shown.unwrap_or(0));
    let lossy = if result.lossy {
        ", bytes that are not UTF-8 were replaced"
    } else {
        ""
    };
    match (result.size, result.total_lines) {
        (0, _) => format!("{path} is empty"),
        (_, Some(total)) if total == count => format!("read {} of {path}{lossy}", lines(count)),
        (_, Some(total)) => {
            format!(
                "read lines {first} to {} of {total} of {path}{lossy}",
                first + count.saturating_sub(1)
            )
        }
        (_, None) => format!(
            "read lines {first} to {} of {path}{lossy}",
            first + count.saturating_sub(1)
        ),
    }
}

fn lines(count: u64) -> String {
    format!("{count} {}", if count == 1 { "line" } else { "lines" })
}

/// Says what is missing: lines after the last one shown, or parts of long ones.
fn text_truncation(result: &ReadResult) -> Option<Truncation> {
    let hint = match (result.next_offset, result.cut_lines, result.total_lines) {
        (Some(next), ..) => Some(format!("read on with `offset={next}`")),
        (None, _, None) => Some(format!(
            "only the first {} MiB of a file are scanned",
            SCAN_BYTES >> 20
        )),
        (None, Some(count), _) => Some(format!("{} longer than 16 KiB, cut with a mark", lines(count))),
        (None, None, Some(_)) => None,
    }?;
    Some(Truncation {
        shown: result.lines_shown.unwrap_or(0),
        total: result.total_lines,
        unit: "lines".to_owned(),
        hint: Some(hint),
    })
}

fn binary_output(path: String, file: BinaryFile) -> Result<ToolOutput, serde_json::Error> {
    let summary = format!(
        "{} is binary: {}, {} bytes",
        shown(&path),
        file.media_type,
        file.size
    );
    let result = ReadResult {
        path,
        size: file.size,
        encoding: Encoding::Binary,
        first_line: None,
        lines_shown: None,
        total_lines: None,
        next_offset: None,
        cut_lines: None,
        lossy: false,
        media_type: Some(file.media_type),
        sha256: file.sha256,
    };
    Ok(ToolOutput {
        content: vec![file.content],
        structured: Some(serde_json::to_value(&result)?),
        summary: Some(summary),
        truncated: file.truncated,
        ..ToolOutput::default()
    })
}
