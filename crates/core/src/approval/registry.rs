//! The registry of open questions, behind one lock that is never held across an await.
//!
//! A question is *opening* until it is on record, *open* while it waits, and *deciding* while an answer is being
//! recorded. In the first and the last state, calls cannot join or leave; they wait until the state changes. The record
//! of an answer states how many calls it is for, and the record of a question exists before an operator can see it.
//! Both would become wrong if calls came and went while the journal writes, and after a crash one answer could lead to
//! two executions.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};

use parking_lot::Mutex;
use tokio::{sync::watch, time::Instant};
use toolpost_model::{CallHash, InvocationId, PermissionRequest, Principal, ProgramFile, Rule};

use super::{
    ApprovalAnswer, ApprovalGrant, ApprovalQuestion, CallHashSalt, QuestionClosure, QuestionContext,
};
use crate::session::Session;

/// Calls with the same key share a question.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct QuestionKey {
    pub(crate) principal: Principal,
    pub(crate) hash: CallHash,
}

/// The number of closed questions that are kept in memory.
const KEPT_CLOSED: usize = 1_024;

pub(crate) struct QuestionRegistry {
    table: Mutex<QuestionTable>,
    changes: watch::Sender<u64>,
    limit: usize,
    pub(crate) salt: CallHashSalt,
}

#[derive(Default)]
struct QuestionTable {
    open: HashMap<InvocationId, QuestionEntry>,
    by_key: HashMap<QuestionKey, InvocationId>,
    /// Answers to questions without waiting calls.
    late: HashMap<QuestionKey, ApprovalGrant>,
    closed: VecDeque<(InvocationId, QuestionClosure)>,
}

struct QuestionEntry {
    draft: Arc<ApprovalQuestion>,
    standing: QuestionState,
    waiting: Vec<(InvocationId, Arc<Session>)>,
    word: watch::Sender<Option<ApprovalAnswer>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum QuestionState {
    Opening,
    Open,
    Deciding,
}

/// The result of bringing a call to the registry.
pub(crate) enum QuestionAdmission {
    /// The question is new. The caller must record it and then open it.
    New(QuestionWaiter),
    /// An equal question is open, and the call joined it.
    Joined(QuestionWaiter),
    /// An equal question was answered while no call waited.
    Late(ApprovalGrant),
    /// An equal question is being recorded or answered. The caller must try again after the next change.
    Busy(watch::Receiver<Option<ApprovalAnswer>>),
    Full(TableFull),
}

/// The reason for refusing a further question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TableFull {
    #[error("{0} calls wait for an answer")]
    Host(usize),
    #[error("{0} calls of this caller wait for an answer")]
    Caller(usize),
}

/// Why a call leaves before an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QuestionLeaveReason {
    /// The call is canceled or its caller disconnected. The last call that gives up withdraws the question.
    GivenUp,
    /// The caller stops waiting or the host stops. The question stays open for an answer.
    ForNow,
}

/// Whether the call could leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QuestionLeaveReply {
    Gone,
    /// An answer exists or is being recorded, and it holds for this call.
    NotNow,
}

/// The result of claiming a question for an answer.
pub(crate) enum VerdictAdmission {
    Deciding(QuestionClaim),
    Busy(watch::Receiver<Option<ApprovalAnswer>>),
    Closed(QuestionClosure),
    Unknown,
}

impl QuestionRegistry {
    pub(crate) fn new(limit: usize) -> Arc<Self> {
        let table = Mutex::default();
        let changes = watch::Sender::new(0);
        Arc::new(Self {
            table,
            changes,
            limit,
            salt: CallHashSalt::new(),
        })
    }

