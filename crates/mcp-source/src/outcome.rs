//! The result of a call from a server's answer, and the failure of a call without an answer.

use std::borrow::Cow;

use serde_json::{Map, Value, json};
use toolpost_model::{
    ErrorClass, ResultContent, ToolFailure, ToolOutput, visible_line, visible_text,
};

use super::{
    clean::{line, shortened},
    client::McpRequestError,
};

/// The code of a call that never left the host.
pub(super) const NOT_SENT: &str = "not_sent";
/// The most pieces of one result.
const PIECES: usize = 1_000;
/// The longest error text of a server that is repeated.
const LONGEST: usize = 4 * 1024;

/// The result of `tools/call`.
pub(super) fn of_tool(answer: Value) -> Result<ToolOutput, ToolFailure> {
    let Value::Object(mut answer) = answer else {
        return Err(unreadable("it is not an object"));
    };
    let content = match answer.remove("content") {
        Some(Value::Array(pieces)) => pieces.into_iter().take(PIECES).map(content).collect(),
        None | Some(Value::Null) => Vec::new(),
        Some(_) => return Err(unreadable("its `content` is not a list")),
    };
    let structured = answer.remove("structuredContent");
    if answer.get("isError").and_then(Value::as_bool) == Some(true) {
        let mut failure = ToolFailure::new("the tool reports an error").code("tool_error");
        failure.content = content;
        failure.meta = meta(&mut answer);
        failure.details = structured.map(|structured| json!({ "structured_content": structured }));
        return Err(failure);
    }
    Ok(ToolOutput {
        content,
        structured,
        meta: meta(&mut answer),
        ..ToolOutput::default()
    })
}

/// The result of a request other than `tools/call`, whole.
pub(super) fn of_request(answer: Value) -> Result<ToolOutput, ToolFailure> {
    let Value::Object(mut answer) = answer else {
        return Err(unreadable("it is not an object"));
    };
    answer.remove("resultType");
    let meta = meta(&mut answer);
    Ok(ToolOutput {
        structured: Some(Value::Object(answer)),
        meta,
        ..ToolOutput::default()
    })
}

fn meta(answer: &mut Map<String, Value>) -> Option<Box<Map<String, Value>>> {
    match answer.remove("_meta") {
        Some(Value::Object(meta)) if !meta.is_empty() => Some(Box::new(meta)),
        _ => None,
    }
}

/// A piece of content. A piece of an unknown kind is shown as JSON.
fn content(mut piece: Value) -> ResultContent {
    let kind = piece["type"].as_str().unwrap_or_default().to_owned();
    let size = piece["size"].as_u64();
    let mut text = |pointer: &str| match piece.pointer_mut(pointer).map(Value::take) {
        Some(Value::String(text)) => Some(text),
        Some(other) => {
            if let Some(place) = piece.pointer_mut(pointer) {
                *place = other;
            }
            None
        }
        None => None,
    };
    let media =
        |given: Option<String>| given.unwrap_or_else(|| "application/octet-stream".to_owned());
    let read = match kind.as_str() {
        "text" => text("/text").map(ResultContent::text),
        "image" => text("/data").map(|data| ResultContent::Image {
            data,
            media_type: media(text("/mimeType")),
        }),
        "audio" => text("/data").map(|data| ResultContent::Audio {
            data,
            media_type: media(text("/mimeType")),
        }),
        "resource" => text("/resource/uri").map(|uri| ResultContent::Resource {
            uri,
            media_type: text("/resource/mimeType"),
            text: text("/resource/text"),
            data: text("/resource/blob"),
        }),
        "resource_link" => text("/uri").map(|uri| {
            let name = text("/name");
            let title = text("/title");
            let description = text("/description");
            let media_type = text("/mimeType");
            let name = name.unwrap_or_else(|| uri.clone());
            ResultContent::Link {
                name,
                title,
                description,
                media_type,
                size,
                uri,
            }
        }),
        _ => None,
    };
    let mut read = read.unwrap_or_else(|| ResultContent::text(piece.to_string()));
    write_out_hidden(&mut read);
    read
}

