//! One value, or a list of them.

use std::{borrow::Cow, fmt, marker::PhantomData};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{
    Deserialize, Deserializer,
    de::{Error, IntoDeserializer as _, SeqAccess, Visitor},
};

use crate::LocatedValue;

/// One value, or a list of them, as in the file.
#[derive(Clone, Debug)]
pub struct OneOrMany<T>(Vec<LocatedValue<T>>);

impl<T: Clone> OneOrMany<T> {
    /// These values, if there are any.
    pub fn of(values: &[T]) -> Option<Self> {
        (!values.is_empty()).then(|| Self(values.iter().cloned().map(Into::into).collect()))
    }
}

impl<T> OneOrMany<T> {
    /// The values. A single value has no place of its own.
    pub fn values(&self) -> &[LocatedValue<T>] {
        &self.0
    }
}

/// Written by hand: serde's untagged enums lose places, and report any mistake as "did not match".
impl<'de, T: Deserialize<'de>> Deserialize<'de> for OneOrMany<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OneOrMore<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for OneOrMore<T> {
            type Value = OneOrMany<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a word, or a list of them")
            }

            fn visit_str<E: Error>(self, word: &str) -> Result<Self::Value, E> {
                Ok(OneOrMany(vec![
                    T::deserialize(word.to_owned().into_deserializer())?.into(),
                ]))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
                let mut values = Vec::new();
                while let Some(value) = list.next_element::<LocatedValue<T>>()? {
                    values.push(value);
                }
                Ok(OneOrMany(values))
            }
        }

        deserializer.deserialize_any(OneOrMore(PhantomData))
    }
}

impl<T: JsonSchema> JsonSchema for OneOrMany<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("OneOrMore{}", T::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let one = generator.subschema_for::<T>();
        json_schema!({ "anyOf": [one, { "type": "array", "items": one, "minItems": 1 }] })
    }
}
