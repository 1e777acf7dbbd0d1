//! The waits of a call if it came now, for `explain` and for the record of a call that had to wait. It only reads the
//! table: nothing is taken, and no place in the queue changes.

use std::fmt;

use serde::{Deserialize, Serialize};
use toolpost_model::{InvocationId, ResourceAccess, ResourceKey, ResourceUse, ShareRefusal};

use super::{
    QueueFull, locks,
    need::{AdmissionNeeds, ConcurrencyLimit, ConcurrencyLimitSubject, QueueTicket},
    table::SchedulerTable,
};

/// Beyond this number, resources are not listed one by one.
const TOLD_RESOURCES: usize = 8;
/// Beyond this number, calls are not listed by id.
const TOLD_CALLS: usize = 8;

/// The scheduler from the view of one call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SchedulerSnapshot {
    /// The slots of the host.
    pub host: SlotUse,
    /// The slots of the call's session.
    pub session: SlotUse,
    /// The queue.
    pub queue: SlotUse,
    /// The limits of its tool and of its source.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<OwnLimit>,
    /// The locks that it would hold while it runs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub locks: Vec<ResourceUse>,
    /// It would run alone in its session.
    pub alone: bool,
    /// The reasons that it would wait for. Empty: it would run at once.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub waits_for: Vec<WaitReason>,
    /// Why it could not even wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
}

/// The use of a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlotUse {
    /// The units in use.
    pub used: usize,
    /// The limit.
    pub limit: usize,
}

/// A limit of a tool or a source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OwnLimit {
    /// `tool` or `source`.
    pub of: &'static str,
    /// Its slots.
    #[serde(flatten)]
    pub slots: SlotUse,
}

/// One reason to wait.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "for", rename_all = "snake_case")]
pub enum WaitReason {
    /// A slot of the host.
    HostSlot(SlotUse),
    /// A slot of its principal, which uses its share, or all that it can borrow.
    PrincipalSlot(SlotUse),
    /// A slot of its session.
    SessionSlot(SlotUse),
    /// A slot of its tool.
    ToolSlot(SlotUse),
    /// A slot of its source.
    SourceSlot(SlotUse),
    /// A resource that other calls hold or wait for.
    Resource {
        /// The resource.
        key: ResourceKey,
        /// The access that the call needs.
        access: ResourceAccess,
        /// Calls of the same session that hold it.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        held_by: Vec<InvocationId>,
        /// The number of calls of other sessions that hold it.
        others: usize,
    },
    /// It must be alone in its session, and other calls run there or came before it.
    ToBeAlone {
        /// The number of running calls.
        running: usize,
    },
    /// Another call of its session must be alone, and runs or came before it.
    ToBeBeside,
    /// Other calls were passed over for so long that they go first.
    Turn,
    /// Calls of its batch that must end before it.
    Batch,
}

impl fmt::Display for WaitReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::HostSlot(slots) => {
                write!(f, "a slot of the host: {slots} (`limits.concurrency`)")
            }
            Self::PrincipalSlot(slots) => {
                write!(
                    f,
                    "a slot of its caller: {slots} (`limits.share` of `limits.concurrency`)"
                )
            }
            Self::SessionSlot(slots) => {
                write!(
                    f,
                    "a slot of its session: {slots} (`limits.session_concurrency`)"
                )
            }
            Self::ToolSlot(slots) => {
                write!(f, "a slot of its tool: {slots} (`tools.NAME.concurrency`)")
            }
            Self::SourceSlot(slots) => write!(f, "a slot of its source: {slots}"),
            Self::Resource {
                key,
                access,
                held_by,
                others,
            } => {
                let wants = match access {
                    ResourceAccess::Read => "to read",
                    ResourceAccess::Write => "alone",
                };
                write!(f, "`{}` {wants}", key.as_str())?;
                match held_by.len() + others {
                    0 => write!(f, ", which others wait for"),
                    1 => write!(f, ", which a call holds"),
                    count => write!(f, ", which {count} calls hold"),
                }
            }
            Self::ToBeAlone { running } => {
                write!(f, "the {running} other calls of its session to end")
            }
            Self::ToBeBeside => write!(f, "a call of its session that runs alone"),
            Self::Turn => write!(f, "calls that have waited too long"),
            Self::Batch => write!(f, "other calls of its batch"),
        }
    }
}

impl fmt::Display for SlotUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} in use", self.used, self.limit)
    }
}

