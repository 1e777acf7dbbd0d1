//! Sizes in configuration files.

use std::{borrow::Cow, fmt, str::FromStr};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{
    Deserialize, Deserializer,
    de::{Error, Visitor},
};

use crate::snippet::shown;

/// The units from the largest to the smallest, with their length in bytes.
const UNITS: [(&str, u64); 4] = [
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("", 1),
];

/// A number of bytes: `64KiB`, `4MiB`, `1GiB`, or the plain number.
///
/// `MB` and the like are refused, since many readers take them for powers of ten.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ByteSize(u64);

/// Why a text is no size.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SizeError {
    /// Not a whole number with one of the units.
    #[error(
        "`{0}` is not a size; write a whole number of bytes, or one with KiB, MiB or GiB, such as 4MiB"
    )]
    Form(String),
    /// More bytes than can be counted.
    #[error("`{0}` is too large for a size")]
    TooLarge(String),
}

impl ByteSize {
    /// A size of this many bytes.
    pub const fn new(bytes: u64) -> Self {
        Self(bytes)
    }
}

impl From<ByteSize> for u64 {
    fn from(size: ByteSize) -> Self {
        size.0
    }
}

/// A size beyond the memory of a small machine is effectively no limit, so it saturates.
impl From<ByteSize> for usize {
    fn from(size: ByteSize) -> Self {
        Self::try_from(size.0).unwrap_or(Self::MAX)
    }
}

impl FromStr for ByteSize {
    type Err = SizeError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let unit_start = text
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(text.len());
        let (number, unit) = text.split_at(unit_start);
        let known = UNITS.into_iter().find(|(name, _)| *name == unit);
        let Some((_, factor)) = known.filter(|_| !number.is_empty()) else {
            return Err(SizeError::Form(shown(text)));
        };
        let bytes = number
            .parse::<u64>()
            .ok()
            .and_then(|number| number.checked_mul(factor));
        bytes
            .map(Self)
            .ok_or_else(|| SizeError::TooLarge(shown(text)))
    }
}

/// The largest unit that divides the size, so that the printed text parses to the same value.
impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fitting = UNITS
            .into_iter()
            .find(|&(_, factor)| self.0.is_multiple_of(factor) && self.0 > 0);
        let (unit, factor) = fitting.unwrap_or(("", 1));
        write!(f, "{}{unit}", self.0 / factor)
    }
}

impl<'de> Deserialize<'de> for ByteSize {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;

        impl Visitor<'_> for Text {
            type Value = ByteSize;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a size such as 4MiB")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
                text.parse().map_err(E::custom)
            }

            fn visit_u64<E: Error>(self, bytes: u64) -> Result<Self::Value, E> {
                Ok(ByteSize(bytes))
            }

            fn visit_i64<E: Error>(self, number: i64) -> Result<Self::Value, E> {
                self.visit_str(&number.to_string())
            }
        }

        deserializer.deserialize_any(Text)
    }
}

impl JsonSchema for ByteSize {
    fn schema_name() -> Cow<'static, str> {
        "Size".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": ["string", "integer"],
            "description": "A whole number of bytes, or one with a unit: `64KiB`, `4MiB`, `1GiB`.",
            "pattern": "^[0-9]+(KiB|MiB|GiB)?$",
            "minimum": 0,
        })
    }
}
