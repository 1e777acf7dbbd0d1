//! The reasons for a call's decision, and the other influences on the call.

use serde_json::Value;
use toolpost_core::{
    CallDeadline, CancellationBody, DeadlineBy, InputChange, OutputMutation, SlotUse, WaitReason,
};
use toolpost_model::{
    BatchPlace, ClassFinding, Decision, DelegatedVote, HookRun, PrincipalRole, RuleRef,
};

use super::{NamedLineWriter, shortened, word};
use crate::terminal::{DIM, YELLOW, printable, styled};

/// The reasons for a decision: the rule, the part that decided, the unknown facts, the other rules that matched.
pub(super) fn grounds(decision: &Decision, line: NamedLineWriter<'_>) {
    let rule = |rule: &RuleRef| format!("`{}` ({})", printable(&rule.rule), printable(&rule.place));
    if let Some(decided) = &decision.reason.rule {
        line("rule", rule(decided));
    }
    if let Some(subject) = &decision.subject {
        line("part", shortened(&printable(subject)));
    }
    if let Some(finding) = &decision.classified {
        line("class", shortened(&class_finding(finding)));
    }
    for opaque in &decision.opaque {
        line("unclear", styled(YELLOW, printable(opaque)));
    }
    for vote in &decision.delegated {
        delegated(vote, line);
    }
    for other in &decision.also_matched {
        line("also", rule(other));
    }
    for note in &decision.notes {
        line("note", styled(YELLOW, printable(note)));
    }
}

/// The origin of a call's class in its arguments.
pub(crate) fn class_finding(finding: &ClassFinding) -> String {
    format!("{}: {}", finding.class.as_str(), printable(&finding.found))
}

/// The vote of an authority that a rule delegated to.
pub(crate) fn delegated(vote: &DelegatedVote, line: NamedLineWriter<'_>) {
    let behavior = vote.behavior.as_str();
    let told = match (&vote.fault, &vote.reason) {
        (Some(fault), _) => styled(
            YELLOW,
            format!("no decision, so deny: {}", printable(fault)),
        ),
        (None, Some(reason)) => format!("{behavior}: {}", printable(reason)),
        (None, None) => behavior.to_owned(),
    };
    let kind = vote.kind.map_or("unknown", |kind| kind.as_str());
    let how = match vote.cached {
        true => format!("({kind}, kept answer)"),
        false => format!("({kind}, {:.3} ms)", vote.duration_us as f64 / 1_000.0),
    };
    let authority = printable(vote.authority.as_str());
    line(
        "delegate",
        format!("`{authority}` {told} {}", styled(DIM, how)),
    );
}

/// The call's place among the calls of its turn.
pub(super) fn batch(place: &BatchPlace, line: NamedLineWriter<'_>) {
    let after: Vec<String> = place.depends_on.iter().map(u32::to_string).collect();
    let after = match after.as_slice() {
        [] => String::new(),
        after => format!(", after {}", after.join(", ")),
    };
    let id = printable(&place.id);
    line("batch", format!("call {} of `{id}`{after}", place.index));
}

/// The actions of each hook.
pub(crate) fn hook(run: &HookRun, line: NamedLineWriter<'_>) {
    let did: Vec<String> = run.did.iter().map(word).collect();
    let mut told = match (&run.error, did.as_slice()) {
        (Some(error), _) => styled(YELLOW, format!("failed: {}", printable(error))),
        (None, []) => "let it pass".to_owned(),
        (None, did) => did.join(", "),
    };
    for text in [&run.reason, &run.message].into_iter().flatten() {
        told.push_str(&format!(": {}", printable(text)));
    }
    let facts = format!(
        "({} {}, {:.3} ms)",
        run.standing.as_str(),
        run.event.as_str(),
        run.duration_us as f64 / 1_000.0
    );
    line(
        "hook",
        format!("`{}` {told} {}", printable(&run.name), styled(DIM, facts)),
    );
}

pub(super) fn output_change(change: &OutputMutation, line: NamedLineWriter<'_>) {
    let fields: Vec<&str> = change.changed_fields.iter().map(AsRef::as_ref).collect();
    let by = (
        change.source_type.as_ref(),
        change.source.as_str(),
        change.reason.as_str(),
    );
    rewritten("result", &fields, by, line);
}

