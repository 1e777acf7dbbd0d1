//! `GET /live/`: a page that shows a session's calls as they happen. Its files hold no secrets, so they need no token.
//! The page asks its reader for a token and sends it with each request.
//!
//! The files are those of `examples/live-calls`, which front-end developers may copy.

use axum::{
    Router,
    http::{HeaderName, HeaderValue, header},
    response::{IntoResponse, Redirect, Response},
    routing::get,
};

const ENTRY: &str = "/live";
const PAGE: &str = "/live/";
const SCRIPT: &str = "/live/live.js";
const STYLE: &str = "/live/live.css";

/// No foreign content, no inline scripts, no frames.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The routes of the page. The OpenAPI document does not describe them.
pub(super) fn routes() -> Router {
    let html = include_str!("../../../../examples/live-calls/index.html");
    let script = include_str!("../../../../examples/live-calls/live.js");
    let style = include_str!("../../../../examples/live-calls/live.css");
    Router::new()
        // The relative links of the page work only below the slash.
        .route(ENTRY, get(|| async { Redirect::temporary("live/") }))
        .route(
            PAGE,
            get(move || async { file("text/html; charset=utf-8", html) }),
        )
        .route(
            SCRIPT,
            get(move || async { file("text/javascript; charset=utf-8", script) }),
        )
        .route(
            STYLE,
            get(move || async { file("text/css; charset=utf-8", style) }),
        )
}

/// Whether a path needs no token.
pub(super) fn is_page(path: &str) -> bool {
    [ENTRY, PAGE, SCRIPT, STYLE].contains(&path)
}

fn file(media_type: &'static str, text: &'static str) -> Response {
    let headers: [(HeaderName, &'static str); 5] = [
        (header::CONTENT_TYPE, media_type),
        (header::CACHE_CONTROL, "no-cache"),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
    ];
    let mut response = text.into_response();
    for (name, value) in headers {
        response
            .headers_mut()
            .insert(name, HeaderValue::from_static(value));
    }
    response
}
