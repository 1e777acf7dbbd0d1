//! The writing of one blob: one buffer is filled while a blocking thread hashes and writes the other. A writer needs
//! the memory of two buffers, however large the blob is.

use std::sync::Arc;

use sha2::{Digest as _, Sha256};
use tokio::task::JoinHandle;
use toolpost_core::{BlobError, BlobWriter, KeptBlob};
use toolpost_model::{BoxFuture, ContentDigest};

use super::{
    DiskBlobState, failed,
    quota::{QuotaReservation, room_of},
};
use crate::disk::contents;

/// Large enough that the switch between threads costs little beside the hashing.
const BUFFER: usize = 256 << 10;

/// Runs blocking work on the runtime's threads for blocking work.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, BlobError> + Send + 'static,
) -> Result<T, BlobError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(_) => Err(BlobError::Storage("the worker thread ended".to_owned())),
    }
}

/// The state of a blob that the writing thread needs.
struct BlobSpool {
    shared: Arc<DiskBlobState>,
    file: Option<contents::TemporaryBlobFile>,
    hasher: Sha256,
    size: u64,
    /// Full on its way to the thread, empty on its way back.
    buffer: Vec<u8>,
}

impl BlobSpool {
    fn write_out(&mut self) -> Result<(), BlobError> {
        let file = match &mut self.file {
            Some(file) => file,
            none => {
                let folder = self.shared.files.temporary();
                none.insert(contents::TemporaryBlobFile::create(&folder).map_err(failed)?)
            }
        };
        file.write(&self.buffer).map_err(failed)?;
        self.hasher.update(&self.buffer);
        self.size += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    /// Syncs the blob and gives it its final name. An existing file of the same digest is replaced: the new file
    /// restarts the lifetime, and its content was just hashed, while the old one may be damaged.
    ///
    /// The order is fixed. The bytes are synced before the rename, so a power cut never leaves a final name with
    /// missing content. The check for an existing file, the rename and the correction of the quota happen under
    /// `naming`: if the cleanup removed the old file in between, its room would be given back twice, and the store
    /// would hold more than its limit.
    fn name(mut self, taken: QuotaReservation<DiskBlobState>) -> Result<KeptBlob, BlobError> {
        self.write_out()?;
        let kept = KeptBlob {
            digest: ContentDigest(self.hasher.finalize().into()),
            size: self.size,
        };
        let (shared, Some(file)) = (self.shared, self.file) else {
            return Err(BlobError::Storage("the content has no file".to_owned()));
        };
        file.sync().map_err(failed)?;
        let path = shared.files.path_of(&kept.digest);
        let _turn = shared.naming.lock();
        let there = contents::ContentFile::open(&path)
            .map_err(failed)?
            .map(|file| file.size());
        file.name(&path).map_err(failed)?;
        shared.quota.give_back(there.map_or(0, room_of));
        taken.keep();
        Ok(kept)
    }
}

enum SpoolState {
    /// The spool is idle, in this struct.
    Rests(BlobSpool),
    /// The spool is with the writing thread.
    Runs(JoinHandle<Result<BlobSpool, BlobError>>),
    Failed(BlobError),
}

pub(super) struct DiskBlobWriter {
    shared: Arc<DiskBlobState>,
    filling: Vec<u8>,
    taken: QuotaReservation<DiskBlobState>,
    work: SpoolState,
}

impl DiskBlobWriter {
    pub(super) fn new(shared: Arc<DiskBlobState>) -> Self {
        let spool = BlobSpool {
            shared: Arc::clone(&shared),
            file: None,
            hasher: Sha256::new(),
            size: 0,
            buffer: Vec::new(),
        };
        let taken = QuotaReservation::nothing(Arc::clone(&shared));
        Self {
            shared,
            filling: Vec::new(),
            taken,
            work: SpoolState::Rests(spool),
        }
    }

