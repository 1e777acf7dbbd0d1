//! A single value of any kind, for a parameter's default.

use std::{borrow::Cow, fmt};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{
    Deserialize, Deserializer,
    de::{Error, Visitor},
};
use serde_json::{Number, Value};

/// A text, a number, or true or false.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConfigScalar {
    /// A text.
    Text(String),
    /// A number.
    Number(Number),
    /// True or false.
    Flag(bool),
}

impl From<ConfigScalar> for Value {
    fn from(scalar: ConfigScalar) -> Self {
        match scalar {
            ConfigScalar::Text(text) => Self::String(text),
            ConfigScalar::Number(number) => Self::Number(number),
            ConfigScalar::Flag(flag) => Self::Bool(flag),
        }
    }
}

/// Written by hand: serde's untagged enums do not report the value that was found.
impl<'de> Deserialize<'de> for ConfigScalar {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Single;

        impl Visitor<'_> for Single {
            type Value = ConfigScalar;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text, a number, or true or false")
            }

            fn visit_bool<E: Error>(self, flag: bool) -> Result<Self::Value, E> {
                Ok(ConfigScalar::Flag(flag))
            }

            fn visit_i64<E: Error>(self, number: i64) -> Result<Self::Value, E> {
                Ok(ConfigScalar::Number(number.into()))
            }

            fn visit_u64<E: Error>(self, number: u64) -> Result<Self::Value, E> {
                Ok(ConfigScalar::Number(number.into()))
            }

            fn visit_f64<E: Error>(self, number: f64) -> Result<Self::Value, E> {
                // The model's arguments are JSON, which has no infinity.
                let number = Number::from_f64(number)
                    .ok_or_else(|| E::custom("expected a finite number"))?;
                Ok(ConfigScalar::Number(number))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
                Ok(ConfigScalar::Text(text.to_owned()))
            }
        }

        deserializer.deserialize_any(Single)
    }
}

impl JsonSchema for ConfigScalar {
    fn schema_name() -> Cow<'static, str> {
        "Scalar".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A text, a number, or true or false.",
            "type": ["string", "number", "boolean"],
        })
    }
}
