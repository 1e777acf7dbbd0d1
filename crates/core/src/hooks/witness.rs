//! Witnesses: observers of all calls of a host. A listener belongs to one call and its caller; a witness belongs to the
//! host, for example a module that watches the calls of all agents. A witness has no answer, so it can neither change
//! nor delay a call.

use std::{
    fmt,
    panic::AssertUnwindSafe,
    sync::{Arc, OnceLock},
};

use jiff::Timestamp;
use serde_json::Value;
use toolpost_model::{
    Declaration, Effects, Event, EventBody, InvocationId, Principal, RequestId, SessionId,
    ToolResult,
};

use crate::{
    catalog::CatalogEntry,
    invocation::{CallRequest, CancelReason, LiveCall},
};

/// Observes all calls. The methods run in the calls' tasks and must not block. All texts are redacted.
pub trait Witness: Send + Sync + 'static {
    /// A call is about to be decided: its arguments were parsed and validated. Called at most once in a host's life,
    /// and never for a call that ended earlier.
    fn begun(&self, call: &WitnessedCall, start: &WitnessedStart<'_>) {
        let _ = (call, start);
    }

    /// An event of a call. Stage events are left out.
    fn hear(&self, call: &WitnessedCall, event: &Event) {
        let _ = (call, event);
    }

    /// The first cancellation of a call.
    fn canceled(&self, call: &WitnessedCall, reason: CancelReason, at: Timestamp) {
        let _ = (call, reason, at);
    }

    /// The recorded end of a call.
    fn ended(&self, call: &WitnessedCall, end: &WitnessedEnd<'_>) {
        let _ = (call, end);
    }

    /// The end of a session, or its eviction from memory. Data that is kept for it can be dropped.
    fn session_closed(&self, session: &SessionId) {
        let _ = session;
    }
}

/// A call in the form that witnesses see.
#[derive(Clone)]
pub struct WitnessedCall {
    /// The call.
    pub invocation_id: InvocationId,
    /// The tool name of the request.
    pub tool: String,
    /// The session of the call.
    pub session_id: SessionId,
    /// The caller.
    pub principal: Principal,
    /// The caller's id of the request.
    pub request_id: Option<RequestId>,
    /// The batch of the call.
    pub batch_id: Option<String>,
    /// The parent call, if it is a nested call.
    pub parent: Option<InvocationId>,
    /// The tool that the name resolved to.
    entry: OnceLock<Arc<CatalogEntry>>,
}

impl WitnessedCall {
    /// The declaration of the tool, once the name is resolved.
    pub fn declaration(&self) -> Option<&Declaration> {
        self.entry.get().map(|entry| entry.declaration())
    }
}

/// The start of a call.
pub struct WitnessedStart<'a> {
    /// The time.
    pub at: Timestamp,
    /// The model's arguments in observable form, before changes by the operator's settings or hooks.
    pub arguments: &'a Value,
}

/// The end of a call.
pub struct WitnessedEnd<'a> {
    /// The time.
    pub at: Timestamp,
    /// The recorded result.
    pub result: &'a ToolResult,
    /// The effects of the decision, if the call was decided.
    pub effects: Option<&'a Effects>,
}

#[derive(Clone, Default)]
pub(crate) struct WitnessList(Arc<[Arc<dyn Witness>]>);

impl WitnessList {
    pub(crate) fn new(witnesses: Vec<Arc<dyn Witness>>) -> Self {
        Self(witnesses.into())
    }

    /// Calls each witness. A panic of a witness does not fail the call.
    fn each(&self, tell: impl Fn(&dyn Witness)) {
        for witness in self.0.iter() {
            if std::panic::catch_unwind(AssertUnwindSafe(|| tell(&**witness))).is_err() {
                tracing::error!("a witness of calls panicked");
            }
        }
    }

    pub(crate) fn session_closed(&self, session: &SessionId) {
        self.each(|witness| witness.session_closed(session));
    }
}

pub(crate) struct CallAndWitnesses {
    call: WitnessedCall,
    witnesses: WitnessList,
}

impl CallAndWitnesses {
    pub(crate) fn hear(&self, event: &Event) {
        if !matches!(event.body, EventBody::Stage { .. }) {
            self.witnesses
                .each(|witness| witness.hear(&self.call, event));
        }
    }

    pub(crate) fn canceled(&self, reason: CancelReason) {
        let at = crate::port::now();
        self.witnesses
            .each(|witness| witness.canceled(&self.call, reason, at));
    }
}

impl LiveCall {
    /// Adds the host's witnesses to the call.
    pub(crate) fn witnessed(
        mut self,
        witnesses: &WitnessList,
        request: &CallRequest,
        parent: Option<InvocationId>,
    ) -> Self {
        if !witnesses.0.is_empty() {
            let redactor = self.host_redactor();
            let clean = |text: &str| redactor.text(text).into_owned();
            let call = WitnessedCall {
                invocation_id: self.id,
                tool: clean(&self.tool),
                session_id: self.session_id().clone(),
                principal: self.principal().clone(),
                request_id: request
                    .identity
                    .request_id
                    .as_ref()
                    .map(|id| RequestId::new(clean(id.as_str()))),
                batch_id: request.batch.as_ref().map(|place| clean(&place.id)),
                parent,
                entry: OnceLock::new(),
            };
            self.audience.witnesses = Some(Box::new(CallAndWitnesses {
                call,
                witnesses: witnesses.clone(),
            }));
        }
        self
    }

    /// Sets the tool that the witnesses see.
    pub(crate) fn found(&self, entry: &Arc<CatalogEntry>) {
        if let Some(watch) = &self.audience.witnesses {
            // A call that resumes after a question resolves to the same tool again.
            let _ = watch.call.entry.set(Arc::clone(entry));
        }
    }

    /// Whether the call has witnesses.
    pub(crate) fn is_witnessed(&self) -> bool {
        self.audience.witnesses.is_some()
    }

    /// Reports the start to the witnesses.
    pub(crate) fn tell_begun(&self, arguments: &Value) {
        if let Some(watch) = &self.audience.witnesses {
            let now = crate::port::now();
            let begun_here = || now.checked_sub(self.began.elapsed()).unwrap_or(now);
            // A resumed call starts at the time of its request, even if an earlier host received it.
            let at = self
                .caller
                .asked_for_at
                .filter(|at| *at <= now)
                .unwrap_or_else(begun_here);
            let start = WitnessedStart { at, arguments };
            watch
                .witnesses
                .each(|witness| witness.begun(&watch.call, &start));
        }
    }

    /// Reports the end to the witnesses.
    pub(crate) fn tell_end(&self, result: &ToolResult, effects: Option<&Effects>) {
        if let Some(watch) = &self.audience.witnesses {
            let end = WitnessedEnd {
                at: crate::port::now(),
                result,
                effects,
            };
            watch
                .witnesses
                .each(|witness| witness.ended(&watch.call, &end));
        }
    }
}

impl fmt::Debug for WitnessedCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let id = &self.invocation_id;
        f.debug_struct("WitnessedCall")
            .field("id", id)
            .field("tool", &self.tool)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for WitnessedStart<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WitnessedStart")
            .field("at", &self.at)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for WitnessedEnd<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WitnessedEnd")
            .field("outcome", &self.result.outcome)
            .finish_non_exhaustive()
    }
}
