//! What operators are asked, and their answers.

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;
use serde_json::Value;
use tokio::{sync::watch, time::Instant};
use tokio_util::sync::CancellationToken;
use toolpost_model::{
    ApprovalScope, Arguments, CallHash, CallInput, ErrorClass, InvocationId, PermissionInput,
    PermissionRequest, Principal, PrincipalName, Role, Rule, RuleOrigin, Verdict,
};

use super::{Host, Inner};
use crate::{
    call::permitting::{effects_of, hash_of},
    catalog::Violation,
    flow::{
        approval::{
            Approvals, Begun, Closed, Deciding, No, RememberedRule, RuleStoreError, Word, Yes, place,
        },
        hooks::changed_fields,
        permission::Facts,
    },
    record::{
        journal::{JournalError, Record, RecordKind, Strength},
        redaction,
        rendering::{DecidedBody, RecordedWay},
    },
};

/// How long a remembered rule speaks where nobody says otherwise.
const REMEMBERED_FOR: Duration = Duration::from_secs(30 * 24 * 3_600);
/// And at most.
const LONGEST: Duration = Duration::from_secs(10 * 365 * 24 * 3_600);

/// An answer that counts.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Decided {
    /// The question.
    pub ask_id: InvocationId,
    /// Whether it was a yes.
    pub allowed: bool,
    /// Who answered.
    pub by: PrincipalName,
    /// When.
    pub at: Timestamp,
    /// How many calls were waiting for it.
    pub waiting: usize,
    /// Nobody was waiting any more: until then the same call by the same caller gets this answer, once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kept_until: Option<Timestamp>,
    /// The rule that lets calls like this one pass from now on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// The same, where it outlives the session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remembered: Option<RememberedRule>,
}

/// Why an answer does not count.
#[derive(Debug, thiserror::Error)]
pub enum ApprovalError {
    /// There is no such question.
    #[error("no question `{0}` is open")]
    Unknown(InvocationId),
    /// Somebody was faster.
    #[error("`{by}` said {} at {at}", if *.allowed { "yes" } else { "no" })]
    AlreadyDecided {
        /// Who.
        by: PrincipalName,
        /// When.
        at: Timestamp,
        /// Whether it was a yes.
        allowed: bool,
    },
    /// Too late.
    #[error("nobody answered in time, and no answer is a no")]
    Expired,
    /// Nobody wants to know any more.
    #[error("the call was given up by its caller")]
    Withdrawn,
    /// Agents never answer.
    #[error("only an operator may answer")]
    NotOperator,
    /// An agent does not answer for itself under another hat.
    #[error("`{0}` may not answer for a call that an agent of the same name made")]
    OwnCall(PrincipalName),
    /// The other arguments do not fit the tool.
    #[error("the arguments do not fit: {}", .0.iter().map(told).collect::<Vec<_>>().join("; "))]
    BadArguments(Vec<Violation>),
    /// No rule was suggested, or not this one.
    #[error("{}", nothing_to_remember(.asked.as_deref(), .offered))]
    NothingToRemember {
        /// The rule that was named.
        asked: Option<String>,
        /// The ones that would work.
        offered: Vec<String>,
    },
    /// What would be changed was not shown.
    #[error("the call has sensitive arguments that are not shown, so it can only be taken as it is")]
    Redacted,
    /// The answer could not be put on record, so it does not count.
    #[error("the answer does not count, because {0}")]
    Journal(#[from] JournalError),
    /// The rule could not be kept, so the answer does not count.
    #[error("the answer does not count, because {0}")]
    Rules(#[from] RuleStoreError),
}

impl ApprovalError {
    /// A word that does not change, for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Unknown(_) => "unknown",
            Self::AlreadyDecided { .. } => "already_decided",
            Self::Expired => "expired",
            Self::Withdrawn => "withdrawn",
            Self::NotOperator => "not_operator",
            Self::OwnCall(_) => "own_call",
            Self::BadArguments(_) => "bad_arguments",
            Self::NothingToRemember { .. } => "nothing_to_remember",
            Self::Redacted => "redacted",
            Self::Journal(_) => "journal",
            Self::Rules(_) => "rules",
        }
    }
}

impl From<Closed> for ApprovalError {
    fn from(closed: Closed) -> Self {
        match closed {
            Closed::Decided { by, at, allowed } => Self::AlreadyDecided { by, at, allowed },
            Closed::Expired => Self::Expired,
            Closed::Withdrawn => Self::Withdrawn,
        }
    }
}

fn told(fault: &Violation) -> String {
    let at = if fault.at.is_empty() { "the arguments" } else { fault.at.as_str() };
    format!("at {at}: expected {}, got {}", fault.expected, fault.given)
}

