//! A JSON value with its original text.
//!
//! Amplifier shows the model an object with its keys in the order that the tool wrote. A parsed value has lost that
//! order, and the digits of a very large number, so the text is kept beside it.

use std::{borrow::Cow, fmt};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de, ser::Error as _};
use serde_json::{Value, value::RawValue};

use crate::text::{JsonTextStyle, rewrite};

/// A JSON value, with its original text if it was parsed from one.
#[derive(Clone, Debug, Default)]
pub struct VerbatimJson {
    value: Value,
    text: Option<Box<RawValue>>,
}

/// A text is not JSON.
#[derive(Debug, thiserror::Error)]
#[error("not JSON: {0}")]
pub struct JsonError(#[from] serde_json::Error);

impl VerbatimJson {
    /// Parses a text. An escaped half of a surrogate pair, which Python writes and Rust strings cannot hold, is left
    /// out of the value and stays in the text.
    pub fn parse(text: &str) -> Result<Self, JsonError> {
        let raw: Box<RawValue> = serde_json::from_str(text)?;
        Self::of_raw(raw)
    }

    /// As [`parse`](Self::parse), for a text that is known to be one JSON value.
    pub(crate) fn of_raw(raw: Box<RawValue>) -> Result<Self, JsonError> {
        let value = serde_json::from_str(&without_half_pairs(raw.get()))?;
        Ok(Self {
            value,
            text: Some(raw),
        })
    }

    /// The value.
    pub fn value(&self) -> &Value {
        &self.value
    }

    /// The value without its text.
    pub fn into_value(self) -> Value {
        self.value
    }

    /// The original text.
    pub(crate) fn text(&self) -> Option<&str> {
        self.text.as_deref().map(RawValue::get)
    }

    /// A member of an object, as it was written.
    pub fn field(&self, key: &str) -> Option<Self> {
        let value = self.value.get(key)?;
        let written = || {
            let found = in_order(self.text()?)?
                .into_iter()
                .rev()
                .find(|(name, _)| name == key)?;
            Self::of_raw(found.1).ok()
        };
        Some(written().unwrap_or_else(|| Self::from(value.clone())))
    }

    /// Whether the value is `null`.
    pub fn is_null(&self) -> bool {
        self.value.is_null()
    }
}

impl From<Value> for VerbatimJson {
    fn from(value: Value) -> Self {
        Self { value, text: None }
    }
}

/// Compares the values alone, not their texts.
impl PartialEq for VerbatimJson {
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
    }
}

/// Compact, with the keys in their original order.
impl Serialize for VerbatimJson {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.text {
            Some(text) => {
                let compact = RawValue::from_string(rewrite(text.get(), JsonTextStyle::Compact));
                compact.map_err(S::Error::custom)?.serialize(serializer)
            }
            None => self.value.serialize(serializer),
        }
    }
}

/// The members of an object's text, in their order.
pub(crate) fn in_order(text: &str) -> Option<Vec<(String, Box<RawValue>)>> {
    struct Pairs(Vec<(String, Box<RawValue>)>);
    struct Visitor;
    impl<'de> de::Visitor<'de> for Visitor {
        type Value = Pairs;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: de::MapAccess<'de>>(self, mut map: A) -> Result<Pairs, A::Error> {
            let mut pairs = Vec::new();
            while let Some(pair) = map.next_entry()? {
                pairs.push(pair);
            }
            Ok(Pairs(pairs))
        }
    }
    impl<'de> Deserialize<'de> for Pairs {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            deserializer.deserialize_map(Visitor)
        }
    }
    serde_json::from_str::<Pairs>(text)
        .ok()
        .map(|pairs| pairs.0)
}

/// JSON text without the escapes of half surrogate pairs.
fn without_half_pairs(text: &str) -> Cow<'_, str> {
    if !text.contains("\\ud") && !text.contains("\\uD") {
        return Cow::Borrowed(text);
    }
    let mut kept = String::with_capacity(text.len());
    let mut from = 0;
    let mut at = 0;
    let bytes = text.as_bytes();
    while at < bytes.len() {
        if bytes[at] != b'\\' {
            at += 1;
            continue;
        }
        match escaped_unit(text, at) {
            Some(0xD800..=0xDBFF)
                if matches!(escaped_unit(text, at + 6), Some(0xDC00..=0xDFFF)) =>
            {
                at += 12;
            }
            Some(0xD800..=0xDFFF) => {
                kept.push_str(&text[from..at]);
                at += 6;
                from = at;
            }
            // Any other escape is a backslash and one character, which is skipped.
            Some(_) | None => at += 2,
        }
    }
    kept.push_str(&text[from..]);
    Cow::Owned(kept)
}

/// The UTF-16 unit of the escape `\uXXXX` at a place.
pub(crate) fn escaped_unit(text: &str, at: usize) -> Option<u16> {
    let digits = text.get(at..at + 6)?.strip_prefix("\\u")?;
    u16::from_str_radix(digits, 16).ok()
}
