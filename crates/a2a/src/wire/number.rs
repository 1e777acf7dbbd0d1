//! Whole numbers that are written with a decimal point.

use serde_json::{Number, Value};

/// Up to this number every whole number is exact in a double.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// Turns every whole number with a decimal point into an integer: `2.0` becomes `2`.
///
/// Peers that keep JSON in protocol buffers turn every number into a double; the arguments would no longer match a
/// schema that requires an integer. Beyond 2^53 a double stands for several integers, so such numbers are unchanged.
pub fn narrowed(value: Value) -> Value {
    match value {
        Value::Number(number) => Value::Number(narrowed_number(number)),
        Value::Array(items) => Value::Array(items.into_iter().map(narrowed).collect()),
        Value::Object(members) => Value::Object(
            members
                .into_iter()
                .map(|(name, value)| (name, narrowed(value)))
                .collect(),
        ),
        other @ (Value::Null | Value::Bool(_) | Value::String(_)) => other,
    }
}

fn narrowed_number(number: Number) -> Number {
    let whole = number
        .as_f64()
        .filter(|float| number.is_f64() && float.fract() == 0.0 && float.abs() <= EXACT);
    whole.map_or(number, |float| Number::from(float as i64))
}

/// A count in any form that peers write: an integer, an integer with a decimal point, or digits in a text, as in query
/// strings and protocol buffers.
pub(super) fn count(value: &Value) -> Option<u64> {
    match value {
        Value::Number(number) => number.as_u64().or_else(|| {
            number
                .as_f64()
                .filter(|n| n.fract() == 0.0 && (0.0..=EXACT).contains(n))
                .map(|n| n as u64)
        }),
        Value::String(text) => text.parse().ok(),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}
