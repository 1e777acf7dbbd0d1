//! Counts the subscriptions to resources. A source only knows which sessions subscribe to an address. Several streams
//! of one session may subscribe to the same address, so this count keeps one stream from ending the subscription of
//! another.

use std::{
    collections::{HashMap, hash_map::Entry},
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;
use serde_json::json;
use toolpost_core::{CallRequest, CallTimeLimits, Patience, Session, SessionGuard};
use toolpost_model::{ModelInput, SessionId};

use super::{
    McpServerFace,
    companions::{self, SubscriptionChange},
    exchange::ExchangeOutlet,
    fault::McpFault,
    peer::{CAME_BY, McpPeer},
};

/// The time that sources have to process the unsubscriptions of a client that is gone.
const PATIENCE: Duration = Duration::from_secs(5);

/// The number of subscriptions of each session to each address.
#[derive(Default)]
pub(super) struct ResourceSubscriptions(Mutex<HashMap<(SessionId, String), usize>>);

fn key(session: &Session, uri: &str) -> (SessionId, String) {
    (session.id().clone(), uri.to_owned())
}

impl ResourceSubscriptions {
    fn add(&self, session: &Session, uri: &str) {
        *self.0.lock().entry(key(session, uri)).or_default() += 1;
    }

    /// Removes a subscription. Returns whether it was the session's last one to the address.
    fn remove(&self, session: &Session, uri: &str) -> bool {
        let mut table = self.0.lock();
        let Entry::Occupied(mut entry) = table.entry(key(session, uri)) else {
            return false;
        };
        *entry.get_mut() -= 1;
        if *entry.get() > 0 {
            return false;
        }
        entry.remove();
        true
    }

    fn is_wanted(&self, session: &Session, uri: &str) -> bool {
        self.0.lock().contains_key(&key(session, uri))
    }
}

/// The subscriptions of one listener. Dropping the lease returns them.
pub(super) struct SubscriptionLease {
    face: Arc<McpServerFace>,
    session: Arc<Session>,
    uris: Vec<String>,
    /// Keeps the session in memory. Otherwise its sources would drop its subscriptions.
    _stay: SessionGuard,
}

impl SubscriptionLease {
    pub(super) fn nothing(peer: &McpPeer) -> Self {
        let face = Arc::clone(&peer.face);
        let session = Arc::clone(&peer.session);
        Self {
            face,
            _stay: session.stay(),
            session,
            uris: Vec::new(),
        }
    }

    /// Subscribes to an address at its source.
    pub(super) async fn subscribe(
        &mut self,
        peer: &McpPeer,
        uri: &str,
        outlet: &ExchangeOutlet,
    ) -> Result<(), McpFault> {
        // Counted before the source is asked. If this future is dropped in the middle, the source may or may not have
        // the subscription, and the lease returns it in either case.
        self.face.subscriptions.add(&self.session, uri);
        self.uris.push(uri.to_owned());
        let done = companions::subscribe(peer, uri, SubscriptionChange::Told, outlet).await;
        if done.is_err() {
            self.uris.pop();
            self.face.subscriptions.remove(&self.session, uri);
        }
        done
    }
}

impl Drop for SubscriptionLease {
    fn drop(&mut self) {
        let uris = std::mem::take(&mut self.uris);
        if uris.is_empty() || self.face.closing.is_cancelled() {
            return;
        }
        // Without a runtime no call is possible: the process is ending.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let face = Arc::clone(&self.face);
            let session = Arc::clone(&self.session);
            runtime.spawn(async move { give_back(&face, &session, uris).await });
        }
    }
}

/// `resources/subscribe` of a session.
pub(super) async fn subscribe(
    peer: &McpPeer,
    uri: &str,
    outlet: &ExchangeOutlet,
) -> Result<(), McpFault> {
    let Some(stay) = &peer.stay else {
        return Err(McpFault::no_such_method("resources/subscribe"));
    };
    let is_new = stay
        .subscribe(uri)
        .ok_or_else(|| McpFault::invalid_params("the session has too many subscriptions"))?;
    if is_new {
        peer.face.subscriptions.add(&peer.session, uri);
    }
    let done = companions::subscribe(peer, uri, SubscriptionChange::Told, outlet).await;
    if done.is_err() && is_new && stay.unsubscribe(uri) {
        peer.face.subscriptions.remove(&peer.session, uri);
    }
    done
}

/// `resources/unsubscribe` of a session.
pub(super) async fn unsubscribe(
    peer: &McpPeer,
    uri: &str,
    outlet: &ExchangeOutlet,
) -> Result<(), McpFault> {
    let Some(stay) = &peer.stay else {
        return Err(McpFault::no_such_method("resources/unsubscribe"));
    };
    if !stay.unsubscribe(uri) || !peer.face.subscriptions.remove(&peer.session, uri) {
        return Ok(());
    }
    companions::subscribe(peer, uri, SubscriptionChange::NotTold, outlet).await?;
    wanted_meanwhile(&peer.face, &peer.session, uri).await;
    Ok(())
}

/// Returns the subscriptions of a client that is gone.
pub(super) async fn give_back(face: &McpServerFace, session: &Arc<Session>, uris: Vec<String>) {
    let last: Vec<String> = uris
        .into_iter()
        .filter(|uri| face.subscriptions.remove(session, uri))
        .collect();
    // An ended session makes no calls, and its sources have dropped its subscriptions.
    if last.is_empty() || session.is_ended() {
        return;
    }
    let telling = async {
        for uri in &last {
            tell(face, session, uri, SubscriptionChange::NotTold).await;
            wanted_meanwhile(face, session, uri).await;
        }
    };
    if tokio::time::timeout(PATIENCE, telling).await.is_err() {
        tracing::info!("a source takes too long to end its subscriptions");
    }
}

/// Subscribes again if the session has a new subscription to the address. Another stream may have subscribed while the
/// source handled the unsubscription, and the source may have handled the two in any order. The count is not locked
/// during a call of a source, because such a call can take long.
async fn wanted_meanwhile(face: &McpServerFace, session: &Arc<Session>, uri: &str) {
    if face.subscriptions.is_wanted(session, uri) {
        tell(face, session, uri, SubscriptionChange::Told).await;
    }
}

/// Calls a source without a waiting client.
async fn tell(face: &McpServerFace, session: &Arc<Session>, uri: &str, wish: SubscriptionChange) {
    let Some(tool) = companions::teller(&face.host, session, uri, wish) else {
        return;
    };
    let input = ModelInput::value(json!({ "uri": uri }));
    let patience = Patience::Approval(Duration::ZERO);
    let call = CallRequest::new(Arc::clone(session), tool.to_string(), input)
        .record_face(CAME_BY)
        .limit_times(CallTimeLimits::of_patience(patience));
    let answer = face.host.call(call).await;
    if let Some(error) = &answer.result().error {
        tracing::info!(%error.message, "a subscription of a source could not be changed");
    }
}
