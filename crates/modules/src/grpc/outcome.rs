//! A service's answer as the end of a call. One malformed member does not lose the rest of the answer; it is logged.

use serde_json::{Map, Value};
use toolpost_amplifier::{ContentBlock, ToolResult, VerbatimJson, into_outcome};
use toolpost_model::{CallContext, LogLevel, ToolFailure, ToolOutput};

use super::{
    message::{ExecuteResponse, GrpcBlockContent, GrpcContentBlock},
    status::shortened,
};

/// The most content blocks of one result.
const MOST_PIECES: usize = 256;

pub(super) fn outcome(
    answer: ExecuteResponse,
    context: &CallContext,
) -> Result<ToolOutput, ToolFailure> {
    let odd = |message: String| context.log(LogLevel::Warn, message);
    let output = output(&answer, &odd)?;
    if answer.success && !answer.error.is_empty() {
        odd(format!(
            "the service reports success and an error: {}",
            shortened(&answer.error)
        ));
    }
    let error = (!answer.success && !answer.error.is_empty()).then(|| {
        let mut error = Map::new();
        error.insert(
            "message".to_owned(),
            Value::String(shortened(&answer.error)),
        );
        error
    });
    into_outcome(ToolResult::of_parts(
        answer.success,
        output,
        error,
        pieces(answer.content_blocks, &odd),
    ))
}

/// The output. Amplifier drops an output that is not JSON. Here the text is kept, since the work was done.
fn output(answer: &ExecuteResponse, odd: &dyn Fn(String)) -> Result<VerbatimJson, ToolFailure> {
    if answer.output.is_empty() {
        return Ok(VerbatimJson::default());
    }
    let kind = answer
        .content_type
        .split(';')
        .next()
        .unwrap_or_default()
        .trim()
        .to_ascii_lowercase();
    let is_json = kind.is_empty() || kind == "application/json" || kind.ends_with("+json");
    let Ok(text) = std::str::from_utf8(&answer.output) else {
        let message = format!(
            "the service answered with {} bytes of {}, which is neither JSON nor text; the call may have taken effect",
            answer.output.len(),
            if kind.is_empty() {
                "no stated type".to_owned()
            } else {
                format!("`{}`", shortened(&kind))
            },
        );
        return Err(ToolFailure::new(message).code("unreadable_output"));
    };
    if !is_json {
        if !kind.starts_with("text/") {
            odd(format!(
                "the output is `{}` and is treated as text",
                shortened(&kind)
            ));
        }
        return Ok(VerbatimJson::from(Value::String(text.to_owned())));
    }
    VerbatimJson::parse(text).or_else(|error| {
        odd(format!("the output is {error}; it is treated as text"));
        Ok(VerbatimJson::from(Value::String(text.to_owned())))
    })
}

fn pieces(blocks: Vec<GrpcContentBlock>, odd: &dyn Fn(String)) -> Vec<ContentBlock> {
    if blocks.len() > MOST_PIECES {
        odd(format!(
            "only the first {MOST_PIECES} of {} content blocks are kept",
            blocks.len()
        ));
    }
    let read = blocks.into_iter().take(MOST_PIECES).map(piece);
    read.filter_map(|read| {
        read.map_err(|why| odd(format!("a content block is left out: {why}")))
            .ok()
    })
    .collect()
}

fn piece(block: GrpcContentBlock) -> Result<ContentBlock, String> {
    if block.visibility != 0 {
        return Err("blocks of results cannot have a visibility".to_owned());
    }
    let not_here = |name: &str| Err(format!("results cannot have a `{name}`"));
    match block.piece {
        Some(GrpcBlockContent::Text(text)) => Ok(ContentBlock::Text(text.text)),
        Some(GrpcBlockContent::Image(image)) if image.source_json.is_empty() => {
            match ContentBlock::image(image.media_type, &image.data) {
                Ok(image) => Ok(image),
                Err(error) => Err(error.to_string()),
            }
        }
        Some(GrpcBlockContent::Image(_)) => {
            Err("images by reference (`source_json`) are not supported".to_owned())
        }
        Some(GrpcBlockContent::Thinking(_)) => not_here("thinking_block"),
        Some(GrpcBlockContent::RedactedThinking(_)) => not_here("redacted_thinking_block"),
        Some(GrpcBlockContent::ToolCall(_)) => not_here("tool_call_block"),
        Some(GrpcBlockContent::ToolResult(_)) => not_here("tool_result_block"),
        Some(GrpcBlockContent::Reasoning(_)) => not_here("reasoning_block"),
        None => Err("it is empty, or its type is unknown".to_owned()),
    }
}