fn nothing_to_remember(asked: Option<&str>, offered: &[String]) -> String {
    match (asked, offered) {
        (_, []) => "no rule can be remembered for this call; it can be allowed this once".to_owned(),
        (Some(asked), some) => format!("`{asked}` is not suggested; suggested is `{}`", some.join("`, `")),
        (None, some) => format!("suggested is `{}`", some.join("`, `")),
    }
}

impl Host {
    /// What waits for an answer, oldest first.
    pub fn approvals(&self) -> Vec<PermissionRequest> {
        self.inner.questions.list()
    }

    /// One question that waits for an answer.
    pub fn approval(&self, id: InvocationId) -> Option<PermissionRequest> {
        self.inner.questions.get(id)
    }

    /// What became of a question that does not wait any more, as far as this host remembers.
    pub fn closed_approval(&self, id: InvocationId) -> Option<Closed> {
        self.inner.questions.closed(id)
    }

    /// Resolves whenever a question came, went, or has other callers waiting.
    pub fn approval_changes(&self) -> watch::Receiver<u64> {
        self.inner.questions.changes()
    }

    /// Answers a question. The answer is on record before any call goes on with it; once begun it is carried
    /// through, also where nobody waits for this to return.
    pub async fn decide(
        &self,
        id: InvocationId,
        verdict: Verdict,
        by: &Principal,
    ) -> Result<Decided, ApprovalError> {
        if by.role != Role::Operator {
            return Err(ApprovalError::NotOperator);
        }
        let (inner, by) = (Arc::clone(&self.inner), by.clone());
        let answering = self.inner.state.tasks.spawn(async move { inner.answer(id, verdict, by).await });
        // It does not panic; a runtime that is torn down takes the answer with it.
        answering.await.unwrap_or(Err(ApprovalError::Journal(JournalError::Closed)))
    }

    /// The rules that approvals left behind.
    pub fn remembered(&self) -> Vec<RememberedRule> {
        self.inner.policy.remembered(crate::port::now())
    }

    /// Drops a remembered rule; `false` where there is none of that name.
    pub async fn forget(&self, id: &str) -> Result<bool, RuleStoreError> {
        let (store, name) = (Arc::clone(&self.inner.rules), id.to_owned());
        let found = blocking(move || store.forget(&name)).await?;
        self.inner.forget(id);
        Ok(found)
    }
}

/// Runs what may wait for a disk where nobody else has to wait for it.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, RuleStoreError> + Send + 'static,
) -> Result<T, RuleStoreError> {
    let broke = |_| RuleStoreError { reason: "the store broke off".to_owned(), source: None };
    tokio::task::spawn_blocking(work).await.map_err(broke)?
}

/// An answer that was found good, and what it brings about.
struct Weighed {
    word: Word,
    body: DecidedBody,
    rule: Option<Rule>,
    remembered: Option<RememberedRule>,
    kept_until: Option<Instant>,
}

impl Inner {
    async fn answer(
        self: Arc<Self>,
        id: InvocationId,
        verdict: Verdict,
        by: Principal,
    ) -> Result<Decided, ApprovalError> {
        let deciding = loop {
            match self.questions.begin(id) {
                Begun::Deciding(deciding) => break deciding,
                // Another answer is being written down. If it cannot be, this one has its turn.
                Begun::Busy(mut over) => {
                    let _ = over.changed().await;
                }
                Begun::Closed(how) => return Err(how.into()),
                Begun::Unknown => return Err(self.on_record(id).await),
            }
        };
        let asker = &deciding.draft.request.principal;
        if asker.role == Role::Agent && asker.name == by.name {
            return Err(ApprovalError::OwnCall(by.name));
        }
        let at = crate::port::now();
        let weighed = self.weigh(&deciding, verdict, by.name, at)?;
        self.put_on_record(&deciding, &weighed, at).await?;
        Ok(self.carry_out(deciding, weighed, at))
    }

