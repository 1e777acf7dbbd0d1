//! The reasons behind a call's course: changes of its arguments, hooks, decisions.

use jiff::Timestamp;
use serde_json::{Value, json};
use toolpost_model::{Behavior, Decision, DelegatedVote, HookDeed, ReasonType, RuleRef, Stage};

use super::{four_inputs::FourInputs, moment, push, story::CallEvidence, words};
use crate::record::body::RecordedQuestion;

pub(super) fn mutations(story: &CallEvidence, lines: &mut Vec<String>) {
    let inputs = FourInputs::of(story);
    for (place, (mutation, at)) in (1..).zip(&story.inputs.changes) {
        push(
            lines,
            "input_mutation",
            json!({
                "mutation_id": format!("{}/mutation/{place}", story.id),
                "invocation_id": story.id,
                "source_type": mutation.source_type,
                "source_ref": mutation.source,
                "from_input_ref": inputs.reference(place - 1),
                "to_input_ref": inputs.reference(place),
                "to_input": inputs.between(place),
                "changed_fields": mutation.changed_fields,
                "reason": mutation.reason,
                "created_at": at,
            }),
        );
    }
}

pub(super) fn hooks(story: &CallEvidence, lines: &mut Vec<String>) {
    for (place, (run, at)) in (1..).zip(&story.hooks) {
        let voted = run.did.iter().find_map(|deed| match deed {
            HookDeed::Allowed => Some("allow"),
            HookDeed::Asked => Some("ask"),
            HookDeed::Denied => Some("deny"),
            HookDeed::ChangedArguments
            | HookDeed::ChangedOutput
            | HookDeed::AddedContext
            | HookDeed::Stopped
            | HookDeed::Withheld
            | HookDeed::LeftMessage => None,
        });
        let did = |deed: HookDeed| run.did.contains(&deed);
        push(
            lines,
            "hook",
            json!({
                "hook_id": format!("{}/hook/{place}", story.id),
                "hook_event": words::hook_event(run.event),
                "invocation_id": story.id,
                "tool_id": story.tool(),
                "name": run.name,
                "standing": run.standing,
                "outputs": run.did.iter().map(|deed| json!({ "did": deed })).collect::<Vec<_>>(),
                "permission_result": voted.map(|behavior| json!({ "behavior": behavior, "reason": run.reason })),
                "stop": (did(HookDeed::Stopped) || did(HookDeed::Withheld)).then(|| json!({ "reason": run.reason })),
                "message": run.message,
                "reason": run.reason,
                "error": run.error,
                "started_at": at,
                "ended_at": moment(*at, run.duration_us),
            }),
        );
    }
}

enum DecisionLine<'a> {
    /// The vote of an authority that a rule delegated the decision to.
    Delegated(&'a Decision, &'a DelegatedVote),
    /// The decision itself, with the question if a person was asked.
    Made {
        decision: &'a Decision,
        question: Option<&'a RecordedQuestion>,
        at: Timestamp,
        /// The number of changes before the arguments that it was made on.
        changes: usize,
    },
}

/// The number of decisions in the export of a call.
pub(super) fn count(story: &CallEvidence) -> usize {
    lines_of(story).count()
}

/// Each decision, after the votes of its authorities.
fn lines_of(story: &CallEvidence) -> impl Iterator<Item = DecisionLine<'_>> {
    let decided_at = story
        .reached(Stage::Decide)
        .or(story.reached(Stage::Resolve))
        .unwrap_or(story.last_at);
    let asked = story.asked.iter().map(|asked| {
        (
            &asked.decision,
            Some(&asked.question),
            asked.at,
            asked.changes,
        )
    });
    let changes = story.inputs.changes.len();
    let all = asked.chain(last(story).map(move |decision| (decision, None, decided_at, changes)));
    all.flat_map(|(decision, question, at, changes)| {
        let votes = decision
            .delegated
            .iter()
            .map(move |vote| DecisionLine::Delegated(decision, vote));
        votes.chain([DecisionLine::Made {
            decision,
            question,
            at,
            changes,
        }])
    })
}

/// The decision that the call continued or ended with, if it is not the one that asked.
fn last(story: &CallEvidence) -> Option<&Decision> {
    let decision = story.decision.as_ref()?;
    let asked = story.asked.last().map(|asked| &asked.decision);
    (asked != Some(decision)).then_some(decision)
}

