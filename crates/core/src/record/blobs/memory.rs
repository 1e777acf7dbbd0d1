//! Bytes kept in memory: for tests, and for embedders without a disk.

use std::{collections::HashMap, future::ready, sync::Arc};

use parking_lot::Mutex;
use sha2::{Digest as _, Sha256};
use toolpost_model::{BoxFuture, ContentDigest};

use super::{Blob, BlobError, BlobRoom, BlobStore, BlobWriter, KeptBlob, StoragePlace};

/// The limit of a host without a store of its own.
const DEFAULT_LIMIT: u64 = 64 << 20;

/// Stores blobs in memory, up to a limit. Beyond it new blobs are refused; stored ones stay.
pub struct MemoryBlobs {
    kept: Arc<Mutex<MemoryBlobTable>>,
    limit: u64,
}

#[derive(Default)]
struct MemoryBlobTable {
    contents: HashMap<ContentDigest, Arc<[u8]>>,
    /// The bytes of finished and unfinished blobs.
    used: u64,
}

impl MemoryBlobs {
    /// Stores at most `limit` bytes, including unfinished blobs.
    pub fn new(limit: u64) -> Self {
        Self {
            kept: Arc::default(),
            limit,
        }
    }
}

impl Default for MemoryBlobs {
    fn default() -> Self {
        Self::new(DEFAULT_LIMIT)
    }
}

impl BlobStore for MemoryBlobs {
    fn create(&self) -> BoxFuture<'_, Result<Box<dyn BlobWriter>, BlobError>> {
        let writer = MemoryBlobWriter {
            kept: Arc::clone(&self.kept),
            limit: self.limit,
            written: Vec::new(),
        };
        Box::pin(ready(Ok(Box::new(writer) as Box<dyn BlobWriter>)))
    }

    fn room(&self) -> Option<BlobRoom> {
        Some(BlobRoom {
            used: self.kept.lock().used,
            limit: self.limit,
        })
    }

    fn place(&self) -> StoragePlace {
        StoragePlace::Memory
    }

    fn open(&self, digest: ContentDigest) -> BoxFuture<'_, Result<Arc<dyn Blob>, BlobError>> {
        let found = self
            .kept
            .lock()
            .contents
            .get(&digest)
            .cloned()
            .ok_or(BlobError::Missing);
        Box::pin(ready(
            found.map(|bytes| Arc::new(InMemory(bytes)) as Arc<dyn Blob>),
        ))
    }
}

struct MemoryBlobWriter {
    kept: Arc<Mutex<MemoryBlobTable>>,
    limit: u64,
    written: Vec<u8>,
}

impl MemoryBlobWriter {
    fn add(&mut self, bytes: &[u8]) -> Result<(), BlobError> {
        let mut kept = self.kept.lock();
        let used = kept.used.saturating_add(bytes.len() as u64);
        if used > self.limit {
            return Err(BlobError::Full {
                limit: self.limit,
                setting: "MemoryBlobs::new",
            });
        }
        kept.used = used;
        self.written.extend_from_slice(bytes);
        Ok(())
    }

    fn keep(mut self) -> KeptBlob {
        let bytes = std::mem::take(&mut self.written);
        let digest = ContentDigest(Sha256::digest(&bytes).into());
        let size = bytes.len() as u64;
        let mut kept = self.kept.lock();
        if kept.contents.insert(digest, bytes.into()).is_some() {
            kept.used -= size;
        }
        KeptBlob { digest, size }
    }
}

impl Drop for MemoryBlobWriter {
    fn drop(&mut self) {
        let mut kept = self.kept.lock();
        kept.used -= self.written.len() as u64;
    }
}

impl BlobWriter for MemoryBlobWriter {
    fn write<'a>(&'a mut self, bytes: &'a [u8]) -> BoxFuture<'a, Result<(), BlobError>> {
        Box::pin(ready(self.add(bytes)))
    }

    fn finish(self: Box<Self>) -> BoxFuture<'static, Result<KeptBlob, BlobError>> {
        Box::pin(ready(Ok(self.keep())))
    }
}

struct InMemory(Arc<[u8]>);

impl Blob for InMemory {
    fn size(&self) -> u64 {
        self.0.len() as u64
    }

    fn read(&self, offset: u64, limit: usize) -> BoxFuture<'_, Result<Vec<u8>, BlobError>> {
        let from = usize::try_from(offset)
            .unwrap_or(usize::MAX)
            .min(self.0.len());
        let to = from.saturating_add(limit).min(self.0.len());
        Box::pin(ready(Ok(self.0[from..to].to_vec())))
    }
}
