//! The events of modules on streams. A stream gets them while their call runs, and at its end those of the record that
//! it has not had: a reader that was slow, or that comes back later, gets these.

use std::collections::{BTreeSet, HashMap};

use serde_json::{Value, json};
use toolpost_core::ModuleEvent;
use toolpost_model::InvocationId;

/// Events of one call that are remembered as sent. Of a call with more, some may be sent again at its end, under the
/// numbers that they had.
const REMEMBERED: usize = 1_024;

/// A module's event as the vocabulary of A2A writes it. `seq` is its number among the events of the call, by which a
/// reader knows an event that is sent again.
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

/// The events of modules that a stream has sent, for every open call that has any.
#[derive(Default)]
pub(super) struct SentModuleEvents(HashMap<InvocationId, BTreeSet<u64>>);

impl SentModuleEvents {
    /// Whether the event with that number is still to be sent. It counts as sent from here on.
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
