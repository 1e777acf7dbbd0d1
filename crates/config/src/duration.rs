//! Durations in configuration files.

use std::{borrow::Cow, fmt, str::FromStr, time::Duration};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{
    Deserialize, Deserializer,
    de::{Error, Visitor},
};

use crate::snippet::shown;

/// The units from the largest to the smallest, with their length in milliseconds.
const UNITS: [(&str, u64); 5] = [
    ("d", 86_400_000),
    ("h", 3_600_000),
    ("m", 60_000),
    ("s", 1_000),
    ("ms", 1),
];

/// A whole number with a unit: `250ms`, `30s`, `5m`, `24h`, `30d`.
///
/// A bare number is refused, since readers would assume different units.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConfigDuration(Duration);

/// Why a text is no duration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DurationError {
    /// Not a whole number and a unit.
    #[error(
        "`{0}` is not a duration; write a whole number and a unit, such as 250ms, 30s, 5m, 24h or 30d"
    )]
    Form(String),
    /// A number without a unit.
    #[error("`{0}` has no unit; write a duration such as {0}s or {0}ms")]
    NoUnit(String),
    /// More milliseconds than can be counted.
    #[error("`{0}` is too long for a duration")]
    TooLong(String),
}

impl ConfigDuration {
    /// Wraps a duration that comes from code.
    pub const fn new(duration: Duration) -> Self {
        Self(duration)
    }
}

impl From<ConfigDuration> for Duration {
    fn from(duration: ConfigDuration) -> Self {
        duration.0
    }
}

impl FromStr for ConfigDuration {
    type Err = DurationError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let unit_start = text
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(text.len());
        let (number, unit) = text.split_at(unit_start);
        if number.is_empty() {
            return Err(DurationError::Form(shown(text)));
        }
        if unit.is_empty() {
            return Err(DurationError::NoUnit(shown(text)));
        }
        let known = UNITS.into_iter().find(|(name, _)| *name == unit);
        let (_, factor) = known.ok_or_else(|| DurationError::Form(shown(text)))?;
        let millis = number
            .parse::<u64>()
            .ok()
            .and_then(|number| number.checked_mul(factor));
        millis
            .map(|millis| Self(Duration::from_millis(millis)))
            .ok_or_else(|| DurationError::TooLong(shown(text)))
    }
}

/// The largest unit that divides the duration, so that the printed text parses to the same value. Days begin at two: a
/// single day is usually written as `24h`.
impl fmt::Display for ConfigDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = self.0.as_millis();
        let fitting = UNITS.into_iter().find(|&(unit, factor)| {
            let whole = millis / u128::from(factor);
            millis.is_multiple_of(u128::from(factor)) && whole > u128::from(unit == "d")
        });
        let (unit, factor) = fitting.unwrap_or(("ms", 1));
        write!(f, "{}{unit}", millis / u128::from(factor))
    }
}

impl<'de> Deserialize<'de> for ConfigDuration {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;

        impl Visitor<'_> for Text {
            type Value = ConfigDuration;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a duration such as 30s")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
                text.parse().map_err(E::custom)
            }

            fn visit_u64<E: Error>(self, number: u64) -> Result<Self::Value, E> {
                Err(E::custom(DurationError::NoUnit(number.to_string())))
            }

            fn visit_i64<E: Error>(self, number: i64) -> Result<Self::Value, E> {
                self.visit_str(&number.to_string())
            }
        }

        deserializer.deserialize_any(Text)
    }
}

impl JsonSchema for ConfigDuration {
    fn schema_name() -> Cow<'static, str> {
        "Duration".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "description": "A whole number and a unit: `250ms`, `30s`, `5m`, `24h`, `30d`.",
            "pattern": "^[0-9]+(ms|s|m|h|d)$",
        })
    }
}
