//! What a person is shown: the call in full, without what must not be shown.

use std::sync::Arc;

use jiff::Timestamp;
use tokio::time::Instant;
use toolpost_model::{
    CallHash, Decision, DecisionReason, Effects, InvocationId, PermissionRequest, Rule, Vote,
};

use super::Key;
use crate::{
    flow::{
        invocation::{Call, Resolved},
        permission::{Facts, PolicyEngine},
    },
    record::redaction::ARGUMENT_MARK,
    session::Session,
};

/// A one-line summary is cut here.
const SUMMARY_CHARS: usize = 160;
/// So many commands are told one by one.
const SUMMARY_COMMANDS: usize = 3;

/// A question as it was raised.
pub(crate) struct Draft {
    pub(crate) request: PermissionRequest,
    /// The call whose records tell of the answer.
    pub(crate) owner: InvocationId,
    /// The rules behind the suggested lines.
    pub(crate) offered: Vec<Rule>,
    pub(crate) about: About,
    /// When it expires. The wall clock may jump; this does not.
    pub(crate) deadline: Instant,
}

/// What other arguments are checked against.
pub(crate) struct About {
    pub(crate) resolved: Resolved,
    pub(crate) session: Arc<Session>,
    /// What hooks think of the call.
    pub(crate) opinions: Vec<Vote>,
}

/// The question's own facts.
#[derive(Clone, Copy)]
pub(crate) struct Terms {
    pub(crate) ask_id: InvocationId,
    pub(crate) hash: CallHash,
    pub(crate) asked_at: Timestamp,
    pub(crate) expires_at: Timestamp,
    pub(crate) deadline: Instant,
}

impl Draft {
    pub(crate) fn key(&self) -> Key {
        Key { principal: self.request.principal.clone(), hash: self.request.call_hash }
    }
}

/// Writes the question for a call that was decided to be asked about. `None`: it has not come that far.
pub(crate) fn draft(call: &Call, engine: &dyn PolicyEngine, terms: Terms) -> Option<Draft> {
    let resolved = call.resolved.as_ref()?;
    let (effects, decision) = (call.effects.as_ref()?, call.decision.as_ref()?);
    let facts = Facts {
        declaration: resolved.entry.declaration(),
        input: call.inputs.permission.as_ref(),
        effects,
        principal: call.session.principal(),
        opinions: &call.hooks.opinions,
        at: terms.asked_at,
    };
    let redactor = call.live.redactor();
    let commands: Vec<String> =
        engine.commands(&facts).iter().map(|command| redactor.text(command).into_owned()).collect();
    // A rule that would have to hold a secret is none that could be written down.
    let speakable = |rule: &Rule| matches!(redactor.text(&rule.to_string()), std::borrow::Cow::Borrowed(_));
    let offered: Vec<Rule> = engine.suggestions(&facts).into_iter().filter(speakable).collect();
    let arguments = call.inputs.observable.as_ref()?.arguments().value().clone();
    let effects = redactor.effects(effects);
    let tool = resolved.entry.name().to_owned();
    Some(Draft {
        request: PermissionRequest {
            ask_id: terms.ask_id,
            call_hash: terms.hash,
            tool_id: resolved.entry.id().clone(),
            summary: summary(&tool, &commands, &effects, &arguments),
            tool,
            principal: call.session.principal().clone(),
            session_id: call.session.id().clone(),
            arguments,
            redacted: call.inputs.redacted,
            commands,
            effects,
            decision: redactor.data(decision).unwrap_or_else(|| without_words(decision)),
            suggestions: offered.iter().map(ToString::to_string).collect(),
            asked_at: terms.asked_at,
            expires_at: terms.expires_at,
            waiting: 0,
        },
        owner: call.live.id,
        offered,
        about: About {
            resolved: resolved.clone(),
            session: Arc::clone(&call.session),
            opinions: call.hooks.opinions.clone(),
        },
        deadline: terms.deadline,
    })
}

/// What was decided, and nothing that could hold a secret.
fn without_words(decision: &Decision) -> Decision {
    let reason = DecisionReason { kind: decision.reason.kind, text: ARGUMENT_MARK.to_owned(), rule: None };
    Decision {
        behavior: decision.behavior,
        class: decision.class,
        mode: decision.mode,
        reason,
        also_matched: Vec::new(),
        subject: None,
        opaque: Vec::new(),
        notes: Vec::new(),
        operator_hint: None,
    }
}

fn summary(tool: &str, commands: &[String], effects: &Effects, arguments: &serde_json::Value) -> String {
    let uses = || effects.uses.iter().map(|used| used.key.as_str());
    let what = match commands {
        [] if effects.uses.is_empty() => arguments.to_string(),
        [] => uses().map(|key| key.strip_prefix("path:").unwrap_or(key)).collect::<Vec<_>>().join(", "),
        some => {
            let more = some.len().saturating_sub(SUMMARY_COMMANDS);
            let told = some[..some.len().min(SUMMARY_COMMANDS)].join("; ");
            if more == 0 { told } else { format!("{told}; and {more} more") }
        }
    };
    let line: String = format!("{tool}: {what}").split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(SUMMARY_CHARS) {
        None => line,
        Some((end, _)) => format!("{}…", &line[..end]),
    }
}
