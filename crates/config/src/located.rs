//! A value with its place in a file, so that messages can refer to it.

use std::{borrow::Cow, fmt};

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer};
use serde_saphyr::{Location, Spanned};

/// A line and a column, both counted from 1 and in characters; 0 if there is no text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct FilePosition {
    /// The line.
    pub line: u32,
    /// The column.
    pub column: u32,
}

impl From<Location> for FilePosition {
    fn from(location: Location) -> Self {
        let number = |value: u64| u32::try_from(value).unwrap_or(u32::MAX);
        Self {
            line: number(location.line()),
            column: number(location.column()),
        }
    }
}

/// A value of a configuration file with its place.
///
/// The YAML library has a similar type. This one keeps that library out of our interface, and it can be made from a
/// plain value if settings come from flags or code.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct LocatedValue<T> {
    /// The value.
    pub value: T,
    /// Its place.
    pub at: FilePosition,
}

impl<T> LocatedValue<T> {
    /// The value as another type, at the same place.
    pub(crate) fn converted<U: From<T>>(self) -> LocatedValue<U> {
        LocatedValue {
            value: self.value.into(),
            at: self.at,
        }
    }
}

impl<T> From<T> for LocatedValue<T> {
    fn from(value: T) -> Self {
        Self {
            value,
            at: FilePosition::default(),
        }
    }
}

impl<T: fmt::Debug> fmt::Debug for LocatedValue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.value.fmt(f)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for LocatedValue<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let spanned = Spanned::<T>::deserialize(deserializer)?;
        Ok(Self {
            value: spanned.value,
            at: spanned.referenced.into(),
        })
    }
}

/// The schema of the value alone: the place is not written in the file.
impl<T: JsonSchema> JsonSchema for LocatedValue<T> {
    fn inline_schema() -> bool {
        T::inline_schema()
    }

    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }

    fn schema_id() -> Cow<'static, str> {
        T::schema_id()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        T::json_schema(generator)
    }
}
