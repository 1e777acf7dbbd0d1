//! Delegated decisions: the port to an authority outside of the host, and the authorities that a host has.
//!
//! A rule `delegate NAME CALLS` hands the decision on a call to the authority of that name. `delegate/consult.rs` asks
//! it; the answer is one vote for the policy engine. An authority that gives no decision votes to deny.

pub(crate) mod consult;
mod kept_answers;

use std::{collections::HashMap, sync::Arc, time::Duration};

use serde::Serialize;
use serde_json::Value;
use toolpost_model::{
    AuthorityKind, AuthorityName, Behavior, BoxFuture, Declaration, Effects, InvocationId,
    ObservableInput, PermissionMode, Principal, RuleRef, SessionId, canonical_json,
};

pub(crate) use kept_answers::KeptAnswers;

/// An authority that a call has to be put to, and the rules that delegate to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delegation {
    /// The authority.
    pub authority: AuthorityName,
    /// The rules, never empty.
    pub rules: Vec<RuleRef>,
}

/// The question to an authority: one call, as others than its tool may see it.
pub struct AuthorityQuestion<'a> {
    /// The authority.
    pub authority: &'a AuthorityName,
    /// The rules that delegate to it.
    pub rules: &'a [RuleRef],
    /// The call.
    pub invocation_id: InvocationId,
    /// Its session.
    pub session_id: &'a SessionId,
    /// Who calls.
    pub principal: &'a Principal,
    /// The tool.
    pub declaration: &'a Declaration,
    /// The arguments, sensitive values replaced.
    pub input: &'a ObservableInput,
    /// What the call will do, without sensitive values.
    pub effects: &'a Effects,
    /// The mode in force.
    pub mode: PermissionMode,
    /// Nothing will run: somebody wants to know what would happen.
    pub is_dry_run: bool,
}

/// The one form in which every authority gets the question.
#[derive(Serialize)]
struct WrittenQuestion<'a> {
    event: &'static str,
    authority: &'a AuthorityName,
    rules: Vec<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    invocation_id: Option<InvocationId>,
    session_id: &'a SessionId,
    principal: &'a Principal,
    tool: AskedTool<'a>,
    arguments: &'a ObservableInput,
    effects: &'a Effects,
    mode: PermissionMode,
    dry_run: bool,
}

#[derive(Serialize)]
struct AskedTool<'a> {
    id: &'a str,
    name: &'a str,
    version: &'a str,
}

impl AuthorityQuestion<'_> {
    /// The question as JSON: what a program reads, and what a policy endpoint gets as `input`.
    pub fn to_json(&self) -> Value {
        self.written(Some(self.invocation_id))
    }

    /// The text that an answer is kept under: everything the authority sees but the id of the call, which is another
    /// for every call.
    fn key(&self) -> String {
        canonical_json(&self.written(None))
    }

    fn written(&self, invocation_id: Option<InvocationId>) -> Value {
        let id = &self.declaration.tool_id;
        let written = WrittenQuestion {
            event: "decide",
            authority: self.authority,
            rules: self.rules.iter().map(|rule| rule.rule.as_str()).collect(),
            invocation_id,
            session_id: self.session_id,
            principal: self.principal,
            tool: AskedTool {
                id: id.as_str(),
                name: id.name(),
                version: &self.declaration.version,
            },
            arguments: self.input,
            effects: self.effects,
            mode: self.mode,
            dry_run: self.is_dry_run,
        };
        // Plain data cannot fail to be written; without it, an authority gives no decision.
        serde_json::to_value(written).unwrap_or_default()
    }
}

/// The decision of an authority.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuthorityAnswer {
    /// The decision.
    pub behavior: Behavior,
    /// Why, in the authority's own words.
    pub reason: Option<String>,
}

/// Why an authority gave no decision.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct AuthorityFault(pub String);

/// Decides calls that a rule delegates to it. A port: the operator's programs and policy endpoints are adapters, and an
/// embedder can bring its own.
pub trait DecisionAuthority: Send + Sync + 'static {
    /// The name that rules use.
    fn name(&self) -> &AuthorityName;

    /// Its kind, for records.
    fn kind(&self) -> AuthorityKind {
        AuthorityKind::Embedded
    }

    /// How long it may take; without an answer by then it gave no decision. Never longer than a call's usual deadline.
    fn time_limit(&self) -> Duration {
        Duration::from_secs(5)
    }

    /// How long an answer is kept for calls with the same input. `None`: it is asked about every call.
    fn keeps_answers_for(&self) -> Option<Duration> {
        None
    }

    /// Decides. The future is dropped when the call is canceled or the time is over.
    fn decide<'a>(
        &'a self,
        question: &'a AuthorityQuestion<'a>,
    ) -> BoxFuture<'a, Result<AuthorityAnswer, AuthorityFault>>;
}

/// An authority of the host, with the answers that are kept of it.
pub(crate) struct KnownAuthority {
    pub(crate) port: Arc<dyn DecisionAuthority>,
    kept: Option<KeptAnswers>,
}

impl KnownAuthority {
    /// A kept answer to this question. A dry run is always asked.
    pub(crate) fn kept_answer(&self, question: &AuthorityQuestion<'_>) -> Option<AuthorityAnswer> {
        self.kept
            .as_ref()
            .filter(|_| !question.is_dry_run)?
            .find(&question.key())
    }

    /// Keeps an answer, where answers are kept.
    pub(crate) fn keep_answer(&self, question: &AuthorityQuestion<'_>, answer: &AuthorityAnswer) {
        if let Some(kept) = self.kept.as_ref().filter(|_| !question.is_dry_run) {
            kept.keep(&question.key(), answer.clone());
        }
    }
}

/// The authorities of a host, by name.
#[derive(Default)]
pub(crate) struct DecisionAuthorities(HashMap<AuthorityName, KnownAuthority>);

impl DecisionAuthorities {
    /// Of two with one name, the later one counts.
    pub(crate) fn new(ports: Vec<Arc<dyn DecisionAuthority>>) -> Self {
        let known = ports.into_iter().map(|port| {
            let kept = port
                .keeps_answers_for()
                .filter(|time| !time.is_zero())
                .map(KeptAnswers::new);
            (port.name().clone(), KnownAuthority { port, kept })
        });
        Self(known.collect())
    }

    pub(crate) fn get(&self, name: &AuthorityName) -> Option<&KnownAuthority> {
        self.0.get(name)
    }
}
