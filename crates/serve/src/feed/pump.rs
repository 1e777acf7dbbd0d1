//! One stream: it reads the journal from its position on, and sends each call once and its end once.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    convert::Infallible,
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use futures_util::Stream;
use tokio::{
    sync::broadcast::error::{RecvError, TryRecvError},
    time::{Instant, Interval, sleep_until},
};
use tokio_util::sync::CancellationToken;
use toolpost_a2a::{ToolEvent, producer::ToolCallStart};
use toolpost_core::{
    CallOnRecord, EndOnRecord, Host, JournalError, ModuleEvent, RecordKind, StoredRecord,
    question_of, verdict_of,
};
use toolpost_model::{InvocationId, Principal};

use super::{
    FeedCapacityError, FeedHub, StreamVocabulary,
    hub::{FeedNews, FeedSubscription, UnfinishedCall},
    module_events::SentModuleEvents,
    range::{FeedStart, StreamScope},
    vocabulary::{self, FeedFrameWriter, StreamEndReason},
};
use crate::http::{STILL_HERE, keep_alive};

/// The size of a page of records. The next page is read when this one was sent.
const PAGE: usize = 32;
/// The most calls that are remembered as sent. A call beyond that may be sent twice, which does not matter to a reader
/// that goes by ids.
const OPEN: usize = 10_000;
/// The time that the calls of a closed session have to end on record, and the interval of the checks.
const LAST_ENDS: Duration = Duration::from_secs(5);
const LOOK_AGAIN: Duration = Duration::from_millis(50);

pub(crate) struct StreamPump {
    host: Host,
    whose: StreamScope,
    watching: FeedSubscription,
    words: FeedFrameWriter,
    journal: JournalCursor,
    calls: FollowedCalls,
    awaited: AwaitedRecords,
    untold: VecDeque<Bytes>,
    alive: Interval,
    closing: CancellationToken,
    ending: StreamEndPhase,
}

/// The position of a stream in the journal.
struct JournalCursor {
    /// The last record that was read.
    place: u64,
    /// Whether there may be further records.
    is_due: bool,
}

/// The calls that a stream has sent.
#[derive(Default)]
struct FollowedCalls {
    /// Calls whose beginning was sent and whose end was not.
    open: HashSet<InvocationId>,
    /// The open calls that run on this host.
    live: HashSet<InvocationId>,
    /// The open calls that wait for an answer, with their question.
    asked: HashMap<InvocationId, InvocationId>,
    sent_module_events: SentModuleEvents,
}

impl FollowedCalls {
    /// Marks a call as begun. Returns whether it was not sent before.
    fn open(&mut self, id: InvocationId) -> bool {
        if self.open.len() >= OPEN {
            *self = Self::default();
        }
        self.open.insert(id)
    }

    /// Marks a call as ended. Returns whether its beginning was sent and its end was not.
    fn close(&mut self, id: InvocationId) -> bool {
        self.live.remove(&id);
        self.asked.remove(&id);
        self.sent_module_events.forget(id);
        self.open.remove(&id)
    }

    fn is_untold(&self, late: AwaitedRecord) -> bool {
        match late {
            AwaitedRecord::End(call) => self.open.contains(&call),
            AwaitedRecord::Answer { call, question } => self.asked.get(&call) == Some(&question),
        }
    }
}

/// Ends and answers that were reported before the stream read their records.
#[derive(Default)]
struct AwaitedRecords {
    /// Ends and answers that are on record, but perhaps outside of the records that the stream reads. They are looked
    /// up once the stream has read up to this number.
    late: Vec<(u64, AwaitedRecord)>,
    answered: Vec<AwaitedRecord>,
}

/// An end or an answer that was reported before its record was read.
#[derive(Clone, Copy)]
enum AwaitedRecord {
    /// A call ended.
    End(InvocationId),
    /// A question of a call was answered.
    Answer {
        call: InvocationId,
        question: InvocationId,
    },
}

#[derive(Clone, Copy)]
enum StreamEndPhase {
    NotYet,
    /// The session was removed from memory. By then the record tells whether it is closed, and how its calls ended.
    Waits {
        until: Instant,
        is_closed: bool,
    },
    /// The last frames are being sent.
    Over,
}

