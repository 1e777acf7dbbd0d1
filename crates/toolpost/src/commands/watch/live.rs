//! The state of a host's open calls: the host lists them, so that all others are known to be lost, and reports which
//! of them wait for an approval.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use serde_json::Value;
use tokio::time::Instant;
use toolpost_a2a::{CallKey, Receiver};

use super::frames::{ApprovalFrame, ApprovalFrameState, StreamOpeningFrame};

/// Recorded ends arrive right after a stream was opened; this is how long the tracker waits for them.
const ENDS_COME_WITHIN: Duration = Duration::from_secs(2);
/// The most calls with open questions.
const MOST_ASKED: usize = 1_000;

#[derive(Default)]
pub(super) struct OpenCallTracker {
    /// Calls that are open here but not at the host, and the time at which they are given up.
    left: Option<(Instant, Vec<CallKey>)>,
    /// The open questions of calls, by the call's id.
    asked: BTreeMap<String, BTreeSet<String>>,
}

impl OpenCallTracker {
    /// A stream begins with the list of its host's open calls. Other calls that are open here belonged to an earlier
    /// host.
    pub(super) fn opened(
        &mut self,
        opening: &StreamOpeningFrame,
        receiver: &Receiver,
        now: Instant,
    ) {
        let open: BTreeSet<&str> = opening.open.iter().map(String::as_str).collect();
        let left: Vec<CallKey> = receiver
            .parts()
            .filter(|(key, part)| receiver.is_open(*key) && !open.contains(part.id.as_str()))
            .map(|(key, _)| key)
            .collect();
        self.left = (!left.is_empty()).then(|| (now + ENDS_COME_WITHIN, left));
        // The host sends its open questions again.
        self.asked.clear();
    }

    /// The stream broke: the next one begins with a new list of open calls.
    pub(super) fn broken(&mut self) {
        self.left = None;
    }

    /// The calls to give up now.
    pub(super) fn lost(&mut self, now: Instant) -> Vec<CallKey> {
        self.left
            .take_if(|(at, _)| now >= *at)
            .map(|(_, left)| left)
            .unwrap_or_default()
    }

    /// Adds a question or an answer. Returns the call's id if the question is new.
    pub(super) fn asked<'a>(&mut self, approval: &'a ApprovalFrame) -> Option<&'a str> {
        let ApprovalFrame {
            tool_call_id: call,
            approval_id: question,
            state,
        } = approval;
        match state {
            ApprovalFrameState::Asked
                if self.asked.len() >= MOST_ASKED && !self.asked.contains_key(call) =>
            {
                None
            }
            ApprovalFrameState::Asked => {
                let is_new = self
                    .asked
                    .entry(call.clone())
                    .or_default()
                    .insert(question.clone());
                is_new.then_some(call.as_str())
            }
            ApprovalFrameState::Decided => {
                if let Some(open) = self.asked.get_mut(call) {
                    open.remove(question);
                    if open.is_empty() {
                        self.asked.remove(call);
                    }
                }
                None
            }
        }
    }

    /// The calls that wait for approval.
    pub(super) fn waiting(&self) -> BTreeSet<String> {
        self.asked.keys().cloned().collect()
    }
}

/// A stream with a type that does not identify it as tool events.
#[derive(Default)]
pub(super) struct UnknownStream {
    /// Its name, until it has proved to be tool events.
    name: Option<String>,
    /// Whether any data has arrived.
    has_spoken: bool,
}

impl UnknownStream {
    /// An input of that name begins. An input that has sent tool events before need not prove it again.
    pub(super) fn begin(&mut self, name: String, receiver: &Receiver) {
        *self = Self {
            name: (receiver.tally().events == 0).then_some(name),
            has_spoken: false,
        };
    }

    /// The receiver accepted a text.
    pub(super) fn accept_text(&mut self, text: &str, receiver: &Receiver) {
        self.has_spoken = true;
        if self.name.is_some() && (receiver.tally().events > 0 || is_of_an_agent(text)) {
            self.name = None;
        }
    }

