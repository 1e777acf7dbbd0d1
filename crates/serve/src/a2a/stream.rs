//! A task's log as server-sent events. Each reader goes through the log at its own speed. The task continues if a
//! reader disconnects.

use std::{convert::Infallible, sync::Arc};

use axum::response::Response;
use bytes::Bytes;
use futures_util::Stream;
use serde_json::Value;
use tokio::{sync::watch, time::Interval};
use tokio_util::sync::CancellationToken;
use toolpost_a2a::wire::{A2aDialect, Message, RequestId, StreamItem, answer};

use super::{A2aServerFace, task::A2aTask};
use crate::{
    http::{STILL_HERE, UTF8_EVENTS, event_stream, keep_alive},
    streams::StreamPlace,
};

/// The form of the items of a stream.
pub(super) struct TaskStreamFormat {
    pub(super) dialect: A2aDialect,
    /// The id of the request that each item answers; `None` in REST.
    pub(super) envelope: Option<RequestId>,
}

impl TaskStreamFormat {
    fn frame(&self, item: &StreamItem) -> Bytes {
        let value: Value = item.to_value(self.dialect);
        let value = match &self.envelope {
            Some(id) => answer(id, value),
            None => value,
        };
        // JSON never holds a raw line break, so one data line is enough.
        Bytes::from(format!("data: {value}\n\n"))
    }
}

/// The beginning of a stream about a task.
pub(super) struct TaskStreamStart {
    pub(super) task: Arc<A2aTask>,
    /// The number of log entries that the first item covers.
    pub(super) length: usize,
    /// A remark about the state at that point for this reader alone.
    pub(super) remark: Option<Message>,
    pub(super) history_length: Option<u64>,
}

/// Streams the task as of one log position, and then each further entry up to its end.
pub(super) fn of_task(
    face: &A2aServerFace,
    from: TaskStreamStart,
    written: TaskStreamFormat,
    place: StreamPlace,
) -> Response {
    let TaskStreamStart {
        task,
        length,
        remark,
        history_length,
    } = from;
    let mut first = task.snapshot(length).with_history(history_length);
    let is_last = first.status.state.is_terminal();
    if remark.is_some() {
        first.status.message = remark;
    }
    let first = written.frame(&StreamItem::Task(first));
    let mut alive = keep_alive();
    alive.reset();
    let grown = task.grown();
    let closing = face.closing.clone();
    let first = Some(first);
    let reading = TaskSseFeed {
        task,
        written,
        next: length,
        first,
        is_last,
        grown,
        alive,
        closing,
        _place: place,
    };
    event_stream(UTF8_EVENTS, "no-store", reading.frames())
}

/// A stream with a single message.
pub(super) fn of_message(message: Message, written: &TaskStreamFormat) -> Response {
    let frame = written.frame(&StreamItem::Message(message));
    let frames = futures_util::stream::iter([Ok(frame)]);
    event_stream(UTF8_EVENTS, "no-store", frames)
}

struct TaskSseFeed {
    task: Arc<A2aTask>,
    written: TaskStreamFormat,
    next: usize,
    first: Option<Bytes>,
    is_last: bool,
    grown: watch::Receiver<usize>,
    alive: Interval,
    closing: CancellationToken,
    _place: StreamPlace,
}

impl TaskSseFeed {
    fn frames(self) -> impl Stream<Item = Result<Bytes, Infallible>> {
        futures_util::stream::unfold(self, |mut reading| async move {
            let frame = reading.frame().await?;
            Some((Ok(frame), reading))
        })
    }

    async fn frame(&mut self) -> Option<Bytes> {
        if let Some(first) = self.first.take() {
            return Some(first);
        }
        loop {
            if self.is_last {
                return None;
            }
            self.grown.borrow_and_update();
            if let Some((item, is_last)) = self.task.item(self.next) {
                self.next += 1;
                self.is_last = is_last;
                return Some(self.written.frame(&item));
            }
            tokio::select! {
                biased;
                changed = self.grown.changed() => changed.ok()?,
                () = self.closing.cancelled() => return None,
                _ = self.alive.tick() => return Some(STILL_HERE),
            }
        }
    }
}
