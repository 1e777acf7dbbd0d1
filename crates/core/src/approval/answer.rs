//! The check of an operator's answer, its record and its effect.

use std::{sync::Arc, time::Duration};

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use tokio::time::Instant;
use toolpost_model::{
    ApprovalScope, ArgumentChange, Arguments, CallHash, CallInput, ErrorClass, InvocationId,
    PermissionInput, PermissionRequest, Principal, PrincipalName, PrincipalRole, Rule, RuleOrigin,
    ToolId, Verdict,
};

use super::{
    ApprovalAnswer, ApprovalConsent, ApprovalRejection, Approvals, LONGEST, QuestionClaim,
    QuestionClosure, RememberedRule, VerdictAdmission,
    coverage::{HashedCall, programs_of},
    first_contact::rule_of,
    operator::{ApprovalError, VerdictReceipt, blocking},
    place,
};
use crate::{
    catalog::{SchemaViolation, ViolationKind},
    hooks::changed_fields,
    host::HostInner,
    invocation::validate::{ArgumentFault, ArgumentLimit, check_arguments},
    permission::{PermissionFacts, decide::effects_of},
    record::{
        body::{CallRecordBody, VerdictBody},
        journal::{AppendStrength, JournalError, Record, RecordKind, StoredRecord},
        redaction::{self, RedactedArguments},
    },
};

/// The default life of a remembered rule.
const REMEMBERED_FOR: Duration = Duration::from_secs(30 * 24 * 3_600);

/// An answer that passed its checks, with its effects.
struct CheckedVerdict {
    word: ApprovalAnswer,
    body: VerdictBody,
    /// A rule for the session.
    rule: Option<Rule>,
    remembered: Vec<RememberedRule>,
    kept_until: Option<Instant>,
}

impl HostInner {
    pub(crate) async fn answer(
        self: Arc<Self>,
        id: InvocationId,
        verdict: Verdict,
        by: Principal,
    ) -> Result<VerdictReceipt, ApprovalError> {
        let deciding = loop {
            match self.approval.questions.begin(id) {
                VerdictAdmission::Deciding(deciding) => break deciding,
                // Another answer is being recorded. If its record fails, this answer gets its turn.
                VerdictAdmission::Busy(mut over) => {
                    let _ = over.changed().await;
                }
                VerdictAdmission::Closed(how) => return Err(how.into()),
                VerdictAdmission::Unknown => return Err(self.on_record(id).await),
            }
        };
        let asker = &deciding.draft.request.principal;
        if asker.role == PrincipalRole::Agent && asker.name == by.name {
            return Err(ApprovalError::OwnCall(by.name));
        }
        let at = crate::port::now();
        let weighed = self.weigh(&deciding, verdict, by.name, at).await?;
        self.put_on_record(&deciding, &weighed, at).await?;
        Ok(self.carry_out(deciding, weighed, at))
    }

