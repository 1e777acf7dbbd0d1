//! What every request passes before any route: is this server meant, and who is asking?
//!
//! A hyper service of its own and not a layer on each route: no route can be added past it, and nothing is
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
use toolpost_model::BoxFuture;
use tower_service::Service as _;

use super::{HEALTH, Shared, live};
use crate::{
    a2a, a2e,
    auth::Door,
    refusals::{RefusalDesk, TurnedAway},
};

/// Where a request came in, for the record.
#[derive(Clone, Copy)]
pub(super) struct Face(pub(super) &'static str);

/// The routes behind their door.
#[derive(Clone)]
pub(crate) struct Gate {
    door: Arc<Door>,
    router: Router,
    desk: RefusalDesk,
}

impl Gate {
    pub(crate) fn new(shared: Shared, door: Door) -> Self {
        let desk = RefusalDesk { refused: Arc::clone(&shared.about.refused), address: None };
        Self { door: Arc::new(door), router: super::router(shared), desk }
    }

    /// The gate as a connection from an address meets it.
    pub(crate) fn facing(&self, address: Option<IpAddr>) -> Self {
        let mut gate = self.clone();
        gate.desk.address = address;
        gate
    }

    fn admit<B>(&self, request: &mut Request<B>) -> Result<(), super::Problem> {
        self.door.check_origin(request.headers())?;
        let path = request.uri().path();
        if a2e::ROUTES.contains(&path) {
            // These ask for a token in their own way, and want to know whose door it is.
            request.extensions_mut().insert(Arc::clone(&self.door));
            request.extensions_mut().insert(self.desk.clone());
        } else if path == a2a::CARD && !request.headers().contains_key(AUTHORIZATION) {
            // Anybody may read it, and those who are somebody read more.
            if let Ok(principal) = self.door.principal(request.headers()) {
                request.extensions_mut().insert(principal);
            }
        } else if path != HEALTH && !live::is_page(path) {
            let principal = self.door.principal(request.headers())?;
            request.extensions_mut().insert(principal);
            request.extensions_mut().insert(Face(self.door.face()));
        }
        Ok(())
    }
}

impl Gate {
    /// Notes a refusal. Its answer may be held back for a moment.
    fn turn_away<B>(&self, request: &Request<B>, problem: super::Problem) -> Admitted {
        let why = match (problem.is_unauthorized(), request.headers().contains_key(AUTHORIZATION)) {
            (true, true) => TurnedAway::WrongToken,
            (true, false) => TurnedAway::MissingToken,
            (false, _) => TurnedAway::ForeignOrigin,
        };
        let delay = self.desk.note(why);
        let answer = problem.into_response();
        if delay.is_none() {
            return Admitted::Out(Some(answer));
        }
        Admitted::Later(Box::pin(async move {
            delay.pass().await;
            answer
        }))
    }
}

impl Service<Request<Incoming>> for Gate {
    type Response = Response;
    type Error = Infallible;
    type Future = Admitted;

    fn call(&self, mut request: Request<Incoming>) -> Admitted {
        match self.admit(&mut request) {
            Ok(()) => Admitted::In(self.router.clone().call(request.map(Body::new))),
            Err(problem) => self.turn_away(&request, problem),
        }
    }
}

/// The answer of a route, or of the gate itself.
pub(crate) enum Admitted {
    In(RouteFuture<Infallible>),
    Out(Option<Response>),
    /// An answer to an address that keeps failing.
    Later(BoxFuture<'static, Response>),
}

impl Future for Admitted {
    type Output = Result<Response, Infallible>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match self.get_mut() {
            Self::In(route) => Pin::new(route).poll(context),
            Self::Later(answer) => answer.as_mut().poll(context).map(Ok),
            Self::Out(answer) => answer.take().map_or(Poll::Pending, |answer| Poll::Ready(Ok(answer))),
        }
    }
}
