//! The floors: the same routes and pipes with nothing behind them.

use std::{
    collections::HashMap,
    convert::Infallible,
    io::{BufRead, Write},
    sync::Arc,
    time::Duration,
};

use axum::{
    Json, Router,
    body::{Body, Bytes},
    extract::State,
    http::{HeaderMap, StatusCode, header},
    response::IntoResponse,
    routing::{get, post},
};
use futures_util::stream;
use parking_lot::Mutex;
use tokio::sync::mpsc;

use super::wire;

type Sessions = Arc<Mutex<HashMap<String, Session>>>;

/// The sender of a session's stream, and the receiver until a client reads the stream.
struct Session {
    sender: mpsc::UnboundedSender<Bytes>,
    unread: Option<mpsc::UnboundedReceiver<Bytes>>,
}

/// A server that puts each message on the sender's stream.
pub(crate) fn router() -> Router {
    Router::new()
        .route("/session", post(open))
        .route("/send", post(send))
        .route("/stream", get(listen))
        .with_state(Sessions::default())
}

async fn open(State(sessions): State<Sessions>) -> Json<serde_json::Value> {
    let mut sessions = sessions.lock();
    let id = format!("{:032x}", sessions.len());
    let (sender, receiver) = mpsc::unbounded_channel();
    sessions.insert(
        id.clone(),
        Session {
            sender,
            unread: Some(receiver),
        },
    );
    Json(serde_json::json!({ "session_id": id }))
}

async fn send(
    State(sessions): State<Sessions>,
    headers: HeaderMap,
    body: Bytes,
) -> impl IntoResponse {
    let sessions = sessions.lock();
    let Some(session) = id(&headers).and_then(|id| sessions.get(id)) else {
        return (
            StatusCode::NOT_FOUND,
            Json(serde_json::json!({ "ok": false })),
        );
    };
    match body.strip_prefix(super::TICKS.as_bytes()) {
        Some(_) => drop(tokio::spawn(tick(session.sender.clone()))),
        None => drop(
            session
                .sender
                .send([b"data: ", &body[..], b"\n\n"].concat().into()),
        ),
    }
    (StatusCode::OK, Json(serde_json::json!({ "ok": true })))
}

async fn listen(State(sessions): State<Sessions>, headers: HeaderMap) -> impl IntoResponse {
    let mut sessions = sessions.lock();
    let unread = id(&headers)
        .and_then(|id| sessions.get_mut(id))
        .and_then(|session| session.unread.take());
    let Some(receiver) = unread else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let frames = stream::unfold(receiver, |mut receiver| async move {
        receiver
            .recv()
            .await
            .map(|frame| (Ok::<_, Infallible>(frame), receiver))
    });
    (
        [(header::CONTENT_TYPE, "text/event-stream; charset=utf-8")],
        Body::from_stream(frames),
    )
        .into_response()
}

fn id(headers: &HeaderMap) -> Option<&str> {
    headers.get("x-session-id")?.to_str().ok()
}

/// The work of the ticking tool, without a host around it.
async fn tick(sender: mpsc::UnboundedSender<Bytes>) {
    loop {
        tokio::time::sleep(Duration::from_millis(5)).await;
        let frame = format!(
            "data: {{\"type\":\"tool/event\",\"message\":\"{}\"}}\n\n",
            wire::now()
        );
        if sender.send(frame.into()).is_err() {
            return;
        }
    }
}

/// A child that echoes every line.
pub(crate) fn echo_lines() -> anyhow::Result<()> {
    let mut output = std::io::stdout().lock();
    let mut input = std::io::stdin().lock();
    let mut line = Vec::new();
    while input.read_until(b'\n', &mut line)? > 0 {
        output.write_all(&line)?;
        output.flush()?;
        line.clear();
    }
    Ok(())
}