    async fn add(&mut self, mut bytes: &[u8]) -> Result<(), BlobError> {
        if let SpoolState::Failed(error) = &self.work {
            return Err(error.clone());
        }
        if let Err(error) = self.take_room(bytes.len() as u64).await {
            self.work = SpoolState::Failed(error.clone());
            return Err(error);
        }
        while !bytes.is_empty() {
            let (now, later) = bytes.split_at(bytes.len().min(BUFFER - self.filling.len()));
            self.filling.extend_from_slice(now);
            bytes = later;
            if self.filling.len() == BUFFER {
                self.hand_over().await?;
            }
        }
        Ok(())
    }

    async fn take_room(&mut self, bytes: u64) -> Result<(), BlobError> {
        let limit = self.shared.options.one;
        if self.taken.size().saturating_add(bytes) > limit {
            return Err(BlobError::TooLarge {
                limit,
                setting: "limits.artifact",
            });
        }
        if self.taken.take(bytes) {
            return Ok(());
        }
        let shared = Arc::clone(&self.shared);
        blocking(move || shared.clear_away()).await?;
        if self.taken.take(bytes) {
            return Ok(());
        }
        Err(BlobError::Full {
            limit: self.shared.quota.limit(),
            setting: "limits.artifacts",
        })
    }

    /// Passes the full buffer to the thread and takes back the empty one.
    async fn hand_over(&mut self) -> Result<(), BlobError> {
        let mut spool = self.resting().await?;
        std::mem::swap(&mut spool.buffer, &mut self.filling);
        self.work = SpoolState::Runs(tokio::task::spawn_blocking(move || {
            spool.write_out().map(|()| spool)
        }));
        Ok(())
    }

    /// Waits for the writing thread and takes the spool.
    ///
    /// Callers drop this future when a call is canceled. The handle is therefore awaited in place, inside `self.work`:
    /// a future dropped while it waits leaves `Runs`, and the next call waits again. Only after the wait is the spool
    /// moved out, and there is no await between that and the next `Runs`. `Failed` takes its place meanwhile, so that a
    /// panic in between fails later writes instead of continuing a blob with a gap.
    async fn resting(&mut self) -> Result<BlobSpool, BlobError> {
        if let SpoolState::Runs(handle) = &mut self.work {
            self.work = match handle.await {
                Ok(Ok(spool)) => SpoolState::Rests(spool),
                Ok(Err(error)) => SpoolState::Failed(error),
                Err(_) => {
                    SpoolState::Failed(BlobError::Storage("the writer thread ended".to_owned()))
                }
            };
        }
        let taken = SpoolState::Failed(BlobError::Storage("a write was aborted".to_owned()));
        match std::mem::replace(&mut self.work, taken) {
            SpoolState::Rests(spool) => Ok(spool),
            SpoolState::Failed(error) => {
                self.work = SpoolState::Failed(error.clone());
                Err(error)
            }
            running @ SpoolState::Runs(_) => {
                self.work = running;
                Err(BlobError::Storage(
                    "the writer thread is still busy".to_owned(),
                ))
            }
        }
    }

    async fn end(mut self) -> Result<KeptBlob, BlobError> {
        // An empty blob takes room too.
        self.add(&[]).await?;
        let mut spool = self.resting().await?;
        spool.buffer = std::mem::take(&mut self.filling);
        let taken = self.taken;
        blocking(move || spool.name(taken)).await
    }
}

impl BlobWriter for DiskBlobWriter {
    fn write<'a>(&'a mut self, bytes: &'a [u8]) -> BoxFuture<'a, Result<(), BlobError>> {
        Box::pin(self.add(bytes))
    }

    fn finish(self: Box<Self>) -> BoxFuture<'static, Result<KeptBlob, BlobError>> {
        Box::pin(self.end())
    }
}

impl AsRef<super::BlobQuota> for DiskBlobState {
    fn as_ref(&self) -> &super::BlobQuota {
        &self.quota
    }
}
