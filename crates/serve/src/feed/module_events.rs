//! The events of modules on streams. A stream gets them while their call runs. At the end of the call it gets the
//! recorded events that it missed, which serves slow and returning readers.

use std::collections::{BTreeSet, HashMap};

use serde_json::{Value, json};
use toolpost_core::ModuleEvent;
use toolpost_model::InvocationId;

/// The most events of one call that are remembered as sent. If a call has more, some events may be sent again at its
/// end, with the same numbers.
const REMEMBERED: usize = 1_024;

/// A module's event in the vocabulary of A2A. `seq` is its number among the events of the call, by which a reader
/// recognises a repetition.
pub(crate) fn module_event_json(tool_call_id: &str, emitted: &ModuleEvent) -> Value {
    json!({
        "type": "module-event",
        "toolCallId": tool_call_id,
        "seq": emitted.seq,
        "event": emitted.fields["event"],
        "sessionId": emitted.fields["session_id"],
        "timestamp": emitted.fields["timestamp"],
        "data": emitted.fields["data"],
    })
}

/// The numbers of the modules' events that a stream has sent, for each open call.
#[derive(Default)]
pub(super) struct SentModuleEvents(HashMap<InvocationId, BTreeSet<u64>>);

impl SentModuleEvents {
    /// Whether the event with that number was not sent yet. Marks it as sent.
    pub(super) fn is_due(&mut self, call: InvocationId, seq: u64) -> bool {
        let sent = self.0.entry(call).or_default();
        if sent.len() >= REMEMBERED {
            sent.pop_first();
        }
        sent.insert(seq)
    }

    pub(super) fn forget(&mut self, call: InvocationId) {
        self.0.remove(&call);
    }
}
