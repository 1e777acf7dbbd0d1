//! A2A: tools for other agents and chat clients, in the two dialects that peers speak, over JSON-RPC and REST.
//!
//! A message that holds tool calls becomes a task: the calls go through the host like any other, and the task tells of them
//! as they happen. Nothing is kept beside the journal: a task is its calls, found by the mark they all carry, so that one
//! that left memory is put together again from their records.

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

/// Where others read what this agent is. Answered without a token, in few words.
pub(crate) const CARD: &str = "/.well-known/agent-card.json";

/// What all requests share.
pub(crate) struct A2aServerFace {
    host: Host,
    config: A2aConfig,
    body_limit: usize,
    tasks: TaskShelf,
    streams: OpenStreams,
    /// Streams and answers that wait end with this.
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

/// The routes; none where the host is to be no A2A agent.
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

/// The record cannot be read or written, so nothing can be said for sure.
fn journal_trouble(error: &JournalError) -> A2aRefusal {
    A2aRefusal::new(ErrorCode::Internal, error.to_string())
}
