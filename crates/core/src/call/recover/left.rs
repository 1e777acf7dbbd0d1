//! The open calls and questions in the records of the last host.

use std::collections::{BTreeSet, HashMap};

use jiff::Timestamp;
use toolpost_model::{
    Arguments, Decision, ErrorClass, InvocationId, ProgramFile, SessionId, Verdict,
};

use crate::{
    approval::{ApprovalAnswer, ApprovalConsent, ApprovalRejection},
    record::{
        body::{
            CallRecordBody, RecordBodyMember, RecordedCallRequest, RecordedQuestion, VerdictBody,
        },
        journal::{RecordKind, RequestKey, StoredRecord},
    },
};

/// A call without an end on record.
#[derive(Clone)]
pub(super) struct OpenCall {
    pub(super) id: InvocationId,
    pub(super) session: SessionId,
    pub(super) call: RecordedCallRequest<'static>,
    pub(super) request: Option<RequestKey>,
    /// Whether the call had started something that may have a side effect.
    pub(super) started: bool,
    /// The question that the call waits for.
    pub(super) asks: Option<UnfinishedQuestion>,
}

/// A question without an answer, as its call asked it.
#[derive(Clone)]
pub(super) struct UnfinishedQuestion {
    pub(super) asked: RecordedQuestion,
    pub(super) decision: Decision,
    /// The files that the call would run, as they were.
    pub(super) programs: Vec<ProgramFile>,
}

/// A question that a call or an operator may still use.
pub(super) struct LeftQuestion {
    pub(super) asked: RecordedQuestion,
    /// The call that asked last.
    pub(super) raised_by: OpenCall,
    /// The open calls that wait for the question.
    waiting: BTreeSet<InvocationId>,
    /// The calls whose records mention the question.
    pub(super) told_by: BTreeSet<InvocationId>,
    /// The last caller got `approval_pending` and may call again.
    is_kept: bool,
    pub(super) answer: Option<VerdictBody>,
    /// The answer was for one call, and that call has started.
    is_spent: bool,
}

impl LeftQuestion {
    /// Whether the question is open without a waiting call.
    pub(super) fn is_kept_open(&self, now: Timestamp) -> bool {
        let is_open = self.answer.is_none() && now < self.asked.expires_at;
        is_open && self.is_kept && self.waiting.is_empty()
    }

    /// The answer if it can serve one more call, with its expiry.
    pub(super) fn kept_answer(&self, now: Timestamp) -> Option<(&VerdictBody, Timestamp)> {
        let answer = self
            .answer
            .as_ref()
            .filter(|_| self.waiting.is_empty() && !self.is_spent)?;
        let until = answer.kept_until.filter(|until| now < *until)?;
        Some((answer, until))
    }

