//! Layer 1: definitions of tools from outside that somebody accepted, kept from one life of the host to the next.

use std::collections::BTreeMap;

use parking_lot::Mutex;

/// Why a manifest cannot be read or kept.
#[derive(Debug, thiserror::Error)]
#[error("the accepted definitions of `{origin}` cannot be {attempt}: {reason}")]
pub struct PinStoreError {
    /// The source.
    pub origin: String,
    /// What was tried: `read` or `kept`.
    pub attempt: &'static str,
    /// Why not, and what to do.
    pub reason: String,
}

/// Where the accepted definitions of sources are kept: one text a source, whose form only the source knows. What was
/// kept survives the loss of power.
pub trait PinStore: Send + Sync + 'static {
    /// The manifest of a source. `None`: nothing was ever accepted of it.
    fn load(&self, source: &str) -> Result<Option<String>, PinStoreError>;

    /// Keeps one in place of what was there.
    fn keep(&self, source: &str, manifest: &str) -> Result<(), PinStoreError>;
}

/// Accepted definitions that end with the host.
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