    /// A text could not be read: an error if no text before it was a tool event.
    pub(super) fn unreadable(&mut self) -> anyhow::Result<()> {
        self.has_spoken = true;
        self.end()
    }

    /// The input has ended.
    pub(super) fn end(&self) -> anyhow::Result<()> {
        match &self.name {
            Some(name) if self.has_spoken => {
                anyhow::bail!("{name} is not a stream of tool events: it contains none")
            }
            Some(_) | None => Ok(()),
        }
    }
}

/// Whether a text comes from an agent although it has no tool event: a task without calls, an answer of JSON-RPC, or a
/// line of AI SDK 4 that was read as one.
fn is_of_an_agent(text: &str) -> bool {
    const SIGNS: [&str; 7] = [
        "jsonrpc",
        "kind",
        "contextId",
        "history",
        "parts",
        "statusUpdate",
        "artifactUpdate",
    ];
    let value: Value = serde_json::from_str(text).unwrap_or_default();
    let is_line = text.as_bytes().get(1) == Some(&b':');
    is_line
        || value
            .as_object()
            .is_some_and(|members| SIGNS.iter().any(|sign| members.contains_key(*sign)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn question(id: &str, state: ApprovalFrameState) -> ApprovalFrame {
        ApprovalFrame {
            tool_call_id: "a".to_owned(),
            approval_id: id.to_owned(),
            state,
        }
    }

    #[test]
    fn a_call_waits_until_every_question_is_answered() {
        let mut live = OpenCallTracker::default();
        assert_eq!(
            live.asked(&question("1", ApprovalFrameState::Asked)),
            Some("a")
        );
        assert_eq!(live.asked(&question("1", ApprovalFrameState::Asked)), None);
        live.asked(&question("2", ApprovalFrameState::Asked));
        live.asked(&question("1", ApprovalFrameState::Decided));
        assert_eq!(live.waiting().len(), 1);
        live.asked(&question("2", ApprovalFrameState::Decided));
        live.asked(&question("3", ApprovalFrameState::Decided));
        assert!(live.waiting().is_empty());
    }

    #[test]
    fn calls_that_the_host_does_not_know_are_given_up_after_a_while() {
        let mut receiver = Receiver::default();
        let mut live = OpenCallTracker::default();
        for id in ["a", "b"] {
            let call =
                json!({ "type": "tool-call", "toolCallId": id, "toolName": "t", "input": {} });
            receiver.receive_value(&call);
        }
        let opening = StreamOpeningFrame {
            open: vec!["b".to_owned()],
        };
        let now = Instant::now();
        live.opened(&opening, &receiver, now);
        assert!(live.lost(now).is_empty());
        let lost = live.lost(now + ENDS_COME_WITHIN);
        assert_eq!(
            lost.iter()
                .map(|key| receiver.part(*key).unwrap().id)
                .collect::<Vec<_>>(),
            ["a"]
        );
        assert!(live.lost(now + ENDS_COME_WITHIN * 2).is_empty(), "once");
        live.opened(&opening, &receiver, now);
        live.broken();
        assert!(live.lost(now + ENDS_COME_WITHIN).is_empty());
    }

    #[test]
    fn what_an_agent_sends() {
        assert!(is_of_an_agent(r#"{"kind":"task","id":"7"}"#));
        assert!(is_of_an_agent(r#"0:"text""#));
        assert!(!is_of_an_agent(r#"{"status":"ok"}"#));
        assert!(!is_of_an_agent("[1]"));
        let receiver = Receiver::default();
        let mut doubt = UnknownStream::default();
        doubt.begin("it".to_owned(), &receiver);
        assert!(doubt.end().is_ok(), "nothing was said");
        doubt.accept_text(r#"{"status":"ok"}"#, &receiver);
        assert!(doubt.end().is_err());
        doubt.accept_text(r#"{"kind":"task"}"#, &receiver);
        assert!(doubt.end().is_ok() && doubt.unreadable().is_ok());
    }
}
