//! Unsolicited notices of a server without sessions. The host subscribes to them over a stream that stays open. A
//! stream that was cut is opened again, and every notice that may have been missed counts as received.

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

/// How long a server may take to acknowledge a subscription.
const ACKNOWLEDGED: Duration = Duration::from_secs(30);
/// A stream that was open for this long was stable, so the pauses start anew.
const LASTING: Duration = Duration::from_secs(30);

/// Keeps a stream open for the wanted notices until the connection ends.
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
    /// Notices may have been missed.
    missed: bool,
}

/// The outcome of a renewal.
enum SubscriptionRenewal {
    /// The stream fits the wanted filter, or none is needed.
    Done,
    /// It does not, and the keeper tries again.
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

    /// Opens a stream for the wanted filter.
    async fn renew(&mut self, filter: Option<&Value>) -> SubscriptionRenewal {
        let (Some(filter), Some(live)) = (filter, self.live.upgrade()) else {
            self.stream = None;
            return SubscriptionRenewal::Done;
        };
        // The old stream stays open until the server acknowledges the new one, so that no notice falls between the
        // two.
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
            // The server does not support subscriptions, so another attempt is useless.
            Ok(Err(McpRequestError::Remote { code: -32601, .. })) => SubscriptionRenewal::Done,
            Ok(Err(_)) | Err(_) => {
                self.missed |= self.stream.is_none();
                SubscriptionRenewal::Failed
            }
        }
    }
}

/// Resolves when the stream is cut; without a stream, never.
async fn cut(stream: &mut Option<UpstreamSubscription>) {
    match stream {
        Some(stream) => stream.end_reached().await,
        None => std::future::pending().await,
    }
}

/// The notices that may have been missed. Another server may have taken its place in the meantime, so the tools are
/// always listed again.
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
