//! Where a live call comes from: its caller's span, an earlier host, the call that makes it.

use tokio_util::sync::CancellationToken;
use toolpost_model::TraceContext;

use super::LiveCall;

impl LiveCall {
    /// Its own span.
    pub(crate) fn trace(&self) -> TraceContext {
        match &self.caller.span {
            Some(caller) => caller.child(self.id),
            None => TraceContext::of_call(self.id),
        }
    }

    /// Makes it a call that an earlier host was asked for: its id tells when.
    pub(crate) fn resumed(mut self) -> Self {
        let millis = i64::try_from(self.id.unix_millis()).unwrap_or_default();
        self.caller.asked_for_at = jiff::Timestamp::from_millisecond(millis).ok();
        self
    }

    /// Makes it a call of the call that `parent` stops.
    pub(crate) fn nested_in(mut self, parent: &CancellationToken) -> Self {
        self.stop.token = parent.child_token();
        self.stop.is_nested = true;
        self
    }
}
