//! The headers of the revision without sessions: the method of a request, the name of its subject, and the arguments
//! that the schema of a tool marks with `x-mcp-header`.

use std::collections::HashMap;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;

use super::super::message::HostMessage;

const ANNOTATION: &str = "x-mcp-header";

/// An argument that goes into a header too.
pub(super) struct ArgumentHeader {
    /// The members that lead to it.
    path: Vec<String>,
    name: HeaderName,
}

/// By the name of the tool.
pub(super) type NotedArgumentHeaders = HashMap<String, Vec<ArgumentHeader>>;

pub(super) fn of_message(message: &HostMessage, noted: &NotedArgumentHeaders) -> HeaderMap {
    let mut headers = HeaderMap::new();
    let Some(method) = message.method() else {
        return headers;
    };
    let mut insert = |name: HeaderName, text: &str| {
        if let Ok(value) = HeaderValue::from_str(text) {
            headers.insert(name, value);
        }
    };
    insert(HeaderName::from_static("mcp-method"), method);
    let named_by = match method {
        "tools/call" | "prompts/get" => "name",
        "resources/read" | "resources/subscribe" | "resources/unsubscribe" => "uri",
        "tasks/get" | "tasks/update" | "tasks/cancel" => "taskId",
        _ => return headers,
    };
    let Some(name) = message.param(named_by).and_then(Value::as_str) else {
        return headers;
    };
    insert(HeaderName::from_static("mcp-name"), &encoded(name));
    let arguments = message.param("arguments").unwrap_or(&Value::Null);
    let noted = noted.get(name).filter(|_| method == "tools/call");
    for ArgumentHeader { path, name } in noted.into_iter().flatten() {
        let argument = path
            .iter()
            .try_fold(arguments, |value, member| value.get(member));
        match argument {
            Some(Value::String(text)) => insert(name.clone(), &encoded(text)),
            Some(value @ (Value::Bool(_) | Value::Number(_))) => {
                insert(name.clone(), &value.to_string());
            }
            Some(Value::Null | Value::Array(_) | Value::Object(_)) | None => {}
        }
    }
    headers
}

/// The header value of a text: base64 if the text would not arrive unchanged, or would be mistaken for base64.
fn encoded(text: &str) -> String {
    let is_plain = text.bytes().all(|byte| matches!(byte, b' '..=b'~'))
        && text.trim_matches(' ').len() == text.len()
        && !(text.starts_with("=?base64?") && text.ends_with("?="));
    match is_plain {
        true => text.to_owned(),
        false => format!("=?base64?{}?=", STANDARD.encode(text)),
    }
}

/// The arguments of a tool that go into headers. `None`: the schema declares one in a way that the revision forbids.
pub(super) fn of_schema(schema: &Value) -> Option<Vec<ArgumentHeader>> {
    let mut found = Vec::new();
    collect(schema, Some(&[]), &mut found)?;
    let is_unique = |(at, header): (usize, &ArgumentHeader)| {
        found[..at].iter().all(|before| before.name != header.name)
    };
    found.iter().enumerate().all(is_unique).then_some(found)
}

