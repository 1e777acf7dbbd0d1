//! Whole numbers that arrive with a point.

use serde_json::{Number, Value};

/// Up to here every whole number is exact in a double.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// The value with every whole number that was written with a point made an integer again: `2.0` becomes `2`.
///
/// Peers that keep JSON in protocol buffers turn every number into a double, so that an argument would no longer fit a
/// schema that wants an integer. Beyond 2^53 a double stands for several integers, so such numbers stay as they are.
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

/// A count as peers write it: an integer, the same with a point, or digits in a text, as query strings and protocol
/// buffers have it.
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
