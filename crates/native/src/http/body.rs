//! The body of a response as it arrives: counted after decompression, bounded, within the deadline.

use bytes::Bytes;
use reqwest::Response;
use toolpost_model::{ArtifactError, ArtifactRef, ArtifactSink, CallContext, ToolProgress};
use toolpost_processes::{HttpError, HttpExchangeDeadline};

/// Bytes between two reports of progress.
const REPORT_EVERY: u64 = 1024 * 1024;

/// A body that is being read.
pub(super) struct IncomingBody<'a> {
    response: Response,
    host: String,
    deadline: HttpExchangeDeadline,
    context: &'a CallContext,
    received: u64,
    reported: u64,
    expected: Option<u64>,
}

/// A body that was read, whole or up to a limit.
pub(super) struct HttpResponseBody {
    pub(super) bytes: Vec<u8>,
    /// Whether the end was reached.
    pub(super) whole: bool,
    /// The announced size, if the response is not compressed.
    pub(super) announced: Option<u64>,
    /// The whole body, if it is larger than the limit and was stored.
    pub(super) kept: Option<ArtifactRef>,
}

/// The treatment of a body beyond the limit.
#[derive(Clone, Copy)]
pub(super) enum BodyOverflow<'k> {
    /// The rest is not read: the call does not need it.
    LeaveIt,
    /// The whole body is stored, up to this many bytes.
    Keep { media_type: &'k str, most: u64 },
}

/// Stores a body that is in memory.
pub(super) async fn keep(
    context: &CallContext,
    media_type: &str,
    bytes: &[u8],
) -> Result<ArtifactRef, ArtifactError> {
    begin(context, media_type, [bytes, &[]])
        .await?
        .finish()
        .await
}

async fn begin(
    context: &CallContext,
    media_type: &str,
    pieces: [&[u8]; 2],
) -> Result<Box<dyn ArtifactSink>, ArtifactError> {
    let mut sink = context.create_artifact("body", media_type).await?;
    for piece in pieces {
        sink.write(piece).await?;
    }
    Ok(sink)
}

impl<'a> IncomingBody<'a> {
    pub(super) fn new(
        response: Response,
        deadline: HttpExchangeDeadline,
        context: &'a CallContext,
    ) -> Self {
        let host = response.url().host_str().unwrap_or_default().to_owned();
        let expected = response.content_length();
        Self {
            response,
            host,
            deadline,
            context,
            received: 0,
            reported: 0,
            expected,
        }
    }

    /// The next piece; `None` at the end.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, HttpError> {
        let chunk = self.deadline.hold(self.response.chunk()).await;
        let chunk = chunk.ok_or_else(|| self.deadline.missed(self.host.clone(), self.received))?;
        let chunk = chunk.map_err(|error| HttpError::CutOff {
            host: self.host.clone(),
            received: self.received,
            source: error.without_url(),
        })?;
        if let Some(chunk) = &chunk {
            self.received += chunk.len() as u64;
            self.report();
        }
        Ok(chunk)
    }

    /// The bytes so far.
    pub(super) fn received(&self) -> u64 {
        self.received
    }

    /// The host that sends it.
    pub(super) fn host(&self) -> &str {
        &self.host
    }

    /// Reads up to `limit` bytes into memory.
    pub(super) async fn read(
        mut self,
        limit: u64,
        beyond: BodyOverflow<'_>,
    ) -> Result<HttpResponseBody, HttpError> {
        let announced = self.expected;
        let mut bytes = Vec::new();
        while let Some(chunk) = self.next().await? {
            let room = usize::try_from(limit)
                .unwrap_or(usize::MAX)
                .saturating_sub(bytes.len());
            if chunk.len() > room {
                bytes.extend_from_slice(&chunk[..room]);
                let kept = match beyond {
                    BodyOverflow::LeaveIt => None,
                    BodyOverflow::Keep { media_type, most } => {
                        self.keep(&bytes, &chunk[room..], media_type, most).await
                    }
                };
                return Ok(HttpResponseBody {
                    bytes,
                    whole: false,
                    announced,
                    kept,
                });
            }
            bytes.extend_from_slice(&chunk);
        }
        Ok(HttpResponseBody {
            bytes,
            whole: true,
            announced,
            kept: None,
        })
    }

    /// Stores the bytes read so far and all further ones. If that fails, the result has only the bytes read so far.
    async fn keep(
        &mut self,
        head: &[u8],
        next: &[u8],
        media_type: &str,
        most: u64,
    ) -> Option<ArtifactRef> {
        let mut sink = begin(self.context, media_type, [head, next]).await.ok()?;
        // A body that ends with an error, or never, must not cost the part that was read.
        while let Some(chunk) = self.next().await.ok()? {
            if self.received > most || sink.write(&chunk).await.is_err() {
                return None;
            }
        }
        sink.finish().await.ok()
    }

    fn report(&mut self) {
        if self.received - self.reported < REPORT_EVERY {
            return;
        }
        self.reported = self.received;
        self.context.progress(ToolProgress {
            message: format!("receiving from {}", self.host),
            percent: self
                .expected
                .map(|all| 100.0 * self.received as f64 / all.max(1) as f64),
            done: Some(self.received),
            total: self.expected,
        });
    }
}
