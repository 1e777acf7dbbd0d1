//! `results.read_result`: any part of a kept result, by lines, by bytes or by JSON pointer.

use std::sync::Arc;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::runtime::Handle;
use toolpost_model::{
    CallInput, Declaration, Effects, InputRefusal, ResultContent, StoredArtifact, Tool, ToolCall,
    ToolFailure, ToolOutput, Truncation, visible_text,
};
use toolpost_processes::{Workspace, on_worker};

use super::{
    PIECE_BYTES, SHOWN_BYTES, check_ref, declare, effects, failed, invalid, is_text,
    json::{self, JsonValueExcerpt},
    open,
    reader::ResultReader,
};
use crate::{
    arguments::{checked_arguments, read_arguments},
    files::LineWindow,
};

/// How much of a content decides whether it is text.
const HEAD_BYTES: usize = 8 << 10;

pub(super) struct ReadResultTool {
    workspace: Arc<Workspace>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The kept result, as the answer that names it does: `art_…`.
    #[serde(rename = "ref")]
    reference: String,
    /// First line to show, counted from 1. Less than 0 counts from the end: -40 shows the last 40 lines. With
    /// `pointer`, the first element of the list or object there, counted from 1.
    #[serde(default = "first")]
    offset: i64,
    /// Number of lines, or with `pointer` of elements, to show.
    #[serde(default = "usual_limit")]
    #[schemars(range(min = 1))]
    limit: u64,
    /// Show bytes from this place on, counted from 0, instead of lines: for very long lines and for what is no text.
    byte_offset: Option<u64>,
    /// Show the value at this JSON pointer: `/items/3/name`, or an empty text for all of it.
    pointer: Option<String>,
}

fn first() -> i64 {
    1
}

fn usual_limit() -> u64 {
    500
}

/// What is shown.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Shown")]
struct ReadResultReport {
    /// The kept result.
    #[serde(rename = "ref")]
    reference: String,
    /// Such as `text/plain`.
    media_type: String,
    /// All of its bytes.
    size: u64,
    /// The first line or element shown, counted from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    first: Option<u64>,
    /// How many lines, elements or bytes are shown.
    shown: u64,
    /// How many there are, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    total: Option<u64>,
    /// `lines`, `elements` or `bytes`.
    unit: &'static str,
    /// The `offset` (with bytes the `byte_offset`) to read on with, where there is more.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_offset: Option<u64>,
    /// What is at the pointer: `object`, `array`, `string`, `number`, `boolean`, `null`.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    kind: Option<&'static str>,
}

/// A part, with its position.
struct KeptResultPart {
    content: ResultContent,
    first: Option<u64>,
    shown: u64,
    total: Option<u64>,
    unit: &'static str,
    next_offset: Option<u64>,
    kind: Option<&'static str>,
}

impl ReadResultTool {
    pub(super) fn new(workspace: Arc<Workspace>) -> Self {
        Self { workspace }
    }

    async fn part(
        &self,
        call: &ToolCall,
        stored: &Arc<dyn StoredArtifact>,
        arguments: &Arguments,
    ) -> Result<KeptResultPart, ToolFailure> {
        if let Some(pointer) = &arguments.pointer {
            return self.value(call, stored, pointer.clone(), arguments).await;
        }
        if let Some(offset) = arguments.byte_offset {
            return bytes(&**stored, offset).await;
        }
        let head = stored.read(0, HEAD_BYTES).await.map_err(failed)?;
        if !is_text(&head) {
            return bytes(&**stored, 0).await;
        }
        match u64::try_from(arguments.offset) {
            Ok(first) => lines(call, &**stored, first, arguments.limit).await,
            Err(_) => last_lines(&**stored, arguments.offset.unsigned_abs()).await,
        }
    }

    async fn value(
        &self,
        call: &ToolCall,
        stored: &Arc<dyn StoredArtifact>,
        pointer: String,
        arguments: &Arguments,
    ) -> Result<KeptResultPart, ToolFailure> {
        let first = u64::try_from(arguments.offset).map_err(|_| {
            ToolFailure::invalid(
                "with `pointer`, `offset` counts from the beginning and is at least 1",
            )
        })?;
        let start = first.saturating_sub(1);
        let range = start..start.saturating_add(arguments.limit);
        let stored = Arc::clone(stored);
        let runtime = Handle::current();
        let found = on_worker(&self.workspace, call.context.clone(), move |stop| {
            let reader = ResultReader::new(stored, runtime, stop);
            let bound = reader.bound();
            let reader = std::io::BufReader::with_capacity(PIECE_BYTES, reader);
            json::find(reader, &bound, &pointer, range, SHOWN_BYTES).map_err(|error| {
                invalid(&error).hint("without `pointer`, the result can be read by lines or bytes")
            })
        });
        pointed_at(found.await?, first)
    }
}

