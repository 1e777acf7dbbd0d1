//! The division of the journal's and the blob store's bytes among callers.
//!
//! Unlike slots, bytes do not come back when a call ends, so an agent keeps borrowing beyond its share while there is
//! room, even beside other agents. It cannot use the headroom, which is for agents below their share, and the
//! operators' reserve.
//!
//! The host counts the bytes of each principal from its start. Bytes of earlier hosts count as used, but for no
//! principal. Later removals reduce every principal's count in proportion.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use parking_lot::Mutex;
use toolpost_model::{BoxFuture, LimitUse, Principal, ShareRefusal, ShareRules};

use super::{
    blobs::{BlobError, BlobStore, BlobWriter, KeptBlob},
    journal::{Journal, JournalError},
};

/// The limit of principals with a count of their own; the counts of those with the fewest bytes are dropped.
const COUNTED: usize = 4_096;
/// The bytes of a record beside its text: its row and its index entries.
const BESIDE_TEXT: u64 = 512;
/// The journal is measured again after this part of its limit, or this many bytes.
const MEASURED_PARTS: u64 = 256;
const MEASURED_BYTES: u64 = 64 << 10;
/// The size of the smallest blob, as stores on disk count it.
const LEAST_CONTENT: u64 = 4 << 10;

#[derive(Default)]
struct WrittenBytes {
    by: HashMap<Principal, u64>,
    all: u64,
}

impl WrittenBytes {
    fn add(&mut self, principal: &Principal, bytes: u64) {
        if self.by.len() >= COUNTED && !self.by.contains_key(principal) {
            let average = self.all / COUNTED as u64;
            self.by.retain(|_, bytes| *bytes > average);
            self.all = self.by.values().sum();
        }
        *self.by.entry(principal.clone()).or_default() += bytes;
        self.all += bytes;
    }

    fn take_back(&mut self, principal: &Principal, bytes: u64) {
        if let Some(own) = self.by.get_mut(principal) {
            let bytes = bytes.min(*own);
            *own -= bytes;
            self.all -= bytes;
        }
    }

    /// The remaining bytes of a principal when `used` bytes remain in all.
    fn left_of(&self, principal: &Principal, used: u64) -> u64 {
        let own = self.by.get(principal).copied().unwrap_or_default();
        if self.all <= used {
            return own;
        }
        let left = u128::from(own) * u128::from(used) / u128::from(self.all);
        u64::try_from(left).unwrap_or(u64::MAX)
    }
}

/// Whether a principal may write so many more bytes when `used` of `limit` are taken.
fn admit(
    rules: ShareRules,
    (used, limit): (u64, u64),
    principal: &Principal,
    own: u64,
    more: u64,
) -> Result<(), ShareRefusal> {
    let in_use = LimitUse {
        own,
        agents: used,
        all: used,
        others_active: false,
    };
    rules.divide(limit).admit(principal.role, &in_use, more)
}

pub(crate) struct JournalRoom {
    rules: ShareRules,
    /// `None`: the journal has no limit of its own.
    limit: Option<u64>,
    used: AtomicU64,
    /// Bytes written since the last measurement.
    unmeasured: AtomicU64,
    written: Mutex<WrittenBytes>,
}

impl JournalRoom {
    pub(crate) fn new(rules: ShareRules, journal: &dyn Journal) -> Self {
        Self {
            rules,
            limit: journal.byte_limit(),
            used: AtomicU64::new(0),
            unmeasured: AtomicU64::new(0),
            written: Mutex::default(),
        }
    }

    pub(crate) fn check(&self, principal: &Principal) -> Result<(), ShareRefusal> {
        let Some(limit) = self.limit else {
            return Ok(());
        };
        let used = self.used.load(Ordering::Relaxed);
        let own = self.written.lock().left_of(principal, used);
        match admit(self.rules, (used, limit), principal, own, BESIDE_TEXT) {
            // A full journal fails by itself, with a message that tells what to do.
            Ok(()) | Err(ShareRefusal::Total { .. }) => Ok(()),
            Err(refusal) => Err(refusal),
        }
    }