    fn changed(&self) {
        self.changes.send_modify(|count| *count += 1);
    }

    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Brings a call to the registry: the call gets a kept answer, joins a question or raises one.
    pub(crate) fn enter(
        self: &Arc<Self>,
        draft: ApprovalQuestion,
        call: InvocationId,
        session: &Arc<Session>,
    ) -> QuestionAdmission {
        let key = draft.key();
        let table = &mut *self.table.lock();
        if let Some(late) = table.late.remove(&key)
            && late.until > Instant::now()
        {
            return QuestionAdmission::Late(late);
        }
        if let Some(question) = table.by_key.get(&key).and_then(|id| table.open.get(id))
            && question.standing != QuestionState::Open
        {
            return QuestionAdmission::Busy(question.word.subscribe());
        }
        if let Err(full) = table.has_room(&key.principal, self.limit) {
            return QuestionAdmission::Full(full);
        }
        let waiter = (call, Arc::clone(session));
        if let Some(id) = table.by_key.get(&key)
            && let Some(question) = table.open.get_mut(id)
        {
            question.waiting.push(waiter);
            let draft = Arc::clone(&question.draft);
            let word = question.word.subscribe();
            self.changed();
            return QuestionAdmission::Joined(QuestionWaiter {
                questions: Arc::clone(self),
                draft,
                call,
                word,
            });
        }
        let entry = QuestionEntry {
            draft: Arc::new(draft),
            standing: QuestionState::Opening,
            waiting: vec![waiter],
            word: watch::Sender::new(None),
        };
        let seat = QuestionWaiter {
            questions: Arc::clone(self),
            draft: Arc::clone(&entry.draft),
            call,
            word: entry.word.subscribe(),
        };
        table.put(key, entry);
        QuestionAdmission::New(seat)
    }

    /// Restores a question without waiting calls: its caller got `approval_pending` and may call again.
    pub(crate) fn restore(&self, draft: ApprovalQuestion) {
        let key = draft.key();
        let ask_id = draft.request.ask_id;
        let table = &mut *self.table.lock();
        let is_known = table.by_key.contains_key(&key) || table.open.contains_key(&ask_id);
        if is_known || table.has_room(&key.principal, self.limit).is_err() {
            return;
        }
        let entry = QuestionEntry {
            draft: Arc::new(draft),
            standing: QuestionState::Open,
            waiting: Vec::new(),
            word: watch::Sender::new(None),
        };
        table.put(key, entry);
        self.changed();
    }

    /// Keeps an answer for one later call with the same key. If the registry is full, the answer that expires first is
    /// dropped.
    pub(crate) fn keep(&self, late: ApprovalGrant) {
        let table = &mut *self.table.lock();
        if table.late.len() >= self.limit.max(1) {
            let soonest = table
                .late
                .values()
                .min_by_key(|kept| kept.until)
                .map(|kept| kept.key.clone());
            soonest.and_then(|key| table.late.remove(&key));
        }
        table.late.insert(late.key.clone(), late);
    }

    /// The files of the same call at the approval that is kept for it. The call is found by its hash without files. An
    /// edited call is skipped, because the files of the edited call cannot be compared with those of the original.
    pub(crate) fn files_of_kept_yes(
        &self,
        principal: &Principal,
        without_files: CallHash,
    ) -> Option<Vec<ProgramFile>> {
        let table = self.table.lock();
        let is_same = |late: &&ApprovalGrant| {
            late.key.principal == *principal && late.without_files == Some(without_files)
        };
        table
            .late
            .values()
            .filter(is_same)
            .find_map(|late| match &late.word {
                ApprovalAnswer::Yes(yes) if yes.arguments.is_none() => Some(yes.programs.clone()),
                ApprovalAnswer::Yes(_) | ApprovalAnswer::No(_) | ApprovalAnswer::Expired => None,
            })
    }

    /// The open questions, oldest first.
    pub(crate) fn list(&self) -> Vec<PermissionRequest> {
        let table = self.table.lock();
        let shown = table
            .open
            .values()
            .filter(|question| question.standing != QuestionState::Opening);
        let mut requests: Vec<PermissionRequest> = shown.map(QuestionEntry::shown).collect();
        requests.sort_unstable_by_key(|request| (request.asked_at, request.ask_id));
        requests
    }

    pub(crate) fn get(&self, id: InvocationId) -> Option<PermissionRequest> {
        let table = self.table.lock();
        let found = table
            .open
            .get(&id)
            .filter(|question| question.standing != QuestionState::Opening);
        found.map(QuestionEntry::shown)
    }

    pub(crate) fn count(&self) -> usize {
        self.table.lock().open.len()
    }

    pub(crate) fn closed(&self, id: InvocationId) -> Option<QuestionClosure> {
        self.table.lock().closed_as(id)
    }

