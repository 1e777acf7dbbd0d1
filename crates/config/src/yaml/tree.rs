//! YAML of no fixed shape, with the place of every key and value.
//!
//! Files of other programs are parsed this way and then taken apart. Unlike in a typed file, one wrong value does not
//! hide the ones behind it, and unknown keys are still there to be reported.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{Error, MapAccess, SeqAccess, Visitor},
};

use crate::LocatedValue;

/// A YAML value. Without `Debug`, since it may contain a secret.
#[derive(Clone)]
pub(crate) enum YamlValue {
    Null,
    Flag(bool),
    Whole(i128),
    Fraction(f64),
    Text(String),
    List(Vec<LocatedValue<YamlValue>>),
    Table(Vec<ConfigTreeEntry>),
}

#[derive(Clone)]
pub(crate) struct ConfigTreeEntry {
    pub(crate) key: LocatedValue<String>,
    pub(crate) value: LocatedValue<YamlValue>,
}

impl YamlValue {
    /// The kind of the value, for messages.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Null => "nothing",
            Self::Flag(_) => "true or false",
            Self::Whole(_) | Self::Fraction(_) => "a number",
            Self::Text(_) => "a text",
            Self::List(_) => "a list",
            Self::Table(_) => "a table",
        }
    }
}

impl YamlValue {
    /// Converts to JSON. A number that JSON lacks, such as infinity, becomes its text.
    pub(crate) fn into_json(self) -> serde_json::Value {
        use serde_json::{Number, Value as Json};
        match self {
            Self::Null => Json::Null,
            Self::Flag(flag) => Json::Bool(flag),
            Self::Whole(number) => Number::from_i128(number)
                .map_or_else(|| Json::String(number.to_string()), Json::Number),
            Self::Fraction(number) => Number::from_f64(number)
                .map_or_else(|| Json::String(number.to_string()), Json::Number),
            Self::Text(text) => Json::String(text),
            Self::List(items) => items
                .into_iter()
                .map(|item| item.value.into_json())
                .collect(),
            Self::Table(entries) => entries
                .into_iter()
                .map(|entry| (entry.key.value, entry.value.value.into_json()))
                .collect(),
        }
    }
}

impl<'de> Deserialize<'de> for YamlValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyValue)
    }
}

struct AnyValue;

impl<'de> Visitor<'de> for AnyValue {
    type Value = YamlValue;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E: Error>(self) -> Result<YamlValue, E> {
        Ok(YamlValue::Null)
    }

    fn visit_bool<E: Error>(self, flag: bool) -> Result<YamlValue, E> {
        Ok(YamlValue::Flag(flag))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<YamlValue, E> {
        Ok(YamlValue::Whole(number.into()))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<YamlValue, E> {
        Ok(YamlValue::Whole(number.into()))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<YamlValue, E> {
        Ok(YamlValue::Fraction(number))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<YamlValue, E> {
        Ok(YamlValue::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<YamlValue, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element()? {
            items.push(item);
        }
        Ok(YamlValue::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<YamlValue, A::Error> {
        let mut entries = Vec::new();
        while let Some((key, value)) = map.next_entry()? {
            entries.push(ConfigTreeEntry { key, value });
        }
        Ok(YamlValue::Table(entries))
    }
}
