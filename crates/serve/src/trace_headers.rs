//! `traceparent` and `tracestate` of an HTTP request. Values that violate W3C's grammar are ignored, as the
//! specification requires.

use axum::http::{HeaderMap, HeaderName};
use toolpost_model::TraceContext;

const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
const TRACESTATE: HeaderName = HeaderName::from_static("tracestate");

/// The span of a request, if it names one.
pub(crate) fn caller_span(headers: &HeaderMap) -> Option<Box<TraceContext>> {
    let mut parents = headers.get_all(TRACEPARENT).iter();
    let parent = parents.next()?.to_str().ok()?;
    // With two values it is unclear which one is right.
    if parents.next().is_some() {
        return None;
    }
    // Several lines form one list, in their order.
    let lines: Option<Vec<&str>> = headers
        .get_all(TRACESTATE)
        .iter()
        .map(|line| line.to_str().ok())
        .collect();
    let state = lines
        .filter(|lines| !lines.is_empty())
        .map(|lines| lines.join(","));
    TraceContext::parse(parent, state.as_deref()).map(Box::new)
}
