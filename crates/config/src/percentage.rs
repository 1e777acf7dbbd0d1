//! Percentages in configuration files.

use std::{borrow::Cow, fmt, str::FromStr};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{
    Deserialize, Deserializer,
    de::{Error, Visitor},
};

use crate::snippet::shown;

/// A whole number of percent, from `0%` to `100%`.
///
/// A bare number is refused: `limits.share: 25` beside `limits.queue: 1024` would read as a count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Percentage(u8);

/// The text is not a percentage.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a percentage; write a whole number from 0% to 100%, such as 25%")]
pub struct PercentageError(String);

impl Percentage {
    /// So many hundredths, at most all of them.
    pub const fn new(percent: u8) -> Self {
        Self(if percent > 100 { 100 } else { percent })
    }
}

impl From<Percentage> for u8 {
    fn from(percentage: Percentage) -> Self {
        percentage.0
    }
}

impl FromStr for Percentage {
    type Err = PercentageError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let number = text
            .strip_suffix('%')
            .filter(|number| number.bytes().all(|byte| byte.is_ascii_digit()));
        let percent = number
            .and_then(|number| number.parse().ok())
            .filter(|percent| *percent <= 100);
        percent
            .map(Self)
            .ok_or_else(|| PercentageError(shown(text)))
    }
}

impl fmt::Display for Percentage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}%", self.0)
    }
}

impl<'de> Deserialize<'de> for Percentage {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;

        impl Visitor<'_> for Text {
            type Value = Percentage;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a percentage such as 25%")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
                text.parse().map_err(E::custom)
            }

            fn visit_u64<E: Error>(self, number: u64) -> Result<Self::Value, E> {
                self.visit_str(&number.to_string())
            }

            fn visit_i64<E: Error>(self, number: i64) -> Result<Self::Value, E> {
                self.visit_str(&number.to_string())
            }
        }

        deserializer.deserialize_any(Text)
    }
}

impl JsonSchema for Percentage {
    fn schema_name() -> Cow<'static, str> {
        "Percentage".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "description": "A whole number of percent: `25%`.",
            "pattern": "^(100|[0-9]{1,2})%$",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Percentage;

    #[test]
    fn only_whole_percentages_of_a_whole_are_read() {
        for (text, percent) in [("0%", 0), ("25%", 25), ("100%", 100)] {
            assert_eq!(text.parse(), Ok(Percentage::new(percent)), "{text}");
            assert_eq!(Percentage::new(percent).to_string(), text);
        }
        for text in ["", "%", "25", "101%", "-1%", "+1%", "2.5%", "25 %", "300%"] {
            assert!(text.parse::<Percentage>().is_err(), "{text}");
        }
    }
}
