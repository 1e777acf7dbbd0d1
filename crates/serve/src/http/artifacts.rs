//! `GET` and `HEAD /artifacts/{id}`: the bytes of an artifact, whole or as a range, directly from the store.

mod range;

use std::sync::Arc;

use axum::{
    Extension,
    body::{Body, Bytes},
    extract::State,
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use futures_util::stream;
use toolpost_model::{ArtifactError, ArtifactId, ContentDigest, Principal, StoredArtifact};

use super::{HttpProblem, RouteParameter, RouteState, header_text};
use range::RequestedRange;

const PIECE: usize = 256 << 10;

pub(super) async fn serve(
    State(shared): State<RouteState>,
    Extension(principal): Extension<Principal>,
    RouteParameter(id): RouteParameter,
    headers: HeaderMap,
) -> Result<Response, HttpProblem> {
    let id: ArtifactId = id
        .parse()
        .map_err(|error| HttpProblem::bad_request("bad_id", format!("{error}")))?;
    let artifact = shared.host.artifact(id, &principal).await?;
    let about = artifact.about();
    let etag = format!("\"{}\"", about.digest);
    if names(&headers, header::IF_NONE_MATCH, &etag) {
        return Ok((
            StatusCode::NOT_MODIFIED,
            described(about.id, "", about.digest),
        )
            .into_response());
    }
    // With `If-Range`, a range is sent only if the caller's part belongs to the same artifact.
    let is_same = headers
        .get(header::IF_RANGE)
        .is_none_or(|value| value.as_bytes() == etag.as_bytes());
    let asked = header_text(&headers, header::RANGE).filter(|_| is_same);
    let size = about.size;
    let mut answer = described(about.id, &about.media_type, about.digest);
    let (status, from, to) =
        match asked.map_or(RequestedRange::All, |text| range::asked(text, size)) {
            RequestedRange::All => (StatusCode::OK, 0, size),
            RequestedRange::Part { from, to } => {
                let part = format!("bytes {from}-{}/{size}", to - 1);
                answer.extend(
                    HeaderValue::try_from(part)
                        .ok()
                        .map(|value| (header::CONTENT_RANGE, value)),
                );
                (StatusCode::PARTIAL_CONTENT, from, to)
            }
            RequestedRange::Nothing => return Ok(out_of_range(size)),
        };
    answer.insert(header::CONTENT_LENGTH, HeaderValue::from(to - from));
    Ok((status, answer, Body::from_stream(bytes(artifact, from, to))).into_response())
}

/// Whether a header lists this tag, or `*`.
fn names(headers: &HeaderMap, header: header::HeaderName, etag: &str) -> bool {
    let lists = headers
        .get_all(header)
        .into_iter()
        .filter_map(|value| value.to_str().ok());
    let mut tags = lists.flat_map(|list| list.split(',')).map(str::trim);
    tags.any(|tag| tag == "*" || tag.strip_prefix("W/").unwrap_or(tag) == etag)
}

/// The headers of the bytes. The bytes come from tools, so the headers keep browsers from showing them as a page.
fn described(id: ArtifactId, media_type: &str, digest: ContentDigest) -> HeaderMap {
    let mut headers = HeaderMap::new();
    let texts = [
        (header::CONTENT_TYPE, media_type.to_owned()),
        (header::ETAG, format!("\"{digest}\"")),
        (
            header::CONTENT_DISPOSITION,
            format!("attachment; filename=\"{id}\""),
        ),
        (header::ACCEPT_RANGES, "bytes".to_owned()),
        (header::CACHE_CONTROL, "private, no-cache".to_owned()),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff".to_owned()),
        (
            header::CONTENT_SECURITY_POLICY,
            "sandbox; default-src 'none'".to_owned(),
        ),
    ];
    let texts = texts.into_iter().filter(|(_, text)| !text.is_empty());
    headers
        .extend(texts.filter_map(|(name, text)| Some((name, HeaderValue::try_from(text).ok()?))));
    headers
}

fn out_of_range(size: u64) -> Response {
    let problem =
        HttpProblem::range_not_satisfiable(format!("the range is outside of the {size} bytes"));
    let mut response = problem.into_response();
    let there = HeaderValue::try_from(format!("bytes */{size}"));
    response
        .headers_mut()
        .extend(there.ok().map(|value| (header::CONTENT_RANGE, value)));
    response
}

/// The bytes in pieces. The next piece is read after the last one was sent.
fn bytes(
    artifact: Arc<dyn StoredArtifact>,
    from: u64,
    to: u64,
) -> impl futures_util::Stream<Item = Result<Bytes, ArtifactError>> {
    stream::try_unfold(from, move |at| {
        let artifact = Arc::clone(&artifact);
        async move {
            if at >= to {
                return Ok(None);
            }
            let limit = usize::try_from(to - at).unwrap_or(PIECE).min(PIECE);
            let piece = artifact.read(at, limit).await?;
            let next = at + piece.len() as u64;
            Ok(Some((Bytes::from(piece), next)))
        }
    })
}
