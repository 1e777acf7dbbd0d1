//! One stream: reads the journal from its place on, and tells each call once and its end once.

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

/// Records that are read at a time. The next ones are read when these were sent.
const PAGE: usize = 32;
/// More calls than this are not remembered as told; one of them may then be told twice, which changes nothing for a
/// reader that goes by ids.
const OPEN: usize = 10_000;
/// A closed session's calls get this long to end on record, looked at so often.
const LAST_ENDS: Duration = Duration::from_secs(5);
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// One stream.
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

/// How far a stream has read the journal.
struct JournalCursor {
    /// The last record that was looked at.
    place: u64,
    /// There may be more than was read.
    is_due: bool,
}

/// Calls that a stream began to tell.
#[derive(Default)]
struct FollowedCalls {
    /// Calls that were told, and whose end was not.
    open: HashSet<InvocationId>,
    /// Those of them that this host runs, as far as it told so itself.
    live: HashSet<InvocationId>,
    /// Those that wait for an answer, and to which question.
    asked: HashMap<InvocationId, InvocationId>,
    sent_module_events: SentModuleEvents,
}

impl FollowedCalls {
    /// Whether the call was not told before.
    fn open(&mut self, id: InvocationId) -> bool {
        if self.open.len() >= OPEN {
            *self = Self::default();
        }
        self.open.insert(id)
    }

    /// Whether the call was told before, and its end was not.
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

/// What was heard of before it was read.
#[derive(Default)]
struct AwaitedRecords {
    /// It is on record by now, but perhaps not where the stream reads: it is looked for once the stream has read up to
    /// this number.
    late: Vec<(u64, AwaitedRecord)>,
    answered: Vec<AwaitedRecord>,
}

/// Something that was heard of before it was read.
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

/// How near a stream is to its end.
#[derive(Clone, Copy)]
enum StreamEndPhase {
    NotYet,
    /// The session was let go of. Whether it is closed, and what became of its calls, is on record by then.
    Waits {
        until: Instant,
        is_closed: bool,
    },
    /// The last words are being said.
    Over,
}

impl StreamPump {
    /// Takes a place among the streams and finds where to begin.
    pub(crate) async fn open(
        host: Host,
        hub: &Arc<FeedHub>,
        whose: StreamScope,
        reader: &Principal,
        (vocabulary, from): (StreamVocabulary, FeedStart),
        closing: CancellationToken,
    ) -> Result<Self, FeedOpenError> {
        // Before anything is heard: a call that is open then has no end before this place, or it is looked for.
        let head = host.journal_head().await?;
        let (watching, open) = hub.watch(whose.session(), reader)?;
        let place = match from {
            FeedStart::Now => head.seq,
            FeedStart::Start => 0,
            // Records may be lost with the power; then the reader has all that there is.
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

    /// Tells the calls that are open already, then what they wait for.
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

    /// What is sent. Nothing happens between two frames but when the reader asks for the next.
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
                // A long history is not told to its end when the host goes.
                if self.closing.is_cancelled() {
                    self.end();
                }
                continue;
            }
            tokio::select! {
                biased;
                // Once more: the ends of the last calls are on record by now.
                () = self.closing.cancelled() => self.journal.is_due = true,
                news = self.watching.news.recv() => match news {
                    Ok(news) => self.hear(news),
                    Err(RecvError::Lagged(_)) => self.journal.is_due = true,
                    Err(RecvError::Closed) => self.end(),
                },
                // What a slow reader loses here comes at the end of the call, as far as it is on record.
                Ok(emitted) = self.watching.module_events.recv() => {
                    self.tell_module_event(emitted.0, &emitted.1);
                }
                () = look_again(self.ending) => self.journal.is_due = true,
                _ = self.alive.tick() => {
                    // Costs little, and finds what nobody told.
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

    /// Reads what comes next in the journal and tells it.
    async fn look(&mut self) {
        // Before the journal is read: whatever is heard from here on asks for another look.
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
        // After the page was read: of a call that ended in it, the beginning was told before, and so is not told late.
        for _ in 0..self.watching.news.len() {
            match self.watching.news.try_recv() {
                Ok(news) => self.hear(news),
                Err(TryRecvError::Lagged(_)) => self.journal.is_due = true,
                Err(TryRecvError::Empty | TryRecvError::Closed) => break,
            }
        }
        // Before the ends in the page. No more than there are now: calls that go on may emit as fast as this reads.
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
                // It only left memory.
                self.ending = StreamEndPhase::NotYet;
            }
        }
    }

    /// A call that was told as open may have its end before the place where the stream began, and the answer to a
    /// question may be in another session's records. Both are told here once it is sure that they will not be read.
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
                // Without one it could not be written, or the next host goes on with the call.
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
            // A reader goes on behind the last of what a record says.
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
        // Told with its end where it was not told before, so that no reader meets an end without a call.
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

    /// Tells the end of a call, after those of its modules' events that were not told while it ran.
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

    /// A person is asked about a call.
    fn ask(&mut self, call: InvocationId, question: InvocationId, id: Option<u64>) {
        self.calls.asked.insert(call, question);
        self.untold.extend(self.words.asked(call, question, id));
    }

    /// A person answered. The record stands with the call that asked first; the answer is for all that wait for it.
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

    /// The session was let go of. Where all are told, the others go on.
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

    /// What is known of a call. Its first record says all that an end alone does not.
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

    /// A call that this host runs.
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

/// While a session is being closed, its records are looked at without being told.
async fn look_again(ending: StreamEndPhase) {
    match ending {
        StreamEndPhase::Waits { .. } => sleep_until(Instant::now() + LOOK_AGAIN).await,
        StreamEndPhase::NotYet | StreamEndPhase::Over => std::future::pending().await,
    }
}

/// Why a stream cannot begin.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FeedOpenError {
    #[error(transparent)]
    Crowded(#[from] FeedCapacityError),
    #[error(transparent)]
    Journal(#[from] JournalError),
}
