//! The gate in front of all routes. It checks that a request is meant for this server, and authenticates its caller.
//!
//! The gate is a hyper service and not a layer on each route. No route can be added outside of it, and no request is
//! boxed on the way.

use std::{
    convert::Infallible,
    future::Future,
    net::IpAddr,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use axum::{
    Router,
    body::Body,
    http::header::AUTHORIZATION,
    response::{IntoResponse, Response},
    routing::future::RouteFuture,
};
use hyper::{Request, body::Incoming, service::Service};
use toolpost_core::AcknowledgementTiming;
use toolpost_model::BoxFuture;
use tower_service::Service as _;

use super::{HEALTH, live, upload};
use crate::{
    a2a, a2e,
    auth::RequestAuthenticator,
    refusals::{RefusalDesk, RefusedRequests, TurnedAway},
};

#[derive(Clone, Copy)]
pub(crate) struct RequestFace {
    /// The name in records.
    pub(crate) name: &'static str,
    /// The time at which a caller that reads a stream learns that its call was taken.
    pub(crate) acknowledgement: AcknowledgementTiming,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ConnectionOrigin {
    /// The address; a unix socket has none.
    pub(crate) address: Option<IpAddr>,
    /// The process at the other end of a unix socket.
    pub(crate) peer: Option<SocketPeer>,
}

/// The user of the process at the other end of a unix socket, as reported by the system.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SocketPeer {
    pub(crate) user: u32,
}

impl SocketPeer {
    pub(crate) fn is_own_user(self) -> bool {
        self.user == rustix::process::geteuid().as_raw()
    }
}

/// The routes behind authentication.
#[derive(Clone)]
pub(crate) struct RequestGate {
    door: Arc<RequestAuthenticator>,
    peer: Option<SocketPeer>,
    router: Router,
    desk: RefusalDesk,
}

impl RequestGate {
    pub(crate) fn new(
        router: Router,
        refused: Arc<RefusedRequests>,
        door: RequestAuthenticator,
    ) -> Self {
        Self {
            door: Arc::new(door),
            peer: None,
            router,
            desk: RefusalDesk {
                refused,
                address: None,
            },
        }
    }

    /// The gate for one connection.
    pub(crate) fn facing(&self, origin: ConnectionOrigin) -> Self {
        let mut gate = self.clone();
        gate.desk.address = origin.address;
        gate.peer = origin.peer;
        gate
    }

    fn admit<B>(&self, request: &mut Request<B>) -> Result<(), super::HttpProblem> {
        self.door.check_origin(request.headers())?;
        let path = request.uri().path();
        if a2e::ROUTES.contains(&path) {
            // The routes of A2E check tokens themselves, with this authenticator.
            request.extensions_mut().insert(Arc::clone(&self.door));
            request.extensions_mut().insert(self.desk.clone());
        } else if path == a2a::CARD && !request.headers().contains_key(AUTHORIZATION) {
            // The card is public, and callers with a principal get more.
            if let Ok(principal) = self.door.principal(request.headers()) {
                request.extensions_mut().insert(principal);
            }
        } else if path != HEALTH && !live::is_page(path) {
            let principal = self.door.principal(request.headers())?;
            request.extensions_mut().insert(principal);
            request.extensions_mut().insert(self.door.face());
            if let Some(peer) = self.peer {
                request.extensions_mut().insert(peer);
            }
        }
        Ok(())
    }
}

impl RequestGate {
    /// Notes a refusal. Its answer may be delayed.
    fn turn_away<B>(&self, request: &Request<B>, problem: super::HttpProblem) -> GateFuture {
        let why = match (
            problem.is_unauthorized(),
            request.headers().contains_key(AUTHORIZATION),
        ) {
            (true, true) => TurnedAway::WrongToken,
            (true, false) => TurnedAway::MissingToken,
            (false, _) => TurnedAway::ForeignOrigin,
        };
        let delay = self.desk.note(why);
        let answer = problem.into_response();
        if delay.is_none() {
            return GateFuture::Out(Some(answer));
        }
        GateFuture::Later(Box::pin(async move {
            delay.pass().await;
            answer
        }))
    }

    /// Answers a request with a large body, after the rest of the body was read or discarded.
    fn with_upload(
        &self,
        admitted: Result<(), super::HttpProblem>,
        request: Request<Incoming>,
    ) -> GateFuture {
        let (request, rest) = upload::split(request);
        let answer = match admitted {
            Ok(()) => GateFuture::In(self.router.clone().call(request.map(Body::new))),
            Err(problem) => self.turn_away(&request, problem),
        };
        GateFuture::Later(Box::pin(async move {
            let Ok(answer) = answer.await;
            rest.discard().await;
            answer
        }))
    }
}

impl Service<Request<Incoming>> for RequestGate {
    type Response = Response;
    type Error = Infallible;
    type Future = GateFuture;

    fn call(&self, mut request: Request<Incoming>) -> GateFuture {
        let admitted = self.admit(&mut request);
        if upload::is_large(&request) {
            return self.with_upload(admitted, request);
        }
        match admitted {
            Ok(()) => GateFuture::In(self.router.clone().call(request.map(Body::new))),
            Err(problem) => self.turn_away(&request, problem),
        }
    }
}

/// The answer of a route, or of the gate itself.
pub(crate) enum GateFuture {
    In(RouteFuture<Infallible>),
    Out(Option<Response>),
    /// A delayed answer: the address fails repeatedly, or the request's body is still arriving.
    Later(BoxFuture<'static, Response>),
}

impl Future for GateFuture {
    type Output = Result<Response, Infallible>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match self.get_mut() {
            Self::In(route) => Pin::new(route).poll(context),
            Self::Later(answer) => answer.as_mut().poll(context).map(Ok),
            Self::Out(answer) => answer
                .take()
                .map_or(Poll::Pending, |answer| Poll::Ready(Ok(answer))),
        }
    }
}
