//! The start of a request, for all transports.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{
    McpServerFace, answer,
    asked::{McpMethod, McpRequest},
    exchange::{ExchangeOutlet, ExchangeResult, McpExchange, NotificationWishes, WhenLeft},
    news,
    peer::{CAME_BY, McpPeer},
    rounds::{self, RoundContinuation},
    sessions::{McpSession, RunningRequest},
    wire::{self, McpReply, McpRequestId},
};

/// A request that is running or was answered already.
pub(super) enum OpenedRequest {
    Exchange(McpExchange),
    Answered(ExchangeResult),
}

/// Starts a request of the stateless era, or continues one that waited for its client. Also returns the digest that
/// binds its questions to the request.
pub(super) fn stateless(
    peer: McpPeer,
    mut asked: McpRequest,
    id: &McpRequestId,
) -> (OpenedRequest, [u8; 32]) {
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
                Ok(RoundContinuation::GoesOn(exchange)) => {
                    exchange.heed(NotificationWishes {
                        progress_token: asked.meta.progress_token.take(),
                        level: peer.level,
                    });
                    OpenedRequest::Exchange(exchange)
                }
                Ok(RoundContinuation::AskedAgain(reply)) => OpenedRequest::Answered(Ok(reply)),
                Err(fault) => OpenedRequest::Answered(Err(fault)),
            }
        }
        None if asked.method == McpMethod::Listen => {
            let id = id.clone();
            OpenedRequest::Exchange(McpExchange::begin(WhenLeft::Stops, |outlet| {
                news::listen(peer, asked, id, outlet)
            }))
        }
        None => OpenedRequest::Exchange(McpExchange::begin(WhenLeft::Stops, |outlet| {
            answer(peer, asked, outlet)
        })),
    };
    (opened, digest)
}

/// The peer of a session.
pub(super) fn in_session(face: &Arc<McpServerFace>, stay: &Arc<McpSession>) -> McpPeer {
    McpPeer {
        face: Arc::clone(face),
        session: Arc::clone(&stay.session),
        version: stay.version,
        can: stay.can,
        level: Some(stay.level()),
        stay: Some(Arc::clone(stay)),
        came_by: CAME_BY,
    }
}

/// Answers a request of a session. A canceled request has no answer.
pub(super) async fn cancellable(
    peer: McpPeer,
    asked: McpRequest,
    running: RunningRequest,
    outlet: ExchangeOutlet,
) -> ExchangeResult {
    let answered = running
        .cancel
        .run_until_cancelled(answer(peer, asked, outlet))
        .await;
    answered.unwrap_or(Ok(McpReply::Nothing))
}

/// Applies a notification of a session.
pub(super) fn take_note(stay: &McpSession, method: &str, params: Option<&RawValue>) {
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