impl StreamPump {
    /// Takes a place among the streams and finds the position to begin at.
    pub(crate) async fn open(
        host: Host,
        hub: &Arc<FeedHub>,
        whose: StreamScope,
        reader: &Principal,
        (vocabulary, from): (StreamVocabulary, FeedStart),
        closing: CancellationToken,
    ) -> Result<Self, FeedOpenError> {
        // The head of the journal is read before the subscription. A call that is open at the subscription ends after
        // this position, or its end is on record and not reported yet; `catch_up` finds the latter.
        let head = host.journal_head().await?;
        let (watching, open) = hub.watch(whose.session(), reader)?;
        let place = match from {
            FeedStart::Now => head.seq,
            FeedStart::Start => 0,
            // Records can be lost in a power failure. The reader then already has all records.
            FeedStart::After(seq) => seq.min(head.seq),
        };
        let mut alive = keep_alive();
        alive.reset();
        let mut pump = Self {
            host,
            whose,
            watching,
            words: FeedFrameWriter::of(vocabulary),
            journal: JournalCursor {
                place,
                is_due: true,
            },
            calls: FollowedCalls::default(),
            awaited: AwaitedRecords::default(),
            untold: VecDeque::new(),
            alive,
            closing,
            ending: StreamEndPhase::NotYet,
        };
        let ids: Vec<InvocationId> = open.iter().map(|(id, _)| *id).collect();
        pump.untold.push_back(pump.words.opening(place, &ids));
        if place + 1 < head.first && from != FeedStart::Start {
            pump.untold
                .push_back(vocabulary::remark("some records before this were removed"));
        }
        pump.join(&open);
        Ok(pump)
    }

    /// Sends the beginnings of the open calls, then their questions.
    fn join(&mut self, calls: &[(InvocationId, UnfinishedCall)]) {
        for begun in calls.iter().filter_map(|(_, open)| open.begun.as_deref()) {
            self.begin(begun);
        }
        for (id, open) in calls {
            if let Some(question) = open.question.filter(|_| self.calls.open.contains(id)) {
                self.ask(*id, question, None);
            }
        }
    }