pub(super) fn decisions(story: &CallEvidence, lines: &mut Vec<String>) {
    let inputs = FourInputs::of(story);
    for (place, line) in (1..).zip(lines_of(story)) {
        let fields = match line {
            DecisionLine::Delegated(decision, vote) => delegated(story, decision, vote, place),
            DecisionLine::Made {
                decision,
                question,
                at,
                changes,
            } => {
                let mut fields = self::decision(story, decision, place, &at.to_string());
                fields["input_ref"] = json!(inputs.reference(changes));
                if let Some(question) = question {
                    fields["ask_id"] = json!(question.ask_id);
                    fields["expires_at"] = json!(question.expires_at);
                }
                fields
            }
        };
        push(lines, "permission_decision", fields);
    }
}

/// The name of a rule in exports.
fn rule_ref(rule: &RuleRef) -> String {
    format!("{} ({})", rule.rule, rule.place)
}

fn rules(decision: &Decision) -> impl Iterator<Item = &RuleRef> {
    decision.reason.rule.iter().chain(&decision.also_matched)
}

/// The policies that decided about a call: every rule once, and the mode if it decided.
pub(super) fn policy_refs(story: &CallEvidence) -> Vec<String> {
    let asked = story.asked.iter().map(|asked| &asked.decision);
    let mut refs: Vec<String> = Vec::new();
    for decision in asked.chain(last(story)) {
        // With a class from the arguments, the reason names the class; the mode still decided.
        let by_mode = matches!(
            decision.reason.kind,
            ReasonType::Mode | ReasonType::Classifier
        );
        let by_mode = by_mode.then(|| format!("mode/{}", decision.mode.as_str()));
        for one in rules(decision).map(rule_ref).chain(by_mode) {
            if !refs.contains(&one) {
                refs.push(one);
            }
        }
    }
    refs
}

/// A decision that a rule delegated: `passthrough`, with the authority and its answer.
fn delegated(
    story: &CallEvidence,
    decision: &Decision,
    vote: &DelegatedVote,
    place: usize,
) -> Value {
    let rule = &vote.rule;
    json!({
        "decision_id": format!("{}/decision/{place}", story.id),
        "invocation_id": story.id,
        "behavior": "passthrough",
        "mode": decision.mode,
        "source": rule.origin.as_str(),
        "reason": {
            "type": "rule",
            "ground": ReasonType::Delegate,
            "text": format!("the rule `{}` delegates the decision to the authority `{}`", rule.rule, vote.authority),
            "rule": rule,
        },
        "rule_refs": [rule_ref(rule)],
        "class": decision.class,
        "delegate": {
            "authority": vote.authority,
            "type": words::authority(vote.kind),
            "behavior": vote.behavior,
            "reason": vote.reason,
            "fault": vote.fault,
            "cached": vote.cached,
        },
        "decided_at": moment(story.created_at, vote.at_us),
    })
}

fn decision(story: &CallEvidence, decision: &Decision, place: usize, at: &str) -> Value {
    let by_person = decision.reason.kind == ReasonType::Approval;
    let changes = &story.inputs.changes;
    let edited = changes
        .iter()
        .any(|(change, _)| change.source_type == "permission_prompt");
    let source = match (&decision.reason.rule, &story.approval) {
        (Some(rule), _) => rule.origin.as_str().to_owned(),
        (None, Some(approval)) if by_person => format!("operator/{}", approval.by),
        (None, _) => words::reason(decision).to_owned(),
    };
    json!({
        "decision_id": format!("{}/decision/{place}", story.id),
        "invocation_id": story.id,
        "behavior": match decision.behavior {
            Behavior::Allow => "allow",
            Behavior::Ask => "ask",
            Behavior::Deny => "deny",
        },
        "mode": decision.mode,
        "source": source,
        "reason": {
            "type": words::reason(decision),
            "ground": decision.reason.kind,
            "text": decision.reason.text,
            "rule": decision.reason.rule,
        },
        "rule_refs": rules(decision).map(rule_ref).collect::<Vec<_>>(),
        "class": decision.class,
        "subject": decision.subject,
        "opaque": decision.opaque,
        "notes": decision.notes,
        "classified": decision.classified,
        "delegated": decision.delegated,
        "approval_waived": decision.approval_waived,
        "operator_hint": decision.operator_hint,
        "updated_input_ref": (by_person && edited).then(|| FourInputs::of(story).reference(changes.len())),
        "user_modified": by_person.then_some(edited),
        "approval": story.approval.as_ref().filter(|_| by_person).map(|approval| json!({
            "ask_id": approval.ask_id, "by": approval.by, "allowed": approval.allowed,
        })),
        "decided_at": at,
    })
}
