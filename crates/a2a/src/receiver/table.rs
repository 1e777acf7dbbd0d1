//! The held calls, and the choice of the call that an event belongs to.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
};

use super::{
    CallKey, CallPartChange, CallPhase, ReceiverBounds, ReceiverCounts,
    call::{PartialToolCall, ReceiverByteBudget},
    event::{ReceivedEvent, ReceivedEventKind},
    failure,
    sameness::fingerprint,
    scope::{CallIdEntry, ResponseStreamIndex, ResponseStreamScope},
    taken::{TakenCallMatch, TakenCallMemory},
};
use crate::ToolCallPart;

#[derive(Debug, Default)]
pub(super) struct ReceivedCallTable {
    bounds: ReceiverBounds,
    pub(super) tally: ReceiverCounts,
    /// Calls by serial number, which is the order of first appearance.
    calls: BTreeMap<u64, PartialToolCall>,
    next: u64,
    streams: ResponseStreamIndex,
    /// Calls that ended and were not taken out yet.
    ended: BTreeSet<u64>,
    /// The size of the held calls.
    bytes: usize,
    taken: TakenCallMemory,
}

#[derive(Clone, Copy)]
struct EventTargetCall {
    serial: u64,
    /// Whether this event began the call.
    is_new: bool,
}

impl ReceivedCallTable {
    pub(super) fn new(bounds: ReceiverBounds) -> Self {
        Self {
            bounds,
            ..Self::default()
        }
    }

    pub(super) fn calls(&self) -> impl Iterator<Item = (CallKey, &PartialToolCall)> {
        self.calls
            .iter()
            .map(|(&serial, call)| (CallKey(serial), call))
    }

    pub(super) fn call(&self, key: CallKey) -> Option<&PartialToolCall> {
        self.calls.get(&key.0)
    }