impl WaitReason {
    /// Removes resource keys that the reader may not see.
    pub(crate) fn clean(&mut self, clean: impl Fn(&ResourceKey) -> Option<ResourceKey>) {
        if let Self::Resource { key, .. } = self
            && let Some(shown) = clean(key)
        {
            *key = shown;
        }
    }
}

impl SlotUse {
    fn is_full(self) -> bool {
        self.used >= self.limit
    }
}

pub(super) fn of(table: &SchedulerTable, need: &AdmissionNeeds) -> SchedulerSnapshot {
    let waits_for = reasons(table, need);
    let refused = if waits_for.is_empty() {
        None
    } else {
        table.check_room(&need.principal, &need.session).err()
    };
    let own_limit = |bound: &ConcurrencyLimit| OwnLimit {
        of: match bound.on {
            ConcurrencyLimitSubject::Tool(_) => "tool",
            ConcurrencyLimitSubject::Source(_) => "source",
        },
        slots: table.slots_of(bound),
    };
    SchedulerSnapshot {
        host: table.host_slots(),
        session: table.session_slots(&need.session),
        queue: table.queue_slots(),
        limits: need.bounds.iter().map(own_limit).collect(),
        locks: need.uses.clone(),
        alone: need.alone,
        waits_for,
        refused: refused.as_ref().map(QueueFull::to_string),
    }
}

pub(super) fn reasons(table: &SchedulerTable, need: &AdmissionNeeds) -> Vec<WaitReason> {
    let mut found = Vec::new();
    for bound in &need.bounds {
        let slots = table.slots_of(bound);
        if slots.is_full() {
            found.push(match bound.on {
                ConcurrencyLimitSubject::Tool(_) => WaitReason::ToolSlot(slots),
                ConcurrencyLimitSubject::Source(_) => WaitReason::SourceSlot(slots),
            });
        }
    }
    let ticket = (!need.is_nested()).then(|| table.next_ticket());
    let blocked = need
        .uses
        .iter()
        .filter(|one| !table.locks.free(std::slice::from_ref(one), ticket));
    found.extend(
        blocked
            .take(TOLD_RESOURCES)
            .map(|wanted| resource(table, need, wanted)),
    );
    if let Some(ticket) = ticket {
        found.extend(own_slot(table, need, ticket));
    }
    found
}

/// The reasons of a call that needs a slot of its own, apart from resources.
fn own_slot(table: &SchedulerTable, need: &AdmissionNeeds, ticket: QueueTicket) -> Vec<WaitReason> {
    let session = table.session_slots(&need.session);
    let mut found = Vec::new();
    if let Err(refusal) = table.principals.check_slot(&need.principal) {
        found.push(no_slot(table, refusal));
    }
    if session.is_full() {
        found.push(WaitReason::SessionSlot(session));
    }
    if !table.lets_in(need, ticket) {
        found.push(match need.alone {
            true => WaitReason::ToBeAlone {
                running: session.used,
            },
            false => WaitReason::ToBeBeside,
        });
    }
    if found.is_empty() && table.principals.is_kept_from(need) {
        found.push(WaitReason::Turn);
    }
    found
}

fn no_slot(table: &SchedulerTable, refusal: ShareRefusal) -> WaitReason {
    let count = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
    match refusal {
        ShareRefusal::Total { .. } => WaitReason::HostSlot(table.host_slots()),
        ShareRefusal::Agents { limit } => WaitReason::HostSlot(SlotUse {
            used: count(limit),
            limit: count(limit),
        }),
        ShareRefusal::Share { own, limit } | ShareRefusal::Headroom { own, limit } => {
            WaitReason::PrincipalSlot(SlotUse {
                used: count(own),
                limit: count(limit),
            })
        }
    }
}

fn resource(table: &SchedulerTable, need: &AdmissionNeeds, wanted: &ResourceUse) -> WaitReason {
    let collides =
        |other: &AdmissionNeeds| other.uses.iter().any(|one| locks::collide(one, wanted));
    let holders: Vec<&AdmissionNeeds> = table
        .holders
        .values()
        .map(|holder| &**holder)
        .filter(|one| collides(one))
        .collect();
    // Calls of other sessions are counted and not named: their ids are not the caller's business.
    let own = |holder: &&&AdmissionNeeds| holder.session == need.session;
    let mut held_by: Vec<InvocationId> = holders
        .iter()
        .filter(own)
        .map(|holder| holder.call)
        .collect();
    let others = holders.len() - held_by.len();
    held_by.sort_unstable();
    held_by.truncate(TOLD_CALLS);
    WaitReason::Resource {
        key: wanted.key.clone(),
        access: wanted.access,
        held_by,
        others,
    }
}