fn pointed_at(found: JsonValueExcerpt, first: u64) -> Result<KeptResultPart, ToolFailure> {
    let elements = |value: Value, shown: usize, length: u64, kind| {
        let shown = shown as u64;
        let text = serde_json::to_string_pretty(&value)?;
        let next = first + shown;
        Ok(KeptResultPart {
            content: ResultContent::text(text),
            first: Some(first),
            shown,
            total: Some(length),
            unit: "elements",
            next_offset: (next <= length && shown > 0).then_some(next),
            kind: Some(kind),
        })
    };
    match found {
        JsonValueExcerpt::List { shown, length } => {
            let count = shown.len();
            elements(Value::Array(shown), count, length, "array")
        }
        JsonValueExcerpt::Object { shown, length } => {
            let count = shown.len();
            elements(Value::Object(shown), count, length, "object")
        }
        JsonValueExcerpt::Scalar(value) => {
            let kind = match &value {
                Value::String(_) => "string",
                Value::Number(_) => "number",
                Value::Bool(_) => "boolean",
                Value::Null | Value::Array(_) | Value::Object(_) => "null",
            };
            let whole = value.to_string();
            let end = whole.floor_char_boundary(SHOWN_BYTES);
            Ok(KeptResultPart {
                content: ResultContent::text(&whole[..end]),
                first: None,
                shown: end as u64,
                total: Some(whole.len() as u64),
                unit: "bytes",
                next_offset: None,
                kind: Some(kind),
            })
        }
    }
}

async fn lines(
    call: &ToolCall,
    stored: &dyn StoredArtifact,
    first: u64,
    limit: u64,
) -> Result<KeptResultPart, ToolFailure> {
    let mut window = LineWindow::new(first, limit).within(SHOWN_BYTES);
    let mut at = 0;
    while !window.is_complete() {
        if call.context.is_canceled() {
            return Err(ToolFailure::of(
                toolpost_model::ErrorClass::Canceled,
                "the call was canceled",
            )
            .untouched());
        }
        let piece = stored.read(at, PIECE_BYTES).await.map_err(failed)?;
        if piece.is_empty() {
            break;
        }
        window.feed(&piece);
        at += piece.len() as u64;
    }
    let is_whole = at >= stored.about().size;
    let window = window.finish(is_whole);
    if window.lines_shown == 0 && first > 1 {
        let there = window.total_lines.unwrap_or_default();
        let message = format!("there is no line {first}: it has {there}");
        return Err(ToolFailure::invalid(message).code("past_the_end"));
    }
    Ok(KeptResultPart {
        content: ResultContent::text(visible_text(&window.text)),
        first: Some(first),
        shown: window.lines_shown,
        total: window.total_lines,
        unit: "lines",
        next_offset: window.next_line,
        kind: None,
    })
}

/// As many of the last lines as fit.
async fn last_lines(
    stored: &dyn StoredArtifact,
    wanted: u64,
) -> Result<KeptResultPart, ToolFailure> {
    let size = stored.about().size;
    let from = size.saturating_sub(SHOWN_BYTES as u64);
    let tail = stored.read(from, SHOWN_BYTES).await.map_err(failed)?;
    let ends = |(at, byte): (usize, &u8)| (*byte == b'\n' && at + 1 < tail.len()).then_some(at + 1);
    let starts: Vec<usize> = tail.iter().enumerate().filter_map(ends).collect();
    let wanted = usize::try_from(wanted).unwrap_or(usize::MAX);
    // The bytes before the first line start are the end of a line that is cut, unless everything is here.
    let whole = starts.len() + usize::from(from == 0);
    let begin = match starts.len().checked_sub(wanted) {
        Some(place) => starts[place],
        None if from == 0 => 0,
        None => starts.first().copied().unwrap_or(0),
    };
    let shown = whole.min(wanted) as u64;
    Ok(KeptResultPart {
        content: ResultContent::text(visible_text(&String::from_utf8_lossy(&tail[begin..]))),
        first: None,
        shown,
        total: None,
        unit: "lines",
        next_offset: None,
        kind: None,
    })
}

