//! Milestones: the first events of a call's progress, the last, and some in between are kept on record.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use toolpost_model::{Event, EventBody, ToolProgress};

use crate::record::redaction::CallRedactor;

/// The number of milestones that are kept besides the last one.
const KEPT: usize = 15;
/// The length of a recorded message.
const MESSAGE_CHARS: usize = 500;
/// Larger messages are left out at once. Cutting happens only after redaction, so the sampler would otherwise hold
/// sixteen of them for as long as the call runs.
const MESSAGE_BYTES: usize = 8 << 10;
/// The largest field of a module's event that is kept.
const DATA_BYTES: usize = 4 << 10;

/// A word on how far the work got.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Milestone")]
pub(crate) struct Milestone {
    /// The event's number within the call.
    pub(crate) seq: u64,
    /// When, in microseconds from the request on.
    pub(crate) at_us: u64,
    /// What.
    #[serde(flatten)]
    pub(crate) body: EventBody,
}

/// Collects a bounded number of milestones from any number of events: first each event, later every second, then every
/// fourth.
#[derive(Default)]
pub(crate) struct MilestoneSampler {
    kept: Vec<Milestone>,
    last: Option<Milestone>,
    seen: u64,
    /// An event is kept if its index is divisible by two to this power.
    rarity: u32,
}

impl MilestoneSampler {
    /// Takes an event. Progress, status and the events of modules are milestones.
    pub(crate) fn pass(&mut self, seq: u64, at_us: u64, body: &EventBody) {
        let body = match body {
            EventBody::Progress(progress) => EventBody::Progress(ToolProgress {
                message: bounded(&progress.message),
                ..*progress
            }),
            EventBody::Status { message } => EventBody::Status {
                message: bounded(message),
            },
            EventBody::Custom { name, data } if body.as_module_event().is_some() => {
                EventBody::Custom {
                    name: name.clone(),
                    data: bounded_fields(data),
                }
            }
            EventBody::Stage { .. }
            | EventBody::Log { .. }
            | EventBody::Artifact { .. }
            | EventBody::Kept(_)
            | EventBody::Output(_)
            | EventBody::Approval(_)
            | EventBody::Custom { .. }
            | EventBody::Message { .. } => return,
        };
        let milestone = Milestone { seq, at_us, body };
        if self.is_due() {
            if self.kept.len() == KEPT {
                let mut place = 0;
                self.kept.retain(|_| {
                    place += 1;
                    place % 2 == 1
                });
                self.rarity += 1;
            }
            if self.is_due() {
                self.kept.push(milestone.clone());
            }
        }
        self.seen += 1;
        self.last = Some(milestone);
    }

    fn is_due(&self) -> bool {
        self.seen.trailing_zeros() >= self.rarity
    }

    /// The milestones for the record, oldest first and redacted.
    pub(crate) fn told(&self, redactor: &CallRedactor) -> Vec<Milestone> {
        let newest = self.kept.last().map(|milestone| milestone.seq);
        let last = self.last.iter().filter(|last| newest != Some(last.seq));
        let mut told: Vec<Milestone> = self.kept.iter().chain(last).cloned().collect();
        for milestone in &mut told {
            redactor.event(&mut milestone.body);
            match &mut milestone.body {
                EventBody::Progress(progress) => cut(&mut progress.message),
                EventBody::Status { message } => cut(message),
                EventBody::Custom { .. }
                | EventBody::Stage { .. }
                | EventBody::Log { .. }
                | EventBody::Artifact { .. }
                | EventBody::Kept(_)
                | EventBody::Output(_)
                | EventBody::Approval(_)
                | EventBody::Message { .. } => {}
            }
        }
        told
    }
}

/// Replaces a large message by its size. It is not cut, because a cut could leave half a secret, which redaction would
/// not recognize.
fn bounded(message: &str) -> String {
    match message.len() {
        0..=MESSAGE_BYTES => message.to_owned(),
        size => format!("(a message of {size} bytes)"),
    }
}

