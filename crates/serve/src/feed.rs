//! Calls as they happen: those of a session for front ends, `GET /sessions/{id}/events`, and those of all sessions for
//! operators, `GET /events`.
//!
//! The journal is what is told; a stream is a place in it. So nothing is queued for a reader that does not read, a reader
//! that comes back goes on from the number it has, and a restart of the host changes nothing. The only things that come
//! from elsewhere is that a call began, and the events of modules while it runs, because many calls are on record only at
//! their end: the [`FeedHub`] hands both on from the call itself.

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
