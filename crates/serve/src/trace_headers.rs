//! `traceparent` and `tracestate` of an HTTP request. What breaks W3C's grammar is ignored, as it asks for.

use axum::http::{HeaderMap, HeaderName};
use toolpost_model::TraceContext;

const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
const TRACESTATE: HeaderName = HeaderName::from_static("tracestate");

/// The span that a request is part of, where it names one.
pub(crate) fn caller_span(headers: &HeaderMap) -> Option<Box<TraceContext>> {
    let mut parents = headers.get_all(TRACEPARENT).iter();
    let parent = parents.next()?.to_str().ok()?;
    // Of two, nobody can tell which one is meant.
    if parents.next().is_some() {
        return None;
    }
    // Several lines are one list, in their order.
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
