//! The control frames on a host's streams beside tool events: open calls, approvals, and the reason for the end.

use serde::Deserialize;

/// A frame of a host's stream that is no tool event. Its members identify its kind.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub(super) enum HostControlFrame {
    /// The stream begins, with the list of open calls.
    Opening(StreamOpeningFrame),
    /// An approval was requested or answered.
    Approval(ApprovalFrame),
    /// The stream ends.
    Closing(StreamClosingFrame),
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(super) struct StreamOpeningFrame {
    /// The ids of calls.
    pub(super) open: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ApprovalFrame {
    pub(super) tool_call_id: String,
    pub(super) approval_id: String,
    pub(super) state: ApprovalFrameState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ApprovalFrameState {
    /// An approval is open.
    Asked,
    /// An approval was answered.
    Decided,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub(super) struct StreamClosingFrame {
    pub(super) reason: StreamCloseReason,
}

/// The reason for the end of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum StreamCloseReason {
    /// The session was closed for good.
    SessionClosed,
    /// The host is shutting down; its successor can be asked.
    Shutdown,
}

impl HostControlFrame {
    /// Parses a text as a frame, if it is one.
    pub(super) fn read(text: &str) -> Option<Self> {
        // Any text with a type is an event of some vocabulary, and may be long.
        if text.starts_with(r#"{"type""#) {
            None
        } else {
            serde_json::from_str(text).ok()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_known_by_what_they_hold() {
        let opening = |open: &[&str]| {
            Some(HostControlFrame::Opening(StreamOpeningFrame {
                open: open.iter().map(|id| (*id).to_owned()).collect(),
            }))
        };
        let approval = |state| {
            let tool_call_id = "a".to_owned();
            let approval_id = "q".to_owned();
            Some(HostControlFrame::Approval(ApprovalFrame {
                tool_call_id,
                approval_id,
                state,
            }))
        };
        let closing = |reason| Some(HostControlFrame::Closing(StreamClosingFrame { reason }));
        for (text, expected) in [
            (r#"{"open":[]}"#, opening(&[])),
            (r#"{"open":["a","b"]}"#, opening(&["a", "b"])),
            (
                r#"{"toolCallId":"a","approvalId":"q","state":"asked"}"#,
                approval(ApprovalFrameState::Asked),
            ),
            (
                r#"{"toolCallId":"a","approvalId":"q","state":"decided"}"#,
                approval(ApprovalFrameState::Decided),
            ),
            (
                r#"{"reason":"session_closed"}"#,
                closing(StreamCloseReason::SessionClosed),
            ),
            (
                r#"{"reason":"shutdown"}"#,
                closing(StreamCloseReason::Shutdown),
            ),
            (r#"{"reason":"something new"}"#, None),
            (
                r#"{"type":"tool-call","toolCallId":"a","open":["b"]}"#,
                None,
            ),
            (r#"{"open":7}"#, None),
            ("[]", None),
            ("no JSON", None),
        ] {
            assert_eq!(HostControlFrame::read(text), expected, "{text}");
        }
    }
}
