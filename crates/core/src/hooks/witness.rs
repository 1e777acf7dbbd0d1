//! Whoever wants to hear of every call: what happened on its way, that it was told to stop, how it ended. A listener
//! belongs to one call and its caller; a witness belongs to the host, as modules do that watch what all agents do.

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

/// Hears of every call. Called from the calls' own tasks, so it never waits: what it has to do with what it hears it does
/// elsewhere. Everything it hears has passed redaction.
pub trait Witness: Send + Sync + 'static {
    /// A call's arguments were read and checked: it is about to be decided. Told at most once in a host's life, and not
    /// at all of a call that ended before that.
    fn begun(&self, call: &WitnessedCall, start: &WitnessedStart<'_>) {
        let _ = (call, start);
    }

    /// Something happened on a call's way. Stages are not told.
    fn hear(&self, call: &WitnessedCall, event: &Event) {
        let _ = (call, event);
    }

    /// A call was told to stop, for the first time.
    fn canceled(&self, call: &WitnessedCall, reason: CancelReason, at: Timestamp) {
        let _ = (call, reason, at);
    }

    /// A call is over and on record.
    fn ended(&self, call: &WitnessedCall, end: &WitnessedEnd<'_>) {
        let _ = (call, end);
    }

    /// A session is closed, or left memory: what is kept for it can go.
    fn session_closed(&self, session: &SessionId) {
        let _ = session;
    }
}

/// A call as witnesses know it.
#[derive(Clone)]
pub struct WitnessedCall {
    /// The call.
    pub invocation_id: InvocationId,
    /// The tool, as its caller named it.
    pub tool: String,
    /// Its session.
    pub session_id: SessionId,
    /// Who calls.
    pub principal: Principal,
    /// The caller's own id for it.
    pub request_id: Option<RequestId>,
    /// The batch it belongs to.
    pub batch_id: Option<String>,
    /// The call that made it.
    pub parent: Option<InvocationId>,
    /// The tool that was found under that name.
    entry: OnceLock<Arc<CatalogEntry>>,
}

impl WitnessedCall {
    /// The tool that was found under the name, once one was.
    pub fn declaration(&self) -> Option<&Declaration> {
        self.entry.get().map(|entry| entry.declaration())
    }
}

/// How a call began.
pub struct WitnessedStart<'a> {
    /// When.
    pub at: Timestamp,
    /// What the model sent, as others may see it: neither the operator's settings nor a hook have changed it.
    pub arguments: &'a Value,
}

/// How a call ended.
pub struct WitnessedEnd<'a> {
    /// When.
    pub at: Timestamp,
    /// Its result, as the record has it.
    pub result: &'a ToolResult,
    /// What it was decided to touch, where it came that far.
    pub effects: Option<&'a Effects>,
}

/// The witnesses of a host.
#[derive(Clone, Default)]
pub(crate) struct WitnessList(Arc<[Arc<dyn Witness>]>);

impl WitnessList {
    pub(crate) fn new(witnesses: Vec<Arc<dyn Witness>>) -> Self {
        Self(witnesses.into())
    }

    /// A witness that panics is no reason for a call to fail.
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

/// A call and its witnesses.
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
    /// Has the host's witnesses hear of it.
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

    /// Has the witnesses know which tool was found.
    pub(crate) fn found(&self, entry: &Arc<CatalogEntry>) {
        if let Some(watch) = &self.audience.witnesses {
            // A call that is taken up again after a question finds the same tool again.
            let _ = watch.call.entry.set(Arc::clone(entry));
        }
    }

    /// Whether anybody hears of it beside its caller.
    pub(crate) fn is_witnessed(&self) -> bool {
        self.audience.witnesses.is_some()
    }

    /// Tells the witnesses that it began.
    pub(crate) fn tell_begun(&self, arguments: &Value) {
        if let Some(watch) = &self.audience.witnesses {
            let now = crate::port::now();
            let begun_here = || now.checked_sub(self.began.elapsed()).unwrap_or(now);
            // Who watches a call counts its age from when it was asked for, whichever host that was.
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

    /// Tells the witnesses how it ended.
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
