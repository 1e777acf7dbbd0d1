//! The headers of the stateless era. They repeat parts of the body for proxies. If the two disagree, a proxy has
//! checked another request than the one that runs, so the request is refused.

use axum::http::HeaderMap;
use base64::{Engine as _, prelude::BASE64_STANDARD};
use serde_json::Value;
use toolpost_core::Surface;

use super::{
    asked::{McpMethod, McpRequest},
    fault::McpFault,
};

pub(super) const VERSION: &str = "mcp-protocol-version";
const METHOD: &str = "mcp-method";
const NAME: &str = "mcp-name";
const PARAM: &str = "mcp-param-";

/// The depth to which a schema is searched for arguments that headers repeat.
const DEEPEST: usize = 16;

/// The only value of a header. With two values, this check and a proxy could each read a different one.
pub(super) fn one<'a>(headers: &'a HeaderMap, name: &str) -> Result<Option<&'a str>, McpFault> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else {
        return Ok(None);
    };
    if values.next().is_some() {
        return Err(McpFault::header_mismatch(format!(
            "the header `{name}` is present more than once"
        )));
    }
    let text = value.to_str();
    text.map(Some)
        .map_err(|_| McpFault::header_mismatch(format!("the header `{name}` is not plain text")))
}

/// Checks the headers for the method and for the name or address.
pub(super) fn check(headers: &HeaderMap, method: &str, asked: &McpRequest) -> Result<(), McpFault> {
    match one(headers, METHOD)? {
        Some(told) if told == method => {}
        Some(_) => {
            return Err(McpFault::header_mismatch(
                "`Mcp-Method` differs from the method in the body",
            ));
        }
        None => {
            return Err(McpFault::header_mismatch(
                "the header `Mcp-Method` is missing",
            ));
        }
    }
    let named = match asked.method {
        McpMethod::CallTool | McpMethod::GetPrompt => &asked.name,
        McpMethod::ReadResource => &asked.uri,
        _ => return Ok(()),
    };
    // A member that is missing in the body is reported as an error of the body.
    let Some(named) = named else { return Ok(()) };
    match one(headers, NAME)? {
        Some(told) if decoded(told).as_deref() == Some(named) => Ok(()),
        Some(_) => Err(McpFault::header_mismatch(
            "`Mcp-Name` differs from the name in the body",
        )),
        None => Err(McpFault::header_mismatch(
            "the header `Mcp-Name` is missing",
        )),
    }
}

/// Decodes a header value: plain, or as `=?base64?…?=`.
fn decoded(told: &str) -> Option<String> {
    match told
        .strip_prefix("=?base64?")
        .and_then(|rest| rest.strip_suffix("?="))
    {
        None => Some(told.to_owned()),
        Some(inner) => String::from_utf8(BASE64_STANDARD.decode(inner).ok()?).ok(),
    }
}

/// Checks the arguments that headers must repeat according to the tool's schema.
pub(super) fn check_params(
    headers: &HeaderMap,
    asked: &McpRequest,
    surface: &Surface,
) -> Result<(), McpFault> {
    let Some((entry, _)) = asked.name.as_deref().and_then(|name| surface.find(name)) else {
        return Ok(());
    };
    let mut repeated = Vec::new();
    collect(
        &entry.declaration().input.schema,
        &mut Vec::new(),
        &mut repeated,
    );
    if repeated.is_empty() {
        return Ok(());
    }
    let arguments: Value = asked
        .arguments
        .as_deref()
        .and_then(|text| serde_json::from_str(text).ok())
        .unwrap_or_default();
    for HeaderArgument { path, header } in repeated {
        let name = format!("{PARAM}{}", header.to_ascii_lowercase());
        let given = path
            .iter()
            .try_fold(&arguments, |value, key| value.get(key))
            .filter(|value| !value.is_null());
        let mismatch = |why: &str| McpFault::header_mismatch(format!("`Mcp-Param-{header}` {why}"));
        match (one(headers, &name)?, given) {
            (None, None) => {}
            (Some(_), None) => return Err(mismatch("is present, but the argument is missing")),
            (None, Some(_)) => return Err(mismatch("is missing")),
            (Some(told), Some(given)) => {
                let told = decoded(told).ok_or_else(|| mismatch("cannot be decoded"))?;
                if !says(&told, given) {
                    return Err(mismatch("differs from the argument's value"));
                }
            }
        }
    }
    Ok(())
}

struct HeaderArgument<'a> {
    path: Vec<&'a str>,
    header: &'a str,
}

fn collect<'a>(schema: &'a Value, path: &mut Vec<&'a str>, found: &mut Vec<HeaderArgument<'a>>) {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
        return;
    };
    if path.len() >= DEEPEST {
        return;
    }
    for (name, property) in properties {
        path.push(name);
        let header = property.get("x-mcp-header").and_then(Value::as_str);
        if let Some(header) = header.filter(|header| is_token(header)) {
            found.push(HeaderArgument {
                path: path.clone(),
                header,
            });
        }
        collect(property, path, found);
        path.pop();
    }
}

/// Whether a text can be part of a header's name.
fn is_token(text: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty() && text.bytes().all(is_part)
}

/// Whether a header value equals an argument. Numbers are compared by value.
fn says(told: &str, given: &Value) -> bool {
    match given {
        Value::String(text) => told == text,
        Value::Bool(flag) => told == if *flag { "true" } else { "false" },
        Value::Number(number) => {
            told == number.to_string()
                || told
                    .parse::<f64>()
                    .is_ok_and(|told| number.as_f64() == Some(told) && told.is_finite())
        }
        Value::Null | Value::Array(_) | Value::Object(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{collect, decoded, says};

    #[test]
    fn values_are_compared_as_they_are_meant() {
        for (told, given, same) in [
            ("us-west1", json!("us-west1"), true),
            ("US-west1", json!("us-west1"), false),
            ("42", json!(42), true),
            ("42.0", json!(42), true),
            ("43", json!(42), false),
            ("true", json!(true), true),
            ("True", json!(true), false),
            ("[]", json!([]), false),
        ] {
            assert_eq!(says(told, &given), same, "{told} {given}");
        }
        assert_eq!(decoded("=?base64?SGVsbG8=?=").as_deref(), Some("Hello"));
        assert_eq!(decoded("=?base64?%%?="), None);
        assert_eq!(decoded("plain").as_deref(), Some("plain"));
    }

    #[test]
    fn only_properties_are_looked_through() {
        let schema = json!({ "properties": {
            "region": { "type": "string", "x-mcp-header": "Region" },
            "deep": { "properties": { "er": { "x-mcp-header": "Er" } } },
            "bad": { "x-mcp-header": "not a token" },
            "list": { "items": { "properties": { "no": { "x-mcp-header": "No" } } } },
        } });
        let mut found = Vec::new();
        collect(&schema, &mut Vec::new(), &mut found);
        let mut names: Vec<_> = found
            .iter()
            .map(|one| (one.path.join("."), one.header))
            .collect();
        names.sort();
        assert_eq!(
            names,
            [
                ("deep.er".to_owned(), "Er"),
                ("region".to_owned(), "Region")
            ]
        );
    }
}
