//! The heading of a message, for programs that carry messages and do not act on them.

use std::borrow::Cow;

use serde::Deserialize;

/// The type of a message, its id, and the id of the message that it answers. The rest of the message is not read.
#[derive(Debug, PartialEq, Eq, Deserialize)]
pub struct MessageHeading<'a> {
    /// The message type.
    #[serde(borrow, rename = "type")]
    pub kind: Cow<'a, str>,
    /// The id; empty if the message has none.
    #[serde(borrow, default)]
    pub id: Cow<'a, str>,
    /// The message that this one belongs to; empty if there is none.
    #[serde(borrow, default)]
    pub req_id: Cow<'a, str>,
}

impl<'a> MessageHeading<'a> {
    /// Reads the heading of a message. `None`: the bytes are not a message.
    pub fn read(bytes: &'a [u8]) -> Option<Self> {
        serde_json::from_slice(bytes).ok()
    }

    /// Whether the message ends the request that it belongs to. Events do not.
    pub fn is_answer(&self) -> bool {
        !self.req_id.is_empty() && !self.kind.ends_with("/event")
    }
}

#[cfg(test)]
mod tests {
    use super::MessageHeading;

    #[test]
    fn answers_are_told_from_requests_and_events() {
        for (message, expected) in [
            (r#"{"type":"ping","id":"1"}"#, Some(("ping", "1", false))),
            (
                r#"{"type":"pong","req_id":"1","uptime_seconds":2.5}"#,
                Some(("pong", "", true)),
            ),
            (
                r#"{"type":"tool/event","req_id":"1","data":{"type":"x"}}"#,
                Some(("tool/event", "", false)),
            ),
            (
                r#"{"type":"error","req_id":"","code":"parse_error"}"#,
                Some(("error", "", false)),
            ),
            (r#"{"id":"1"}"#, None),
            (r#"{"type":"ping","id":1}"#, None),
            ("GET /approvals HTTP/1.1", None),
        ] {
            let read = MessageHeading::read(message.as_bytes());
            let read = read
                .as_ref()
                .map(|heading| (&*heading.kind, &*heading.id, heading.is_answer()));
            assert_eq!(read, expected, "{message}");
        }
    }
}
