//! A2A: tools for other agents and chat clients, in both dialects of the protocol, over JSON-RPC and REST.
//!
//! A message that holds tool calls becomes a task: the calls go through the pipeline like any other, and the task
//! reports them as they run. The face stores nothing beside the journal. A task is the set of calls with its
//! correlation id, so a task that left memory is rebuilt from the records of its calls.

mod answering;
mod asked;
mod card;
mod follow;
mod operations;
mod rest;
mod rpc;
mod stream;
mod task;
mod tasks;
mod telling;

use std::sync::Arc;

use axum::{
    Router,
    routing::{any, get, post},
};
use tokio_util::sync::CancellationToken;
use toolpost_a2a::wire::{A2aRefusal, ErrorCode};
use toolpost_config::{A2aConfig, A2aEvents};
use toolpost_core::{Host, JournalError};

use crate::{http::HttpProblem, streams::OpenStreams};
use tasks::TaskShelf;

/// The path of the agent card. Without a token it answers with a short card.
pub(crate) const CARD: &str = "/.well-known/agent-card.json";

pub(crate) struct A2aServerFace {
    host: Host,
    config: A2aConfig,
    body_limit: usize,
    tasks: TaskShelf,
    streams: OpenStreams,
    /// Ends the streams and waiting answers.
    closing: CancellationToken,
}

impl A2aServerFace {
    pub(crate) fn new(
        host: Host,
        config: A2aConfig,
        body_limit: usize,
        streams: OpenStreams,
        closing: CancellationToken,
    ) -> Arc<Self> {
        Arc::new(Self {
            host,
            config,
            body_limit,
            tasks: TaskShelf::default(),
            streams,
            closing,
        })
    }

    fn always_tells_events(&self) -> bool {
        match self.config.events {
            A2aEvents::Auto => false,
            A2aEvents::Always => true,
        }
    }
}

/// The routes; none if the configuration turns A2A off.
pub(crate) fn routes(face: Arc<A2aServerFace>) -> Router {
    if !face.config.enabled {
        return Router::new();
    }
    Router::new()
        .route(CARD, get(card::public))
        .route("/a2a", post(rpc::take))
        .route("/a2a/message:send", post(rest::send))
        .route("/a2a/message:stream", post(rest::stream))
        .route("/a2a/tasks", get(rest::list))
        .route("/a2a/tasks/{id}", get(rest::get).post(rest::act))
        .route("/a2a/tasks/{id}/{*rest}", any(rest::push))
        .route("/a2a/extendedAgentCard", get(rest::card))
        .method_not_allowed_fallback(|| async { HttpProblem::method_not_allowed() })
        .with_state(face)
}

/// The refusal for a journal that cannot be read or written.
fn journal_trouble(error: &JournalError) -> A2aRefusal {
    A2aRefusal::new(ErrorCode::Internal, error.to_string())
}