    /// Checks the answer and computes its effects.
    async fn weigh(
        &self,
        deciding: &QuestionClaim,
        verdict: Verdict,
        by: PrincipalName,
        at: Timestamp,
    ) -> Result<CheckedVerdict, ApprovalError> {
        let request = &deciding.draft.request;
        let ask_id = request.ask_id;
        let mut body = VerdictBody {
            ask_id,
            hash: request.call_hash,
            approves: None,
            without_files: deciding.draft.hashes.without_files,
            programs: deciding.draft.programs.clone(),
            principal: request.principal.name.clone(),
            role: request.principal.role,
            tool_id: request.tool_id.to_string(),
            verdict: verdict.clone(),
            changed_fields: Vec::new(),
            changed_arguments: Vec::new(),
            redacted: false,
            by: by.clone(),
            waiting: deciding.waiting,
            kept_until: None,
            rule: None,
            source_rules: Vec::new(),
            is_taken: false,
        };
        let kept_until = self.kept_until(deciding.waiting, at, &mut body);
        let (scope, named, valid_for, arguments) = match verdict {
            Verdict::Deny { feedback } => {
                let word = ApprovalAnswer::No(ApprovalRejection {
                    ask_id,
                    by,
                    feedback,
                });
                return Ok(CheckedVerdict {
                    word,
                    body,
                    rule: None,
                    remembered: Vec::new(),
                    kept_until,
                });
            }
            Verdict::Allow {
                scope,
                rule,
                valid_for_seconds,
                arguments,
            } => (
                scope,
                rule,
                valid_for_seconds.map(Duration::from_secs),
                arguments,
            ),
        };
        let (approves, offered) = match &arguments {
            None => (request.call_hash, deciding.offered().to_vec()),
            Some(arguments) => self.check_edit(deciding, arguments, &mut body).await?,
        };
        body.approves = Some(approves);
        let expires = at + signed(valid_for.unwrap_or(REMEMBERED_FOR).min(LONGEST));
        let kept = |id: InvocationId, rule: &Rule, tool_id: ToolId| RememberedRule {
            id: id.to_string(),
            rule: rule.to_string(),
            principal: rule.principal.clone(),
            by: by.clone(),
            at,
            expires,
            ask_id,
            tool_id: Some(tool_id),
            definition: rule.definition.clone(),
        };
        let (rule, remembered) = match scope {
            ApprovalScope::Once => (None, Vec::new()),
            ApprovalScope::Session => {
                let mut rule = chosen(named, offered)?;
                (rule.origin, rule.place) = (RuleOrigin::Session, place(ask_id, &by));
                rule.expires = valid_for.is_some().then_some(expires);
                body.rule = Some(rule.to_string());
                (Some(rule), Vec::new())
            }
            ApprovalScope::Remember => {
                let rule = chosen(named, offered)?;
                body.rule = Some(rule.to_string());
                (None, vec![kept(ask_id, &rule, request.tool_id.clone())])
            }
            ApprovalScope::SourceReads => {
                let rules = source_reads(request, named)?;
                body.source_rules = rules.iter().map(|(_, rule)| rule.to_string()).collect();
                let of_tool = |(tool, rule): (ToolId, Rule)| kept(InvocationId::new(), &rule, tool);
                (None, rules.into_iter().map(of_tool).collect())
            }
        };
        let programs = body.programs.clone();
        let word = ApprovalAnswer::Yes(ApprovalConsent {
            ask_id,
            by,
            approves,
            arguments,
            programs,
        });
        Ok(CheckedVerdict {
            word,
            body,
            rule,
            remembered,
            kept_until,
        })
    }

    /// An answer without waiting calls is kept until the returned time.
    fn kept_until(&self, waiting: usize, at: Timestamp, body: &mut VerdictBody) -> Option<Instant> {
        let Approvals::Ask { grant_for, .. } = self.approval.mode else {
            return None;
        };
        if waiting > 0 {
            return None;
        }
        body.kept_until = Some(at + signed(grant_for));
        Some(Instant::now() + grant_for)
    }

    /// Checks the operator's arguments like the arguments of the model. Returns the hash of the edited call and the
    /// rules that would allow it.
    async fn check_edit(
        &self,
        deciding: &QuestionClaim,
        arguments: &Value,
        body: &mut VerdictBody,
    ) -> Result<(CallHash, Vec<Rule>), ApprovalError> {
        let request = &deciding.draft.request;
        let resolved = &deciding.about().resolved;
        if request.redacted {
            return Err(ApprovalError::Redacted);
        }
        let size = arguments.to_string().len();
        let limit = ArgumentLimit::of(self, &resolved.entry).bytes;
        if size > limit {
            let message = format!(
                "the arguments have {size} bytes; the limit is {limit} (setting `argument_bytes`)"
            );
            return Err(refused("", message));
        }
        if !arguments.is_object() {
            return Err(refused("", "the arguments must be a JSON object"));
        }
        let edited = Arguments::from_value(arguments.clone());
        let input = CallInput::new(edited.clone());
        check_arguments(self, resolved, &input)?;
        let sensitive = resolved.entry.input().sensitive_pointers(arguments);
        let RedactedArguments { shown, .. } =
            redaction::observable(&edited, &sensitive, &self.record.redactor);
        body.redacted = !std::ptr::eq(shown.value(), edited.value());
        body.changed_fields = changed_fields(&request.arguments, arguments);
        body.changed_arguments = ArgumentChange::between(&request.arguments, shown.value());
        if let Verdict::Allow { arguments, .. } = &mut body.verdict {
            *arguments = Some(shown.value().clone());
        }
        let effects = effects_of(resolved, &input);
        body.programs = programs_of(resolved, &input).await.map_err(|failure| {
            let message = format!("the files of the call cannot be read: {}", failure.message);
            refused("", message)
        })?;
        let hashed = HashedCall {
            resolved,
            arguments,
            effects: &effects,
            programs: &body.programs,
            principal: &request.principal,
            is_redacted: body.redacted,
        };
        let approves = hashed.hashes(self).whole;
        let permission = PermissionInput::new(edited);
        let facts = PermissionFacts {
            declaration: resolved.entry.declaration(),
            input: Some(&permission),
            effects: &effects,
            principal: &request.principal,
            opinions: &deciding.about().opinions,
            // No authority has seen the changed arguments.
            delegated: &[],
            at: crate::port::now(),
        };
        let offered = if body.redacted {
            Vec::new()
        } else {
            self.engine(&deciding.session).suggestions(&facts)
        };
        Ok((approves, offered))
    }

