//! Finding and opening artifacts of calls that the viewer may see.

use std::sync::Arc;

use toolpost_model::{
    ArtifactError, ArtifactId, ArtifactRef, InvocationId, Principal, StoredArtifact,
};

use super::{CallVisibility, Host, HostInner};
use crate::record::{
    artifacts,
    body::{CallRecordBody, RecordedResultFields},
    journal::{RecordKind, StoredRecord},
};

impl HostInner {
    /// Opens an artifact of a call that `sight` shows. `asking` is the call that reads it, if a call does. As long as
    /// hooks may withhold the result of a call, only the call itself can open its artifacts.
    pub(crate) async fn artifact(
        &self,
        id: ArtifactId,
        sight: CallVisibility<'_>,
        asking: Option<InvocationId>,
    ) -> Result<Arc<dyn StoredArtifact>, ArtifactError> {
        let about = self.find_artifact(id, sight, asking).await?;
        artifacts::open(&*self.record.artifact_room.blobs, about).await
    }

    async fn find_artifact(
        &self,
        id: ArtifactId,
        sight: CallVisibility<'_>,
        asking: Option<InvocationId>,
    ) -> Result<ArtifactRef, ArtifactError> {
        let unknown = || ArtifactError::Unknown(id);
        if let Some(live) = self.live(id.invocation, sight) {
            return live.artifacts.find(id, asking).ok_or_else(unknown);
        }
        let rows = self.record.journal.records_of(id.invocation).await;
        let rows = rows.map_err(|error| ArtifactError::Storage(error.to_string()))?;
        let body = |row: &StoredRecord| row.record.read_body::<CallRecordBody<'static>>().ok();
        let first = rows.first().and_then(body).and_then(|body| body.call);
        first
            .filter(|call| sight.shows(&call.principal()))
            .ok_or_else(unknown)?;
        let ended = rows
            .iter()
            .rev()
            .find(|row| row.record.kind == RecordKind::Ended)
            .ok_or_else(unknown)?;
        let result = body(ended).and_then(|body| body.result);
        let head = result.and_then(|result| result.read_as::<RecordedResultFields>().ok());
        head.and_then(|head| head.artifacts().ok())
            .ok_or_else(unknown)?
            .into_iter()
            .find(|piece| piece.id == id)
            .ok_or_else(unknown)
    }
}

impl Host {
    /// Opens an artifact. Agents can open artifacts of their own calls only.
    pub async fn artifact(
        &self,
        id: ArtifactId,
        principal: &Principal,
    ) -> Result<Arc<dyn StoredArtifact>, ArtifactError> {
        self.inner
            .artifact(id, CallVisibility::ByRole(principal), None)
            .await
    }
}
