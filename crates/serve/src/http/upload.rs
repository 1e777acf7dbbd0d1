//! Large bodies of requests that are answered before all of the body has arrived.
//!
//! A client that sends 20 MB gets the refusal only if the host takes the rest of the body first. A connection that is
//! closed with unread bytes is reset, and the client then reports a broken pipe instead of the answer.

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use axum::body::Bytes;
use http_body_util::BodyExt;
use hyper::{
    Request,
    body::{Body, Frame, Incoming, SizeHint},
    header::EXPECT,
};
use parking_lot::Mutex;

/// A body up to this size has arrived when its request is answered.
const SMALL_BODY: u64 = 16 << 10;
/// A client that sends more than this after the answer is disconnected.
const MAX_DISCARDED: usize = 64 << 20;
/// The time limit for a client that sends slowly.
const DISCARD_TIMEOUT: Duration = Duration::from_secs(10);

/// Whether the answer can be ready before the request's body has arrived.
pub(super) fn is_large(request: &Request<Incoming>) -> bool {
    request
        .body()
        .size_hint()
        .exact()
        .is_none_or(|size| size > SMALL_BODY)
}

/// The body of a request, for its route.
pub(super) struct UploadBody(Arc<RequestUpload>);

/// The same body, for the gate.
pub(super) struct UploadRest {
    upload: Arc<RequestUpload>,
    /// Whether the client sends the body only after `100 Continue`.
    waits_to_be_asked: bool,
}

struct RequestUpload {
    body: Mutex<Incoming>,
    /// Whether a route began to read.
    is_asked_for: AtomicBool,
}

/// Splits a request, so that the route can read the body and the gate the rest of it.
pub(super) fn split(request: Request<Incoming>) -> (Request<UploadBody>, UploadRest) {
    let waits_to_be_asked = request.headers().contains_key(EXPECT);
    let (head, body) = request.into_parts();
    let upload = Arc::new(RequestUpload {
        body: Mutex::new(body),
        is_asked_for: AtomicBool::new(false),
    });
    let rest = UploadRest {
        upload: Arc::clone(&upload),
        waits_to_be_asked,
    };
    (Request::from_parts(head, UploadBody(upload)), rest)
}

impl UploadRest {
    /// Reads the rest of the body, within bounds. A body that the client sends only after `100 Continue`, and that no
    /// route asked for, is not read.
    pub(super) async fn discard(self) {
        if self.waits_to_be_asked && !self.upload.is_asked_for.load(Ordering::Relaxed) {
            return;
        }
        let mut body = UploadBody(self.upload);
        let reading = async {
            let mut discarded = 0;
            while let Some(Ok(frame)) = body.frame().await {
                discarded += frame.data_ref().map_or(0, Bytes::len);
                if discarded > MAX_DISCARDED {
                    return;
                }
            }
        };
        // The answer is sent in any case, because even a slow client may still read it.
        let _ = tokio::time::timeout(DISCARD_TIMEOUT, reading).await;
    }
}

impl Body for UploadBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        self.0.is_asked_for.store(true, Ordering::Relaxed);
        Pin::new(&mut *self.0.body.lock()).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.0.body.lock().is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.0.body.lock().size_hint()
    }
}
