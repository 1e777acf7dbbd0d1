//! `save_to`: writes the body to a file as it arrives.

use std::sync::Arc;

use toolpost_model::{CallContext, ToolFailure};
use toolpost_processes::{HttpError, HttpExchangeDeadline, Workspace, on_worker};

use crate::{
    files::{IncomingFile, SavedFile},
    http::body::IncomingBody,
};

/// How much is buffered before a write.
const BATCH_BYTES: usize = 512 * 1024;

/// A file that waits for its content.
pub(super) struct ResponseFileSave {
    file: IncomingFile,
    limit: u64,
    workspace: Arc<Workspace>,
    context: CallContext,
}

/// Finds the place for the file, so that no request is sent without a place for its response.
pub(super) async fn begin(
    workspace: &Arc<Workspace>,
    path: &str,
    limit: u64,
    context: &CallContext,
) -> Result<ResponseFileSave, ToolFailure> {
    let place = workspace.clone();
    let path = path.to_owned();
    let file = on_worker(workspace, context.clone(), move |stop| {
        IncomingFile::begin(&place, &path, stop)
    })
    .await?;
    Ok(ResponseFileSave {
        file,
        limit,
        workspace: workspace.clone(),
        context: context.clone(),
    })
}

impl ResponseFileSave {
    /// Writes the whole body and gives the file its name. A body over the limit leaves no file, because a partial file
    /// would be worse than none.
    pub(super) async fn run(
        mut self,
        mut incoming: IncomingBody<'_>,
        deadline: HttpExchangeDeadline,
    ) -> Result<SavedFile, ToolFailure> {
        let mut batch = Vec::new();
        while let Some(chunk) = incoming.next().await.map_err(HttpError::into_failure)? {
            if incoming.received() > self.limit {
                return Err(HttpError::TooLarge { limit: self.limit }.into_failure());
            }
            batch.extend_from_slice(&chunk);
            if batch.len() >= BATCH_BYTES {
                self = self.push(std::mem::take(&mut batch)).await?;
            }
        }
        let Self {
            file,
            workspace,
            context,
            ..
        } = self.push(batch).await?;
        let host = incoming.host().to_owned();
        let finished = on_worker(&workspace, context, move |stop| file.finish(stop));
        match tokio::time::timeout_at(deadline.at, finished).await {
            Ok(finished) => finished,
            Err(_) => Err(deadline.missed(host, incoming.received()).into_failure()),
        }
    }

    async fn push(self, batch: Vec<u8>) -> Result<Self, ToolFailure> {
        let Self {
            mut file,
            workspace,
            context,
            limit,
        } = self;
        let pushed = on_worker(&workspace, context.clone(), move |_| {
            file.push(&batch).map(|()| file)
        })
        .await?;
        Ok(Self {
            file: pushed,
            limit,
            workspace,
            context,
        })
    }
}
