//! What a process of a call writes, for whoever watches: it comes in pieces, and a secret may lie across two of them.

use toolpost_model::{OutputChunk, OutputStream, Redactions};

use crate::record::redaction::{CallRedactor, StreamRedactor};

/// What is held back of each stream of one call.
#[derive(Default)]
pub(super) struct RedactedOutputStreams {
    streams: Vec<RedactedOutputStream>,
}

struct RedactedOutputStream {
    stream: OutputStream,
    redactor: StreamRedactor,
    /// The last piece that came, without its text: its counts are good for what is held back of it.
    last: OutputChunk,
}

impl RedactedOutputStreams {
    /// The piece as others may see it, with what was held back of those before it. `None` where all of it is held back.
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
            // What is held back does not go on here.
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

    /// What is still held back, once nothing more comes.
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

/// Texts came in, and secrets are cut out of them where characters begin and end.
fn text(clean: Vec<u8>) -> String {
    String::from_utf8(clean)
        .unwrap_or_else(|bad| String::from_utf8_lossy(bad.as_bytes()).into_owned())
}
