//! What a server without sessions says unasked. It must be asked for, over a stream that stays open: one that is cut is
//! opened anew, and whatever may have been said meanwhile counts as said.

use std::{
    sync::{Arc, Weak},
    time::{Duration, Instant},
};

use serde_json::Value;
use tokio::sync::watch;

use super::{
    client::{McpRequestError, UpstreamSubscription},
    desk::{McpMessageRouter, UpstreamNotice},
    link::pause,
    live::LiveUpstream,
};

/// How long a server may take to say that it will tell.
const ACKNOWLEDGED: Duration = Duration::from_secs(30);
/// A stream that was open for so long was not cut at once.
const LASTING: Duration = Duration::from_secs(30);

/// Listens to what is wanted now and later, until the connection is over.
pub(super) fn keep(live: &Arc<LiveUpstream>, mut wanted: watch::Receiver<Option<Value>>) {
    let desk = Arc::clone(&live.desk);
    let mut ear = UpstreamSubscriptionKeeper {
        live: Arc::downgrade(live),
        desk: Arc::clone(&desk),
        stream: None,
        missed: false,
    };
    tokio::spawn(async move {
        tokio::select! {
            () = ear.listen(&mut wanted) => {}
            _ = desk.end_reached() => {}
        }
    });
}

struct UpstreamSubscriptionKeeper {
    live: Weak<LiveUpstream>,
    desk: Arc<McpMessageRouter>,
    stream: Option<UpstreamSubscription>,
    /// For a while nothing was heard.
    missed: bool,
}

/// How it stands with the stream.
enum SubscriptionRenewal {
    /// It is what is wanted.
    Done,
    /// It is not, and should be tried again.
    Failed,
}

impl UpstreamSubscriptionKeeper {
    async fn listen(&mut self, wanted: &mut watch::Receiver<Option<Value>>) {
        let mut failures = 0;
        loop {
            let filter = wanted.borrow_and_update().clone();
            let renewed = self.renew(filter.as_ref()).await;
            let began = Instant::now();
            failures += u32::from(matches!(renewed, SubscriptionRenewal::Failed));
            let changed = tokio::select! {
                changed = wanted.changed() => changed,
                () = tokio::time::sleep(pause(failures)), if matches!(renewed, SubscriptionRenewal::Failed) => Ok(()),
                () = cut(&mut self.stream) => {
                    self.note_cut();
                    failures = if began.elapsed() < LASTING { failures + 1 } else { 1 };
                    tokio::select! {
                        changed = wanted.changed() => changed,
                        () = tokio::time::sleep(pause(failures)) => Ok(()),
                    }
                }
            };
            if changed.is_err() {
                return;
            }
        }
    }

    fn note_cut(&mut self) {
        self.stream = None;
        self.missed = true;
    }

    /// Opens a stream for what is wanted. The one before is heard until this one is acknowledged.
    async fn renew(&mut self, filter: Option<&Value>) -> SubscriptionRenewal {
        let (Some(filter), Some(live)) = (filter, self.live.upgrade()) else {
            self.stream = None;
            return SubscriptionRenewal::Done;
        };
        // Notices of the stream before come until this one is open.
        let opened = tokio::time::timeout(ACKNOWLEDGED, live.connection.listen(filter)).await;
        if self
            .stream
            .as_ref()
            .is_some_and(UpstreamSubscription::is_over)
        {
            self.note_cut();
        }
        match opened {
            Ok(Ok(stream)) => {
                self.stream = Some(stream);
                if std::mem::take(&mut self.missed) {
                    said_meanwhile(filter)
                        .into_iter()
                        .for_each(|told| self.desk.tell(told));
                }
                SubscriptionRenewal::Done
            }
            // It has no such thing, and will not have it later.
            Ok(Err(McpRequestError::Remote { code: -32601, .. })) => SubscriptionRenewal::Done,
            Ok(Err(_)) | Err(_) => {
                self.missed |= self.stream.is_none();
                SubscriptionRenewal::Failed
            }
        }
    }
}

/// Resolves when the stream is cut. Without a stream, never.
async fn cut(stream: &mut Option<UpstreamSubscription>) {
    match stream {
        Some(stream) => stream.end_reached().await,
        None => std::future::pending().await,
    }
}

/// What a server may have said while nobody listened. It may have been replaced by another one, so its tools are looked at
/// in any case.
fn said_meanwhile(filter: &Value) -> Vec<UpstreamNotice> {
    let mut said = vec![UpstreamNotice::Tools];
    for (field, told) in [
        ("resourcesListChanged", UpstreamNotice::Resources),
        ("promptsListChanged", UpstreamNotice::Prompts),
    ] {
        said.extend((filter[field] == true).then_some(told));
    }
    let watched = filter["resourceSubscriptions"]
        .as_array()
        .into_iter()
        .flatten();
    said.extend(watched.filter_map(|uri| Some(UpstreamNotice::Updated(uri.as_str()?.to_owned()))));
    said
}
