//! One stream: reads the journal from its place on, and tells each call once and its end once.

use std::{
    collections::{HashSet, VecDeque},
    convert::Infallible,
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use futures_util::Stream;
use tokio::{
    sync::broadcast::error::{RecvError, TryRecvError},
    time::{Instant, Interval, MissedTickBehavior, interval_at, sleep_until},
};
use tokio_util::sync::CancellationToken;
use toolpost_a2a::{ToolEvent, producer::Begun};
use toolpost_core::{CallOnRecord, Host, JournalError, RecordKind, Session, StoredRecord};
use toolpost_model::{InvocationId, Principal, SessionId};

use super::{
    Crowded, Hub, Vocabulary,
    hub::{News, Watching},
    vocabulary::{self, Words},
};
use crate::http::{KEEP_ALIVE, STILL_HERE};

/// Records that are read at a time. The next ones are read when these were sent.
const PAGE: usize = 32;
/// More calls than this are not remembered as told; one of them may then be told twice, which changes nothing for a
/// reader that goes by ids.
const OPEN: usize = 10_000;
/// A closed session's calls get this long to end on record, looked at so often.
const LAST_ENDS: Duration = Duration::from_secs(5);
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// Where a stream begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum From {
    /// With what happens next.
    Now,
    /// With the oldest record.
    Start,
    /// Behind this record: the id of the last event that the reader has.
    After(u64),
}

/// Whose calls a stream tells.
pub(crate) enum Whose {
    /// One session's.
    Session(Arc<Session>),
    /// Everybody's, for this operator.
    Everybody(Principal),
}

impl Whose {
    fn session(&self) -> Option<&SessionId> {
        match self {
            Self::Session(session) => Some(session.id()),
            Self::Everybody(_) => None,
        }
    }

    /// Who may see what is told.
    fn principal(&self) -> &Principal {
        match self {
            Self::Session(session) => session.principal(),
            Self::Everybody(operator) => operator,
        }
    }
}

/// One stream.
pub(crate) struct Pump {
    host: Host,
    whose: Whose,
    watching: Watching,
    words: Words,
    /// The last record that was looked at.
    place: u64,
    /// There may be more in the journal than was read.
    is_due: bool,
    /// Calls that were told, and whose end was not.
    open: HashSet<InvocationId>,
    untold: VecDeque<Bytes>,
    alive: Interval,
    closing: CancellationToken,
    ending: Ending,
}

/// How near a stream is to its end.
#[derive(Clone, Copy)]
enum Ending {
    NotYet,
    /// The session was let go of. Whether it is closed, and what became of its calls, is on record by then.
    Waits {
        until: Instant,
        is_closed: bool,
    },
    /// The last words are being said.
    Over,
}