    /// Whether the answer can count, and what it means.
    fn weigh(
        &self,
        deciding: &Deciding,
        verdict: Verdict,
        by: PrincipalName,
        at: Timestamp,
    ) -> Result<Weighed, ApprovalError> {
        let request = &deciding.draft.request;
        let ask_id = request.ask_id;
        let mut body = DecidedBody {
            ask_id,
            hash: request.call_hash,
            approves: None,
            principal: request.principal.name.clone(),
            role: request.principal.role,
            tool_id: request.tool_id.to_string(),
            verdict: verdict.clone(),
            changed_fields: Vec::new(),
            redacted: false,
            by: by.clone(),
            waiting: deciding.waiting,
            kept_until: None,
            rule: None,
        };
        let kept_until = self.kept_until(deciding.waiting, at, &mut body);
        let (scope, named, valid_for, arguments) = match verdict {
            Verdict::Deny { feedback } => {
                let word = Word::No(No { ask_id, by, feedback });
                return Ok(Weighed { word, body, rule: None, remembered: None, kept_until });
            }
            Verdict::Allow { scope, rule, valid_for_seconds, arguments } => {
                (scope, rule, valid_for_seconds.map(Duration::from_secs), arguments)
            }
        };
        let (approves, offered) = match &arguments {
            None => (request.call_hash, deciding.offered().to_vec()),
            Some(arguments) => self.check_edit(deciding, arguments, &mut body)?,
        };
        body.approves = Some(approves);
        let expires = at + signed(valid_for.unwrap_or(REMEMBERED_FOR).min(LONGEST));
        let (rule, remembered) = match scope {
            ApprovalScope::Once => (None, None),
            ApprovalScope::Session => {
                let mut rule = chosen(named, offered)?;
                (rule.origin, rule.place) = (RuleOrigin::Session, place(ask_id, &by));
                rule.expires = valid_for.is_some().then_some(expires);
                (Some(rule), None)
            }
            ApprovalScope::Remember => {
                let rule = chosen(named, offered)?;
                let kept = RememberedRule {
                    id: ask_id.to_string(),
                    rule: rule.to_string(),
                    principal: rule.principal.clone(),
                    by: by.clone(),
                    at,
                    expires,
                    ask_id,
                };
                (Some(rule), Some(kept))
            }
        };
        body.rule = rule.as_ref().map(ToString::to_string);
        let word = Word::Yes(Yes { ask_id, by, approves, arguments });
        Ok(Weighed { word, body, rule, remembered, kept_until })
    }

    /// Where nobody waits, the answer is kept for a while.
    fn kept_until(&self, waiting: usize, at: Timestamp, body: &mut DecidedBody) -> Option<Instant> {
        let Approvals::Ask { grant_for, .. } = self.approvals else { return None };
        if waiting > 0 {
            return None;
        }
        body.kept_until = Some(at + signed(grant_for.min(LONGEST)));
        Some(Instant::now() + grant_for.min(LONGEST))
    }

    /// Checks other arguments like the model's own. Returns what would be approved, and the rules that would let
    /// that pass.
    fn check_edit(
        &self,
        deciding: &Deciding,
        arguments: &Value,
        body: &mut DecidedBody,
    ) -> Result<(CallHash, Vec<Rule>), ApprovalError> {
        let (request, resolved) = (&deciding.draft.request, &deciding.about().resolved);
        if request.redacted {
            return Err(ApprovalError::Redacted);
        }
        let fault = |at: &str, expected: String, given: &str| {
            let (at, given) = (at.to_owned(), given.to_owned());
            ApprovalError::BadArguments(vec![Violation { at, expected, given }])
        };
        let size = arguments.to_string().len();
        if size > self.limits.argument_bytes {
            let limit = format!("at most {} bytes (`limits.argument_bytes`)", self.limits.argument_bytes);
            return Err(fault("", limit, &format!("{size}")));
        }
        if !arguments.is_object() {
            return Err(fault("", "a JSON object".to_owned(), "something else"));
        }
        let found =
            resolved.entry.input().violations(arguments).map_err(|error| {
                fault("", "a tool whose schema can be used".to_owned(), &error.to_string())
            })?;
        if !found.is_empty() {
            return Err(ApprovalError::BadArguments(found));
        }
        let edited = Arguments::from_value(arguments.clone());
        let input = CallInput::new(edited.clone());
        if let Err(refusal) = resolved.source.check(resolved.entry.id(), &input) {
            return Err(fault(&refusal.at, refusal.message, "this"));
        }
        let sensitive = resolved.entry.input().sensitive_pointers(arguments);
        let (shown, _) = redaction::observable(&edited, &sensitive, &*self.redactor);
        body.redacted = !std::ptr::eq(shown.value(), edited.value());
        body.changed_fields = changed_fields(&request.arguments, arguments);
        if let Verdict::Allow { arguments, .. } = &mut body.verdict {
            *arguments = Some(shown.value().clone());
        }
        let effects = effects_of(resolved, &input);
        let approves = hash_of(self, resolved, arguments, &effects, &request.principal, body.redacted);
        let permission = PermissionInput::new(edited);
        let facts = Facts {
            declaration: resolved.entry.declaration(),
            input: Some(&permission),
            effects: &effects,
            principal: &request.principal,
            opinions: &[],
            at: crate::port::now(),
        };
        let offered =
            if body.redacted { Vec::new() } else { self.engine(&deciding.session).suggestions(&facts) };
        Ok((approves, offered))
    }

