//! Sends on, in the canonical vocabulary, what arrives in any: for bridges from other protocols, which see one response
//! stream and should hold no more of it than the calls that are open.

use std::collections::BTreeSet;

use crate::{
    data_part::{ArgumentRepetition, DataPart},
    receiver::{
        CallKey, CallPartChange, CallPhase, Receiver, ReceiverOptions, UnreadableEventText,
    },
};

/// A receiver that hands every call on as `tool-call` and then one end.
#[derive(Debug, Default)]
pub struct VocabularyBridge {
    receiver: Receiver,
    /// Open calls that were sent.
    sent: BTreeSet<CallKey>,
    /// Ends that were sent before anybody told the call itself, which may still come.
    early: BTreeSet<CallKey>,
}

impl VocabularyBridge {
    /// One with options of the caller's.
    pub fn new(options: ReceiverOptions) -> Self {
        Self {
            receiver: Receiver::new(options),
            ..Self::default()
        }
    }

    /// Takes one JSON text in and gives each part that follows from it to `send`.
    ///
    /// # Errors
    /// Where the text is no JSON.
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
    /// Where the text is neither.
    pub fn receive_line(
        &mut self,
        line: &str,
        send: impl FnMut(DataPart<'_>),
    ) -> Result<(), UnreadableEventText> {
        let changes = self.receiver.receive_line(line)?;
        self.send(&changes, send);
        Ok(())
    }

    /// Tells of the calls that were only announced when the stream ended.
    pub fn finish(&self, mut send: impl FnMut(DataPart<'_>)) {
        for (call, part) in self.receiver.parts() {
            if self.receiver.is_open(call) && !self.receiver.is_told(call) {
                send(part.to_call());
            }
        }
    }

    /// The receiver inside, for its figures.
    pub fn receiver(&self) -> &Receiver {
        &self.receiver
    }

    fn send(&mut self, changes: &[CallPartChange], mut send: impl FnMut(DataPart<'_>)) {
        for &CallPartChange { call, step } in changes {
            // Gone where an earlier change of the same text was its end.
            let Some(part) = self.receiver.part(call) else {
                continue;
            };
            let described = self.receiver.is_described(call);
            match step {
                // The vocabulary has no word for pieces and for results so far.
                CallPhase::Started | CallPhase::Progressed => continue,
                CallPhase::Called => {
                    self.sent.insert(call);
                    send(part.to_call());
                    continue;
                }
                // Its end was sent, and of ends there is one: only the call itself may still follow.
                CallPhase::Ended if self.early.contains(&call) => {
                    if described {
                        send(part.to_call());
                    }
                }
                CallPhase::Ended => {
                    // Its arguments came in pieces or only with the end.
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
            if described {
                self.early.remove(&call);
                self.receiver.take(call);
            } else {
                self.early.insert(call);
            }
        }
    }
}
