//! The four inputs of a call, kept apart by type.
//!
//! *Model input* is the text from the agent and is never changed. *Observable input* is for hooks, events and records,
//! *permission input* is for the decision, *call input* is for the tool. They usually share one parsed value, so
//! keeping them apart costs pointers, not copies.

use std::{borrow::Cow, fmt, sync::Arc};

use serde::{
    Deserialize, Serialize, Serializer,
    de::{DeserializeSeed, Error as _, MapAccess, SeqAccess, Visitor},
};
use serde_json::{Map, Value, value::RawValue};

use crate::canonical_json;

/// The model's input, unchanged: text from a wire, or a value from a caller in the same process.
#[derive(Clone, Debug)]
pub enum ModelInput {
    /// JSON text as it arrived, valid or not.
    Text(Arc<str>),
    /// A value built in this process.
    Value(Arc<Value>),
}

impl ModelInput {
    /// Input as it arrived from a wire.
    pub fn text(text: impl Into<Arc<str>>) -> Self {
        Self::Text(text.into())
    }

    /// Input built in this process.
    pub fn value(value: Value) -> Self {
        Self::Value(Arc::new(value))
    }

    /// The JSON without the blanks between its tokens. Two inputs with the same compact form are the same request. A
    /// value has sorted keys; a text keeps the order in which it arrived.
    pub fn compact(&self) -> Cow<'_, str> {
        match self {
            Self::Text(text) => compact(text),
            Self::Value(value) => Cow::Owned(canonical_json(value)),
        }
    }

    /// Parses into an object, refusing duplicate keys: a checker and a tool must see the same value.
    pub fn parse(&self) -> Result<Arguments, ArgumentsError> {
        match self {
            Self::Text(text) => Arguments::parse(text),
            Self::Value(value) if value.is_object() => Ok(Arguments {
                value: value.clone(),
                text: None,
            }),
            Self::Value(value) => Err(ArgumentsError::NotAnObject {
                given: kind_of(value),
            }),
        }
    }
}

fn compact(text: &str) -> Cow<'_, str> {
    let mut kept = String::new();
    let mut in_string = false;
    let mut escaped = false;
    let mut start = 0;
    for (place, byte) in text.bytes().enumerate() {
        if in_string {
            in_string = escaped || byte != b'"';
            escaped = byte == b'\\' && !escaped;
        } else if byte == b'"' {
            in_string = true;
        } else if byte.is_ascii_whitespace() {
            kept.push_str(&text[start..place]);
            start = place + 1;
        }
    }
    if start == 0 {
        return Cow::Borrowed(text);
    }
    kept.push_str(&text[start..]);
    Cow::Owned(kept)
}

/// A JSON object that was parsed once and is shared from then on.
#[derive(Clone, Debug)]
pub struct Arguments {
    value: Arc<Value>,
    text: Option<Arc<str>>,
}

/// Why arguments could not be read at all.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ArgumentsError {
    /// The text is not JSON, is nested too deeply, or names a key twice.
    #[error("the arguments are not valid JSON: {reason}")]
    NotJson {
        /// The parser's words, with line and column.
        reason: String,
    },
    /// Valid JSON of another kind.
    #[error("the arguments must be a JSON object, but {given} was given")]
    NotAnObject {
        /// The kind of the given value.
        given: &'static str,
    },
}

impl Arguments {
    /// Reads an object from text. Empty text counts as an empty object: a call without arguments.
    pub fn parse(text: &Arc<str>) -> Result<Self, ArgumentsError> {
        if text.trim().is_empty() {
            return Ok(Self::from_value(Value::Object(Map::new())));
        }
        let mut reader = serde_json::Deserializer::from_str(text);
        let value = StrictValue
            .deserialize(&mut reader)
            .and_then(|value| reader.end().map(|()| value))
            .map_err(|error| ArgumentsError::NotJson {
                reason: error.to_string(),
            })?;
        if !value.is_object() {
            return Err(ArgumentsError::NotAnObject {
                given: kind_of(&value),
            });
        }
        Ok(Self {
            value: Arc::new(value),
            text: Some(text.clone()),
        })
    }

    /// Wraps an object that is already a value, such as arguments that a hook changed.
    pub fn from_value(value: Value) -> Self {
        Self {
            value: Arc::new(value),
            text: None,
        }
    }

    /// The parsed object.
    pub fn value(&self) -> &Value {
        &self.value
    }

    /// A top-level text argument, where there is one.
    pub fn str(&self, key: &str) -> Option<&str> {
        self.value.get(key).and_then(Value::as_str)
    }
}

