//! Measures written values, and replaces values that are too large.

use std::io;

use serde_json::{Map, Value};
use toolpost_model::ArtifactId;

/// The limit of an event in bytes, provided that ids and names have a usual length.
pub const LARGEST_EVENT: usize = 256 << 10;
/// The limit of one value; the rest of the event is for its other members.
const LARGEST_VALUE: usize = LARGEST_EVENT - (24 << 10);
/// Arguments up to this size are repeated in the end of a call.
pub(super) const SMALL: usize = 4 << 10;
/// The size of the preview of a value that is too large.
const PREVIEW: usize = 2 << 10;

/// The size of a value, measured in one pass without a copy, and its first bytes.
pub(super) struct JsonMeasurement {
    /// The size of the value as JSON.
    pub(super) bytes: usize,
    head: Vec<u8>,
}

impl JsonMeasurement {
    pub(super) fn of(value: &Value) -> Self {
        let mut measured = Self {
            bytes: 0,
            head: Vec::new(),
        };
        // Serialization of a value fails only if its writer fails, and this writer never fails.
        let _ = serde_json::to_writer(&mut measured, value);
        measured
    }

    /// The value itself if it fits, otherwise an object with its size, a preview and the artifact that holds all of it.
    pub(super) fn value(self, whole: impl FnOnce() -> Value, kept: Option<ArtifactId>) -> Value {
        if self.bytes <= LARGEST_VALUE {
            return whole();
        }
        let mut record = Map::new();
        record.insert("truncated".to_owned(), Value::Bool(true));
        record.insert("bytes".to_owned(), Value::from(self.bytes));
        record.insert("preview".to_owned(), Value::from(readable(&self.head)));
        if let Some(id) = kept {
            record.insert("artifact".to_owned(), Value::from(id.to_string()));
        }
        Value::Object(record)
    }
}

impl io::Write for JsonMeasurement {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes += bytes.len();
        let room = PREVIEW - self.head.len();
        self.head.extend_from_slice(&bytes[..bytes.len().min(room)]);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The bytes as text, without an incomplete character at the end.
fn readable(bytes: &[u8]) -> &str {
    bytes.utf8_chunks().next().map_or("", |chunk| chunk.valid())
}

/// The beginning of a text, at most `most` bytes.
pub(super) fn head(text: &str, most: usize) -> &str {
    &text[..text.floor_char_boundary(most)]
}
