//! The data of a result: the value or the text of the tool.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::{Map, Value, json};
use toolpost_model::{ResultContent, ToolResult as HostResult};

use super::own_code;

/// The output of the tool: its value alone if there is nothing else, otherwise its text together with the other parts.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum ResultData<'a> {
    Value(&'a Value),
    /// Only for tools of plugins; the host's own tools give text among other parts.
    Text(Cow<'a, str>),
    Parts {
        #[serde(skip_serializing_if = "Option::is_none")]
        text: Option<Cow<'a, str>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        structured: Option<&'a Value>,
        #[serde(skip_serializing_if = "Option::is_none")]
        content: Option<&'a [ResultContent]>,
    },
}

impl<'a> ResultData<'a> {
    /// The data, and whether its text was cut.
    pub(super) fn of(result: &'a HostResult, most: usize) -> (Option<Self>, bool) {
        let structured = result.structured_content.as_ref();
        if result.content.is_empty() {
            return (structured.map(Self::Value), false);
        }
        let texts = || result.content.iter().filter_map(ResultContent::reading);
        let only_text = texts().count() == result.content.len();
        let text = match (texts().next(), texts().count()) {
            (None, _) => None,
            (Some(only), 1) => Some(only),
            (Some(_), _) => Some(Cow::Owned(texts().collect::<Vec<_>>().join("\n"))),
        };
        let (text, cut) = match text {
            Some(text) => match fitting(&text, most) {
                Some(end) => (Some(cut_at(text, end)), true),
                None => (Some(text), false),
            },
            None => (None, false),
        };
        (
            Some(Self::Parts {
                text,
                structured,
                content: (!only_text).then_some(&result.content),
            }),
            cut,
        )
    }

    /// The data of a plugin's tool, as the plugin gave it.
    pub(super) fn of_plugin(result: &'a HostResult, most: usize) -> (Option<Self>, bool) {
        if own_code(result).is_some() {
            let details = result
                .error
                .as_ref()
                .and_then(|error| error.details.as_ref());
            return (
                details
                    .and_then(|details| details.get("output"))
                    .map(Self::Value),
                false,
            );
        }
        match Self::of(result, most) {
            (
                Some(Self::Parts {
                    text: _,
                    structured: Some(value),
                    content: None,
                }),
                _,
            ) => (Some(Self::Value(value)), false),
            (
                Some(Self::Parts {
                    text: Some(text),
                    structured: None,
                    content: None,
                }),
                cut,
            ) => (Some(Self::Text(text)), cut),
            other => other,
        }
    }
}

/// The length at which a text must end for its escaped form to fit. `None`: it fits whole.
fn fitting(text: &str, most: usize) -> Option<usize> {
    // Escaping takes at most six characters for a byte of a control character; a character of two or more bytes takes
    // six or twelve.
    if text.len() <= most / 6 {
        return None;
    }
    let mut written = 0;
    for (place, character) in text.char_indices() {
        written += match character {
            '"' | '\\' | '\n' | '\r' | '\t' => 2,
            ' '..='~' => 1,
            other => 6 * other.len_utf16(),
        };
        if written > most {
            return Some(place);
        }
    }
    None
}

fn cut_at(text: Cow<'_, str>, end: usize) -> Cow<'_, str> {
    match text {
        Cow::Borrowed(text) => Cow::Borrowed(&text[..end]),
        Cow::Owned(mut text) => {
            text.truncate(end);
            Cow::Owned(text)
        }
    }
}

impl ResultData<'_> {
    pub(super) fn to_value(&self) -> Value {
        match self {
            Self::Value(value) => (*value).clone(),
            Self::Text(text) => Value::from(text.as_ref()),
            Self::Parts {
                text,
                structured,
                content,
            } => {
                let mut parts = Map::new();
                let mut put = |name: &str, value: Option<Value>| {
                    if let Some(value) = value {
                        parts.insert(name.to_owned(), value);
                    }
                };
                put("text", text.as_deref().map(Value::from));
                put("structured", structured.cloned());
                put("content", content.map(|content| json!(content)));
                Value::Object(parts)
            }
        }
    }
}
