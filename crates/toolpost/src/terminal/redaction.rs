//! The redaction of stderr: log lines, errors, warnings.
//!
//! The process has one log, which begins before there is a host. Until then it redacts the values of the environment's
//! secrets and the patterns of well-known secrets. From then on it uses the host's redactor too.

use std::{
    borrow::Cow,
    io::{self, Write},
    sync::{Arc, OnceLock},
};

use parking_lot::RwLock;
use toolpost_core::{KnownSecrets, Redactor};
use tracing_subscriber::fmt::MakeWriter;

use crate::environment;

static OF_THE_HOST: RwLock<Option<Arc<dyn Redactor>>> = RwLock::new(None);

/// From now on, this redactor also filters the log.
pub(crate) fn set_host_redactor(redactor: Arc<dyn Redactor>) {
    *OF_THE_HOST.write() = Some(redactor);
}

/// A text without secrets.
pub(crate) fn clean(text: &str) -> Cow<'_, str> {
    static OF_THE_ENVIRONMENT: OnceLock<KnownSecrets> = OnceLock::new();
    let host = OF_THE_HOST.read().clone();
    match host {
        Some(host) => host.text(text),
        None => {
            let built = OF_THE_ENVIRONMENT.get_or_init(|| {
                let secrets = environment::secrets();
                KnownSecrets::new(
                    secrets
                        .iter()
                        .map(|(kind, value)| (kind.as_str(), value.reveal())),
                )
            });
            built.text(text)
        }
    }
}

/// A writer of log lines. Each line arrives as one piece.
#[derive(Clone)]
pub(super) struct RedactingWriter<W>(pub(super) W);

impl<'a, W: MakeWriter<'a>> MakeWriter<'a> for RedactingWriter<W> {
    type Writer = CleanWriter<W::Writer>;

    fn make_writer(&'a self) -> Self::Writer {
        CleanWriter(self.0.make_writer())
    }
}

pub(super) struct CleanWriter<W>(W);

impl<W: Write> Write for CleanWriter<W> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.0
            .write_all(clean(&String::from_utf8_lossy(line)).as_bytes())?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}
