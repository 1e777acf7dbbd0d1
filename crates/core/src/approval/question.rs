//! The text of a question: the full call, without secrets and hidden characters.

use std::sync::Arc;

use jiff::Timestamp;
use tokio::time::Instant;
use toolpost_model::{
    Decision, DecisionReason, Effects, InvocationId, PermissionRequest, ProgramChange, ProgramFile,
    Rule, RuleRef, Vote, is_hidden, visible_line,
};

use super::{
    QuestionKey,
    first_contact::{FirstContact, hash_offer},
};
use crate::{
    approval::coverage::ApprovalHashes,
    catalog::Surface,
    invocation::{PipelineCall, ResolvedTool},
    permission::{PermissionFacts, PolicyEngine},
    record::{body::RecordedQuestion, redaction::ARGUMENT_MARK},
    session::Session,
};

/// The length of a summary line.
const SUMMARY_CHARS: usize = 160;
/// The number of commands in a summary line.
const SUMMARY_COMMANDS: usize = 3;

/// A question as it was raised.
pub(crate) struct ApprovalQuestion {
    pub(crate) request: PermissionRequest,
    /// The call whose records hold the answer.
    pub(crate) owner: InvocationId,
    /// The rules behind the suggested lines.
    pub(crate) offered: Vec<Rule>,
    pub(crate) about: QuestionContext,
    /// The hashes of the call.
    pub(crate) hashes: ApprovalHashes,
    /// The files that the call would run, as read and without redaction.
    pub(crate) programs: Vec<ProgramFile>,
    /// The expiry as a monotonic time, because the wall clock can jump.
    pub(crate) deadline: Instant,
}

/// The context for the check of an operator's edit.
pub(crate) struct QuestionContext {
    pub(crate) resolved: ResolvedTool,
    pub(crate) session: Arc<Session>,
    /// The votes of hooks.
    pub(crate) opinions: Vec<Vote>,
}

/// The identity, hashes and times of a question.
#[derive(Clone)]
pub(crate) struct QuestionTerms {
    pub(crate) ask_id: InvocationId,
    pub(crate) hashes: ApprovalHashes,
    pub(crate) asked_at: Timestamp,
    pub(crate) expires_at: Timestamp,
    pub(crate) deadline: Instant,
    /// The files that changed since an equal call was asked about.
    pub(crate) changed_programs: Vec<ProgramChange>,
    /// The record of the question, if an earlier host asked it under the same id. Its offer must then be the same: an
    /// operator who answers may have read it before the restart.
    pub(crate) reopened: Option<RecordedQuestion>,
}

impl ApprovalQuestion {
    pub(crate) fn key(&self) -> QuestionKey {
        QuestionKey {
            principal: self.request.principal.clone(),
            hash: self.request.call_hash,
        }
    }
}

/// Writes the question for a call whose decision is `ask`. `None` if the call has no decision yet.
pub(crate) fn draft(
    call: &PipelineCall,
    engine: &dyn PolicyEngine,
    surface: &Surface,
    terms: &QuestionTerms,
) -> Option<ApprovalQuestion> {
    let resolved = call.findings.resolved.as_ref()?;
    let effects = call.findings.effects.as_ref()?;
    let decision = call.findings.decision.as_ref()?;
    let facts = PermissionFacts {
        declaration: resolved.entry.declaration(),
        input: call.inputs.permission.as_ref(),
        effects,
        principal: call.session.principal(),
        opinions: &call.hooks.opinions,
        delegated: &decision.delegated,
        at: terms.asked_at,
    };
    let redactor = call.live.redactor();
    let shown = |text: &str| visible_line(&redactor.text(text)).into_owned();
    let commands: Vec<String> = engine
        .commands(&facts)
        .iter()
        .map(|command| shown(command))
        .collect();
    // A rule with a secret or hidden characters in its text cannot be remembered.
    let speakable = |rule: &Rule| {
        let line = rule.to_string();
        matches!(redactor.text(&line), std::borrow::Cow::Borrowed(_)) && !line.contains(is_hidden)
    };
    let offered: Vec<Rule> = engine
        .suggestions(&facts)
        .into_iter()
        .filter(speakable)
        .collect();
    let arguments = call.inputs.observable.as_ref()?.arguments().value().clone();
    let mut effects = redactor.effects(effects);
    effects.caution = effects
        .caution
        .map(|caution| visible_line(&caution).into_owned());
    for caution in &mut effects.path_cautions {
        caution.reason = visible_line(&caution.reason).into_owned();
    }
    let mut decision = redactor
        .data(decision)
        .unwrap_or_else(|| without_words(decision));
    make_visible(&mut decision);
    let programs: Vec<ProgramFile> = call
        .asking
        .programs
        .iter()
        .map(|file| shown_file(file, &shown))
        .collect();
    let changed_programs = terms
        .changed_programs
        .iter()
        .map(|change| shown_change(change, &shown))
        .collect();
    let rule_remark = (!offered.is_empty())
        .then(|| PermissionRequest::remark_on_rules(&programs))
        .flatten();
    let input = call.inputs.call.as_ref()?;
    let contact = FirstContact {
        call,
        resolved,
        surface,
        engine,
        at: terms.asked_at,
    };
    let source_offer = contact.offer(&shown, speakable).filter(|offer| {
        terms
            .reopened
            .is_none_or(|asked| asked.offer == Some(hash_offer(offer)))
    });
    let tool = resolved.entry.label().to_owned();
    Some(ApprovalQuestion {
        request: PermissionRequest {
            ask_id: terms.ask_id,
            call_hash: terms.hashes.whole,
            tool_id: resolved.entry.id().clone(),
            summary: summary(&tool, &commands, &effects, &arguments),
            tool,
            principal: call.session.principal().clone(),
            session_id: call.session.id().clone(),
            arguments,
            redacted: call.inputs.redacted,
            commands,
            programs,
            changed_programs,
            effects,
            sandbox: resolved.source.sandbox(
                resolved.entry.id(),
                input,
                resolved.entry.settings.execution.sandbox,
            ),
            decision,
            suggestions: offered.iter().map(ToString::to_string).collect(),
            rule_remark,
            source_offer,
            asked_at: terms.asked_at,
            expires_at: terms.expires_at,
            waiting: 0,
        },
        owner: call.live.id,
        offered,
        about: QuestionContext {
            resolved: resolved.clone(),
            session: Arc::clone(&call.session),
            opinions: call.hooks.opinions.clone(),
        },
        hashes: terms.hashes,
        programs: call.asking.programs.clone(),
        deadline: terms.deadline,
    })
}

