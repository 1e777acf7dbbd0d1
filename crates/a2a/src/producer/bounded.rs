//! How large a value is once it is written, and what stands in for one that is too large.

use std::io;

use serde_json::{Map, Value};
use toolpost_model::ArtifactId;

/// No event takes more bytes, as long as ids and names are of sane length.
pub const LARGEST_EVENT: usize = 256 << 10;
/// What one value may take of that; the rest is for everything beside it.
const LARGEST_VALUE: usize = LARGEST_EVENT - (24 << 10);
/// Arguments up to here are repeated when a call ends.
pub(super) const SMALL: usize = 4 << 10;
/// How much of a value that is too large is shown.
const PREVIEW: usize = 2 << 10;

/// A value measured in one pass, without a copy of it.
pub(super) struct JsonMeasurement {
    /// How many bytes it takes as JSON.
    pub(super) bytes: usize,
    head: Vec<u8>,
}

impl JsonMeasurement {
    pub(super) fn of(value: &Value) -> Self {
        let mut measured = Self {
            bytes: 0,
            head: Vec::new(),
        };
        // Writing a value fails only where the writer does, and this one does not.
        let _ = serde_json::to_writer(&mut measured, value);
        measured
    }

    /// The value itself if it fits, otherwise a record of what was left out and where the whole is kept.
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

/// The text up to a character that was cut in two.
fn readable(bytes: &[u8]) -> &str {
    bytes.utf8_chunks().next().map_or("", |chunk| chunk.valid())
}

/// The beginning of a text, at most so many bytes.
pub(super) fn head(text: &str, most: usize) -> &str {
    &text[..text.floor_char_boundary(most)]
}
