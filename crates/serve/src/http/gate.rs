//! What every request passes before any route: is this server meant, and who is asking?
//!
//! A hyper service of its own and not a layer on each route: no route can be added past it, and nothing is
//! boxed on the way.

use std::{
    convert::Infallible,
    future::Future,
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
use tower_service::Service as _;

use super::{HEALTH, Shared, live};
use crate::{a2a, a2e, auth::Door};

/// Where a request came in, for the record.
#[derive(Clone, Copy)]
pub(super) struct Face(pub(super) &'static str);

/// The routes behind their door.
#[derive(Clone)]
pub(crate) struct Gate {
    door: Arc<Door>,
    router: Router,
}

impl Gate {
    pub(crate) fn new(shared: Shared, door: Door) -> Self {
        Self { door: Arc::new(door), router: super::router(shared) }
    }

    fn admit<B>(&self, request: &mut Request<B>) -> Result<(), super::Problem> {
        self.door.check_origin(request.headers())?;
        let path = request.uri().path();
        if a2e::ROUTES.contains(&path) {
            // These ask for a token in their own way, and want to know whose door it is.
            request.extensions_mut().insert(Arc::clone(&self.door));
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

impl Service<Request<Incoming>> for Gate {
    type Response = Response;
    type Error = Infallible;
    type Future = Admitted;

    fn call(&self, mut request: Request<Incoming>) -> Admitted {
        match self.admit(&mut request) {
            Ok(()) => Admitted::In(self.router.clone().call(request.map(Body::new))),
            Err(problem) => Admitted::Out(Some(problem.into_response())),
        }
    }
}

/// The answer of a route, or of the gate itself.
pub(crate) enum Admitted {
    In(RouteFuture<Infallible>),
    Out(Option<Response>),
}

impl Future for Admitted {
    type Output = Result<Response, Infallible>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match self.get_mut() {
            Self::In(route) => Pin::new(route).poll(context),
            Self::Out(answer) => answer.take().map_or(Poll::Pending, |answer| Poll::Ready(Ok(answer))),
        }
    }
}
