//! A dry run, told: what would happen to a call, and why.

use serde::Serialize;
use toolpost_model::{Decision, Effects, HookRun, Outcome, Stage, ToolError, ToolId, Visibility};

use crate::{
    flow::{
        invocation::Call,
        permission::{Facts, PartDecision},
        result::Ending,
    },
    host::Inner,
};

/// What would happen to a call.
#[derive(Clone, Debug, Serialize)]
pub struct Explanation {
    /// The tool as asked for.
    pub tool: String,
    /// The tool it means.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_id: Option<ToolId>,
    /// Whether the surface shows it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub visibility: Option<Visibility>,
    /// The stages reached, the last of them only looked at.
    pub stages: Vec<Stage>,
    /// What it would touch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effects: Option<Effects>,
    /// What hooks did.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hooks: Vec<HookRun>,
    /// What was decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decision: Option<Decision>,
    /// The same for each part of it: every command, path and request.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<PartDecision>,
    /// Whether it would run without anybody being asked.
    pub would_run: bool,
    /// Whether a person would be asked.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub would_ask: bool,
    /// How it would end before running.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    /// And why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<ToolError>,
}

pub(crate) fn explain(host: &Inner, call: Call, visibility: Option<Visibility>) -> Explanation {
    let (parts, redactor) = (parts(host, &call), call.live.redactor());
    let (outcome, error) = match call.ending {
        Some(Ending::Failure { outcome, mut error, .. }) => {
            redactor.error(&mut error, &mut toolpost_model::Redactions::default());
            (Some(outcome), Some(*error))
        }
        Some(Ending::Output(_)) | None => (None, None),
    };
    let would_ask = outcome.is_none() && call.stage == Stage::AwaitApproval;
    Explanation {
        tool: redactor.text(&call.live.tool).into_owned(),
        tool_id: call.resolved.as_ref().map(|resolved| resolved.entry.id().clone()),
        visibility,
        stages: call.transitions.iter().map(|transition| transition.stage).collect(),
        effects: call.effects.as_ref().map(|effects| redactor.effects(effects)),
        hooks: call.hooks.runs,
        decision: call.decision,
        parts,
        would_run: outcome.is_none() && !would_ask,
        would_ask,
        outcome,
        error,
    }
}

fn parts(host: &Inner, call: &Call) -> Vec<PartDecision> {
    let (Some(resolved), Some(effects), Some(input)) =
        (&call.resolved, &call.effects, &call.inputs.permission)
    else {
        return Vec::new();
    };
    let mut parts = host.engine(&call.session).parts(&Facts {
        declaration: resolved.entry.declaration(),
        input: Some(input),
        effects,
        principal: call.session.principal(),
        opinions: &[],
        at: crate::port::now(),
    });
    let redactor = call.live.redactor();
    for part in &mut parts {
        part.reason.text = redactor.text(&part.reason.text).into_owned();
        part.subject = part.subject.as_deref().map(|subject| redactor.text(subject).into_owned());
    }
    parts
}
