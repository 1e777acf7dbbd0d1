//! How a request begins, whichever transport it came by.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{
    Face, answer,
    asked::{Asked, Method},
    exchange::{Exchange, Outcome, Outlet, WhenLeft, Wishes},
    news,
    peer::{CAME_BY, Peer},
    rounds::{self, Returned},
    sessions::{Running, Stay},
    wire::{self, Id, Reply},
};

/// A request that is under way, or answered already.
pub(super) enum Opened {
    Exchange(Exchange),
    Answered(Outcome),
}

/// Begins a request that speaks for itself, or goes on with one that waited for its client. Beside it comes what binds the
/// questions it may ask to it.
pub(super) fn stateless(peer: Peer, mut asked: Asked, id: &Id) -> (Opened, [u8; 32]) {
    let asks = asked.may_ask() && peer.can != Default::default();
    let state = asked.state.take().filter(|_| asked.may_ask());
    let digest = if asks || state.is_some() {
        rounds::digest(&asked)
    } else {
        [0; 32]
    };
    let opened = match state {
        Some(state) => {
            match peer
                .face
                .rounds
                .take_up(&state, &asked.answers, peer.principal(), &digest)
            {
                Ok(Returned::GoesOn(exchange)) => {
                    exchange.heed(Wishes {
                        progress_token: asked.meta.progress_token.take(),
                        level: peer.level,
                    });
                    Opened::Exchange(exchange)
                }
                Ok(Returned::AskedAgain(reply)) => Opened::Answered(Ok(reply)),
                Err(fault) => Opened::Answered(Err(fault)),
            }
        }
        None if asked.method == Method::Listen => {
            let id = id.clone();
            Opened::Exchange(Exchange::begin(WhenLeft::Stops, |outlet| {
                news::listen(peer, asked, id, outlet)
            }))
        }
        None => Opened::Exchange(Exchange::begin(WhenLeft::Stops, |outlet| {
            answer(peer, asked, outlet)
        })),
    };
    (opened, digest)
}

/// The peer of a session.
pub(super) fn in_session(face: &Arc<Face>, stay: &Arc<Stay>) -> Peer {
    Peer {
        face: Arc::clone(face),
        session: Arc::clone(&stay.session),
        version: stay.version,
        can: stay.can,
        level: Some(stay.level()),
        stay: Some(Arc::clone(stay)),
        came_by: CAME_BY,
    }
}

/// Answers a request of a session, unless it is cancelled; then there is no answer.
pub(super) async fn cancellable(
    peer: Peer,
    asked: Asked,
    running: Running,
    outlet: Outlet,
) -> Outcome {
    let answered = running
        .cancel
        .run_until_cancelled(answer(peer, asked, outlet))
        .await;
    answered.unwrap_or(Ok(Reply::Nothing))
}

/// What a notification of a session changes.
pub(super) fn take_note(stay: &Stay, method: &str, params: Option<&RawValue>) {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Cancelled<'a> {
        #[serde(borrow)]
        request_id: &'a RawValue,
    }
    if method == "notifications/cancelled"
        && let Ok(cancelled) = wire::params::<Cancelled<'_>>(params)
    {
        stay.cancel(cancelled.request_id);
    }
}