/// Writes out control and other hidden characters in texts that a model reads, as native tools do. Bytes, types and
/// addresses are for programs and stay unchanged.
fn write_out_hidden(content: &mut ResultContent) {
    let write_out = |text: &mut String, shown: fn(&str) -> Cow<'_, str>| {
        if let Cow::Owned(written_out) = shown(text) {
            *text = written_out;
        }
    };
    match content {
        ResultContent::Text { text }
        | ResultContent::Resource {
            text: Some(text), ..
        } => write_out(text, visible_text),
        ResultContent::Link {
            name,
            title,
            description,
            ..
        } => {
            write_out(name, visible_line);
            title
                .iter_mut()
                .for_each(|title| write_out(title, visible_line));
            description
                .iter_mut()
                .for_each(|description| write_out(description, visible_text));
        }
        ResultContent::Image { .. }
        | ResultContent::Audio { .. }
        | ResultContent::Binary { .. }
        | ResultContent::Resource { text: None, .. } => {}
    }
}

fn unreadable(why: &str) -> ToolFailure {
    ToolFailure::new(format!("the answer of the server cannot be read: {why}"))
        .code("unreadable_answer")
        .hint("the call may have taken effect")
}

/// The failure of a request without an answer, as the caller gets it.
pub(super) fn failure(error: McpRequestError, server: &str) -> ToolFailure {
    match error {
        McpRequestError::Remote {
            code,
            message,
            data,
        } => remote(code, &message, data, server),
        McpRequestError::Unsent(why) => {
            let message =
                format!("the connection to `{server}` was lost before the call was sent: {why}");
            ToolFailure::of(ErrorClass::DependencyUnavailable, message)
                .code(NOT_SENT)
                .untouched()
        }
        McpRequestError::Busy { status, after } => {
            let message = format!("`{server}` accepts no requests for now (HTTP {status})");
            let failure = ToolFailure::of(ErrorClass::RateLimited, message)
                .code("server_busy")
                .untouched();
            match after {
                Some(after) => {
                    failure.after_ms(u64::try_from(after.as_millis()).unwrap_or(u64::MAX))
                }
                None => failure,
            }
        }
        McpRequestError::Unauthorized(why) => {
            let message = format!("`{server}` refuses the host: {why}");
            ToolFailure::of(ErrorClass::SetupRequired, message)
                .code("unauthorized")
                .hint("the operator must set a valid token in the `headers` of this server")
                .untouched()
        }
        McpRequestError::Lost(why) => {
            let message = format!(
                "the connection to `{server}` broke during the call, which may have taken effect: {why}"
            );
            ToolFailure::of(ErrorClass::DependencyUnavailable, message)
                .code("connection_lost")
                .hint("check the effects of the call before you send it again")
        }
        McpRequestError::Unreadable(why) => unreadable(&why),
    }
}

fn remote(code: i32, message: &str, data: Option<Value>, server: &str) -> ToolFailure {
    let message = line(message, LONGEST);
    let failure = match code {
        -32602 => ToolFailure::of(
            ErrorClass::InvalidArguments,
            format!("`{server}` does not accept the arguments: {message}"),
        )
        .code("mcp_invalid_params")
        .untouched(),
        -32601 => ToolFailure::new(format!(
            "`{server}` does not support the request: {message}"
        ))
        .code("mcp_unknown_method")
        .untouched(),
        _ => ToolFailure::new(format!("`{server}` answered with error {code}: {message}"))
            .code("mcp_error"),
    };
    let data = data.filter(|data| data.to_string().len() <= LONGEST);
    ToolFailure {
        details: Some(
            json!({ "mcp_code": code, "mcp_message": shortened(&message, LONGEST), "mcp_data": data }),
        ),
        ..failure
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use toolpost_model::ResultContent;

    use super::of_tool;

    #[test]
    fn texts_have_their_hidden_characters_written_out_and_values_stay() {
        let output = of_tool(json!({
            "content": [
                { "type": "text", "text": "a\u{1b}[2Kb\r\nc\u{e0041}" },
                { "type": "resource", "resource": { "uri": "x:y", "text": "\u{7}" } },
                { "type": "resource_link", "uri": "x:y", "name": "n\nm" },
            ],
            "structuredContent": { "a": "\u{1b}" },
        }))
        .unwrap();
        let [
            ResultContent::Text { text },
            ResultContent::Resource {
                text: Some(resource),
                ..
            },
            ResultContent::Link { name, .. },
        ] = output.content.as_slice()
        else {
            panic!("{:?}", output.content)
        };
        assert_eq!(
            (text.as_str(), resource.as_str(), name.as_str()),
            ("a\\u{1b}[2Kb\nc\\u{e0041}", "\\u{7}", "n\\nm")
        );
        assert_eq!(output.structured, Some(json!({ "a": "\u{1b}" })));
    }
}