impl Pump {
    /// Takes a place among the streams and finds where to begin.
    pub(crate) async fn open(
        host: Host,
        hub: &Arc<Hub>,
        whose: Whose,
        (vocabulary, from): (Vocabulary, From),
        closing: CancellationToken,
    ) -> Result<Self, OpenError> {
        // Before the journal is asked: what is recorded meanwhile is heard.
        let watching = hub.watch(whose.session())?;
        let head = host.journal_head().await?;
        let place = match from {
            From::Now => head.seq,
            From::Start => 0,
            // Records may be lost with the power; then the reader has all that there is.
            From::After(seq) => seq.min(head.seq),
        };
        let mut alive = interval_at(Instant::now() + KEEP_ALIVE, KEEP_ALIVE);
        alive.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut pump = Self {
            host,
            whose,
            watching,
            words: Words::of(vocabulary),
            place,
            is_due: true,
            open: HashSet::new(),
            untold: VecDeque::new(),
            alive,
            closing,
            ending: Ending::NotYet,
        };
        pump.untold.push_back(pump.words.opening(place));
        if place + 1 < head.first && from != From::Start {
            pump.untold.push_back(vocabulary::remark("some records before this were removed"));
        }
        Ok(pump)
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
            if matches!(self.ending, Ending::Over) {
                return None;
            }
            if self.is_due {
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
                () = self.closing.cancelled() => self.is_due = true,
                news = self.watching.news.recv() => match news {
                    Ok(news) => self.hear(news),
                    Err(RecvError::Lagged(_)) => self.is_due = true,
                    Err(RecvError::Closed) => self.end(),
                },
                () = look_again(self.ending) => self.is_due = true,
                _ = self.alive.tick() => {
                    // Costs little, and finds what nobody told.
                    self.is_due = true;
                    return Some(STILL_HERE);
                }
            }
        }
    }

    fn hear(&mut self, news: News) {
        match news {
            News::Begun(begun) => {
                if self.open_call(begun.0) {
                    self.tell(&begun.1, None);
                }
            }
            News::Lost(lost) => {
                if self.open.remove(&lost.0) {
                    self.tell(&lost.1, None);
                }
            }
            News::Recorded => self.is_due = true,
            News::LetGo => {
                self.is_due = true;
                self.wait_for_last_ends(false);
            }
        }
    }

    /// Reads what comes next in the journal and tells it.
    async fn look(&mut self) {
        let page = match &self.whose {
            Whose::Session(session) => self.host.session_records(session, self.place, PAGE).await,
            Whose::Everybody(_) => self.host.records(self.place, PAGE).await,
        };
        let page = match page {
            Ok(page) => page,
            Err(JournalError::Closed) => return self.end(),
            Err(error) => {
                tracing::warn!(%error, "a stream of a session cannot read the journal");
                self.is_due = false;
                return;
            }
        };
        // After the page was read: of a call that ended in it, the beginning was told before, and so is not told late.
        loop {
            match self.watching.news.try_recv() {
                Ok(news) => self.hear(news),
                Err(TryRecvError::Lagged(_)) => {}
                Err(TryRecvError::Empty | TryRecvError::Closed) => break,
            }
        }
        for row in &page.rows {
            self.read(row).await;
        }
        self.is_due = page.up_to > self.place;
        self.place = page.up_to;
        if let Ending::Waits { until, is_closed } = self.ending
            && !self.is_due
        {
            let is_late = Instant::now() >= until;
            if is_closed && (is_late || self.open.is_empty()) {
                self.end();
            } else if is_late {
                // It only left memory.
                self.ending = Ending::NotYet;
            }
        }
    }

    async fn read(&mut self, row: &StoredRecord) {
        let is_end = match row.record.kind {
            RecordKind::Accepted | RecordKind::Asked | RecordKind::Started => false,
            RecordKind::Ended => true,
            RecordKind::SessionClosed => return self.wait_for_last_ends(true),
            RecordKind::HostStarted
            | RecordKind::SessionOpened
            | RecordKind::Decided
            | RecordKind::Catalog
            | RecordKind::Surface
            | RecordKind::Pruned => return,
        };
        let Some(id) = row.record.invocation_id else { return };
        if !is_end && self.open.contains(&id) {
            return;
        }
        let Some(call) = self.call(id, row).await else { return };
        // Told with its end where it was not told before, so that no reader meets an end without a call.
        if self.open_call(id) {
            let tool_call_id = id.to_string();
            let begun = Begun {
                tool_call_id: &tool_call_id,
                tool_name: &call.tool,
                input: call.arguments.as_ref(),
                at: call.began_at,
            };
            self.tell(&begun.event(), (!is_end).then_some(row.seq));
        }
        if let Some(end) = call.end.filter(|_| is_end) {
            self.open.remove(&id);
            let event = vocabulary::ended(id, &call.tool, call.arguments.as_ref(), end.answer.result());
            self.tell(&event, Some(row.seq));
        }
    }

    /// The session was let go of. Where all are told, the others go on.
    fn wait_for_last_ends(&mut self, is_closed: bool) {
        match self.whose {
            Whose::Session(_) => {
                self.ending = Ending::Waits { until: Instant::now() + LAST_ENDS, is_closed };
            }
            Whose::Everybody(_) => {}
        }
    }

    /// What is known of a call. Its first record says all that an end alone does not.
    async fn call(&self, id: InvocationId, row: &StoredRecord) -> Option<CallOnRecord> {
        if let Some(call) = CallOnRecord::of(std::slice::from_ref(row)) {
            return Some(call);
        }
        self.host.recorded_call(id, self.whose.principal()).await.ok().flatten()
    }

    /// Whether the call was not told before.
    fn open_call(&mut self, id: InvocationId) -> bool {
        if self.open.len() >= OPEN {
            self.open.clear();
        }
        self.open.insert(id)
    }

    fn tell(&mut self, event: &ToolEvent, id: Option<u64>) {
        self.untold.push_back(self.words.frame(event, id));
    }

    fn end(&mut self) {
        if !matches!(self.ending, Ending::Over) {
            self.ending = Ending::Over;
            self.untold.extend(self.words.closing());
        }
    }
}

/// While a session is being closed, its records are looked at without being told.
async fn look_again(ending: Ending) {
    match ending {
        Ending::Waits { .. } => sleep_until(Instant::now() + LOOK_AGAIN).await,
        Ending::NotYet | Ending::Over => std::future::pending().await,
    }
}

/// Why a stream cannot begin.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OpenError {
    #[error(transparent)]
    Crowded(#[from] Crowded),
    #[error(transparent)]
    Journal(#[from] JournalError),
}
