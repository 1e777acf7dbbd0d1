//! W3C Trace Context: which trace a call belongs to. A call is one span of it.
//!
//! A caller's context is read strictly, and one that breaks the grammar is ignored: the call then begins a trace of its own.
//! Ids are made from the invocation id, so that a call without a context costs nothing and its record needs no more than
//! that id.

use std::{borrow::Cow, fmt, num::NonZeroU64, num::NonZeroU128};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize, ser::SerializeMap as _};

use crate::InvocationId;

/// The length of a `traceparent` of version 00.
const TRACEPARENT_LENGTH: usize = 55;
/// The longest `tracestate` that is kept.
const LONGEST_STATE: usize = 512;
/// The most members of a `tracestate`.
const MOST_MEMBERS: usize = 32;
/// The longest key and the longest value of a member.
const LONGEST_PART: usize = 256;
/// The flags that version 00 defines: sampled, and random trace id.
const KNOWN_FLAGS: u8 = 0b11;
/// Set, because the host records every call, and the flag reports this downstream.
const SAMPLED: u8 = 0b1;

/// A place in a trace: the trace, one of its spans, and the vendors' additions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceContext {
    trace_id: NonZeroU128,
    span_id: NonZeroU64,
    flags: u8,
    state: Option<Box<str>>,
}

impl TraceContext {
    /// Reads `traceparent` and `tracestate`. `None` where the first is not of version 00 or breaks its grammar. A
    /// `tracestate` that breaks its own is left out.
    pub fn parse(traceparent: &str, tracestate: Option<&str>) -> Option<Self> {
        let text = traceparent.trim_matches([' ', '\t']);
        if text.len() != TRACEPARENT_LENGTH || !text.is_ascii() {
            return None;
        }
        let version = &text[..3];
        let trace_id = hex(&text[3..35])?;
        let span_id = hex(&text[36..52])?;
        let flags = hex(&text[53..])?;
        if version != "00-" || &text[35..36] != "-" || &text[52..53] != "-" {
            return None;
        }
        Some(Self {
            trace_id: NonZeroU128::new(trace_id)?,
            span_id: NonZeroU64::new(u64::try_from(span_id).ok()?)?,
            flags: u8::try_from(flags).ok()? & KNOWN_FLAGS,
            state: tracestate.and_then(read_state),
        })
    }

    /// The trace of a call without a trace context from its caller. The trace has the id of the call.
    pub fn of_call(call: InvocationId) -> Self {
        let bits = u128::from_be_bytes(*call.as_bytes());
        let trace_id = NonZeroU128::new(bits).unwrap_or(NonZeroU128::MIN);
        Self {
            trace_id,
            span_id: span_of(call),
            flags: SAMPLED,
            state: None,
        }
    }

    /// The span of a call in this trace.
    #[must_use]
    pub fn child(&self, call: InvocationId) -> Self {
        Self {
            span_id: span_of(call),
            ..self.clone()
        }
    }

    /// The 32 hex digits of the trace.
    pub fn trace_id(&self) -> String {
        format!("{:032x}", self.trace_id)
    }

    /// The 16 hex digits of the span.
    pub fn span_id(&self) -> String {
        format!("{:016x}", self.span_id)
    }

    /// The header `traceparent`.
    pub fn traceparent(&self) -> String {
        format!(
            "00-{:032x}-{:016x}-{:02x}",
            self.trace_id, self.span_id, self.flags
        )
    }

    /// The header `tracestate`.
    pub fn tracestate(&self) -> Option<&str> {
        self.state.as_deref()
    }
}

/// The half of a version 7 id that holds its random bits. Its two highest bits are `10`, so it is never zero.
fn span_of(call: InvocationId) -> NonZeroU64 {
    let [.., a, b, c, d, e, f, g, h] = *call.as_bytes();
    NonZeroU64::new(u64::from_be_bytes([a, b, c, d, e, f, g, h])).unwrap_or(NonZeroU64::MIN)
}

/// Lower-case hex digits only: `from_str_radix` alone would take capitals and signs.
fn hex(digits: &str) -> Option<u128> {
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    digits
        .bytes()
        .all(is_digit)
        .then(|| u128::from_str_radix(digits, 16).ok())
        .flatten()
}

/// The members of a `tracestate`, in their order, without the empty ones. `None` where one breaks the grammar.
fn read_state(text: &str) -> Option<Box<str>> {
    let members = text
        .split(',')
        .map(|member| member.trim_matches([' ', '\t']));
    let members: Vec<&str> = members
        .filter(|member| !member.is_empty())
        .take(MOST_MEMBERS + 1)
        .collect();
    let mut keys = Vec::with_capacity(members.len());
    for member in &members {
        let (key, value) = member.split_once('=')?;
        if !is_key(key) || !is_value(value) || keys.contains(&key) {
            return None;
        }
        keys.push(key);
    }
    let fits = (1..=MOST_MEMBERS).contains(&members.len());
    let joined = fits.then(|| members.join(","))?;
    (joined.len() <= LONGEST_STATE).then(|| joined.into_boxed_str())
}

