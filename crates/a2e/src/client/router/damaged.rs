//! Finding out which request a message belongs to that cannot be read.

use memchr::memmem;
use uuid::Uuid;

/// The names stand near the beginning; a whole damaged message need not be searched.
const HEAD: usize = 4 << 10;

/// The request that a damaged message answers, as far as that shows. Events answer nothing.
pub(super) fn answered_request(text: &[u8]) -> Option<Uuid> {
    let head = &text[..text.len().min(HEAD)];
    if word(head, b"\"type\"").is_some_and(|kind| kind.ends_with("/event")) {
        return None;
    }
    word(head, b"\"req_id\"").and_then(|id| Uuid::try_parse(id).ok())
}

/// The string after the first occurrence of a key.
fn word<'a>(text: &'a [u8], key: &[u8]) -> Option<&'a str> {
    let after = &text[memmem::find(text, key)? + key.len()..];
    let value = after.trim_ascii_start().strip_prefix(b":")?.trim_ascii_start().strip_prefix(b"\"")?;
    std::str::from_utf8(&value[..memchr::memchr(b'"', value)?]).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_of_damaged_messages() {
        let id = "0123456789abcdef0123456789abcdef";
        for (text, found) in [
            (format!(r#"{{"type":"tool/call/resp","req_id":"{id}","data":{{"#), true),
            (format!(r#"{{ "req_id" : "{id}", "type":"tool/list/resp", "tools": null }}"#), true),
            (format!(r#"{{"type":"tool/event","req_id":"{id}","data":3}}"#), false),
            (r#"{"type":"tool/call/resp","req_id":"x"}"#.to_owned(), false),
            (r#"{"type":"tool/call/resp","req_id":"#.to_owned(), false),
            ("garbage".to_owned(), false),
            (String::new(), false),
        ] {
            assert_eq!(answered_request(text.as_bytes()).is_some(), found, "{text}");
        }
    }
}