    pub(super) fn is_awaited(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Whether the question and its answer have no further use.
    fn is_settled(&self) -> bool {
        let is_kept = match &self.answer {
            None => self.is_kept,
            Some(answer) => answer.kept_until.is_some() && !self.is_spent,
        };
        self.waiting.is_empty() && !is_kept
    }
}

impl VerdictBody {
    /// The answer for a call. `None` if the approved arguments are not fully on record.
    pub(super) fn word(&self) -> Option<ApprovalAnswer> {
        let ask_id = self.ask_id;
        let by = self.by.clone();
        match &self.verdict {
            Verdict::Deny { feedback } => Some(ApprovalAnswer::No(ApprovalRejection {
                ask_id,
                by,
                feedback: feedback.clone(),
            })),
            Verdict::Allow { .. } if self.redacted => None,
            Verdict::Allow { arguments, .. } => {
                let approves = self.approves?;
                let arguments = arguments.clone();
                let programs = self.programs.clone();
                Some(ApprovalAnswer::Yes(ApprovalConsent {
                    ask_id,
                    by,
                    approves,
                    arguments,
                    programs,
                }))
            }
        }
    }
}

/// The open calls and questions, updated record by record.
#[derive(Default)]
pub(super) struct LeftBehind {
    pub(super) calls: HashMap<InvocationId, OpenCall>,
    pub(super) questions: HashMap<InvocationId, LeftQuestion>,
}

impl LeftBehind {
    pub(super) fn follow(&mut self, row: &StoredRecord) {
        let (Some(id), Some(session)) = (row.record.invocation_id, &row.record.session_id) else {
            return;
        };
        let way = || row.record.read_body::<CallRecordBody<'_>>().ok();
        match row.record.kind {
            RecordKind::Accepted | RecordKind::Asked | RecordKind::Started => {
                let Some(mut way) = way() else { return };
                if let Some(call) = way.call.take() {
                    let session = session.clone();
                    let request = row.record.request.clone();
                    let open = OpenCall {
                        id,
                        session,
                        call,
                        request,
                        started: false,
                        asks: None,
                    };
                    self.calls.insert(id, open);
                }
                self.went_on(id, row.record.kind, way);
            }
            RecordKind::Ended => {
                let way = way();
                let class = way.as_ref().and_then(CallRecordBody::error_class);
                self.note_spent(way.as_ref());
                let ended = self.calls.remove(&id).and_then(|call| call.asks);
                if let Some(asks) = ended {
                    self.leave(
                        asks.asked.ask_id,
                        id,
                        class == Some(ErrorClass::ApprovalPending),
                    );
                }
            }
            RecordKind::Decided => {
                let Ok(body) = row.record.read_body::<VerdictBody>() else {
                    return;
                };
                if let Some(question) = self.questions.get_mut(&body.ask_id) {
                    question.told_by.insert(id);
                    question.answer = Some(body);
                }
            }
            RecordKind::HostStarted
            | RecordKind::SessionOpened
            | RecordKind::SessionClosed
            | RecordKind::Catalog
            | RecordKind::Surface
            | RecordKind::Discovered
            | RecordKind::Pruned => {}
        }
    }

    fn went_on(&mut self, id: InvocationId, kind: RecordKind, way: CallRecordBody<'static>) {
        self.note_spent(Some(&way));
        let Some(call) = self.calls.get_mut(&id) else {
            return;
        };
        call.started |= kind == RecordKind::Started;
        let (Some(asked), Some(decision)) = (way.ask, way.decision) else {
            return;
        };
        if let Some(arguments) = way.arguments {
            replace_arguments(&mut call.call, arguments, way.redacted);
        }
        let before = call.asks.replace(UnfinishedQuestion {
            asked,
            decision: decision.into_owned(),
            programs: way.programs.into_owned(),
        });
        let raised_by = call.clone();
        let question = self
            .questions
            .entry(asked.ask_id)
            .or_insert_with(|| LeftQuestion {
                asked,
                raised_by: raised_by.clone(),
                waiting: BTreeSet::new(),
                told_by: BTreeSet::new(),
                is_kept: false,
                answer: None,
                is_spent: false,
            });
        question.raised_by = raised_by;
        question.waiting.insert(id);
        question.told_by.insert(id);
        if let Some(before) = before.filter(|before| before.asked.ask_id != asked.ask_id) {
            self.leave(before.asked.ask_id, id, false);
        }
    }

    fn note_spent(&mut self, way: Option<&CallRecordBody<'_>>) {
        let spent = way
            .and_then(|way| way.approval.as_ref())
            .filter(|approval| approval.spent);
        if let Some(question) = spent.and_then(|spent| self.questions.get_mut(&spent.ask_id)) {
            question.is_spent = true;
        }
    }

    fn leave(&mut self, ask_id: InvocationId, call: InvocationId, comes_again: bool) {
        let Some(question) = self.questions.get_mut(&ask_id) else {
            return;
        };
        question.waiting.remove(&call);
        question.is_kept = comes_again;
        if question.is_settled() {
            self.questions.remove(&ask_id);
        }
    }
}

/// Replaces the arguments of the request by those after the hooks. The model's arguments are kept.
fn replace_arguments(
    call: &mut RecordedCallRequest<'static>,
    arguments: RecordBodyMember<'static, Arguments>,
    redacted: bool,
) {
    let before = call.arguments.replace(arguments);
    call.model_arguments = call.model_arguments.take().or(before);
    call.redacted = redacted;
}