/// An event of a module during a call, in the size that the record keeps.
#[derive(Clone, Debug)]
pub struct ModuleEvent {
    /// Its number among the events of the call.
    pub seq: u64,
    /// The fields `event`, `session_id`, `timestamp` and `data`. A field over 4 KiB is replaced by its size.
    pub fields: Value,
}

impl ModuleEvent {
    /// `None` for an event of the host.
    pub fn of(event: &Event) -> Option<Self> {
        Some(Self {
            seq: event.seq,
            fields: bounded_fields(fields_of(&event.body)?),
        })
    }

    /// The event of a milestone, which was bounded when it was recorded.
    pub(crate) fn of_milestone(milestone: &Milestone) -> Option<Self> {
        Some(Self {
            seq: milestone.seq,
            fields: fields_of(&milestone.body)?.clone(),
        })
    }
}

fn fields_of(body: &EventBody) -> Option<&Value> {
    body.as_module_event()?;
    let EventBody::Custom { data, .. } = body else {
        return None;
    };
    Some(data)
}

fn bounded_fields(fields: &Value) -> Value {
    let bounded = fields
        .as_object()
        .into_iter()
        .flatten()
        .map(|(key, value)| {
            let size = value.to_string().len();
            let value = if size > DATA_BYTES {
                json!({ "cut": format!("{size} bytes") })
            } else {
                value.clone()
            };
            (key.clone(), value)
        });
    bounded.collect()
}

/// Cuts a message after its redaction, because redaction does not recognize half a secret.
fn cut(message: &mut String) {
    if let Some((place, _)) = message.char_indices().nth(MESSAGE_CHARS) {
        message.truncate(place);
        message.push('…');
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;
    use toolpost_model::{EventBody, SessionId, ToolProgress};

    use super::MilestoneSampler;
    use crate::record::redaction::{CallRedactor, KnownSecrets};

    fn told(events: u64) -> Vec<u64> {
        let mut milestones = MilestoneSampler::default();
        for seq in 1..=events {
            let body = EventBody::Progress(ToolProgress {
                done: Some(seq),
                ..ToolProgress::default()
            });
            milestones.pass(seq, seq, &body);
        }
        let redactor = CallRedactor {
            host: Arc::new(KnownSecrets::default()),
            own: None,
        };
        milestones
            .told(&redactor)
            .iter()
            .map(|milestone| milestone.seq)
            .collect()
    }

    #[test]
    fn a_call_holds_no_more_than_a_record_has_room_for() {
        let long = "x".repeat(1 << 20);
        let session = SessionId::new("s");
        let bodies = [
            EventBody::Status {
                message: long.clone(),
            },
            EventBody::Progress(ToolProgress {
                message: long.clone(),
                ..ToolProgress::default()
            }),
            EventBody::module_event("m:e", &session, None, json!({ "a": long })),
            EventBody::module_event(&long, &session, None, json!(1)),
        ];
        let mut milestones = MilestoneSampler::default();
        for (seq, body) in (1..).zip(&bodies) {
            milestones.pass(seq, seq, body);
        }
        let redactor = CallRedactor {
            host: Arc::new(KnownSecrets::default()),
            own: None,
        };
        for milestone in milestones.kept.iter().chain(&milestones.told(&redactor)) {
            let size = serde_json::to_string(milestone).unwrap().len();
            assert!(size < 8 << 10, "{size}");
        }
        assert_eq!(milestones.kept.len(), bodies.len());
    }

    #[test]
    fn the_first_the_last_and_evenly_some_in_between() {
        assert!(told(0).is_empty());
        assert_eq!(told(1), [1]);
        assert_eq!(told(3), [1, 2, 3]);
        for events in [15, 16, 17, 100, 10_000] {
            let told = told(events);
            assert_eq!((told[0], *told.last().unwrap()), (1, events));
            assert!((8..=16).contains(&told.len()), "{told:?}");
            let step = told[1] - told[0];
            let even = told[..told.len() - 1]
                .windows(2)
                .all(|pair| pair[1] - pair[0] == step);
            assert!(even, "{told:?}");
        }
    }
}