    /// Claims a question for an answer. Other answers and calls wait until the claim is over.
    pub(crate) fn begin(self: &Arc<Self>, id: InvocationId) -> VerdictAdmission {
        let table = &mut *self.table.lock();
        let Some(question) = table.open.get_mut(&id) else {
            return table
                .closed_as(id)
                .map_or(VerdictAdmission::Unknown, VerdictAdmission::Closed);
        };
        match question.standing {
            QuestionState::Opening | QuestionState::Deciding => {
                return VerdictAdmission::Busy(question.word.subscribe());
            }
            QuestionState::Open => {}
        }
        if question.draft.deadline <= Instant::now() {
            table.close(id, QuestionClosure::Expired, Some(ApprovalAnswer::Expired));
            self.changed();
            return VerdictAdmission::Closed(QuestionClosure::Expired);
        }
        question.standing = QuestionState::Deciding;
        let draft = Arc::clone(&question.draft);
        let waiting = question.waiting.len();
        let session = question.session();
        VerdictAdmission::Deciding(QuestionClaim {
            questions: Arc::clone(self),
            draft,
            waiting,
            session,
            is_over: false,
        })
    }

    /// Expires overdue questions. Returns the next expiry.
    pub(crate) fn expire(&self) -> Option<Instant> {
        let table = &mut *self.table.lock();
        let now = Instant::now();
        table.late.retain(|_, late| late.until > now);
        let open = || {
            table
                .open
                .iter()
                .filter(|(_, question)| question.standing == QuestionState::Open)
        };
        let over = open().filter(|(_, question)| question.draft.deadline <= now);
        let over: Vec<InvocationId> = over.map(|(id, _)| *id).collect();
        for id in &over {
            table.close(*id, QuestionClosure::Expired, Some(ApprovalAnswer::Expired));
        }
        if !over.is_empty() {
            self.changed();
        }
        // A question that is being decided is not expired here. If its answer cannot be recorded, it is open again, and
        // the change wakes the caller of this function.
        table
            .open
            .values()
            .map(|question| question.draft.deadline)
            .filter(|end| *end > now)
            .min()
    }

    fn leave(
        &self,
        ask_id: InvocationId,
        call: InvocationId,
        why: QuestionLeaveReason,
    ) -> QuestionLeaveReply {
        let table = &mut *self.table.lock();
        let Some(question) = table.open.get_mut(&ask_id) else {
            return QuestionLeaveReply::NotNow;
        };
        let Some(place) = question
            .waiting
            .iter()
            .position(|(waiter, _)| *waiter == call)
        else {
            return QuestionLeaveReply::Gone;
        };
        match question.standing {
            QuestionState::Deciding => return QuestionLeaveReply::NotNow,
            QuestionState::Opening => table.close(ask_id, QuestionClosure::Withdrawn, None),
            QuestionState::Open => {
                question.waiting.remove(place);
                if question.waiting.is_empty() && why == QuestionLeaveReason::GivenUp {
                    table.close(ask_id, QuestionClosure::Withdrawn, None);
                }
            }
        }
        self.changed();
        QuestionLeaveReply::Gone
    }
}

impl QuestionTable {
    fn put(&mut self, key: QuestionKey, entry: QuestionEntry) {
        let ask_id = entry.draft.request.ask_id;
        self.by_key.insert(key, ask_id);
        self.open.insert(ask_id, entry);
    }

    /// Limits each caller to half of the registry, so that one caller cannot block the questions of others.
    fn has_room(&self, principal: &Principal, limit: usize) -> Result<(), TableFull> {
        let mut all = 0;
        let mut own = 0;
        for question in self.open.values() {
            let calls = question.waiting.len().max(1);
            all += calls;
            if question.draft.request.principal == *principal {
                own += calls;
            }
        }
        let half = limit.div_ceil(2);
        if all >= limit {
            Err(TableFull::Host(limit))
        } else if own >= half {
            Err(TableFull::Caller(half))
        } else {
            Ok(())
        }
    }

    fn close(&mut self, id: InvocationId, how: QuestionClosure, word: Option<ApprovalAnswer>) {
        let Some(question) = self.open.remove(&id) else {
            return;
        };
        self.by_key.remove(&question.draft.key());
        if self.closed.len() >= KEPT_CLOSED {
            self.closed.pop_front();
        }
        self.closed.push_back((id, how));
        if let Some(word) = word {
            question.word.send_replace(Some(word));
        }
    }