/// A change of the arguments, with both values of each field if the records have them.
pub(super) fn input_change(change: &InputChange<'_>, line: NamedLineWriter<'_>) {
    let fields: Vec<&str> = change.changed_fields.iter().map(String::as_str).collect();
    rewritten(
        "arguments",
        &fields,
        (change.source_type, change.source, change.reason),
        line,
    );
    // The operator's answer is printed with its differences already.
    let is_told = change.source_type == "permission_prompt";
    let (Some(from), Some(to), false) = (change.from, change.to, is_told) else {
        return;
    };
    for field in fields {
        let told = |arguments: &Value| match arguments.get(field) {
            Some(value) => clipped(&printable(&value.to_string())),
            None => "(absent)".to_owned(),
        };
        line(
            "",
            format!("{}: {} -> {}", printable(field), told(from), told(to)),
        );
    }
}

fn rewritten(
    part: &str,
    fields: &[&str],
    (kind, source, reason): (&str, &str, &str),
    line: NamedLineWriter<'_>,
) {
    let fields: Vec<String> = fields.iter().map(|field| printable(field)).collect();
    let author = match kind {
        "permission_prompt" => format!("{} (the approver)", printable(source)),
        kind => format!("{} ({})", printable(source), printable(kind)),
    };
    let reason = Some(reason).filter(|reason| !reason.is_empty());
    let reason = reason
        .map(|reason| format!(": {}", printable(reason)))
        .unwrap_or_default();
    line(
        "rewritten",
        format!("{part} {} by {author}{reason}", fields.join(", ")),
    );
}

/// How much of one value of the arguments is shown in a difference.
const DIFFERENCE: usize = 120;

fn clipped(text: &str) -> String {
    match text.char_indices().nth(DIFFERENCE) {
        Some((place, _)) => format!("{}…", &text[..place]),
        None => text.to_owned(),
    }
}

/// A reason for a call's wait, in a few words.
pub(crate) fn wait_reason(reason: &WaitReason) -> String {
    let of = |owner: &str, slots: &SlotUse| {
        let SlotUse { used, limit } = slots;
        format!("a slot of {owner}: {used} of {limit} were in use")
    };
    match reason {
        WaitReason::HostSlot(slots) => of("the host", slots),
        WaitReason::PrincipalSlot(slots) => of("its caller", slots),
        WaitReason::SessionSlot(slots) => of("its session", slots),
        WaitReason::ToolSlot(slots) => of("its tool", slots),
        WaitReason::SourceSlot(slots) => of("its source", slots),
        WaitReason::Resource {
            key,
            access,
            held_by,
            others,
        } => {
            let held: Vec<String> = held_by.iter().map(ToString::to_string).collect();
            let by = match (held.as_slice(), others) {
                ([], 0) => "calls that waited before it".to_owned(),
                ([], others) => format!("{others} calls of other sessions"),
                (held, 0) => held.join(", "),
                (held, others) => {
                    format!("{} and {others} calls of other sessions", held.join(", "))
                }
            };
            let key = printable(key.as_str());
            format!("`{key}` ({}), held by {by}", word(access))
        }
        WaitReason::ToBeAlone { running } => {
            format!("{running} other calls of its session to end")
        }
        WaitReason::ToBeBeside => "a call of its session that ran alone".to_owned(),
        WaitReason::Turn => "calls that waited too long behind others".to_owned(),
        WaitReason::Batch => "other calls of its batch".to_owned(),
    }
}

/// The deadline of a call, and its origin. `tool` is the name of the call's tool.
pub(crate) fn deadline(deadline: CallDeadline, tool: &str, line: NamedLineWriter<'_>) {
    let by = if deadline.by == DeadlineBy::ToolSetting {
        format!("`tools.{tool}.timeout`")
    } else {
        deadline.by.explain().to_owned()
    };
    line("deadline", format!("{} ms ({by})", deadline.ms));
}

/// The cancellation of a call: its author, and whether the work stopped.
pub(super) fn cancellation(told: &CancellationBody, line: NamedLineWriter<'_>) {
    let role = told.role.map(PrincipalRole::as_str).unwrap_or_default();
    let by = match &told.by {
        Some(by) => format!("by {} ({role})", printable(by.as_str())),
        None => "by the host".to_owned(),
    };
    let at = told
        .requested_at
        .map(|at| format!(" at {at}"))
        .unwrap_or_default();
    let obeyed = told.acknowledged_at.map_or_else(
        || "the work was still running when the host stopped waiting".to_owned(),
        |at| format!("the work stopped at {at}"),
    );
    line(
        "stopped",
        format!("{by}{at}, {}; {obeyed}", printable(&told.reason)),
    );
}