/// Bytes as text if they are text, and encoded otherwise.
async fn bytes(stored: &dyn StoredArtifact, offset: u64) -> Result<KeptResultPart, ToolFailure> {
    let about = stored.about();
    if offset > about.size {
        let message = format!("there is no byte {offset}: it has {}", about.size);
        return Err(ToolFailure::invalid(message).code("past_the_end"));
    }
    let mut read = stored.read(offset, SHOWN_BYTES / 2).await.map_err(failed)?;
    let text = match std::str::from_utf8(&read) {
        Ok(text) => Some(text.to_owned()),
        // The last character may continue after the bytes that were read.
        Err(error) if error.error_len().is_none() && read.len() - error.valid_up_to() < 4 => {
            read.truncate(error.valid_up_to());
            std::str::from_utf8(&read).ok().map(ToOwned::to_owned)
        }
        Err(_) => None,
    };
    let end = offset + read.len() as u64;
    let content = match text {
        Some(text) if is_text(&read) => ResultContent::text(text),
        Some(_) | None => ResultContent::Binary {
            data: STANDARD.encode(&read),
            media_type: about.media_type.clone(),
            size: about.size,
        },
    };
    Ok(KeptResultPart {
        content,
        first: None,
        shown: end - offset,
        total: Some(about.size),
        unit: "bytes",
        next_offset: (end < about.size).then_some(end),
        kind: None,
    })
}

impl KeptResultPart {
    fn output(self, stored: &dyn StoredArtifact) -> Result<ToolOutput, ToolFailure> {
        let about = stored.about();
        let truncated = self.next_offset.map(|next| {
            let argument = if self.unit == "bytes" {
                "byte_offset"
            } else {
                "offset"
            };
            Truncation {
                shown: self.shown,
                total: self.total,
                unit: self.unit.to_owned(),
                hint: Some(format!("read on with `{argument}={next}`")),
                artifact: Some(about.id),
            }
        });
        let of = self
            .total
            .map(|total| format!(" of {total}"))
            .unwrap_or_default();
        let summary = format!(
            "{}{of} {} of `{}` of {}",
            self.shown, self.unit, about.name, about.id
        );
        let shown = ReadResultReport {
            reference: about.id.to_string(),
            media_type: about.media_type.clone(),
            size: about.size,
            first: self.first,
            shown: self.shown,
            total: self.total,
            unit: self.unit,
            next_offset: self.next_offset,
            kind: self.kind,
        };
        let output = ToolOutput {
            content: vec![self.content],
            structured: Some(serde_json::to_value(&shown)?),
            summary: Some(summary),
            truncated,
            ..ToolOutput::default()
        };
        Ok(if shown.shown == 0 {
            output.with_nothing_to_show()
        } else {
            output
        })
    }
}

impl Tool for ReadResultTool {
    fn declaration(&self) -> Declaration {
        let mut declaration = declare::<Arguments, ReadResultReport>(
            "read_result",
            "Reads a part of a result that was too large to be shown and was kept: the `ref` is in the answer that \
             showed its beginning. By lines (`offset`, `limit`; a negative `offset` counts from the end), by bytes \
             (`byte_offset`), or a value of JSON by `pointer`, of a list or an object page by page. At most 48 KiB \
             come back at once, and the answer says where to read on. `search_result` finds the lines worth reading.",
        );
        declaration.title = Some("Read kept result".to_owned());
        declaration.search_hint =
            "artifact kept large truncated output page more lines json pointer slice tail"
                .to_owned();
        let id = "art_019f3c00112270008000000000000001_1";
        declaration.input.examples = vec![
            json!({ "ref": id, "offset": 501 }),
            json!({ "ref": id, "offset": -40 }),
            json!({ "ref": id, "pointer": "/items", "limit": 20 }),
            json!({ "ref": id, "byte_offset": 1048576 }),
        ];
        declaration
    }

    fn check(&self, input: &CallInput) -> Result<(), InputRefusal> {
        check_ref(input)?;
        let arguments: Arguments = checked_arguments(input)?;
        if arguments.offset == 0 {
            return Err(InputRefusal::invalid(
                "/offset",
                "`0` is neither a line from the beginning nor from the end",
            ));
        }
        if arguments.limit == 0 {
            return Err(InputRefusal::invalid(
                "/limit",
                "`0` is too small, the minimum is 1",
            ));
        }
        if arguments.pointer.is_some() && arguments.byte_offset.is_some() {
            return Err(InputRefusal::invalid(
                "/byte_offset",
                "give either `pointer` or `byte_offset`",
            ));
        }
        match arguments.pointer.as_deref().map(json::parts) {
            Some(Err(error)) => Err(InputRefusal::invalid("/pointer", error.to_string())),
            Some(Ok(_)) | None => Ok(()),
        }
    }

    fn effects(&self, _: &CallInput) -> Option<Effects> {
        Some(effects())
    }

    async fn execute(&self, call: ToolCall) -> Result<ToolOutput, ToolFailure> {
        let arguments: Arguments = read_arguments(&call.input)?;
        let stored = open(&call.context, &arguments.reference).await?;
        self.part(&call, &stored, &arguments)
            .await?
            .output(&*stored)
    }
}
