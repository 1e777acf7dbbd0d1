//! Delegated decisions: the port to an outside authority, and the authorities of a host.
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

/// An authority that must be asked about a call, and the rules that delegate to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delegation {
    /// The authority.
    pub authority: AuthorityName,
    /// The rules, never empty.
    pub rules: Vec<RuleRef>,
}

/// The question to an authority about one call. Sensitive values are redacted.
pub struct AuthorityQuestion<'a> {
    /// The authority.
    pub authority: &'a AuthorityName,
    /// The rules that delegate to it.
    pub rules: &'a [RuleRef],
    /// The call.
    pub invocation_id: InvocationId,
    /// Its session.
    pub session_id: &'a SessionId,
    /// The caller.
    pub principal: &'a Principal,
    /// The tool.
    pub declaration: &'a Declaration,
    /// The arguments, redacted.
    pub input: &'a ObservableInput,
    /// The effects of the call, redacted.
    pub effects: &'a Effects,
    /// The mode in force.
    pub mode: PermissionMode,
    /// Whether this is a dry run, which executes nothing.
    pub is_dry_run: bool,
}

/// The JSON form of the question, which is the same for all authorities.
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
    /// The question as JSON: the input of a program, and the `input` of a policy endpoint.
    pub fn to_json(&self) -> Value {
        self.written(Some(self.invocation_id))
    }

    /// The key of a kept answer: the question without the id of the call, which is different for each call.
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
        // Serializing plain data cannot fail. An empty question would lead to no decision, which denies.
        serde_json::to_value(written).unwrap_or_default()
    }
}

/// The decision of an authority.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuthorityAnswer {
    /// The decision.
    pub behavior: Behavior,
    /// The reason, in the authority's own words.
    pub reason: Option<String>,
}

/// Why an authority gave no decision.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct AuthorityFault(pub String);

/// Decides calls that a rule delegates to it. This is a port: the operator's programs and policy endpoints are
/// adapters, and an embedder can bring its own.
pub trait DecisionAuthority: Send + Sync + 'static {
    /// The name that rules use.
    fn name(&self) -> &AuthorityName;

    /// Its kind, for records.
    fn kind(&self) -> AuthorityKind {
        AuthorityKind::Embedded
    }

    /// The time limit of an answer, after which there is no decision. The default deadline of calls is an upper bound.
    fn time_limit(&self) -> Duration {
        Duration::from_secs(5)
    }

    /// How long an answer is kept for calls with the same input. `None` if each call is asked about.
    fn keeps_answers_for(&self) -> Option<Duration> {
        None
    }

    /// Decides. The future is dropped if the call is canceled or the time limit passes.
    fn decide<'a>(
        &'a self,
        question: &'a AuthorityQuestion<'a>,
    ) -> BoxFuture<'a, Result<AuthorityAnswer, AuthorityFault>>;
}

/// An authority of the host, with its kept answers.
pub(crate) struct KnownAuthority {
    pub(crate) port: Arc<dyn DecisionAuthority>,
    kept: Option<KeptAnswers>,
}

impl KnownAuthority {
    /// A kept answer to this question. A dry run always asks.
    pub(crate) fn kept_answer(&self, question: &AuthorityQuestion<'_>) -> Option<AuthorityAnswer> {
        self.kept
            .as_ref()
            .filter(|_| !question.is_dry_run)?
            .find(&question.key())
    }

    /// Keeps an answer, if this authority's answers are kept.
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
    /// A later authority replaces an earlier one of the same name.
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
