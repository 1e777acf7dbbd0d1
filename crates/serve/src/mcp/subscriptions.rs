//! Who is told of which resource. A source knows which sessions want to hear of an address, and counts no further; here is
//! counted what one session wants more than once: streams of it that listen to the same address must not undo one another.

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

/// How long sources may take to hear that a client has gone.
const PATIENCE: Duration = Duration::from_secs(5);

/// How many listeners of a session want to be told of an address.
#[derive(Default)]
pub(super) struct ResourceSubscriptions(Mutex<HashMap<(SessionId, String), usize>>);

fn key(session: &Session, uri: &str) -> (SessionId, String) {
    (session.id().clone(), uri.to_owned())
}

impl ResourceSubscriptions {
    fn add(&self, session: &Session, uri: &str) {
        *self.0.lock().entry(key(session, uri)).or_default() += 1;
    }

    /// Whether that was the session's last one.
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

/// The addresses that one listener was promised, until this is dropped.
pub(super) struct SubscriptionLease {
    face: Arc<McpServerFace>,
    session: Arc<Session>,
    uris: Vec<String>,
    /// A session that left memory would be forgotten by its sources, with what it wants to hear of.
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

    /// Asks the source to tell of an address.
    pub(super) async fn subscribe(
        &mut self,
        peer: &McpPeer,
        uri: &str,
        outlet: &ExchangeOutlet,
    ) -> Result<(), McpFault> {
        // Noted first, so that it is given back even where this is dropped in the middle.
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
        // Without a runtime there is nobody left to tell: the process is ending.
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
        .ok_or_else(|| McpFault::invalid_params("too many resources are subscribed to already"))?;
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

/// Gives back what a client that has gone wanted to hear of.
pub(super) async fn give_back(face: &McpServerFace, session: &Arc<Session>, uris: Vec<String>) {
    let last: Vec<String> = uris
        .into_iter()
        .filter(|uri| face.subscriptions.remove(session, uri))
        .collect();
    // A session that is over makes no calls any more, and its sources forgot it with all it wanted.
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
        tracing::info!("a source takes too long to hear that nobody wants its news any more");
    }
}

/// Another stream of the session may have asked for an address while its source was told to stop, and the two may have met
/// in any order.
async fn wanted_meanwhile(face: &McpServerFace, session: &Arc<Session>, uri: &str) {
    if face.subscriptions.is_wanted(session, uri) {
        tell(face, session, uri, SubscriptionChange::Told).await;
    }
}

/// Tells a source without a client that waits for it.
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
        tracing::info!(%error.message, "a source could not be told who wants its news");
    }
}
