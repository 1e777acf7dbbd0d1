//! Streams of calls as they happen: `GET /sessions/{id}/events` with the calls of a session for front ends, and `GET
//! /events` with the calls of all sessions for operators.
//!
//! A stream is a position in the journal. Therefore a slow reader causes no queue, a returning reader continues at its
//! last number, and a restart of the host changes nothing. Only the beginnings of calls and the events of modules come
//! from the running call itself, through the [`FeedHub`], because many calls are on record only at their end.

mod hub;
mod module_events;
mod pump;
mod range;
mod vocabulary;

pub(crate) use hub::{FeedCapacityError, FeedHub};
pub(crate) use module_events::module_event_json;
pub(crate) use pump::{FeedOpenError, StreamPump};
pub(crate) use range::{FeedStart, StreamScope};
pub(crate) use vocabulary::StreamVocabulary;
