//! The result of `read_file`.

use schemars::JsonSchema;
use serde::Serialize;
use toolpost_model::{ResultContent, ToolOutput, Truncation};
use toolpost_processes::shown;

use super::{
    binary::BinaryFile,
    scan::{ReadFileContent, SCAN_BYTES},
    text::TextWindow,
};

/// The file, and which part of it is shown.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ReadResult")]
pub(super) struct ReadFileResult {
    /// The file, relative to the workspace and without links.
    path: String,
    /// Size of the file in bytes.
    size: u64,
    /// `utf-8`, or `binary` for everything else.
    encoding: FileEncoding,
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
#[schemars(rename = "Encoding")]
enum FileEncoding {
    #[serde(rename = "utf-8")]
    Utf8,
    #[serde(rename = "binary")]
    Binary,
}

/// The output of the call.
pub(super) fn output(
    read: ReadFileContent,
    line_numbers: bool,
) -> Result<ToolOutput, serde_json::Error> {
    match read {
        ReadFileContent::Text {
            path,
            size,
            mut window,
            sha256,
        } => {
            if line_numbers {
                window.number_lines();
            }
            text_output(path, size, window, sha256)
        }
        ReadFileContent::Binary { path, file } => binary_output(path, file),
    }
}

fn text_output(
    path: String,
    size: u64,
    window: TextWindow,
    sha256: Option<String>,
) -> Result<ToolOutput, serde_json::Error> {
    let result = ReadFileResult {
        path,
        size,
        encoding: FileEncoding::Utf8,
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
    let is_empty = window.text.is_empty();
    let output = ToolOutput {
        truncated: text_truncation(&result),
        structured: Some(serde_json::to_value(&result)?),
        content: vec![ResultContent::text(window.text)],
        summary: Some(summary),
        ..ToolOutput::default()
    };
    Ok(if is_empty {
        output.with_nothing_to_show()
    } else {
        output
    })
}

fn text_summary(result: &ReadFileResult) -> String {
    let path = shown(&result.path);
    let first = result.first_line.unwrap_or(1);
    let count = result.lines_shown.unwrap_or(0);
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

/// "1 line", "2 lines".
pub(in crate::files) fn lines(count: u64) -> String {
    format!("{count} {}", if count == 1 { "line" } else { "lines" })
}

/// The note about missing content: lines after the last one, or parts of long lines.
fn text_truncation(result: &ReadFileResult) -> Option<Truncation> {
    let hint = match (result.next_offset, result.cut_lines, result.total_lines) {
        (Some(next), ..) => Some(format!("read on with `offset={next}`")),
        (None, _, None) => Some(format!(
            "only the first {} MiB of a file are scanned",
            SCAN_BYTES >> 20
        )),
        (None, Some(count), _) => Some(format!(
            "{} longer than 16 KiB, cut with a mark",
            lines(count)
        )),
        (None, None, Some(_)) => None,
    }?;
    Some(Truncation {
        shown: result.lines_shown.unwrap_or(0),
        total: result.total_lines,
        unit: "lines".to_owned(),
        hint: Some(hint),
        artifact: None,
    })
}

fn binary_output(path: String, file: BinaryFile) -> Result<ToolOutput, serde_json::Error> {
    let summary = format!(
        "{} is binary: {}, {} bytes",
        shown(&path),
        file.media_type,
        file.size
    );
    let result = ReadFileResult {
        path,
        size: file.size,
        encoding: FileEncoding::Binary,
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
