//! Layer 9: the port for blobs, bytes that are too large for a record, named by their digest.
//!
//! The store has no notion of calls: the records of a call determine its artifacts and the callers that may read them.
//! Bytes are redacted before they reach the store.

mod memory;

use std::sync::Arc;

use toolpost_model::{BoxFuture, ContentDigest, ShareRefusal};

pub use memory::MemoryBlobs;

/// Why bytes cannot be stored or read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BlobError {
    /// The store is full.
    #[error("there is no room: at most {limit} bytes are kept (`{setting}`)")]
    Full {
        /// The limit that was reached.
        limit: u64,
        /// The setting behind the limit.
        setting: &'static str,
    },
    /// The blob alone exceeds the limit.
    #[error("it is larger than the limit of {limit} bytes for one content (`{setting}`)")]
    TooLarge {
        /// The limit that was reached.
        limit: u64,
        /// The setting behind the limit.
        setting: &'static str,
    },
    /// The caller has used its share for now.
    #[error("{}", .0.told("bytes of kept results", "limits.artifacts"))]
    Shared(ShareRefusal),
    /// There is no blob of that digest.
    #[error("no content of that digest is kept")]
    Missing,
    /// The storage failed.
    #[error("{0}")]
    Storage(String),
}

/// A stored blob.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeptBlob {
    /// Its digest.
    pub digest: ContentDigest,
    /// Its size in bytes.
    pub size: u64,
}

/// The capacity of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlobRoom {
    /// The used bytes, including unfinished blobs.
    pub used: u64,
    /// The limit in bytes.
    pub limit: u64,
}

/// The place of the bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoragePlace {
    /// In memory; they are lost when the host ends.
    Memory,
    /// In the folder of this name.
    Folder(String),
}

/// Stores bytes by their digest. Equal bytes are stored once.
pub trait BlobStore: Send + Sync + 'static {
    /// Begins a blob of unknown size.
    fn create(&self) -> BoxFuture<'_, Result<Box<dyn BlobWriter>, BlobError>>;

    /// The capacity. Callers share it; without a limit there are no shares.
    fn room(&self) -> Option<BlobRoom> {
        None
    }

    /// The place of the bytes, for operators.
    fn place(&self) -> StoragePlace;

    /// Opens a blob. An open blob can be read to its end, even if it is removed meanwhile.
    fn open(&self, digest: ContentDigest) -> BoxFuture<'_, Result<Arc<dyn Blob>, BlobError>>;
}

/// An unfinished blob. If the writer is dropped before `finish`, nothing of it stays.
pub trait BlobWriter: Send {
    /// Adds bytes. Resolves when there is room for more, so a writer that is faster than the storage waits here. After
    /// an error nothing more can be written.
    fn write<'a>(&'a mut self, bytes: &'a [u8]) -> BoxFuture<'a, Result<(), BlobError>>;

    /// Ends the blob. Once this resolves, the blob survives a power cut, if the storage can promise that.
    fn finish(self: Box<Self>) -> BoxFuture<'static, Result<KeptBlob, BlobError>>;
}

/// A blob, open for reading.
pub trait Blob: Send + Sync {
    /// The size in bytes.
    fn size(&self) -> u64;

    /// Up to `limit` bytes from `offset` on; fewer only at its end.
    fn read(&self, offset: u64, limit: usize) -> BoxFuture<'_, Result<Vec<u8>, BlobError>>;
}