    fn closed_as(&self, id: InvocationId) -> Option<QuestionClosure> {
        self.closed
            .iter()
            .rev()
            .find(|(closed, _)| *closed == id)
            .map(|(_, how)| how.clone())
    }
}

impl QuestionEntry {
    /// The session that an answer for a session applies to: the session of the call that raised the question, or, after
    /// that call left, the session that has waited longest.
    fn session(&self) -> Arc<Session> {
        let raised_in = &self.draft.about.session;
        let is_there = |(_, session): &(_, Arc<Session>)| session.id() == raised_in.id();
        match self.waiting.first() {
            Some((_, session)) if !self.waiting.iter().any(is_there) => Arc::clone(session),
            Some(_) | None => Arc::clone(raised_in),
        }
    }

    fn shown(&self) -> PermissionRequest {
        let mut request = self.draft.request.clone();
        request.waiting = self.waiting.len();
        request.session_id = self.session().id().clone();
        request
    }
}

/// A call's membership in a question. Dropping it gives up the call.
pub(crate) struct QuestionWaiter {
    questions: Arc<QuestionRegistry>,
    draft: Arc<ApprovalQuestion>,
    call: InvocationId,
    word: watch::Receiver<Option<ApprovalAnswer>>,
}

impl QuestionWaiter {
    /// The question as it was raised.
    pub(crate) fn request(&self) -> &PermissionRequest {
        &self.draft.request
    }

    /// Opens a question that is on record: operators can see and answer it, and calls can join it.
    pub(crate) fn open(&self) {
        if let Some(question) = self
            .questions
            .table
            .lock()
            .open
            .get_mut(&self.draft.request.ask_id)
            && question.standing == QuestionState::Opening
        {
            question.standing = QuestionState::Open;
            question.word.send_modify(|_| ());
        }
        self.questions.changed();
    }

    pub(crate) async fn word(&mut self) -> ApprovalAnswer {
        match self.word.wait_for(Option::is_some).await {
            Ok(word) => word.clone().unwrap_or(ApprovalAnswer::Expired),
            // Unreachable: a question with waiting calls is closed only with an answer.
            Err(_) => ApprovalAnswer::Expired,
        }
    }

    /// Waits for a change of the question.
    pub(crate) async fn changed(&mut self) {
        let _ = self.word.changed().await;
    }

    pub(crate) fn leave(&mut self, why: QuestionLeaveReason) -> QuestionLeaveReply {
        self.word.mark_unchanged();
        self.questions
            .leave(self.draft.request.ask_id, self.call, why)
    }
}

impl Drop for QuestionWaiter {
    fn drop(&mut self) {
        self.questions.leave(
            self.draft.request.ask_id,
            self.call,
            QuestionLeaveReason::GivenUp,
        );
    }
}

/// The exclusive right to answer a question. Dropping it without an answer opens the question again.
pub(crate) struct QuestionClaim {
    questions: Arc<QuestionRegistry>,
    pub(crate) draft: Arc<ApprovalQuestion>,
    /// The number of calls that the answer is for. It cannot change during the claim.
    pub(crate) waiting: usize,
    pub(crate) session: Arc<Session>,
    is_over: bool,
}

impl QuestionClaim {
    pub(crate) fn about(&self) -> &QuestionContext {
        &self.draft.about
    }

    pub(crate) fn offered(&self) -> &[Rule] {
        &self.draft.offered
    }

    /// Closes the question with an answer that is on record. Waiting calls receive the answer; without any, it is kept.
    pub(crate) fn finish(
        mut self,
        word: ApprovalAnswer,
        closed: QuestionClosure,
        kept_until: Option<Instant>,
    ) {
        self.is_over = true;
        if let Some(until) = kept_until {
            let key = self.draft.key();
            let without_files = self.draft.hashes.without_files;
            self.questions.keep(ApprovalGrant {
                key,
                without_files,
                word: word.clone(),
                until,
            });
        }
        self.questions
            .table
            .lock()
            .close(self.draft.request.ask_id, closed, Some(word));
        self.questions.changed();
    }
}

impl Drop for QuestionClaim {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        if let Some(question) = self
            .questions
            .table
            .lock()
            .open
            .get_mut(&self.draft.request.ask_id)
        {
            question.standing = QuestionState::Open;
            question.word.send_modify(|_| ());
        }
        self.questions.changed();
    }
}
