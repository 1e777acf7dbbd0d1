//! Asking the authorities that rules delegate a decision to. Each has its own time limit. Any failure is a vote to
//! deny, and the fault is recorded.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use toolpost_model::{Behavior, DelegatedVote, Effects, ObservableInput, PermissionMode, RuleRef};

use crate::{
    call::CallRunKind,
    execution::deadline,
    hooks,
    host::HostInner,
    invocation::{PipelineCall, ResolvedTool, micros, patience::patiently},
    permission::{AuthorityAnswer, AuthorityFault, AuthorityQuestion, Delegation, KnownAuthority},
    result::{self, CallEnding},
};

/// The limit of reasons and faults, which are read at a glance.
const TEXT_CHARS: usize = 2_000;

/// The call in the form that authorities see.
struct DelegatedCall<'a> {
    call: &'a PipelineCall,
    resolved: &'a ResolvedTool,
    input: &'a ObservableInput,
    effects: Effects,
    mode: PermissionMode,
    is_dry_run: bool,
}

/// Asks all authorities at the same time. Returns their votes in the order of the delegations.
pub(crate) async fn ask_authorities(
    host: &HostInner,
    call: &PipelineCall,
    effects: &Effects,
    mode: PermissionMode,
    delegations: &[Delegation],
    way: CallRunKind,
) -> Result<Vec<DelegatedVote>, CallEnding> {
    let (Some(resolved), Some(input)) = (&call.findings.resolved, &call.inputs.observable) else {
        return Err(result::internal(
            "a call without arguments cannot be delegated",
        ));
    };
    let delegated = DelegatedCall {
        call,
        resolved,
        input,
        effects: call.live.redactor().effects(effects),
        mode,
        is_dry_run: way == CallRunKind::Dry,
    };
    // A delegation without a rule is not asked, and the engine then denies.
    let named = delegations
        .iter()
        .filter_map(|delegation| Some((delegation, delegation.rules.first()?)));
    let votes = join_all(named.map(|(delegation, rule)| delegated.vote(host, delegation, rule)));
    patiently(host, call, votes).await
}

impl DelegatedCall<'_> {
    async fn vote(
        &self,
        host: &HostInner,
        delegation: &Delegation,
        rule: &RuleRef,
    ) -> DelegatedVote {
        let began = Instant::now();
        let known = host.policy.authorities().get(&delegation.authority);
        let (answer, cached) = match known {
            Some(known) => self.answer(host, delegation, known).await,
            None => {
                let fault = "this host has no authority of that name; restart it to load a new one";
                (Err(AuthorityFault(fault.to_owned())), false)
            }
        };
        let told = |text: &str| {
            let clean = self.call.live.redactor().text(text).into_owned();
            hooks::run::cut(clean, TEXT_CHARS)
        };
        let (behavior, reason, fault) = match answer {
            Ok(answer) => (answer.behavior, answer.reason.as_deref().map(told), None),
            Err(fault) => {
                let fault = told(&fault.0);
                tracing::warn!(authority = %delegation.authority, "an authority gave no decision: {fault}");
                (Behavior::Deny, None, Some(fault))
            }
        };
        DelegatedVote {
            authority: delegation.authority.clone(),
            kind: known.map(|known| known.port.kind()),
            behavior,
            reason: reason.filter(|reason| !reason.trim().is_empty()),
            fault,
            rule: rule.clone(),
            cached,
            at_us: micros(began.saturating_duration_since(self.call.live.began)),
            duration_us: micros(began.elapsed()),
        }
    }

    /// The answer of an authority, and whether it was kept from an earlier call.
    async fn answer(
        &self,
        host: &HostInner,
        delegation: &Delegation,
        known: &KnownAuthority,
    ) -> (Result<AuthorityAnswer, AuthorityFault>, bool) {
        let question = AuthorityQuestion {
            authority: &delegation.authority,
            rules: &delegation.rules,
            invocation_id: self.call.live.id,
            session_id: self.call.session.id(),
            principal: self.call.session.principal(),
            declaration: self.resolved.entry.declaration(),
            input: self.input,
            effects: &self.effects,
            mode: self.mode,
            is_dry_run: self.is_dry_run,
        };
        if let Some(kept) = known.kept_answer(&question) {
            return (Ok(kept), true);
        }
        // All waits before a call have the same ceiling.
        let limit = known.port.time_limit().min(host.limits.deadline);
        let answer = ask_one(known, &question, limit).await;
        if let Ok(answer) = &answer {
            known.keep_answer(&question, answer);
        }
        (answer, false)
    }
}

/// Asks one authority within its time limit. A panic or a timeout is a fault.
async fn ask_one(
    known: &KnownAuthority,
    question: &AuthorityQuestion<'_>,
    limit: Duration,
) -> Result<AuthorityAnswer, AuthorityFault> {
    // The call of `decide` itself may panic as well, so it is inside the future.
    let work = async { known.port.decide(question).await };
    let answer = deadline::within(limit, work).await;
    answer.unwrap_or_else(|fault| Err(AuthorityFault(fault)))
}
