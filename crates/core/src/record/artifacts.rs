//! Layer 9: artifacts, from a running call into the blob store, and back.
//!
//! There is no second index that could disagree with the journal: the record of a call's end lists its artifacts, and
//! while the call runs the list is here.

mod labels;

use std::sync::Arc;

use parking_lot::Mutex;
use toolpost_model::{
    ArtifactError, ArtifactHeader, ArtifactId, ArtifactRef, ArtifactSink, BoxFuture, EventBody,
    InvocationId, Principal, StoredArtifact,
};

use crate::{
    invocation::LiveCall,
    record::{
        blobs::{Blob, BlobError, BlobStore, BlobWriter},
        redaction::StreamRedactor,
        room::ArtifactRoom,
    },
    result::UnkeptPart,
};

/// The record of a call's end lists its artifacts, and a record has to stay small.
const MOST_PIECES: usize = 256;
/// The size of the pieces that are redacted and passed on.
const PIECE: usize = 128 << 10;

#[derive(Default)]
pub(crate) struct CallArtifacts(Mutex<CallArtifactList>);

#[derive(Default)]
struct CallArtifactList {
    begun: u32,
    kept: Vec<ArtifactRef>,
    /// The result is made: a later artifact would be named nowhere.
    is_closed: bool,
    /// Set while hooks may still withhold the result: until then only the call itself sees and opens its artifacts.
    is_held_back: bool,
}

impl CallArtifacts {
    /// The number of the artifact that begins now.
    pub(crate) fn begin(&self) -> u32 {
        let mut list = self.0.lock();
        list.begun += 1;
        list.begun
    }

    fn begin_for_tool(&self) -> Result<u32, ArtifactError> {
        let mut list = self.0.lock();
        if list.begun as usize >= MOST_PIECES {
            let message = format!("a call can keep at most {MOST_PIECES} artifacts");
            return Err(ArtifactError::Storage(message));
        }
        list.begun += 1;
        Ok(list.begun)
    }

    /// Adds an artifact of the tool, and returns whether others may see it now.
    fn add_for_tool(&self, piece: ArtifactRef) -> Result<bool, ArtifactError> {
        let mut list = self.0.lock();
        if list.is_closed {
            return Err(ArtifactError::Storage("the call has ended".to_owned()));
        }
        list.kept.push(piece);
        Ok(!list.is_held_back)
    }

    /// Hides every artifact from others until [`Self::let_out`].
    pub(crate) fn hold_back(&self) {
        self.0.lock().is_held_back = true;
    }

    /// No hook can withhold the result any more. Returns the artifacts that others have not seen yet.
    pub(crate) fn let_out(&self) -> Vec<ArtifactRef> {
        let mut list = self.0.lock();
        if std::mem::take(&mut list.is_held_back) {
            list.kept.clone()
        } else {
            Vec::new()
        }
    }

    /// Adds an artifact of the host.
    pub(crate) fn add(&self, piece: ArtifactRef) {
        self.0.lock().kept.push(piece);
    }

    /// Accepts no more from the tool, and returns its artifacts.
    pub(crate) fn close(&self) -> Vec<ArtifactRef> {
        let mut list = self.0.lock();
        list.is_closed = true;
        list.kept.clone()
    }

    /// Makes all artifacts unavailable.
    pub(crate) fn withhold(&self) {
        let mut list = self.0.lock();
        list.is_closed = true;
        list.kept.clear();
    }

    /// An artifact, for the calling call `asking`, or for a reader outside of any call.
    pub(crate) fn find(&self, id: ArtifactId, asking: Option<InvocationId>) -> Option<ArtifactRef> {
        let list = self.0.lock();
        if list.is_held_back && asking != Some(id.invocation) {
            return None;
        }
        list.kept.iter().find(|piece| piece.id == id).cloned()
    }
}

/// An artifact on its way into the store.
pub(crate) struct RedactingArtifactSink {
    id: ArtifactId,
    name: String,
    media_type: String,
    live: Arc<LiveCall>,
    writer: Box<dyn BlobWriter>,
    redactor: StreamRedactor,
    /// Redacted and not yet passed on.
    clean: Vec<u8>,
    state: SinkState,
}

enum SinkState {
    Sound,
    /// A write is in progress. If the next write finds this state, the caller dropped the future of the last one. How
    /// many of its bytes reached the store is then unknown, so the artifact cannot be continued.
    Writing,
    Failed(ArtifactError),
}

impl RedactingArtifactSink {
    pub(crate) async fn begin(
        live: Arc<LiveCall>,
        room: &Arc<ArtifactRoom>,
        artifact: ArtifactHeader,
    ) -> Result<Self, ArtifactError> {
        let id = ArtifactId {
            invocation: live.id,
            place: live.artifacts.begin_for_tool()?,
        };
        let writer = room.create(live.principal()).await.map_err(not_kept)?;
        let (name, media_type) = {
            let redactor = live.redactor();
            (
                labels::name(&redactor.text(&artifact.name)),
                labels::media_type(&artifact.media_type),
            )
        };
        let redactor = live.redactor().stream();
        Ok(Self {
            id,
            name,
            media_type,
            live,
            writer,
            redactor,
            clean: Vec::new(),
            state: SinkState::Sound,
        })
    }

