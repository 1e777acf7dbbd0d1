//! A content on its way to disk: one buffer is filled while another is hashed and written by a thread that may block.
//! Two buffers a writer are all that is ever in memory, however large the content is.

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

/// Large enough that handing over costs nothing beside the hashing.
const BUFFER: usize = 256 << 10;

/// Does work that blocks where that harms nobody.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, BlobError> + Send + 'static,
) -> Result<T, BlobError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(_) => Err(BlobError::Storage(
            "the thread that does the work is gone".to_owned(),
        )),
    }
}

/// What the writing thread has of a content.
struct BlobSpool {
    shared: Arc<DiskBlobState>,
    file: Option<contents::TemporaryBlobFile>,
    hasher: Sha256,
    size: u64,
    /// Full when it is handed over, empty when it comes back.
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

    /// Syncs the content and gives it its name. Where it is there already, this one takes its place: it is as young as
    /// can be, and sound, which nobody knows of the other.
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
    /// The spool is here.
    Rests(BlobSpool),
    /// The spool is with the thread that writes.
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

    /// Gives the full buffer away and takes the one that was written before.
    async fn hand_over(&mut self) -> Result<(), BlobError> {
        let mut spool = self.resting().await?;
        std::mem::swap(&mut spool.buffer, &mut self.filling);
        self.work = SpoolState::Runs(tokio::task::spawn_blocking(move || {
            spool.write_out().map(|()| spool)
        }));
        Ok(())
    }

    /// Waits for what is being written. Until it is there the work stays where a dropped future leaves it.
    async fn resting(&mut self) -> Result<BlobSpool, BlobError> {
        if let SpoolState::Runs(handle) = &mut self.work {
            self.work = match handle.await {
                Ok(Ok(spool)) => SpoolState::Rests(spool),
                Ok(Err(error)) => SpoolState::Failed(error),
                Err(_) => SpoolState::Failed(BlobError::Storage(
                    "the thread that writes is gone".to_owned(),
                )),
            };
        }
        let taken = SpoolState::Failed(BlobError::Storage(
            "a write was given up half-way".to_owned(),
        ));
        match std::mem::replace(&mut self.work, taken) {
            SpoolState::Rests(spool) => Ok(spool),
            SpoolState::Failed(error) => {
                self.work = SpoolState::Failed(error.clone());
                Err(error)
            }
            running @ SpoolState::Runs(_) => {
                self.work = running;
                Err(BlobError::Storage(
                    "the thread that writes is not done".to_owned(),
                ))
            }
        }
    }

    async fn end(mut self) -> Result<KeptBlob, BlobError> {
        // One that nothing was written of takes room too.
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
