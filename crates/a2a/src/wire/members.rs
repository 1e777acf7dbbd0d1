//! Reads and writes members of JSON objects.

use serde_json::{Map, Value};

/// An object of a peer that cannot be read. Names the place for the author of the peer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{place}` {expected}")]
pub struct PeerMessageError {
    place: String,
    expected: &'static str,
}

impl PeerMessageError {
    pub(super) fn new(place: &str, expected: &'static str) -> Self {
        Self {
            place: place.chars().take(120).collect(),
            expected,
        }
    }
}

/// An object and its place in the message.
#[derive(Clone, Copy)]
pub(super) struct ObjectMembers<'a> {
    map: &'a Map<String, Value>,
    place: &'a str,
}

impl<'a> ObjectMembers<'a> {
    pub(super) fn of(value: &'a Value, place: &'a str) -> Result<Self, PeerMessageError> {
        let map = value
            .as_object()
            .ok_or_else(|| PeerMessageError::new(place, "must be an object"))?;
        Ok(Self { map, place })
    }

    /// A member; `null` counts as absent.
    pub(super) fn get(&self, name: &str) -> Option<&'a Value> {
        self.map.get(name).filter(|value| !value.is_null())
    }

    /// A member, which may be `null`.
    pub(super) fn raw(&self, name: &str) -> Option<&'a Value> {
        self.map.get(name)
    }

    pub(super) fn misread(&self, name: &str, expected: &'static str) -> PeerMessageError {
        PeerMessageError::new(&self.path(name), expected)
    }

    pub(super) fn path(&self, name: &str) -> String {
        format!("{}.{name}", self.place)
    }

    /// A required, non-empty text.
    pub(super) fn required_text(&self, name: &str) -> Result<String, PeerMessageError> {
        self.text(name)?
            .filter(|text| !text.is_empty())
            .ok_or_else(|| self.misread(name, "must be a text that is not empty"))
    }

    pub(super) fn text(&self, name: &str) -> Result<Option<String>, PeerMessageError> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(_) => Err(self.misread(name, "must be a text")),
        }
    }

    /// Like [`text`](Self::text), but an empty text counts as absent: protocol buffers leave a text out that way.
    pub(super) fn said(&self, name: &str) -> Result<Option<String>, PeerMessageError> {
        Ok(self.text(name)?.filter(|text| !text.is_empty()))
    }

    pub(super) fn flag(&self, name: &str) -> Result<Option<bool>, PeerMessageError> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::Bool(flag)) => Ok(Some(*flag)),
            // Query strings hold only text.
            Some(Value::String(text)) if text == "true" || text == "false" => {
                Ok(Some(text == "true"))
            }
            Some(_) => Err(self.misread(name, "must be true or false")),
        }
    }

    pub(super) fn count(&self, name: &str) -> Result<Option<u64>, PeerMessageError> {
        match self.get(name) {
            None => Ok(None),
            Some(value) => super::number::count(value)
                .map(Some)
                .ok_or_else(|| self.misread(name, "must be a whole number that is not negative")),
        }
    }

    pub(super) fn list(&self, name: &str) -> Result<&'a [Value], PeerMessageError> {
        match self.get(name) {
            None => Ok(&[]),
            Some(Value::Array(items)) => Ok(items),
            Some(_) => Err(self.misread(name, "must be a list")),
        }
    }

    pub(super) fn texts(&self, name: &str) -> Result<Vec<String>, PeerMessageError> {
        let text = |item: &Value| item.as_str().map(str::to_owned);
        let texts: Option<Vec<String>> = self.list(name)?.iter().map(text).collect();
        texts.ok_or_else(|| self.misread(name, "must be a list of texts"))
    }

    pub(super) fn object(
        &self,
        name: &str,
    ) -> Result<Option<Map<String, Value>>, PeerMessageError> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::Object(map)) => Ok(Some(map.clone())),
            Some(_) => Err(self.misread(name, "must be an object")),
        }
    }

    /// The metadata; an empty object counts as absent.
    pub(super) fn metadata(&self) -> Result<Option<Map<String, Value>>, PeerMessageError> {
        Ok(self.object("metadata")?.filter(|map| !map.is_empty()))
    }

    /// Reads each item of a list; `read` also gets the place of the item.
    pub(super) fn each<T>(
        &self,
        name: &str,
        read: impl Fn(&Value, &str) -> Result<T, PeerMessageError>,
    ) -> Result<Vec<T>, PeerMessageError> {
        let at = |(place, item)| read(item, &format!("{}[{place}]", self.path(name)));
        self.list(name)?.iter().enumerate().map(at).collect()
    }
}

/// The wire form of each item.
pub(super) fn values<T>(items: &[T], value: impl Fn(&T) -> Value) -> Vec<Value> {
    items.iter().map(value).collect()
}

/// Builds an object and leaves out absent members.
#[derive(Default)]
pub(super) struct JsonObjectWriter(Map<String, Value>);

impl JsonObjectWriter {
    /// An object with the `kind` that 0.3 requires.
    pub(super) fn of_kind(dialect: super::A2aDialect, kind: &str) -> Self {
        match dialect {
            super::A2aDialect::V0_3 => Self::default().with("kind", kind),
            super::A2aDialect::V1_0 => Self::default(),
        }
    }

    pub(super) fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.0.insert(name.to_owned(), value.into());
        self
    }

    pub(super) fn maybe(self, name: &str, value: Option<impl Into<Value>>) -> Self {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }

    /// Adds a list, unless it is empty.
    pub(super) fn list(self, name: &str, items: Vec<Value>) -> Self {
        if items.is_empty() {
            self
        } else {
            self.with(name, items)
        }
    }

    pub(super) fn texts(self, name: &str, texts: &[String]) -> Self {
        self.list(name, values(texts, |text| Value::from(text.as_str())))
    }

    pub(super) fn flag(self, name: &str, flag: bool) -> Self {
        if flag { self.with(name, true) } else { self }
    }

    pub(super) fn done(self) -> Value {
        Value::Object(self.0)
    }
}
