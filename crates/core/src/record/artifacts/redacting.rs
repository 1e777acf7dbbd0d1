//! Secrets out of bytes that come in pieces: line by line, so that one that was cut in two by a piece's end is whole
//! again when it is looked for.

use std::{borrow::Cow, sync::Arc};

use toolpost_model::Redactions;

use crate::record::redaction::{CallRedactor, Redactor};

/// A line longer than this is looked through in parts.
const LONGEST_LINE: usize = 64 << 10;

/// Takes secrets out of what comes in pieces.
pub(crate) struct StreamRedactor {
    host: Arc<dyn Redactor>,
    secrets: Vec<String>,
    held: Vec<u8>,
}

impl StreamRedactor {
    pub(crate) fn new(host: Arc<dyn Redactor>, secrets: Vec<String>) -> Self {
        Self { host, secrets, held: Vec::new() }
    }

    /// Adds what came; what is clean is added to `clean`.
    pub(crate) fn push(&mut self, bytes: &[u8], clean: &mut Vec<u8>) {
        self.held.extend_from_slice(bytes);
        let whole = memchr::memrchr(b'\n', &self.held).map_or(0, |at| at + 1);
        let ready = if whole == 0 && self.held.len() > LONGEST_LINE { self.held.len() } else { whole };
        let rest = self.held.split_off(ready);
        let lines = std::mem::replace(&mut self.held, rest);
        self.take_out(&lines, clean);
    }

    /// Nothing more comes.
    pub(crate) fn finish(&mut self, clean: &mut Vec<u8>) -> Redactions {
        let rest = std::mem::take(&mut self.held);
        self.take_out(&rest, clean);
        Redactions::default()
    }

    fn take_out(&self, bytes: &[u8], clean: &mut Vec<u8>) {
        let redactor = CallRedactor { host: &*self.host, secrets: self.secrets.clone() };
        match std::str::from_utf8(bytes).map(|text| redactor.text(text)) {
            Ok(Cow::Owned(text)) => clean.extend_from_slice(text.as_bytes()),
            Ok(Cow::Borrowed(_)) | Err(_) => clean.extend_from_slice(bytes),
        }
    }
}
