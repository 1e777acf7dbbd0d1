//! Who is told of which resource. A source is asked to tell no more only when nobody wants to hear of it any longer: two
//! clients of one resource must not undo one another.

use std::{
    collections::{HashMap, hash_map::Entry},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use serde_json::json;
use toolpost_core::{CallRequest, Session};
use toolpost_model::ModelInput;

use super::{
    Face,
    companions::{self, Wish},
    exchange::Outlet,
    fault::Fault,
    peer::{CAME_BY, Peer},
};

/// How long sources may take to hear that a client has gone.
const PATIENCE: Duration = Duration::from_secs(5);

/// How many want to be told of each address.
#[derive(Default)]
pub(super) struct Subscriptions(Mutex<HashMap<String, usize>>);

impl Subscriptions {
    fn add(&self, uri: &str) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(uri.to_owned()).or_default() += 1;
    }

    /// Whether that was the last one.
    fn remove(&self, uri: &str) -> bool {
        let mut table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Entry::Occupied(mut entry) = table.entry(uri.to_owned()) else { return false };
        *entry.get_mut() -= 1;
        if *entry.get() > 0 {
            return false;
        }
        entry.remove();
        true
    }

    fn is_wanted(&self, uri: &str) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains_key(uri)
    }
}

/// The addresses that one listener was promised, until this is dropped.
pub(super) struct Held {
    face: Arc<Face>,
    session: Arc<Session>,
    uris: Vec<String>,
}

impl Held {
    pub(super) fn nothing(peer: &Peer) -> Self {
        Self { face: Arc::clone(&peer.face), session: Arc::clone(&peer.session), uris: Vec::new() }
    }

    /// Asks the source to tell of an address.
    pub(super) async fn subscribe(&mut self, peer: &Peer, uri: &str, outlet: &Outlet) -> Result<(), Fault> {
        // Noted first, so that it is given back even where this is dropped in the middle.
        self.face.subscriptions.add(uri);
        self.uris.push(uri.to_owned());
        let done = companions::subscribe(peer, uri, Wish::Told, outlet).await;
        if done.is_err() {
            self.uris.pop();
            self.face.subscriptions.remove(uri);
        }
        done
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let uris = std::mem::take(&mut self.uris);
        if uris.is_empty() || self.face.closing.is_cancelled() {
            return;
        }
        // Without a runtime there is nobody left to tell: the process is ending.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let (face, session) = (Arc::clone(&self.face), Arc::clone(&self.session));
            runtime.spawn(async move { give_back(&face, &session, uris).await });
        }
    }
}

/// `resources/subscribe` of a session.
pub(super) async fn subscribe(peer: &Peer, uri: &str, outlet: &Outlet) -> Result<(), Fault> {
    let Some(stay) = &peer.stay else { return Err(Fault::no_such_method("resources/subscribe")) };
    let is_new = stay
        .subscribe(uri)
        .ok_or_else(|| Fault::invalid_params("too many resources are subscribed to already"))?;
    if is_new {
        peer.face.subscriptions.add(uri);
    }
    let done = companions::subscribe(peer, uri, Wish::Told, outlet).await;
    if done.is_err() && is_new && stay.unsubscribe(uri) {
        peer.face.subscriptions.remove(uri);
    }
    done
}

/// `resources/unsubscribe` of a session.
pub(super) async fn unsubscribe(peer: &Peer, uri: &str, outlet: &Outlet) -> Result<(), Fault> {
    let Some(stay) = &peer.stay else { return Err(Fault::no_such_method("resources/unsubscribe")) };
    if !stay.unsubscribe(uri) || !peer.face.subscriptions.remove(uri) {
        return Ok(());
    }
    companions::subscribe(peer, uri, Wish::NotTold, outlet).await?;
    wanted_meanwhile(&peer.face, &peer.session, uri).await;
    Ok(())
}

/// Gives back what a client that has gone wanted to hear of.
pub(super) async fn give_back(face: &Face, session: &Arc<Session>, uris: Vec<String>) {
    let last: Vec<String> = uris.into_iter().filter(|uri| face.subscriptions.remove(uri)).collect();
    if last.is_empty() {
        return;
    }
    // A session that is over makes no calls any more, and its client has another one that does.
    let session = match session.is_ended() {
        true => face.host.default_session(session.principal()),
        false => Arc::clone(session),
    };
    let telling = async {
        for uri in &last {
            tell(face, &session, uri, Wish::NotTold).await;
            wanted_meanwhile(face, &session, uri).await;
        }
    };
    if tokio::time::timeout(PATIENCE, telling).await.is_err() {
        tracing::info!("a source takes too long to hear that nobody wants its news any more");
    }
}

/// Somebody may have asked for an address while its source was told to stop, and the two may have met in any order.
async fn wanted_meanwhile(face: &Face, session: &Arc<Session>, uri: &str) {
    if face.subscriptions.is_wanted(uri) {
        tell(face, session, uri, Wish::Told).await;
    }
}

/// Tells a source without a client that waits for it.
async fn tell(face: &Face, session: &Arc<Session>, uri: &str, wish: Wish) {
    let Some(tool) = companions::teller(&face.host, session, uri, wish) else { return };
    let input = ModelInput::value(json!({ "uri": uri }));
    let mut call = CallRequest::new(Arc::clone(session), tool.to_string(), input);
    call.face = CAME_BY;
    call.approval_patience = Some(Duration::ZERO);
    let answer = face.host.call(call).await;
    if let Some(error) = &answer.result().error {
        tracing::info!(%error.message, "a source could not be told who wants its news");
    }
}
