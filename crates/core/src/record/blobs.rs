//! Layer 9: the port for bytes that are too many for a record, kept by what they are.
//!
//! Knows nothing of calls: which call made which bytes, and who may read them, is told by the call's records alone.
//! Bytes are redacted before they come here.

mod memory;

use std::sync::Arc;

use toolpost_model::{BoxFuture, ContentDigest, ShareRefusal};

pub use memory::MemoryBlobs;

/// Why bytes cannot be kept or read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BlobError {
    /// There is no room for more.
    #[error("there is no room: at most {limit} bytes are kept (`{setting}`)")]
    Full {
        /// The limit that bites.
        limit: u64,
        /// The setting that holds it.
        setting: &'static str,
    },
    /// One content alone is beyond what is kept.
    #[error("it is larger than the {limit} bytes that are kept of one content (`{setting}`)")]
    TooLarge {
        /// The limit that bites.
        limit: u64,
        /// The setting that holds it.
        setting: &'static str,
    },
    /// The caller has as much as it may have for now.
    #[error("{}", .0.told("bytes of kept results", "limits.artifacts"))]
    Shared(ShareRefusal),
    /// Nothing of that digest is kept, or no longer.
    #[error("nothing of that digest is kept")]
    Missing,
    /// The storage failed.
    #[error("{0}")]
    Storage(String),
}

/// What was kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeptBlob {
    /// Its name from now on.
    pub digest: ContentDigest,
    /// How many bytes it has.
    pub size: u64,
}

/// How much a store holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlobRoom {
    /// Bytes in use, those being written included.
    pub used: u64,
    /// Bytes that it may hold.
    pub limit: u64,
}

/// Where bytes are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoragePlace {
    /// With the host: they go when it ends.
    Memory,
    /// In the folder of this name.
    Folder(String),
}

/// Keeps bytes, named by their digest. Equal bytes are kept once.
pub trait BlobStore: Send + Sync + 'static {
    /// Begins a content of unknown size.
    fn create(&self) -> BoxFuture<'_, Result<Box<dyn BlobWriter>, BlobError>>;

    /// How much it holds. Callers divide it; without a limit nothing is divided.
    fn room(&self) -> Option<BlobRoom> {
        None
    }

    /// Where it keeps them, for operators.
    fn place(&self) -> StoragePlace;

    /// Opens a kept content. What is open can be read to its end, also when it is removed meanwhile.
    fn open(&self, digest: ContentDigest) -> BoxFuture<'_, Result<Arc<dyn Blob>, BlobError>>;
}

/// A content that is being written. Dropped before its end, nothing of it stays.
pub trait BlobWriter: Send {
    /// Adds bytes. Resolves when there is room for more: whoever writes faster than the storage waits here. After an
    /// error nothing more can be written.
    fn write<'a>(&'a mut self, bytes: &'a [u8]) -> BoxFuture<'a, Result<(), BlobError>>;

    /// All of it was written. Once this resolves it survives the loss of power, where the storage can promise that.
    fn finish(self: Box<Self>) -> BoxFuture<'static, Result<KeptBlob, BlobError>>;
}

/// A kept content, open for reading.
pub trait Blob: Send + Sync {
    /// How many bytes it has.
    fn size(&self) -> u64;

    /// Up to `limit` bytes from `offset` on; fewer only at its end.
    fn read(&self, offset: u64, limit: usize) -> BoxFuture<'_, Result<Vec<u8>, BlobError>>;
}