    /// The rule first, then the answer: should the host die in between, the rule is there and the question is still
    /// open. The other way round, the record would tell of a rule that nobody has.
    async fn put_on_record(
        &self,
        deciding: &Deciding,
        weighed: &Weighed,
        at: Timestamp,
    ) -> Result<(), ApprovalError> {
        let mut strength = Strength::Committed;
        if let Some(kept) = weighed.remembered.clone() {
            strength = Strength::Synced;
            let store = Arc::clone(&self.rules);
            blocking(move || store.remember(&kept)).await?;
        }
        let record = Record {
            kind: RecordKind::Decided,
            at,
            invocation_id: Some(deciding.draft.owner),
            session_id: Some(deciding.about().session.id().clone()),
            request: None,
            body: serde_json::to_string(&weighed.body).unwrap_or_default(),
        };
        let Err(error) = self.append(record, strength).await else { return Ok(()) };
        if let Some(kept) = weighed.remembered.clone() {
            let (store, id) = (Arc::clone(&self.rules), kept.id);
            if let Err(error) = blocking(move || store.forget(&id)).await {
                tracing::error!(%error, "a rule stays remembered although its approval could not be recorded");
            }
        }
        Err(error.into())
    }

    /// The answer is on record: it takes effect.
    fn carry_out(&self, deciding: Deciding, weighed: Weighed, at: Timestamp) -> Decided {
        let Weighed { word, body, rule, remembered, kept_until } = weighed;
        let line = rule.as_ref().map(ToString::to_string);
        // Before the calls hear of it: they are decided again.
        match (&remembered, rule) {
            (Some(kept), _) => self.remember(kept.clone()),
            (None, Some(rule)) => deciding.session.add_rule(rule),
            (None, None) => {}
        }
        let allowed = matches!(word, Word::Yes(_));
        let decided = Decided {
            ask_id: body.ask_id,
            allowed,
            by: body.by.clone(),
            at,
            waiting: body.waiting,
            kept_until: body.kept_until,
            rule: line,
            remembered,
        };
        deciding.finish(word, Closed::Decided { by: body.by, at, allowed }, kept_until);
        decided
    }

    /// What the record tells of a question that this host does not know.
    async fn on_record(&self, id: InvocationId) -> ApprovalError {
        let rows = match self.journal.records_of(id).await {
            Ok(rows) => rows,
            Err(error) => return error.into(),
        };
        let of_kind = |kind| rows.iter().rev().filter(move |row| row.record.kind == kind);
        let answers = of_kind(RecordKind::Decided)
            .filter_map(|row| Some((row, serde_json::from_str::<DecidedBody>(&row.record.body).ok()?)));
        if let Some((row, body)) = answers.into_iter().find(|(_, body)| body.ask_id == id) {
            let allowed = matches!(body.verdict, Verdict::Allow { .. });
            return ApprovalError::AlreadyDecided { by: body.by, at: row.record.at, allowed };
        }
        let mut ends = of_kind(RecordKind::Ended)
            .filter_map(|row| serde_json::from_str::<RecordedWay>(&row.record.body).ok());
        match (of_kind(RecordKind::Asked).next(), ends.next().and_then(|way| way.error_class())) {
            (None, _) => ApprovalError::Unknown(id),
            (Some(_), Some(ErrorClass::ApprovalRejected | ErrorClass::ApprovalPending)) => {
                ApprovalError::Expired
            }
            (Some(_), _) => ApprovalError::Withdrawn,
        }
    }
}

fn chosen(named: Option<String>, offered: Vec<Rule>) -> Result<Rule, ApprovalError> {
    let lines: Vec<String> = offered.iter().map(ToString::to_string).collect();
    let fits = |rule: &Rule| named.as_ref().is_none_or(|named| *named == rule.to_string());
    let found = offered.into_iter().find(fits);
    found.ok_or(ApprovalError::NothingToRemember { asked: named, offered: lines })
}

fn signed(time: Duration) -> SignedDuration {
    SignedDuration::try_from(time).unwrap_or(SignedDuration::MAX)
}

/// Ends questions that nobody answers in time. Holds the host weakly: a dropped host is really gone.
pub(super) async fn watch_the_clock(host: Weak<Inner>, closing: CancellationToken) {
    let Some(mut changes) = host.upgrade().map(|host| host.questions.changes()) else { return };
    loop {
        let Some(next) = host.upgrade().map(|host| host.questions.expire()) else { return };
        let until_next = async {
            match next {
                Some(next) => tokio::time::sleep_until(next).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = closing.cancelled() => return,
            changed = changes.changed() => if changed.is_err() { return },
            () = until_next => {}
        }
    }
}