    async fn add(&mut self, bytes: &[u8]) -> Result<(), ArtifactError> {
        match &self.state {
            SinkState::Sound => {}
            SinkState::Writing => {
                let gone = ArtifactError::Storage("an earlier write did not finish".to_owned());
                self.state = SinkState::Failed(gone.clone());
                return Err(gone);
            }
            SinkState::Failed(error) => return Err(error.clone()),
        }
        self.state = SinkState::Writing;
        for piece in bytes.chunks(PIECE) {
            self.redactor.push(piece, &mut self.clean);
            if let Err(error) = self.hand_on().await {
                self.state = SinkState::Failed(error.clone());
                return Err(error);
            }
        }
        self.state = SinkState::Sound;
        Ok(())
    }

    async fn hand_on(&mut self) -> Result<(), ArtifactError> {
        self.writer.write(&self.clean).await.map_err(not_kept)?;
        self.clean.clear();
        Ok(())
    }

    async fn end(mut self) -> Result<ArtifactRef, ArtifactError> {
        self.add(&[]).await?;
        let redactions = self.redactor.finish(&mut self.clean);
        self.hand_on().await?;
        let kept = self.writer.finish().await.map_err(not_kept)?;
        let piece = ArtifactRef {
            id: self.id,
            name: self.name,
            media_type: self.media_type,
            size: kept.size,
            digest: kept.digest,
            redactions,
        };
        if self.live.artifacts.add_for_tool(piece.clone())? {
            self.live.emit(EventBody::Kept(piece.clone()));
        }
        Ok(piece)
    }
}

impl ArtifactSink for RedactingArtifactSink {
    fn write<'a>(&'a mut self, bytes: &'a [u8]) -> BoxFuture<'a, Result<(), ArtifactError>> {
        Box::pin(self.add(bytes))
    }

    fn finish(self: Box<Self>) -> BoxFuture<'static, Result<ArtifactRef, ArtifactError>> {
        Box::pin(self.end())
    }
}

/// Stores a part of a caller's result that is already redacted.
pub(crate) async fn keep(
    room: &Arc<ArtifactRoom>,
    principal: &Principal,
    part: &UnkeptPart,
) -> Result<ArtifactRef, ArtifactError> {
    let mut writer = room.create(principal).await.map_err(not_kept)?;
    writer.write(&part.bytes).await.map_err(not_kept)?;
    let kept = writer.finish().await.map_err(not_kept)?;
    Ok(ArtifactRef {
        id: part.id,
        name: part.name.to_owned(),
        media_type: labels::media_type(&part.media_type),
        size: kept.size,
        digest: kept.digest,
        redactions: part.redactions.clone(),
    })
}

fn not_kept(error: BlobError) -> ArtifactError {
    match error {
        BlobError::Full { limit, setting } => ArtifactError::Full { limit, setting },
        BlobError::TooLarge { limit, setting } => ArtifactError::TooLarge { limit, setting },
        BlobError::Shared(refusal) => ArtifactError::Shared(refusal),
        BlobError::Missing => ArtifactError::Storage(BlobError::Missing.to_string()),
        BlobError::Storage(why) => ArtifactError::Storage(why),
    }
}

struct OpenArtifact {
    about: ArtifactRef,
    blob: Arc<dyn Blob>,
}

pub(crate) async fn open(
    blobs: &dyn BlobStore,
    about: ArtifactRef,
) -> Result<Arc<dyn StoredArtifact>, ArtifactError> {
    let blob = blobs
        .open(about.digest)
        .await
        .map_err(|error| not_read(error, about.id))?;
    // Only the size is checked here; `journal verify` hashes the bytes. A hash at each open would make the reading of
    // ten lines as slow as the reading of the whole artifact.
    if blob.size() != about.size {
        return Err(ArtifactError::Damaged(about.id));
    }
    Ok(Arc::new(OpenArtifact { about, blob }))
}

fn not_read(error: BlobError, id: ArtifactId) -> ArtifactError {
    match error {
        BlobError::Missing => ArtifactError::Gone(id),
        other @ (BlobError::Full { .. }
        | BlobError::TooLarge { .. }
        | BlobError::Shared(_)
        | BlobError::Storage(_)) => ArtifactError::Storage(other.to_string()),
    }
}

impl StoredArtifact for OpenArtifact {
    fn about(&self) -> &ArtifactRef {
        &self.about
    }

    fn read(&self, offset: u64, limit: usize) -> BoxFuture<'_, Result<Vec<u8>, ArtifactError>> {
        Box::pin(async move {
            let bytes = self
                .blob
                .read(offset, limit)
                .await
                .map_err(|error| not_read(error, self.about.id))?;
            let there = self.about.size.saturating_sub(offset).min(limit as u64);
            if bytes.len() as u64 != there {
                return Err(ArtifactError::Damaged(self.about.id));
            }
            Ok(bytes)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{CallArtifacts, MOST_PIECES};

    #[test]
    fn threads_that_begin_at_the_same_time_begin_no_more_than_one_call_may() {
        let list = CallArtifacts::default();
        let begun: usize = std::thread::scope(|scope| {
            let begin = || {
                (0..MOST_PIECES)
                    .filter(|_| list.begin_for_tool().is_ok())
                    .count()
            };
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(begin)).collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap())
                .sum()
        });
        assert_eq!(begun, MOST_PIECES);
    }
}
