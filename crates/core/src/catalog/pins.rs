//! Layer 1: the port for pins, the accepted definitions of outside tools, which outlive the host.

use std::collections::BTreeMap;

use parking_lot::Mutex;

/// Why a manifest cannot be read or stored.
#[derive(Debug, thiserror::Error)]
#[error("the accepted definitions of `{origin}` cannot be {attempt}: {reason}")]
pub struct PinStoreError {
    /// The source.
    pub origin: String,
    /// The failed operation: `read` or `kept`.
    pub attempt: &'static str,
    /// The reason, and a way to fix it.
    pub reason: String,
}

/// The store of pins: one text a source, whose form only the source defines. A stored text survives a power cut.
pub trait PinStore: Send + Sync + 'static {
    /// The manifest of a source. `None`: no definition was ever accepted.
    fn load(&self, source: &str) -> Result<Option<String>, PinStoreError>;

    /// Stores a manifest and replaces an earlier one.
    fn keep(&self, source: &str, manifest: &str) -> Result<(), PinStoreError>;
}

/// Pins that end with the host.
#[derive(Debug, Default)]
pub struct MemoryPins(Mutex<BTreeMap<String, String>>);

impl PinStore for MemoryPins {
    fn load(&self, source: &str) -> Result<Option<String>, PinStoreError> {
        Ok(self.0.lock().get(source).cloned())
    }

    fn keep(&self, source: &str, manifest: &str) -> Result<(), PinStoreError> {
        let mut kept = self.0.lock();
        kept.insert(source.to_owned(), manifest.to_owned());
        Ok(())
    }
}