impl Serialize for Arguments {
    /// Writes the original text where there is one, so that arguments are never re-serialised.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.text {
            Some(text) => {
                let raw: &RawValue =
                    serde_json::from_str(text).map_err(serde::ser::Error::custom)?;
                raw.serialize(serializer)
            }
            None => self.value.serialize(serializer),
        }
    }
}

macro_rules! input_of_arguments {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Serialize)]
        #[serde(transparent)]
        pub struct $name(Arguments);

        impl $name {
            /// Marks the arguments as this one of the four inputs.
            pub fn new(arguments: Arguments) -> Self {
                Self(arguments)
            }

            /// The arguments themselves.
            pub fn arguments(&self) -> &Arguments {
                &self.0
            }
        }
    };
}

input_of_arguments! {
    /// The arguments for hooks, events and records: sensitive fields are replaced.
    ObservableInput
}
input_of_arguments! {
    /// The arguments for the permission decision.
    PermissionInput
}
input_of_arguments! {
    /// The arguments for the tool.
    CallInput
}

impl CallInput {
    /// Reads the arguments into the tool's own type.
    pub fn to<T: for<'de> Deserialize<'de>>(&self) -> Result<T, serde_json::Error> {
        T::deserialize(self.0.value())
    }
}

/// "a string", "an array" …, for messages.
pub(crate) fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

/// Builds a [`Value`] but refuses an object that names a key twice.
struct StrictValue;

impl<'de> DeserializeSeed<'de> for StrictValue {
    type Value = Value;

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for StrictValue {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    /// `1.0` is an integer in JSON Schema, so the tool gets an integer too.
    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        let whole = value.fract() == 0.0 && value.abs() < 9_007_199_254_740_992.0;
        Ok(if whole {
            (value as i64).into()
        } else {
            value.into()
        })
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element_seed(StrictValue)? {
            items.push(item);
        }
        Ok(Value::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(key) = map.next_key::<String>()? {
            let value = map.next_value_seed(StrictValue)?;
            if object.contains_key(&key) {
                return Err(A::Error::custom(format_args!(
                    "the key `{}` is given twice",
                    key.escape_default()
                )));
            }
            object.insert(key, value);
        }
        Ok(Value::Object(object))
    }
}

#[cfg(test)]
mod tests {
    use super::{Arguments, ArgumentsError, ModelInput};

    fn check(text: &str, expected: Result<&str, &str>) {
        let parsed = Arguments::parse(&text.into());
        match (parsed, expected) {
            (Ok(arguments), Ok(json)) => {
                assert_eq!(serde_json::to_string(&arguments).unwrap(), json);
            }
            (Err(error), Err(part)) => assert!(error.to_string().contains(part), "{error}"),
            (got, want) => panic!("{text:?}: got {got:?}, want {want:?}"),
        }
    }

    /// Idempotency keys were stored with a digest of sorted keys when objects did not keep their order yet.
    #[test]
    fn a_value_keeps_its_order_and_is_the_same_request_in_any_order() {
        let written: serde_json::Value =
            serde_json::from_str(r#"{"path":"a","content":{"z":1,"b":[]}}"#).unwrap();
        let input = ModelInput::value(written);
        assert_eq!(input.compact(), r#"{"content":{"b":[],"z":1},"path":"a"}"#);
        let arguments = input.parse().unwrap();
        assert_eq!(
            serde_json::to_string(&arguments).unwrap(),
            r#"{"path":"a","content":{"z":1,"b":[]}}"#
        );
        // A text is compared as it arrived, as before.
        assert_eq!(
            ModelInput::text(r#"{ "b": 1, "a": 2 }"#).compact(),
            r#"{"b":1,"a":2}"#
        );
    }

    #[test]
    fn arguments_are_read_strictly_and_kept_as_text() {
        check(r#"{ "a" : 1.50 }"#, Ok(r#"{ "a" : 1.50 }"#));
        check("  ", Ok("{}"));
        check(r#"{"a":1,"a":2}"#, Err("the key `a` is given twice"));
        check(r#"{"a":{"b":1,"b":1}}"#, Err("the key `b` is given twice"));
        check("[1]", Err("an array was given"));
        check("{\"a\":1} x", Err("trailing characters"));
        check("{\"a\":NaN}", Err("not valid JSON"));
        let deep = format!("{{\"a\":{}{}}}", "[".repeat(200), "]".repeat(200));
        assert!(matches!(
            Arguments::parse(&deep.as_str().into()),
            Err(ArgumentsError::NotJson { .. })
        ));
    }
}