/// `path`: the members that lead to this schema from the root, if only `properties` do.
fn collect(schema: &Value, path: Option<&[String]>, found: &mut Vec<ArgumentHeader>) -> Option<()> {
    if let Value::Array(schemas) = schema {
        return schemas
            .iter()
            .try_for_each(|schema| collect(schema, None, found));
    }
    for (keyword, value) in schema.as_object().into_iter().flatten() {
        match keyword.as_str() {
            ANNOTATION => {
                let path = path.filter(|path| !path.is_empty())?.to_vec();
                let name = value.as_str().filter(|name| !name.is_empty())?;
                let name = HeaderName::from_bytes(format!("mcp-param-{name}").as_bytes()).ok()?;
                matches!(schema["type"].as_str()?, "string" | "integer" | "boolean")
                    .then_some(())?;
                found.push(ArgumentHeader { path, name });
            }
            "properties" => {
                for (name, schema) in value.as_object().into_iter().flatten() {
                    let path = path.map(|path| [path, std::slice::from_ref(name)].concat());
                    collect(schema, path.as_deref(), found)?;
                }
            }
            "$defs" | "definitions" | "dependentSchemas" | "patternProperties" => {
                for schema in value
                    .as_object()
                    .into_iter()
                    .flatten()
                    .map(|(_, schema)| schema)
                {
                    collect(schema, None, found)?;
                }
            }
            // These hold values, not schemas.
            "default" | "const" | "enum" | "examples" => {}
            _ => collect(value, None, found)?,
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{super::super::message::HostMessage, HashMap, encoded, of_message, of_schema};

    #[test]
    fn a_schema_names_headers_on_the_way_of_its_properties_only() {
        let text = json!({ "type": "string", "x-mcp-header": "Text" });
        let other = json!({ "type": "boolean", "x-mcp-header": "text" });
        for (schema, headers) in [
            (json!({ "type": "object" }), Some(0)),
            (
                json!({ "properties": { "a": text, "b": { "properties": { "c": { "type": "integer", "x-mcp-header": "N" } } } } }),
                Some(2),
            ),
            (
                json!({ "properties": { "a": { "default": { "x-mcp-header": "Text" } } } }),
                Some(0),
            ),
            (json!({ "x-mcp-header": "Text" }), None),
            (json!({ "properties": { "a": text, "b": other } }), None),
            (
                json!({ "properties": { "a": { "type": "object", "x-mcp-header": "A" } } }),
                None,
            ),
            (
                json!({ "properties": { "a": { "type": "string", "x-mcp-header": "no token" } } }),
                None,
            ),
            (
                json!({ "properties": { "a": { "type": "string", "x-mcp-header": "" } } }),
                None,
            ),
            (json!({ "properties": { "a": { "items": text } } }), None),
            (json!({ "$defs": { "a": text } }), None),
            (json!({ "anyOf": [{ "properties": { "a": text } }] }), None),
        ] {
            assert_eq!(
                of_schema(&schema).map(|found| found.len()),
                headers,
                "{schema}"
            );
        }
    }

    #[test]
    fn arguments_go_into_the_headers_of_their_tool() {
        let schema = json!({ "properties": { "a": { "type": "string", "x-mcp-header": "A" }, "b": { "properties": {
            "c": { "type": "integer", "x-mcp-header": "C" } } } } });
        let noted = HashMap::from([("t".to_owned(), of_schema(&schema).unwrap())]);
        let headers = |method: &str, params: Value| {
            let message = HostMessage::request(1, method, params.as_object().unwrap().clone());
            let headers = of_message(&message, &noted);
            let mut named: Vec<String> = headers
                .iter()
                .map(|(name, value)| format!("{name}={}", value.to_str().unwrap()))
                .collect();
            named.sort();
            named.join(" ")
        };
        let call = json!({ "name": "t", "arguments": { "a": "x", "b": { "c": 7 } } });
        assert_eq!(
            headers("tools/call", call.clone()),
            "mcp-method=tools/call mcp-name=t mcp-param-a=x mcp-param-c=7"
        );
        assert_eq!(
            headers("prompts/get", call),
            "mcp-method=prompts/get mcp-name=t"
        );
        let null = json!({ "name": "t", "arguments": { "a": null } });
        assert_eq!(
            headers("tools/call", null),
            "mcp-method=tools/call mcp-name=t"
        );
        assert_eq!(headers("tools/list", json!({})), "mcp-method=tools/list");
    }

    #[test]
    fn values_that_would_not_arrive_are_encoded() {
        for (text, header) in [
            ("", ""),
            ("a b", "a b"),
            (" a", "=?base64?IGE=?="),
            ("ä", "=?base64?w6Q=?="),
            ("a\n", "=?base64?YQo=?="),
            ("=?base64?x?=", "=?base64?PT9iYXNlNjQ/eD89?="),
        ] {
            assert_eq!(encoded(text), header, "{text:?}");
        }
    }
}