    /// Writes the rules first and the answer second. If the host dies in between, the rules exist and the question is
    /// still open, so an operator sees it and answers again; `approvals rules` lists the rules with the question's id. In
    /// the other order the record would mention rules that do not exist. If the record of the answer fails, the rules are
    /// removed again, because an answer without a record does not count.
    async fn put_on_record(
        &self,
        deciding: &QuestionClaim,
        weighed: &CheckedVerdict,
        at: Timestamp,
    ) -> Result<(), ApprovalError> {
        let mut strength = AppendStrength::Committed;
        if !weighed.remembered.is_empty() {
            strength = AppendStrength::Synced;
            let store = Arc::clone(&self.approval.rules);
            let kept = weighed.remembered.clone();
            blocking(move || store.remember(&kept)).await?;
        }
        let record = Record {
            kind: RecordKind::Decided,
            at,
            invocation_id: Some(deciding.draft.owner),
            session_id: Some(deciding.about().session.id().clone()),
            request: None,
            body: serde_json::to_string(&weighed.body).unwrap_or_default(),
            facets: None,
        };
        let Err(error) = self.append(record, strength).await else {
            return Ok(());
        };
        for kept in &weighed.remembered {
            let store = Arc::clone(&self.approval.rules);
            let id = kept.id.clone();
            if let Err(error) = blocking(move || store.forget(&id)).await {
                tracing::error!(%error, rule = kept.rule, "a rule stays remembered although its approval could not be recorded");
            }
        }
        Err(error.into())
    }

    /// Applies an answer that is on record.
    fn carry_out(
        &self,
        deciding: QuestionClaim,
        weighed: CheckedVerdict,
        at: Timestamp,
    ) -> VerdictReceipt {
        let CheckedVerdict {
            word,
            body,
            rule,
            mut remembered,
            kept_until,
        } = weighed;
        // The rules must count before the waiting calls resume, because they are decided again.
        if !remembered.is_empty() {
            self.remember(&remembered);
        }
        if let Some(rule) = rule {
            deciding.session.add_rule(rule);
        }
        let source_rules = if body.source_rules.is_empty() {
            Vec::new()
        } else {
            std::mem::take(&mut remembered)
        };
        let allowed = matches!(word, ApprovalAnswer::Yes(_));
        let decided = VerdictReceipt {
            ask_id: body.ask_id,
            allowed,
            by: body.by.clone(),
            at,
            waiting: body.waiting,
            kept_until: body.kept_until,
            changed_arguments: body.changed_arguments,
            rule: body.rule,
            remembered: remembered.pop(),
            source_rules,
        };
        deciding.finish(
            word,
            QuestionClosure::Decided {
                by: body.by,
                at,
                allowed,
            },
            kept_until,
        );
        decided
    }