    /// The frames of the stream. All work happens when the reader polls for the next frame, so a slow reader costs
    /// nothing.
    pub(crate) fn frames(self) -> impl Stream<Item = Result<Bytes, Infallible>> {
        futures_util::stream::unfold(self, |mut pump| async move {
            let frame = pump.next().await?;
            Some((Ok(frame), pump))
        })
    }

    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(frame) = self.untold.pop_front() {
                return Some(frame);
            }
            if matches!(self.ending, StreamEndPhase::Over) {
                return None;
            }
            if self.journal.is_due {
                self.look().await;
                // A long history is not sent to its end during a shutdown.
                if self.closing.is_cancelled() {
                    self.end();
                }
                continue;
            }
            tokio::select! {
                biased;
                // The journal is read once more, because the ends of the last calls are on record now.
                () = self.closing.cancelled() => self.journal.is_due = true,
                news = self.watching.news.recv() => match news {
                    Ok(news) => self.hear(news),
                    Err(RecvError::Lagged(_)) => self.journal.is_due = true,
                    Err(RecvError::Closed) => self.end(),
                },
                // Events that a slow reader loses here follow at the end of the call, as far as they are on record.
                Ok(emitted) = self.watching.module_events.recv() => {
                    self.tell_module_event(emitted.0, &emitted.1);
                }
                () = look_again(self.ending) => self.journal.is_due = true,
                _ = self.alive.tick() => {
                    // This costs little, and finds records without a notification.
                    self.journal.is_due = true;
                    return Some(STILL_HERE);
                }
            }
        }
    }

    fn hear(&mut self, news: FeedNews) {
        match news {
            FeedNews::Begun(begun) => {
                self.begin(&begun);
            }
            FeedNews::Lost(lost) => {
                if self.calls.close(lost.0) {
                    self.tell(&lost.1, None);
                }
            }
            FeedNews::Answered(call, question) => {
                self.awaited
                    .answered
                    .push(AwaitedRecord::Answer { call, question });
                self.journal.is_due = true;
            }
            FeedNews::Recorded => self.journal.is_due = true,
            FeedNews::LetGo => {
                self.journal.is_due = true;
                self.wait_for_last_ends(false);
            }
        }
    }

    fn tell_module_event(&mut self, call: InvocationId, event: &ModuleEvent) {
        if self.calls.open.contains(&call) && self.calls.sent_module_events.is_due(call, event.seq)
        {
            self.untold.push_back(self.words.module_event(call, event));
        }
    }

    /// Reads the next page of the journal and sends its contents.
    async fn look(&mut self) {
        // Reset before the read: a notification during the read must cause another one.
        self.journal.is_due = false;
        let ended = self.watching.ended_of(self.calls.live.iter());
        let page = match &self.whose {
            StreamScope::Session(session) => {
                self.host
                    .session_records(session, self.journal.place, PAGE)
                    .await
            }
            StreamScope::Everybody(_) => self.host.records(self.journal.place, PAGE).await,
        };
        let page = match page {
            Ok(page) => page,
            Err(JournalError::Closed) => return self.end(),
            Err(error) => {
                tracing::warn!(%error, "a stream of a session cannot read the journal");
                return;
            }
        };
        // The news is drained after the page was read and before its records are sent. A call begins in the news before
        // its end is recorded, so the beginning of every call that ends in this page is in the news by now. Drained
        // later, that beginning would follow the end, and the reader would show a call that never ends.
        for _ in 0..self.watching.news.len() {
            match self.watching.news.try_recv() {
                Ok(news) => self.hear(news),
                Err(TryRecvError::Lagged(_)) => self.journal.is_due = true,
                Err(TryRecvError::Empty | TryRecvError::Closed) => break,
            }
        }
        // Before the ends in the page. Limited to the events that wait now, because running calls can emit as fast as
        // this loop reads.
        for _ in 0..self.watching.module_events.len() {
            if let Ok(emitted) = self.watching.module_events.try_recv() {
                self.tell_module_event(emitted.0, &emitted.1);
            }
        }
        for row in &page.rows {
            self.read(row).await;
        }
        self.journal.is_due |= page.up_to > self.journal.place;
        self.journal.place = page.up_to;
        self.catch_up(ended).await;
        if let StreamEndPhase::Waits { until, is_closed } = self.ending
            && !self.journal.is_due
        {
            let is_late = Instant::now() >= until;
            if is_closed && (is_late || self.calls.open.is_empty()) {
                self.end();
            } else if is_late {
                // The session only left memory.
                self.ending = StreamEndPhase::NotYet;
            }
        }
    }

    /// Sends the ends and answers whose records this stream does not read: a call that was open at the start of the
    /// stream may have its end before that position, and the answer to a shared question may be in the records of
    /// another session. Each is looked up only after the stream has read up to the head of the journal at the time of
    /// the report. Before that, the record may still be ahead, and the reader would get the end twice.
    async fn catch_up(&mut self, ended: Vec<InvocationId>) {
        for id in &ended {
            self.calls.live.remove(id);
        }
        let mut heard: Vec<AwaitedRecord> = ended.into_iter().map(AwaitedRecord::End).collect();
        heard.append(&mut self.awaited.answered);
        heard.retain(|late| self.calls.is_untold(*late));
        if !heard.is_empty() {
            let up_to = self
                .host
                .journal_head()
                .await
                .map_or(self.journal.place, |head| head.seq);
            self.awaited
                .late
                .extend(heard.into_iter().map(|late| (up_to, late)));
        }
        for (up_to, late) in std::mem::take(&mut self.awaited.late) {
            if up_to > self.journal.place {
                self.journal.is_due = true;
                self.awaited.late.push((up_to, late));
            } else if self.calls.is_untold(late) {
                self.tell_late(late).await;
            }
        }
    }

    async fn tell_late(&mut self, late: AwaitedRecord) {
        match late {
            AwaitedRecord::End(id) => {
                let call = self
                    .host
                    .recorded_call(id, self.whose.principal())
                    .await
                    .ok()
                    .flatten();
                // Without a recorded end, the end could not be written, or the next host continues the call.
                let Some(call) = call else { return };
                let Some(end) = &call.end else { return };
                self.end_call(id, &call, end, None);
            }
            AwaitedRecord::Answer { call, question } => {
                self.calls.asked.remove(&call);
                self.untold
                    .extend(self.words.decided(call, question, None, None));
            }
        }
    }

    async fn read(&mut self, row: &StoredRecord) {
        let is_end = match row.record.kind {
            RecordKind::Accepted | RecordKind::Asked | RecordKind::Started => false,
            RecordKind::Ended => true,
            RecordKind::Decided => return self.decided(row),
            RecordKind::SessionClosed => return self.wait_for_last_ends(true),
            RecordKind::HostStarted
            | RecordKind::SessionOpened
            | RecordKind::Catalog
            | RecordKind::Surface
            | RecordKind::Discovered
            | RecordKind::Pruned => return,
        };
        let Some(id) = row.record.invocation_id else {
            return;
        };
        let question = question_of(row).filter(|_| self.words.tell_approvals());
        if is_end || !self.calls.open.contains(&id) {
            // Only the last frame of a record has its id, because a reader resumes after that record.
            let is_last = !is_end && question.is_none();
            self.read_call(id, row, is_end, is_last).await;
        }
        if let Some(question) = question.filter(|_| self.calls.open.contains(&id)) {
            self.ask(id, question, Some(row.seq));
        }
    }

    async fn read_call(
        &mut self,
        id: InvocationId,
        row: &StoredRecord,
        is_end: bool,
        is_last: bool,
    ) {
        let Some(call) = self.call(id, row).await else {
            return;
        };
        // The beginning is sent with the end if it was not sent before, so that no reader gets an end without its call.
        if self.calls.open(id) {
            let tool_call_id = id.to_string();
            let begun = ToolCallStart {
                tool_call_id: &tool_call_id,
                tool_name: &call.tool,
                input: call.sent.as_ref(),
                at: call.began_at,
            };
            self.tell(&begun.event(), is_last.then_some(row.seq));
        }
        if let Some(end) = call.end.as_ref().filter(|_| is_end) {
            self.end_call(id, &call, end, Some(row.seq));
        }
    }

    /// Sends the end of a call, after the modules' events that were not sent while the call ran.
    fn end_call(
        &mut self,
        id: InvocationId,
        call: &CallOnRecord,
        end: &EndOnRecord,
        seq: Option<u64>,
    ) {
        for event in &end.module_events {
            self.tell_module_event(id, event);
        }
        self.calls.close(id);
        let event = vocabulary::ended(id, &call.tool, call.arguments.as_ref(), end.answer.result());
        self.untold
            .push_back(self.words.frame(&event, Some(end.answer.result()), seq));
    }

    /// Sends a question about a call.
    fn ask(&mut self, call: InvocationId, question: InvocationId, id: Option<u64>) {
        self.calls.asked.insert(call, question);
        self.untold.extend(self.words.asked(call, question, id));
    }

    /// Sends an answer. Its record belongs to the call that asked first, but the answer applies to all calls that wait
    /// for it.
    fn decided(&mut self, row: &StoredRecord) {
        let (Some(first), Some(question)) = (row.record.invocation_id, question_of(row)) else {
            return;
        };
        let others = self
            .calls
            .asked
            .extract_if(|_, asked| *asked == question)
            .map(|(call, _)| call);
        let others: Vec<InvocationId> = others.filter(|call| *call != first).collect();
        let verdict = verdict_of(row);
        for call in others {
            self.untold
                .extend(self.words.decided(call, question, verdict.as_ref(), None));
        }
        self.untold.extend(
            self.words
                .decided(first, question, verdict.as_ref(), Some(row.seq)),
        );
    }

    /// The session was closed or left memory, so its stream waits for the last ends. A stream of all sessions
    /// continues.
    fn wait_for_last_ends(&mut self, is_closed: bool) {
        match self.whose {
            StreamScope::Session(_) => {
                self.ending = StreamEndPhase::Waits {
                    until: Instant::now() + LAST_ENDS,
                    is_closed,
                };
            }
            StreamScope::Everybody(_) => {}
        }
    }

    /// The call of a record. The end record alone is not enough; the first record has the rest.
    async fn call(&self, id: InvocationId, row: &StoredRecord) -> Option<CallOnRecord> {
        if let Some(call) = CallOnRecord::of(std::slice::from_ref(row)) {
            return Some(call);
        }
        self.host
            .recorded_call(id, self.whose.principal())
            .await
            .ok()
            .flatten()
    }

    /// Sends the beginning of a call that runs on this host.
    fn begin(&mut self, (id, event): &(InvocationId, ToolEvent)) {
        if self.calls.open(*id) {
            self.tell(event, None);
        }
        self.calls.live.insert(*id);
    }

    fn tell(&mut self, event: &ToolEvent, id: Option<u64>) {
        self.untold.push_back(self.words.frame(event, None, id));
    }

    fn end(&mut self) {
        let why = match self.ending {
            StreamEndPhase::Over => return,
            StreamEndPhase::Waits {
                is_closed: true, ..
            } => StreamEndReason::SessionClosed,
            StreamEndPhase::Waits {
                is_closed: false, ..
            }
            | StreamEndPhase::NotYet => StreamEndReason::Shutdown,
        };
        self.ending = StreamEndPhase::Over;
        self.untold.push_back(self.words.closing(why));
    }
}

/// The interval at which a stream checks for the last ends of a closed session.
async fn look_again(ending: StreamEndPhase) {
    match ending {
        StreamEndPhase::Waits { .. } => sleep_until(Instant::now() + LOOK_AGAIN).await,
        StreamEndPhase::NotYet | StreamEndPhase::Over => std::future::pending().await,
    }
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum FeedOpenError {
    #[error(transparent)]
    Crowded(#[from] FeedCapacityError),
    #[error(transparent)]
    Journal(#[from] JournalError),
}
