//! Requests that are wrong in some way, made from the API's own description and from the messages of the protocols.
//!
//! Each begins as a right one. The dice then spoil it: a value of another type, a member too many or too few, a number out
//! of range, deep nesting, text that is no JSON, bytes that are no text.

use std::{fmt::Write as _, io, sync::LazyLock};

use serde_json::{Map, Value, json};

use super::{Dice, Ledger, traffic::Target};

static DOCUMENT: LazyLock<Value> = LazyLock::new(|| {
    let text = include_str!("../../../../../docs/reference/openapi.json");
    serde_json::from_str(text).expect("the reference is JSON")
});

/// Messages of the other faces, each with the path that takes it.
static MESSAGES: LazyLock<Vec<(&str, Value)>> = LazyLock::new(|| {
    let rpc = |method: &str, params: Value| json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    let part = json!({ "kind": "data", "data": { "type": "tool-call", "toolCallId": "c", "toolName": "read_file",
        "input": { "path": "a" } } });
    let message = json!({ "kind": "message", "messageId": "m", "role": "user", "parts": [part] });
    vec![
        (
            "/mcp",
            rpc(
                "initialize",
                json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {} }),
            ),
        ),
        (
            "/mcp",
            rpc(
                "tools/call",
                json!({ "name": "read_file", "arguments": { "path": "a" }, "_meta": {} }),
            ),
        ),
        ("/mcp", rpc("tools/list", json!({ "cursor": "x" }))),
        ("/a2a", rpc("message/send", json!({ "message": message }))),
        (
            "/a2a",
            rpc("tasks/get", json!({ "id": "x", "historyLength": 1 })),
        ),
        (
            "/send",
            json!({ "type": "handshake/req", "id": "h", "agent_id": "x", "agent_caps": ["tools"] }),
        ),
        (
            "/send",
            json!({ "type": "tool/call/req", "id": "c", "tool_name": "x", "arguments": {}, "timeout": 1 }),
        ),
    ]
});

/// One operation of the description.
struct Operation {
    method: String,
    path: String,
    description: &'static Value,
}

static OPERATIONS: LazyLock<Vec<Operation>> = LazyLock::new(|| {
    let paths = DOCUMENT["paths"]
        .as_object()
        .expect("the reference has paths");
    let operations = paths.iter().flat_map(|(path, methods)| {
        let methods = methods.as_object().expect("a path has methods").iter();
        let methods =
            methods.filter(|(method, _)| ["get", "post", "delete"].contains(&method.as_str()));
        methods.map(|(method, description)| Operation {
            method: method.to_uppercase(),
            path: path.clone(),
            description,
        })
    });
    operations.collect()
});

/// Sends one such request, and expects an answer that the description knows.
pub(super) fn send(target: &Target<'_>, dice: &mut Dice, ledger: &Ledger, face: &'static str) {
    let (operation, request) = match dice.roll(3) {
        0 => (None, message(dice, &target.token)),
        _ => {
            let operation = dice.pick(&OPERATIONS);
            (Some(operation), request(operation, dice, &target.token))
        }
    };
    let is_stream = operation.is_some_and(|operation| operation.path.ends_with("/events"));
    let answer = target.connect().and_then(|mut http| {
        http.send_raw(&request)?;
        match is_stream {
            // One that was taken does not end by itself.
            true => http.read_some(1 << 10).map(|_| None),
            false => http.receive().map(Some),
        }
    });
    let shown = || String::from_utf8_lossy(&request[..request.len().min(400)]).into_owned();
    match answer {
        Ok(None) => ledger.count(face, 0),
        Ok(Some(answer)) => {
            ledger.count(face, answer.status);
            let is_known = operation.is_none_or(|operation| {
                operation.description["responses"]
                    .get(answer.status.to_string())
                    .is_some()
            });
            if !is_known || (answer.status >= 500 && answer.status != 503) {
                ledger.complain(format!(
                    "{face}: answered {} {} to:\n{}",
                    answer.status,
                    answer.body,
                    shown()
                ));
            }
        }
        // A request that is no HTTP may lose its connection.
        Err(error) if is_cut(&error) => ledger.count(face, 0),
        Err(error) => ledger.complain(format!("{face}: no answer ({error}) to:\n{}", shown())),
    }
}

fn is_cut(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
    matches!(
        error.kind(),
        BrokenPipe | ConnectionAborted | ConnectionReset | UnexpectedEof
    )
}

fn message(dice: &mut Dice, token: &str) -> Vec<u8> {
    let (path, message) = dice.pick(&MESSAGES);
    let body = spoiled_text(message, dice);
    let headers = "Accept: application/json, text/event-stream\r\n";
    assemble("POST", path, headers, token, &body)
}