    /// The question that a call without an end waits for. `None` if the call has started since.
    pub(crate) async fn parked(
        &self,
        row: &StoredRecord,
    ) -> Result<Option<InvocationId>, JournalError> {
        let Some(id) = row.record.invocation_id else {
            return Ok(None);
        };
        let rows = self.record.journal.records_of(id).await?;
        let has_started = rows
            .iter()
            .any(|row| row.record.kind == RecordKind::Started);
        let bodies = rows
            .iter()
            .filter_map(|row| row.record.read_body::<CallRecordBody<'_>>().ok());
        let asked = bodies
            .filter_map(|body| body.ask)
            .next_back()
            .filter(|_| !has_started);
        Ok(asked.map(|asked| asked.ask_id))
    }

    /// The state of a question that is unknown to this host, from its records.
    async fn on_record(&self, id: InvocationId) -> ApprovalError {
        let rows = match self.record.journal.records_of(id).await {
            Ok(rows) => rows,
            Err(error) => return error.into(),
        };
        let of_kind = |kind| rows.iter().rev().filter(move |row| row.record.kind == kind);
        let answers = of_kind(RecordKind::Decided)
            .filter_map(|row| Some((row, row.record.read_body::<VerdictBody>().ok()?)));
        if let Some((row, body)) = answers.into_iter().find(|(_, body)| body.ask_id == id) {
            let allowed = matches!(body.verdict, Verdict::Allow { .. });
            return ApprovalError::AlreadyDecided {
                by: body.by,
                at: row.record.at,
                allowed,
            };
        }
        let mut ends = of_kind(RecordKind::Ended)
            .filter_map(|row| row.record.read_body::<CallRecordBody<'_>>().ok());
        match (
            of_kind(RecordKind::Asked).next(),
            ends.next().and_then(|way| way.error_class()),
        ) {
            (None, _) => ApprovalError::Unknown(id),
            (Some(_), Some(ErrorClass::ApprovalRejected | ErrorClass::ApprovalPending)) => {
                ApprovalError::Expired
            }
            (Some(_), _) => ApprovalError::Withdrawn,
        }
    }
}

fn refused(at: &str, message: impl Into<String>) -> ApprovalError {
    ApprovalError::BadArguments(vec![SchemaViolation {
        at: at.to_owned(),
        expected: message.into(),
        given: String::new(),
        kind: ViolationKind::RefusedValue,
    }])
}

/// Reports the fault as a bad edit, which the operator can correct.
impl From<ArgumentFault> for ApprovalError {
    fn from(fault: ArgumentFault) -> Self {
        match fault {
            ArgumentFault::Credential(_) => refused(
                "",
                "the arguments name a credential that the tool cannot use",
            ),
            ArgumentFault::Violations(found) => Self::BadArguments(found),
            ArgumentFault::BrokenSchema(error) => {
                refused("", format!("the tool cannot be called: {error}"))
            }
            ArgumentFault::Refused(refusal) => refused(&refusal.at, refusal.message),
        }
    }
}

/// The offered rules about tools of the call's source, each with its tool. They are saved together, so none can be
/// named. They come from the question as the operator saw it: a definition that changed since is not the one that the
/// rule is bound to.
fn source_reads(
    request: &PermissionRequest,
    named: Option<String>,
) -> Result<Vec<(ToolId, Rule)>, ApprovalError> {
    if let Some(named) = named {
        return Err(ApprovalError::RuleBesideOffer(named));
    }
    let offered = request
        .source_offer
        .iter()
        .flat_map(|offer| offer.offered());
    let rules: Vec<(ToolId, Rule)> = offered
        .filter_map(|tool| {
            Some((
                tool.tool_id.clone(),
                rule_of(&tool.tool_id, &tool.definition)?,
            ))
        })
        .collect();
    if rules.is_empty() {
        return Err(ApprovalError::NothingOffered);
    }
    Ok(rules)
}

fn chosen(named: Option<String>, offered: Vec<Rule>) -> Result<Rule, ApprovalError> {
    let lines: Vec<String> = offered.iter().map(ToString::to_string).collect();
    let fits = |rule: &Rule| {
        named
            .as_ref()
            .is_none_or(|named| *named == rule.to_string())
    };
    let found = offered.into_iter().find(fits);
    found.ok_or(ApprovalError::NothingToRemember {
        asked: named,
        offered: lines,
    })
}

fn signed(time: Duration) -> SignedDuration {
    SignedDuration::try_from(time).unwrap_or(SignedDuration::MAX)
}
