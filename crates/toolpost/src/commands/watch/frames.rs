//! What a host tells on its streams beside tool events: which calls are open, who is asked, why it ends.

use serde::Deserialize;

/// A frame of a host's stream that is no tool event. They are told apart by what they hold.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub(super) enum HostControlFrame {
    /// The stream begins, and these calls are open.
    Opening(StreamOpeningFrame),
    /// Somebody is asked about a call, or has answered.
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
    /// It waits for an answer.
    Asked,
    /// It has one.
    Decided,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub(super) struct StreamClosingFrame {
    pub(super) reason: StreamCloseReason,
}

/// Why a stream ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum StreamCloseReason {
    /// There is nothing more to come, ever.
    SessionClosed,
    /// The host goes; the next one can be asked again.
    Shutdown,
}

impl HostControlFrame {
    /// The frame that a text is, where it is one.
    pub(super) fn read(text: &str) -> Option<Self> {
        // Whatever has a type is an event of some vocabulary, and may be long.
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
