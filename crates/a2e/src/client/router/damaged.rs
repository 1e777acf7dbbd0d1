//! Finds the request of a message that cannot be read.

use std::borrow::Cow;

use memchr::memmem;
use serde::Deserialize;
use uuid::Uuid;

/// In a text that is not JSON, the id is searched for up to here.
const HEAD: usize = 4 << 10;

#[derive(Deserialize)]
struct DamagedReplyHeader<'a> {
    #[serde(borrow, rename = "type")]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    req_id: Cow<'a, str>,
}

/// The request that a damaged message answers, if its id is readable. Events answer no request.
pub(super) fn answered_request(text: &[u8]) -> Option<Uuid> {
    let (kind, id) = match serde_json::from_slice::<DamagedReplyHeader<'_>>(text) {
        Ok(names) => (names.kind, names.req_id),
        Err(_) => {
            let head = &text[..text.len().min(HEAD)];
            (
                word(head, b"\"type\"")?.into(),
                word(head, b"\"req_id\"")?.into(),
            )
        }
    };
    if kind.ends_with("/event") {
        None
    } else {
        Uuid::try_parse(&id).ok()
    }
}

/// The string after the first occurrence of a key.
fn word<'a>(text: &'a [u8], key: &[u8]) -> Option<&'a str> {
    let after = &text[memmem::find(text, key)? + key.len()..];
    let value = after
        .trim_ascii_start()
        .strip_prefix(b":")?
        .trim_ascii_start()
        .strip_prefix(b"\"")?;
    std::str::from_utf8(&value[..memchr::memchr(b'"', value)?]).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_of_damaged_messages() {
        let id = "0123456789abcdef0123456789abcdef";
        for (text, found) in [
            (
                format!(r#"{{"type":"tool/call/resp","req_id":"{id}","data":{{"#),
                true,
            ),
            (
                format!(r#"{{ "req_id" : "{id}", "type":"tool/list/resp", "tools": null }}"#),
                true,
            ),
            (
                format!(r#"{{"type":"tool/event","req_id":"{id}","data":3}}"#),
                false,
            ),
            (
                format!(
                    r#"{{"data":"{}","type":"tool/call/resp","req_id":"{id}"}}"#,
                    "x".repeat(9_000)
                ),
                true,
            ),
            (
                r#"{"type":"tool/call/resp","req_id":"x"}"#.to_owned(),
                false,
            ),
            (r#"{"type":"tool/call/resp","req_id":"#.to_owned(), false),
            ("garbage".to_owned(), false),
            (String::new(), false),
        ] {
            assert_eq!(answered_request(text.as_bytes()).is_some(), found, "{text}");
        }
    }
}