fn is_key(key: &str) -> bool {
    let begins = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let follows = |byte: u8| begins(byte) || matches!(byte, b'_' | b'-' | b'*' | b'/' | b'@');
    key.len() <= LONGEST_PART && key.bytes().next().is_some_and(begins) && key.bytes().all(follows)
}

fn is_value(value: &str) -> bool {
    let legal = |byte: u8| matches!(byte, b' '..=b'~') && byte != b',' && byte != b'=';
    (1..=LONGEST_PART).contains(&value.len()) && value.bytes().all(legal) && !value.ends_with(' ')
}

impl fmt::Display for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.traceparent())
    }
}

impl Serialize for TraceContext {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("traceparent", &self.traceparent())?;
        if let Some(state) = self.tracestate() {
            map.serialize_entry("tracestate", state)?;
        }
        map.end()
    }
}

#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "TraceContext")]
struct WrittenContext<'a> {
    /// `00-`, the trace, the span and the flags.
    traceparent: Cow<'a, str>,
    /// The vendors' additions.
    #[serde(default)]
    tracestate: Option<Cow<'a, str>>,
}

impl<'de> Deserialize<'de> for TraceContext {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let written = WrittenContext::deserialize(deserializer)?;
        let context = Self::parse(&written.traceparent, written.tracestate.as_deref());
        context.ok_or_else(|| serde::de::Error::custom("no trace context of version 00"))
    }
}

impl JsonSchema for TraceContext {
    fn schema_name() -> Cow<'static, str> {
        WrittenContext::schema_name()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        WrittenContext::json_schema(generator)
    }
}

#[cfg(test)]
mod tests {
    use super::TraceContext;
    use crate::InvocationId;

    const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn a_context_is_read_and_written_as_it_came() {
        let context = TraceContext::parse(PARENT, Some("rojo=1, congo=t61rcWkgMzE,")).unwrap();
        assert_eq!(context.traceparent(), PARENT);
        assert_eq!(context.tracestate(), Some("rojo=1,congo=t61rcWkgMzE"));
        assert_eq!(context.trace_id(), "4bf92f3577b34da6a3ce929d0e0e4736");
        assert_eq!(context.span_id(), "00f067aa0ba902b7");
        let text = serde_json::to_string(&context).unwrap();
        assert_eq!(
            serde_json::from_str::<TraceContext>(&text).unwrap(),
            context
        );
        // Flags that version 00 does not know are not passed on.
        let flags = TraceContext::parse(&PARENT.replace("-01", "-ff"), None).unwrap();
        assert!(flags.traceparent().ends_with("-03"));
    }

    #[test]
    fn what_breaks_the_grammar_is_no_context() {
        for odd in [
            "",
            "00",
            &PARENT[..54],
            &format!("{PARENT}0"),
            &format!("{PARENT}-extra"),
            &PARENT.replace("00-4", "01-4"),
            &PARENT.replace("00-4", "ff-4"),
            &PARENT.to_uppercase(),
            &PARENT.replace('-', "_"),
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-+bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e473g-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e47é-00f067aa0ba902b7-01",
        ] {
            assert_eq!(TraceContext::parse(odd, Some("a=1")), None, "{odd:?}");
        }
    }

    #[test]
    fn a_state_that_breaks_the_grammar_is_left_out_and_the_trace_stays() {
        let many = |count: usize| {
            (0..count)
                .map(|n| format!("k{n}=v"))
                .collect::<Vec<_>>()
                .join(",")
        };
        let long = |length: usize| format!("a={}", "v".repeat(length - 2));
        let value = "v".repeat(256);
        let whole = format!("a={value},b={}", "v".repeat(512 - 256 - 5));
        assert_eq!(whole.len(), 512);
        for good in [
            "a=1",
            "1a=1",
            "tenant@system=x y",
            "a_-*/=~",
            &many(32),
            &long(258),
            &whole,
        ] {
            let state = TraceContext::parse(PARENT, Some(good)).unwrap();
            assert_eq!(state.tracestate(), Some(good));
        }
        let longer = format!("{whole}v");
        for odd in [
            "",
            ",",
            "a",
            "=1",
            "A=1",
            "a=",
            "a=1=2",
            "a=1,a=2",
            "a=é",
            "_a=1",
            "a=\u{1}",
            &many(33),
            &long(259),
            &longer,
        ] {
            let state = TraceContext::parse(PARENT, Some(odd)).unwrap();
            assert_eq!(state.tracestate(), None, "{odd:?}");
        }
    }

    #[test]
    fn calls_are_spans_of_one_trace() {
        let outer = InvocationId::new();
        let inner = InvocationId::new();
        let own = TraceContext::of_call(outer);
        assert_eq!(own.trace_id(), outer.to_hex());
        assert_eq!(own.span_id(), outer.to_hex()[16..]);
        assert_eq!(
            TraceContext::parse(&own.traceparent(), None),
            Some(own.clone())
        );
        let child = own.child(inner);
        assert_eq!(
            (child.trace_id(), child.span_id()),
            (own.trace_id(), inner.to_hex()[16..].to_owned())
        );
        let given = TraceContext::parse(PARENT, Some("a=1"))
            .unwrap()
            .child(inner);
        assert_eq!(
            (given.trace_id().as_str(), given.tracestate()),
            (&PARENT[3..35], Some("a=1"))
        );
    }
}