/// A file for display. `shown` redacts a text and makes hidden characters visible.
fn shown_file(file: &ProgramFile, shown: &impl Fn(&str) -> String) -> ProgramFile {
    ProgramFile {
        name: shown(&file.name),
        path: shown(&file.path),
        content: file.content.clone(),
    }
}

fn shown_change(change: &ProgramChange, shown: &impl Fn(&str) -> String) -> ProgramChange {
    ProgramChange {
        name: shown(&change.name),
        before: change.before.as_ref().map(|file| shown_file(file, shown)),
        now: change.now.as_ref().map(|file| shown_file(file, shown)),
    }
}

/// Makes hidden characters visible in the texts of a decision, because these texts quote the call.
fn make_visible(decision: &mut Decision) {
    let rules = decision
        .reason
        .rule
        .iter_mut()
        .chain(&mut decision.also_matched);
    let of_rules = rules.flat_map(|RuleRef { rule, place, .. }| [rule, place]);
    let texts = std::iter::once(&mut decision.reason.text)
        .chain(&mut decision.subject)
        .chain(&mut decision.opaque)
        .chain(&mut decision.notes)
        .chain(&mut decision.operator_hint)
        .chain(&mut decision.approval_waived)
        .chain(
            decision
                .classified
                .as_mut()
                .map(|finding| &mut finding.found),
        )
        .chain(
            decision
                .delegated
                .iter_mut()
                .flat_map(|vote| vote.reason.iter_mut().chain(&mut vote.fault)),
        )
        .chain(of_rules);
    for text in texts {
        if let std::borrow::Cow::Owned(written) = visible_line(text) {
            *text = written;
        }
    }
}

/// The decision without any text that could hold a secret.
fn without_words(decision: &Decision) -> Decision {
    let reason = DecisionReason {
        kind: decision.reason.kind,
        text: ARGUMENT_MARK.to_owned(),
        rule: None,
    };
    Decision {
        behavior: decision.behavior,
        class: decision.class,
        mode: decision.mode,
        reason,
        also_matched: Vec::new(),
        subject: None,
        opaque: Vec::new(),
        notes: Vec::new(),
        classified: None,
        delegated: Vec::new(),
        approval_waived: None,
        operator_hint: None,
    }
}

fn summary(
    tool: &str,
    commands: &[String],
    effects: &Effects,
    arguments: &serde_json::Value,
) -> String {
    let uses = || effects.uses.iter().map(|used| used.key.as_str());
    let what = match commands {
        [] if effects.uses.is_empty() => arguments.to_string(),
        [] => uses()
            .map(|key| key.strip_prefix("path:").unwrap_or(key))
            .collect::<Vec<_>>()
            .join(", "),
        some => {
            let more = some.len().saturating_sub(SUMMARY_COMMANDS);
            let told = some[..some.len().min(SUMMARY_COMMANDS)].join("; ");
            if more == 0 {
                told
            } else {
                format!("{told}; and {more} more")
            }
        }
    };
    let line = format!("{tool}: {what}")
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    let line = visible_line(&line).into_owned();
    match line.char_indices().nth(SUMMARY_CHARS) {
        None => line,
        Some((end, _)) => format!("{}…", &line[..end]),
    }
}
