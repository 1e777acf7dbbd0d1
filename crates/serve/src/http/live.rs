//! `GET /live/`: a page that shows a session's calls as they happen. Its files hold no secret, so they need no token;
//! the page asks its reader for one and sends it with what it fetches.
//!
//! They are the files of `examples/live-calls`, which a front-end developer may copy.

use axum::{
    http::{HeaderName, HeaderValue, header},
    response::{IntoResponse, Redirect, Response},
};

use super::{Named, Problem};

/// What of the page can be had without a token.
const PATHS: [&str; 4] = ["/live", "/live/", "/live/live.js", "/live/live.css"];

/// Nothing from elsewhere, nothing inline, nobody's frame.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

pub(super) fn is_page(path: &str) -> bool {
    PATHS.contains(&path)
}

/// Its other files are beside it only behind the slash.
pub(super) async fn enter() -> Redirect {
    Redirect::temporary("live/")
}

pub(super) async fn page() -> Response {
    file("text/html; charset=utf-8", include_str!("../../../../examples/live-calls/index.html"))
}

pub(super) async fn asset(Named(name): Named) -> Result<Response, Problem> {
    match name.as_str() {
        "live.js" => Ok(file(
            "text/javascript; charset=utf-8",
            include_str!("../../../../examples/live-calls/live.js"),
        )),
        "live.css" => {
            Ok(file("text/css; charset=utf-8", include_str!("../../../../examples/live-calls/live.css")))
        }
        _ => Err(Problem::not_found("no_such_route", "there is nothing at this path")),
    }
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
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}
