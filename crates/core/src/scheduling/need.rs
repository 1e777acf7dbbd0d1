//! The needs of a call, and its place in the queue.

use toolpost_model::{
    Effects, InvocationId, Principal, ResourceAccess, ResourceKey, ResourceUse, SessionId, ToolId,
};

use super::{QueueFull, locks};
use crate::{invocation::ParentCall, port::SourceIndex};

pub(crate) struct AdmissionRequest<'a> {
    pub(crate) call: InvocationId,
    pub(crate) principal: &'a Principal,
    pub(crate) session: &'a SessionId,
    pub(crate) effects: &'a Effects,
    /// Whether it must be alone in its session: the operator's setting, or else its effects.
    pub(crate) alone: bool,
    /// The calling call of a nested call.
    pub(crate) parent: Option<&'a ParentCall>,
    /// Limits of its tool and source, beside those of its session and the host.
    pub(crate) bounds: Vec<ConcurrencyLimit>,
}

/// A limit on the calls of one tool or one source.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ConcurrencyLimit {
    pub(crate) on: ConcurrencyLimitSubject,
    pub(crate) most: usize,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum ConcurrencyLimitSubject {
    Tool(ToolId),
    Source(SourceIndex),
}

/// The order of the queue: nested calls before all others, because an ordinary call may be waiting for the call above a
/// nested one; otherwise by arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct QueueTicket(u64);

impl QueueTicket {
    /// Above all nested tickets.
    pub(super) const FIRST_ORDINARY: Self = Self(1 << 63);

    pub(super) fn number(number: u64, nested: bool) -> Self {
        Self(if nested {
            number
        } else {
            number | Self::FIRST_ORDINARY.0
        })
    }

    pub(super) fn is_nested(self) -> bool {
        self < Self::FIRST_ORDINARY
    }
}

pub(super) struct AdmissionNeeds {
    pub(super) call: InvocationId,
    pub(super) principal: Principal,
    pub(super) session: SessionId,
    /// The calling call. A nested call uses its slot and its place in the session, and needs only locks, and room at
    /// its own limits.
    pub(super) parent: Option<InvocationId>,
    /// It is not safe beside other calls of its session.
    pub(super) alone: bool,
    pub(super) uses: Vec<ResourceUse>,
    pub(super) bounds: Vec<ConcurrencyLimit>,
}

impl AdmissionNeeds {
    /// The needs of a call beyond the locks of the calls above it.
    pub(super) fn of(wanted: AdmissionRequest<'_>) -> Result<Self, QueueFull> {
        let AdmissionRequest {
            call,
            principal,
            session,
            effects,
            alone,
            parent,
            bounds,
        } = wanted;
        let held = parent
            .map(|parent| parent.held.as_slice())
            .unwrap_or_default();
        let missing = |wanted: &&ResourceUse| !held.iter().any(|one| locks::covers(one, wanted));
        let mut uses: Vec<ResourceUse> = effects.uses.iter().filter(missing).cloned().collect();
        if let Some(parent) = parent {
            // A nested call cannot be alone in the session, because its parent runs there; it can be alone among the
            // calls of its parent. A lock on a key of the parent expresses that.
            let access = if alone {
                ResourceAccess::Write
            } else {
                ResourceAccess::Read
            };
            uses.push(ResourceUse {
                key: ResourceKey::new("siblings", &parent.id.to_string()),
                access,
            });
        }
        if let Some(one) = held
            .iter()
            .find(|one| uses.iter().any(|wanted| locks::collide(one, wanted)))
        {
            return Err(QueueFull::HeldAbove {
                key: one.key.as_str().to_owned(),
            });
        }
        let parent = parent.map(|parent| parent.id);
        let principal = principal.clone();
        let session = session.clone();
        Ok(Self {
            call,
            principal,
            session,
            alone: alone && parent.is_none(),
            parent,
            uses,
            bounds,
        })
    }

    pub(super) fn is_nested(&self) -> bool {
        self.parent.is_some()
    }
}