    /// Counts a record of a principal.
    pub(crate) async fn note(
        &self,
        journal: &dyn Journal,
        principal: Option<&Principal>,
        text: usize,
    ) {
        if self.count(principal, text) {
            // On an error the estimate is good enough until the next measurement.
            let _ = self.measure(journal).await;
        }
    }

    /// The same, and returns whether the journal should be measured again.
    fn count(&self, principal: Option<&Principal>, text: usize) -> bool {
        let Some(limit) = self.limit else {
            return false;
        };
        let bytes = text as u64 + BESIDE_TEXT;
        if let Some(principal) = principal {
            self.written.lock().add(principal, bytes);
        }
        self.used.fetch_add(bytes, Ordering::Relaxed);
        let unmeasured = self.unmeasured.fetch_add(bytes, Ordering::Relaxed) + bytes;
        unmeasured >= (limit / MEASURED_PARTS).max(MEASURED_BYTES)
    }

    /// Reads the journal's real size.
    pub(crate) async fn measure(&self, journal: &dyn Journal) -> Result<(), JournalError> {
        if self.limit.is_none() {
            return Ok(());
        }
        self.unmeasured.store(0, Ordering::Relaxed);
        self.used
            .store(journal.head().await?.bytes, Ordering::Relaxed);
        Ok(())
    }
}

pub(crate) struct ArtifactRoom {
    rules: ShareRules,
    pub(crate) blobs: Arc<dyn BlobStore>,
    written: Mutex<WrittenBytes>,
}

impl ArtifactRoom {
    pub(crate) fn new(rules: ShareRules, blobs: Arc<dyn BlobStore>) -> Arc<Self> {
        Arc::new(Self {
            rules,
            blobs,
            written: Mutex::default(),
        })
    }

    pub(crate) async fn create(
        self: &Arc<Self>,
        principal: &Principal,
    ) -> Result<Box<dyn BlobWriter>, BlobError> {
        let writer = self.blobs.create().await?;
        let room = Arc::clone(self);
        let principal = principal.clone();
        Ok(Box::new(CountedWriter {
            room,
            principal,
            writer: Some(writer),
            size: 0,
            counted: 0,
        }))
    }

    /// Counts bytes of a principal, if it may have them.
    fn take(&self, principal: &Principal, bytes: u64) -> Result<(), BlobError> {
        let Some(room) = self.blobs.room() else {
            return Ok(());
        };
        let mut written = self.written.lock();
        let own = written.left_of(principal, room.used);
        admit(self.rules, (room.used, room.limit), principal, own, bytes)
            .map_err(BlobError::Shared)?;
        written.add(principal, bytes);
        Ok(())
    }
}

/// An unfinished blob, counted for its principal. If it is dropped before its end, its bytes are given back.
struct CountedWriter {
    room: Arc<ArtifactRoom>,
    principal: Principal,
    writer: Option<Box<dyn BlobWriter>>,
    size: u64,
    counted: u64,
}

impl BlobWriter for CountedWriter {
    fn write<'a>(&'a mut self, bytes: &'a [u8]) -> BoxFuture<'a, Result<(), BlobError>> {
        Box::pin(async move {
            self.size += bytes.len() as u64;
            let more = self.size.max(LEAST_CONTENT) - self.counted;
            self.room.take(&self.principal, more)?;
            self.counted += more;
            match &mut self.writer {
                Some(writer) => writer.write(bytes).await,
                None => Err(BlobError::Storage(
                    "the content is finished already".to_owned(),
                )),
            }
        })
    }

    fn finish(mut self: Box<Self>) -> BoxFuture<'static, Result<KeptBlob, BlobError>> {
        Box::pin(async move {
            let Some(writer) = self.writer.take() else {
                return Err(BlobError::Storage(
                    "the content is finished already".to_owned(),
                ));
            };
            let kept = writer.finish().await?;
            self.counted = 0;
            Ok(kept)
        })
    }
}

impl Drop for CountedWriter {
    fn drop(&mut self) {
        self.room
            .written
            .lock()
            .take_back(&self.principal, self.counted);
    }
}