fn request(operation: &Operation, dice: &mut Dice, token: &str) -> Vec<u8> {
    let mut path = operation.path.clone();
    while let Some((before, rest)) = path.split_once('{') {
        let behind = rest.split_once('}').map_or("", |(_, behind)| behind);
        let known = [
            "read_file",
            "write_file",
            "01900000-0000-7000-8000-000000000000",
        ];
        let word = match dice.roll(3) {
            0 => escaped(&odd_text(dice)),
            _ => (*dice.pick(&known)).to_owned(),
        };
        path = format!("{before}{word}{behind}");
    }
    let mut headers = String::new();
    let parameters = operation.description["parameters"]
        .as_array()
        .into_iter()
        .flatten();
    for (number, parameter) in parameters.map(resolved).enumerate() {
        if dice.roll(3) != 0 {
            continue;
        }
        let name = parameter["name"].as_str().unwrap_or_default();
        let value = match dice.roll(3) {
            0 => odd_text(dice),
            1 => "1".to_owned(),
            _ => "true".to_owned(),
        };
        match parameter["in"].as_str() {
            Some("query") => {
                let separator = if path.contains('?') { '&' } else { '?' };
                let _ = write!(path, "{separator}{name}={}", escaped(&value));
            }
            Some("header") => {
                let plain = value.chars().filter(|letter| letter.is_ascii_graphic());
                let _ = write!(headers, "{name}: {number}{}\r\n", plain.collect::<String>());
            }
            _ => {}
        }
    }
    let schema = &operation.description["requestBody"]["content"]["application/json"]["schema"];
    let body = match schema.is_null() {
        true => Vec::new(),
        false => spoiled_text(&example(resolved(schema), dice, 0), dice),
    };
    assemble(&operation.method, &path, &headers, token, &body)
}

fn assemble(method: &str, path: &str, headers: &str, token: &str, body: &[u8]) -> Vec<u8> {
    let mut request = format!(
        "{method} {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\
         Content-Type: application/json\r\n{headers}Content-Length: {}\r\n\r\n",
        body.len()
    )
    .into_bytes();
    request.extend(body);
    request
}

fn resolved(value: &'static Value) -> &'static Value {
    match value["$ref"]
        .as_str()
        .and_then(|path| DOCUMENT.pointer(path.trim_start_matches('#')))
    {
        Some(found) => found,
        None => value,
    }
}

/// A value that fits a schema, more or less.
fn example(schema: &'static Value, dice: &mut Dice, depth: usize) -> Value {
    if depth > 5 {
        return Value::Null;
    }
    if let Some(choices) = ["oneOf", "anyOf", "enum"]
        .iter()
        .find_map(|key| schema[key].as_array())
    {
        let choice = dice.pick(choices);
        return if schema["enum"].is_array() {
            choice.clone()
        } else {
            example(resolved(choice), dice, depth + 1)
        };
    }
    match schema["type"].as_str() {
        Some("string") => Value::String(odd_text(dice)),
        Some("integer" | "number") => json!(dice.roll(1_000)),
        Some("boolean") => json!(dice.roll(2) == 0),
        Some("array") => json!([example(resolved(&schema["items"]), dice, depth + 1)]),
        _ => {
            let properties = schema["properties"].as_object().into_iter().flatten();
            let mut members = Map::new();
            for (name, schema) in properties {
                if dice.roll(4) != 0 {
                    members.insert(name.clone(), example(resolved(schema), dice, depth + 1));
                }
            }
            Value::Object(members)
        }
    }
}

/// A value as text, spoiled as the dice want it.
fn spoiled_text(value: &Value, dice: &mut Dice) -> Vec<u8> {
    let mut value = value.clone();
    for _ in 0..dice.roll(3) {
        spoil(&mut value, dice);
    }
    let mut text = value.to_string().into_bytes();
    match dice.roll(8) {
        0 => text.truncate(dice.roll(text.len() as u64 + 1) as usize),
        1 => text.insert(dice.roll(text.len() as u64 + 1) as usize, 0xff),
        2 => text = [b"[".repeat(dice.roll(3_000) as usize), text].concat(),
        3 => text.extend_from_within(..),
        _ => {}
    }
    text
}

/// Changes one value somewhere within.
fn spoil(value: &mut Value, dice: &mut Dice) {
    match value {
        Value::Object(members) if !members.is_empty() && dice.roll(3) != 0 => {
            let at = dice.roll(members.len() as u64) as usize;
            let name = members.keys().nth(at).cloned().unwrap_or_default();
            match dice.roll(4) {
                0 => drop(members.remove(&name)),
                1 => drop(members.insert(odd_text(dice), Value::Null)),
                _ => spoil(&mut members[&name], dice),
            }
        }
        Value::Array(items) if !items.is_empty() && dice.roll(3) != 0 => {
            let at = dice.roll(items.len() as u64) as usize;
            spoil(&mut items[at], dice);
        }
        other => {
            *other = match dice.roll(8) {
                0 => Value::Null,
                1 => json!(-1),
                2 => json!(1e300),
                3 => json!(u64::MAX),
                4 => json!([]),
                5 => json!({}),
                6 => json!(true),
                _ => Value::String(odd_text(dice)),
            };
        }
    }
}

fn odd_text(dice: &mut Dice) -> String {
    match dice.roll(10) {
        0 => String::new(),
        1 => "x".repeat(dice.roll(5_000) as usize),
        2 => "../../etc/passwd".to_owned(),
        3 => "\u{0}\u{1b}[2J".to_owned(),
        4 => "\u{202e}\u{feff}é日本".to_owned(),
        5 => "-1".to_owned(),
        6 => "1e999".to_owned(),
        7 => "%00%zz".to_owned(),
        8 => "read_file".to_owned(),
        _ => format!("{}", dice.roll(1 << 40)),
    }
}

fn escaped(text: &str) -> String {
    text.bytes().fold(String::new(), |mut escaped, byte| {
        let _ = write!(escaped, "%{byte:02x}");
        escaped
    })
}
