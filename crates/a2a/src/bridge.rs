//! Translates tool events of any vocabulary into canonical events. It is meant for bridges from other protocols: a
//! bridge reads one response stream and holds only the open calls.

use std::collections::BTreeSet;

use crate::{
    data_part::{ArgumentRepetition, DataPart},
    receiver::{
        CallKey, CallPartChange, CallPhase, Receiver, ReceiverOptions, UnreadableEventText,
    },
};

/// Passes every call on as one `tool-call` and one end.
#[derive(Debug, Default)]
pub struct VocabularyBridge {
    receiver: Receiver,
    /// Open calls for which a `tool-call` was sent.
    sent: BTreeSet<CallKey>,
    /// Calls whose end was sent before any event described the call. The call itself may still arrive.
    early: BTreeSet<CallKey>,
}

impl VocabularyBridge {
    /// A bridge with the given options.
    pub fn new(options: ReceiverOptions) -> Self {
        Self {
            receiver: Receiver::new(options),
            ..Self::default()
        }
    }

    /// Takes in one JSON text and gives each resulting part to `send`.
    ///
    /// # Errors
    /// If the text is not JSON.
    pub fn receive(
        &mut self,
        json: &str,
        send: impl FnMut(DataPart<'_>),
    ) -> Result<(), UnreadableEventText> {
        let changes = self.receiver.receive(json)?;
        self.send(&changes, send);
        Ok(())
    }

    /// Takes in one JSON text or one line of AI SDK 4's data stream.
    ///
    /// # Errors
    /// If the text is neither.
    pub fn receive_line(
        &mut self,
        line: &str,
        send: impl FnMut(DataPart<'_>),
    ) -> Result<(), UnreadableEventText> {
        let changes = self.receiver.receive_line(line)?;
        self.send(&changes, send);
        Ok(())
    }

    /// At the end of the stream, sends the calls that were announced but never described as a whole.
    pub fn finish(&self, mut send: impl FnMut(DataPart<'_>)) {
        for (call, part) in self.receiver.parts() {
            if self.receiver.is_open(call) && !self.receiver.is_told(call) {
                send(part.to_call());
            }
        }
    }

    /// The receiver inside, for its counts.
    pub fn receiver(&self) -> &Receiver {
        &self.receiver
    }

    fn send(&mut self, changes: &[CallPartChange], mut send: impl FnMut(DataPart<'_>)) {
        for &CallPartChange { call, step } in changes {
            // An earlier change of the same text ended this call, and it was taken out.
            let Some(part) = self.receiver.part(call) else {
                continue;
            };
            let described = self.receiver.is_described(call);
            match step {
                // The canonical vocabulary has no event for pieces of arguments or preliminary results.
                CallPhase::Started | CallPhase::Progressed => continue,
                CallPhase::Called => {
                    self.sent.insert(call);
                    send(part.to_call());
                    continue;
                }
                // The end of this call was sent already, and a call has one end. Only the call itself may follow now.
                CallPhase::Ended if self.early.contains(&call) => {
                    if described {
                        send(part.to_call());
                    }
                }
                CallPhase::Ended => {
                    // The arguments came in pieces or only with the end.
                    if !self.sent.remove(&call) && part.has_arguments() {
                        send(part.to_call());
                    }
                    let repeat = if described {
                        ArgumentRepetition::Arguments
                    } else {
                        ArgumentRepetition::Nothing
                    };
                    part.to_end(repeat).into_iter().for_each(&mut send);
                }
            }
            // A described call leaves the receiver at its end, so memory follows the open calls. An undescribed call
            // stays: peers may send the result before the call, and taking it out now would turn the late `tool-call`
            // into a second call without an end.
            if described {
                self.early.remove(&call);
                self.receiver.take(call);
            } else {
                self.early.insert(call);
            }
        }
    }
}
