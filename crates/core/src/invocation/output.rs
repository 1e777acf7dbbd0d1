//! The output of a call's processes for listeners. It arrives in chunks, and a secret can lie across two of them, so
//! the end of each chunk is held back until the next one.

use toolpost_model::{OutputChunk, OutputStream, Redactions};

use crate::record::redaction::{CallRedactor, StreamRedactor};

/// The held-back text of each stream of a call.
#[derive(Default)]
pub(super) struct RedactedOutputStreams {
    streams: Vec<RedactedOutputStream>,
}

struct RedactedOutputStream {
    stream: OutputStream,
    redactor: StreamRedactor,
    /// The last chunk without its text. Its counters apply to the held-back rest.
    last: OutputChunk,
}

impl RedactedOutputStreams {
    /// The redacted chunk, preceded by the rest of the earlier ones. `None` if everything is held back.
    pub(super) fn pass(
        &mut self,
        chunk: &OutputChunk,
        redactor: &CallRedactor,
    ) -> Option<OutputChunk> {
        let place = self
            .streams
            .iter()
            .position(|carried| carried.stream == chunk.stream);
        let place = place.unwrap_or_else(|| {
            let last = OutputChunk {
                text: String::new(),
                ..*chunk
            };
            self.streams.push(RedactedOutputStream {
                stream: chunk.stream,
                redactor: redactor.stream(),
                last,
            });
            self.streams.len() - 1
        });
        let carried = &mut self.streams[place];
        let mut clean = Vec::with_capacity(chunk.text.len());
        if chunk.skipped > 0 {
            // After a gap the held-back text has no continuation.
            carried.redactor.finish(&mut clean);
        }
        carried.redactor.push(chunk.text.as_bytes(), &mut clean);
        carried.last = OutputChunk {
            text: String::new(),
            skipped: 0,
            ..*chunk
        };
        let shown = OutputChunk {
            text: text(clean),
            ..*chunk
        };
        (!shown.text.is_empty() || shown.skipped > 0).then_some(shown)
    }

    /// The held-back rests of all streams, at the end of the output.
    pub(super) fn finish(&mut self) -> Vec<OutputChunk> {
        let rest = |mut carried: RedactedOutputStream| {
            let mut clean = Vec::new();
            let _: Redactions = carried.redactor.finish(&mut clean);
            OutputChunk {
                text: text(clean),
                ..carried.last
            }
        };
        self.streams
            .drain(..)
            .map(rest)
            .filter(|chunk| !chunk.text.is_empty())
            .collect()
    }
}

/// The redactor gets text and cuts at character boundaries, so the result is valid UTF-8.
fn text(clean: Vec<u8>) -> String {
    String::from_utf8(clean)
        .unwrap_or_else(|bad| String::from_utf8_lossy(bad.as_bytes()).into_owned())
}