    pub(super) fn len(&self) -> usize {
        self.calls.len()
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Applies an event and appends the changes.
    pub(super) fn apply(
        &mut self,
        scope: ResponseStreamScope<'_>,
        event: &ReceivedEvent<'_, '_>,
        changes: &mut Vec<CallPartChange>,
    ) {
        self.tally.events += 1;
        if let Some(serial) = self.asked_about(scope, event) {
            return self.apply_to(
                EventTargetCall {
                    serial,
                    is_new: false,
                },
                event,
                changes,
            );
        }
        let Some(id) = event.id() else {
            self.tally.without_id += 1;
            return;
        };
        if let Some(target) = self.target(scope, &id, event) {
            self.apply_to(target, event, changes);
        }
    }

    /// The call of an approval answer. Answers may name the question only.
    fn asked_about(
        &self,
        scope: ResponseStreamScope<'_>,
        event: &ReceivedEvent<'_, '_>,
    ) -> Option<u64> {
        if event.said != ReceivedEventKind::ApprovalResponse || event.id().is_some() {
            return None;
        }
        self.streams
            .get(scope)?
            .approvals
            .get(event.approval_id()?.as_ref())
            .copied()
    }

    /// The call that an event belongs to, begun if needed.
    fn target(
        &mut self,
        scope: ResponseStreamScope<'_>,
        id: &str,
        event: &ReceivedEvent<'_, '_>,
    ) -> Option<EventTargetCall> {
        let held = self
            .streams
            .get(scope)
            .and_then(|stream| stream.slots.get(id));
        // No call with this id is held. An event may begin one, unless it repeats a call that was taken out: otherwise
        // a replay of the stream would bring every ended call back. Only a `tool-call` has name and arguments to
        // compare, so it alone can begin a second call under a remembered id. Every other event under such an id counts
        // as late.
        let Some(slot) = held else {
            let begins = match event.said {
                ReceivedEventKind::InputEnd | ReceivedEventKind::ApprovalResponse => false,
                ReceivedEventKind::Call => self.recall(scope, id, event) != TakenCallMatch::Same,
                ReceivedEventKind::Start
                | ReceivedEventKind::Delta
                | ReceivedEventKind::Result
                | ReceivedEventKind::Error
                | ReceivedEventKind::Denied
                | ReceivedEventKind::ApprovalRequest => !self.taken.knows(scope, id),
            };
            if !begins {
                self.tally.late += 1;
                return None;
            }
            return self.begin(scope, id);
        };
        let serial = slot.current;
        let reused = slot.others.is_some();
        let current = self.calls.get(&serial)?;
        let ended = current.has_ended();
        if event.said != ReceivedEventKind::Call
            || !(ended || reused)
            || !current.differs_from(event)
        {
            return Some(EventTargetCall {
                serial,
                is_new: false,
            });
        }
        self.another(scope, id, event, ended)
    }

    /// The call under a reused id that a `tool-call` event belongs to: a known one, or a new one if the last has ended.
    fn another(
        &mut self,
        scope: ResponseStreamScope<'_>,
        id: &str,
        event: &ReceivedEvent<'_, '_>,
        ended: bool,
    ) -> Option<EventTargetCall> {
        // A peer may reuse an id after its call has ended, so the calls under one id are told apart by fingerprint. A
        // `tool-call` with a known fingerprint makes that call current again: when a stream is replayed, the later
        // events carry the id alone and must reach the call that the replay has just repeated.
        let slot = self.streams.get(scope)?.slots.get(id)?;
        let serial = slot.current;
        let left = self.calls.get(&slot.current)?;
        let left_print = left.fingerprint();
        let print = event_fingerprint(event, left.name());
        let known = slot
            .others
            .as_ref()
            .and_then(|others| others.get(&print).copied());
        let next = match known {
            Some(serial) => EventTargetCall {
                serial,
                is_new: false,
            },
            None if ended => self.begin(scope, id)?,
            // A call that has not ended may be described again.
            None => {
                return Some(EventTargetCall {
                    serial,
                    is_new: false,
                });
            }
        };
        let slot = self.streams.get_mut(scope)?.slots.get_mut(id)?;
        let others = slot.others.get_or_insert_default();
        others.remove(&print);
        others.insert(left_print, serial);
        slot.current = next.serial;
        Some(next)
    }

    fn recall(
        &self,
        scope: ResponseStreamScope<'_>,
        id: &str,
        event: &ReceivedEvent<'_, '_>,
    ) -> TakenCallMatch {
        if !self.taken.knows(scope, id) {
            return TakenCallMatch::Nothing;
        }
        let print = event.name().map(|_| event_fingerprint(event, None));
        self.taken.recall(scope, id, print)
    }

    fn begin(&mut self, scope: ResponseStreamScope<'_>, id: &str) -> Option<EventTargetCall> {
        let in_stream = self.streams.get(scope).map_or(0, |stream| stream.held);
        let room = self.bounds.bytes.saturating_sub(self.bytes);
        if in_stream >= self.bounds.calls_per_stream
            || self.calls.len() >= self.bounds.calls
            || id.len() > room
        {
            self.tally.beyond_bounds += 1;
            return None;
        }
        let serial = self.next;
        self.next += 1;
        let (number, stream) = self.streams.entry(scope, serial);
        stream.held += 1;
        stream.open.insert(serial);
        if let Some(slot) = stream.slots.get_mut(id) {
            // A second call under an id replaces the first as the current one.
            slot.current = serial;
        } else {
            stream.slots.insert(
                id.into(),
                CallIdEntry {
                    current: serial,
                    others: None,
                },
            );
        }
        let call = PartialToolCall::new(number, id);
        self.bytes += call.bytes();
        self.calls.insert(serial, call);
        Some(EventTargetCall {
            serial,
            is_new: true,
        })
    }

    fn apply_to(
        &mut self,
        target: EventTargetCall,
        event: &ReceivedEvent<'_, '_>,
        changes: &mut Vec<CallPartChange>,
    ) {
        let serial = target.serial;
        let Some(call) = self.calls.get_mut(&serial) else {
            return;
        };
        let was_open = !call.has_ended();
        let before = call.bytes();
        let asked = call.approval.clone();
        let mut room = ReceiverByteBudget {
            left: self.bounds.bytes.saturating_sub(self.bytes),
            pieces: self.bounds.joined_pieces,
        };
        let changed = call.apply(event, &mut room) || target.is_new;
        self.bytes = (self.bytes + call.bytes()).saturating_sub(before);
        let ended_now = was_open && call.has_ended();
        if let Some(stream) = self.streams.by_number(call.stream) {
            if ended_now {
                stream.open.remove(&serial);
                self.ended.insert(serial);
            }
            if call.approval != asked {
                if let Some(asked) = asked {
                    stream.approvals.remove(&asked);
                }
                if let Some(asking) = &call.approval {
                    stream.approvals.insert(asking.clone(), serial);
                }
            }
        }
        if changed {
            changes.push(CallPartChange {
                call: CallKey(serial),
                step: step(call, event.said),
            });
        }
    }

    /// Begins a step: calls that begin from now on belong to it.
    pub(super) fn start_step(&mut self, scope: ResponseStreamScope<'_>) {
        let next = self.next;
        if let Some(stream) = self.streams.get_mut(scope) {
            stream.step = next;
        }
    }

    /// Takes the current step back and ends its open calls, which get no more events.
    pub(super) fn reset_step(
        &mut self,
        scope: ResponseStreamScope<'_>,
        changes: &mut Vec<CallPartChange>,
    ) {
        let next = self.next;
        let Some(stream) = self.streams.get_mut(scope) else {
            return;
        };
        let open: Vec<u64> = stream.open.range(stream.step..).copied().collect();
        stream.step = next;
        for serial in open {
            self.fail(serial, failure::SUPERSEDED, changes);
        }
    }

    /// The open call of a stream, if there is exactly one.
    pub(super) fn lone_open(
        &self,
        scope: ResponseStreamScope<'_>,
    ) -> Option<(u64, &PartialToolCall)> {
        let open = &self.streams.get(scope)?.open;
        let serial = *open.first().filter(|_| open.len() == 1)?;
        Some((serial, self.calls.get(&serial)?))
    }

    /// Ends a call for a reason that none of its own events gives.
    pub(super) fn fail(&mut self, serial: u64, message: &str, changes: &mut Vec<CallPartChange>) {
        let Some(call) = self.calls.get_mut(&serial) else {
            return;
        };
        let before = call.bytes();
        let room = self.bounds.bytes.saturating_sub(self.bytes);
        if !call.fail(&message[..message.floor_char_boundary(room)]) {
            return;
        }
        self.bytes = (self.bytes + call.bytes()).saturating_sub(before);
        if let Some(stream) = self.streams.by_number(call.stream) {
            stream.open.remove(&serial);
        }
        self.ended.insert(serial);
        changes.push(CallPartChange {
            call: CallKey(serial),
            step: CallPhase::Ended,
        });
    }

    /// Takes out the ended calls, in order of first appearance.
    pub(super) fn take_ended(&mut self) -> Vec<(CallKey, ToolCallPart)> {
        let ended = std::mem::take(&mut self.ended);
        ended
            .into_iter()
            .filter_map(|serial| Some((CallKey(serial), self.take(serial)?)))
            .collect()
    }

    pub(super) fn into_parts(self) -> Vec<ToolCallPart> {
        self.calls
            .into_values()
            .map(PartialToolCall::into_part)
            .collect()
    }

    /// Takes out one call, if it has ended.
    pub(super) fn take_one(&mut self, key: CallKey) -> Option<ToolCallPart> {
        self.ended
            .remove(&key.0)
            .then(|| self.take(key.0))
            .flatten()
    }

    fn take(&mut self, serial: u64) -> Option<ToolCallPart> {
        let call = self.calls.remove(&serial)?;
        self.bytes = self.bytes.saturating_sub(call.bytes());
        let stream = self.streams.by_number(call.stream)?;
        let described = call.is_described();
        self.taken.remember(
            stream.scope(),
            &call.id,
            call.fingerprint(),
            described,
            self.bounds.remembered,
        );
        if let Some(approval) = &call.approval {
            stream.approvals.remove(approval);
        }
        if stream
            .slots
            .get_mut(&call.id)
            .is_some_and(|slot| slot.lets_go(serial))
        {
            stream.slots.remove(&call.id);
        }
        stream.held -= 1;
        if stream.held == 0 {
            self.streams.forget(call.stream);
        }
        Some(call.into_part())
    }
}

fn step(call: &PartialToolCall, said: ReceivedEventKind) -> CallPhase {
    if call.has_ended() {
        CallPhase::Ended
    } else if said == ReceivedEventKind::Result {
        CallPhase::Progressed
    } else if call.is_told() {
        CallPhase::Called
    } else {
        CallPhase::Started
    }
}

/// The fingerprint of the call in a `tool-call` event, comparable with [`PartialToolCall::fingerprint`]. `known` replaces
/// an omitted name.
fn event_fingerprint(event: &ReceivedEvent<'_, '_>, known: Option<&str>) -> u64 {
    let name = event.name().or_else(|| known.map(Cow::Borrowed));
    fingerprint(
        name.as_deref(),
        event.input().map_or("{}", |input| input.get()),
    )
}
