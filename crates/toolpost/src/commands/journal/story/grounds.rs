//! Why a call was decided as it was, and what else had a hand in it.

use serde_json::Value;
use toolpost_core::InputChange;

use super::{NamedLineWriter, shortened};
use crate::terminal::{DIM, YELLOW, printable, styled};

/// What stands behind a decision: the rule, the part that decided, what nobody can tell, the others that matched.
pub(crate) fn grounds(decision: &Value, line: NamedLineWriter<'_>) {
    let text = |value: &Value, name: &str| value[name].as_str().map(printable);
    let rule = |rule: &Value| {
        let written = text(rule, "rule");
        let place = text(rule, "place");
        format!(
            "`{}` ({})",
            written.unwrap_or_default(),
            place.unwrap_or_default()
        )
    };
    if let Some(decided) = decision.pointer("/reason/rule") {
        line("rule", rule(decided));
    }
    if let Some(subject) = text(decision, "subject") {
        line("part", shortened(&subject));
    }
    if let Some(finding) = decision.get("classified") {
        line("class", shortened(&class_finding(finding)));
    }
    for opaque in list(decision, "opaque") {
        line(
            "unclear",
            styled(YELLOW, printable(opaque.as_str().unwrap_or_default())),
        );
    }
    for vote in list(decision, "delegated") {
        delegated(vote, line);
    }
    for other in list(decision, "also_matched") {
        line("also", rule(other));
    }
    for note in list(decision, "notes") {
        line(
            "note",
            styled(YELLOW, printable(note.as_str().unwrap_or_default())),
        );
    }
}

/// How the class of a call was found in its arguments.
pub(crate) fn class_finding(finding: &Value) -> String {
    let text = |name: &str| finding[name].as_str().map(printable).unwrap_or_default();
    format!("{}: {}", text("class"), text("found"))
}

/// The vote of an authority that a rule delegated to.
pub(crate) fn delegated(vote: &Value, line: NamedLineWriter<'_>) {
    let text = |name: &str| vote[name].as_str().map(printable);
    let told = match (text("fault"), text("reason")) {
        (Some(fault), _) => styled(YELLOW, format!("no decision, so deny: {fault}")),
        (None, Some(reason)) => format!("{}: {reason}", text("behavior").unwrap_or_default()),
        (None, None) => text("behavior").unwrap_or_default(),
    };
    let micros = vote["duration_us"].as_u64().unwrap_or_default();
    let kind = text("kind").unwrap_or_else(|| "unknown".to_owned());
    let how = match vote["cached"] == true {
        true => format!("({kind}, kept answer)"),
        false => format!("({kind}, {:.3} ms)", micros as f64 / 1_000.0),
    };
    let authority = text("authority").unwrap_or_default();
    line(
        "delegate",
        format!("`{authority}` {told} {}", styled(DIM, how)),
    );
}

/// The call's place among the calls of its turn.
pub(super) fn batch(place: &Value, line: NamedLineWriter<'_>) {
    let index = place["index"].as_u64().unwrap_or_default();
    let id = printable(place["id"].as_str().unwrap_or_default());
    let after: Vec<String> = list(place, "depends_on")
        .filter_map(Value::as_u64)
        .map(|n| n.to_string())
        .collect();
    let after = if after.is_empty() {
        String::new()
    } else {
        format!(", after {}", after.join(", "))
    };
    line("batch", format!("call {index} of `{id}`{after}"));
}

/// What each hook did.
pub(crate) fn hook(run: &Value, line: NamedLineWriter<'_>) {
    let text = |name: &str| run[name].as_str().map(printable);
    let did: Vec<String> = list(run, "did")
        .filter_map(Value::as_str)
        .map(|deed| deed.replace('_', " "))
        .collect();
    let mut told = match (text("error"), did.as_slice()) {
        (Some(error), _) => styled(YELLOW, format!("failed: {error}")),
        (None, []) => "let it pass".to_owned(),
        (None, did) => did.join(", "),
    };
    for name in ["reason", "message"] {
        if let Some(text) = text(name) {
            told.push_str(&format!(": {text}"));
        }
    }
    let micros = run["duration_us"].as_u64().unwrap_or_default();
    let facts = format!(
        "({} {}, {:.3} ms)",
        text("standing").unwrap_or_default(),
        text("event").unwrap_or_default(),
        micros as f64 / 1_000.0
    );
    line(
        "hook",
        format!(
            "`{}` {told} {}",
            text("name").unwrap_or_default(),
            styled(DIM, facts)
        ),
    );
}

pub(super) fn output_change(mutation: &Value, line: NamedLineWriter<'_>) {
    let text = |name: &str| mutation[name].as_str().unwrap_or_default();
    let fields: Vec<&str> = list(mutation, "changed_fields")
        .filter_map(Value::as_str)
        .collect();
    let by = (text("source_type"), text("source"), text("reason"));
    rewritten("result", &fields, by, line);
}

/// A change of the arguments, with each field before and after it where the records have both.
pub(super) fn input_change(change: &InputChange<'_>, line: NamedLineWriter<'_>) {
    let fields: Vec<&str> = change.changed_fields.iter().map(String::as_str).collect();
    rewritten(
        "arguments",
        &fields,
        (change.source_type, change.source, change.reason),
        line,
    );
    // The answer of a person is printed with its differences already.
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
    what: &str,
    fields: &[&str],
    (kind, source, reason): (&str, &str, &str),
    line: NamedLineWriter<'_>,
) {
    let fields: Vec<String> = fields.iter().map(|field| printable(field)).collect();
    let who = match kind {
        "permission_prompt" => format!("{} (who approved it)", printable(source)),
        kind => format!("{} ({})", printable(source), printable(kind)),
    };
    let reason = Some(reason).filter(|reason| !reason.is_empty());
    let reason = reason
        .map(|reason| format!(": {}", printable(reason)))
        .unwrap_or_default();
    line(
        "rewritten",
        format!("{what} {} by {who}{reason}", fields.join(", ")),
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

/// Something that the call waited for before it ran.
pub(crate) fn waited(reason: &Value, line: NamedLineWriter<'_>) {
    line("waited", format!("for {}", wait_reason(reason)));
}

/// One thing that a call waits for, in a few words.
pub(crate) fn wait_reason(reason: &Value) -> String {
    let count = |name: &str| reason[name].as_u64().unwrap_or_default();
    let slots = |of: &str| {
        format!(
            "a slot of {of}: {} of {} were in use",
            count("used"),
            count("limit")
        )
    };
    match reason["for"].as_str().unwrap_or_default() {
        "host_slot" => slots("the host"),
        "principal_slot" => slots("its caller"),
        "session_slot" => slots("its session"),
        "tool_slot" => slots("its tool"),
        "source_slot" => slots("its source"),
        "resource" => {
            let key = printable(reason["key"].as_str().unwrap_or_default());
            let held: Vec<String> = list(reason, "held_by")
                .filter_map(Value::as_str)
                .map(printable)
                .collect();
            let by = match (held.as_slice(), count("others")) {
                ([], 0) => "others who waited before it".to_owned(),
                ([], others) => format!("{others} of other sessions"),
                (held, 0) => held.join(", "),
                (held, others) => format!("{} and {others} of other sessions", held.join(", ")),
            };
            format!(
                "`{key}` ({}), held by {by}",
                reason["access"].as_str().unwrap_or_default()
            )
        }
        "to_be_alone" => format!("{} other calls of its session to end", count("running")),
        "to_be_beside" => "a call of its session that ran alone".to_owned(),
        "turn" => "calls that were passed over before".to_owned(),
        "batch" => "other calls of its batch".to_owned(),
        other => printable(other),
    }
}

/// How long it could run, and who said so.
pub(crate) fn deadline(deadline: &Value, line: NamedLineWriter<'_>) {
    let by = match deadline["by"].as_str().unwrap_or_default() {
        "caller" => "as the caller wished",
        "tool_setting" => "`tools.NAME.timeout`",
        "tool" => "as the tool says",
        "host_default" => "`limits.deadline`",
        "tool_ceiling" => "the ceiling that is set for the tool",
        "host_ceiling" => "`limits.deadline_ceiling`",
        "parent" => "the end of the call that made it",
        "patience" => "as long as its caller waited",
        _ => "",
    };
    line(
        "deadline",
        format!("{} ms ({by})", deadline["ms"].as_u64().unwrap_or_default()),
    );
}

fn list<'a>(value: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
    value[name].as_array().into_iter().flatten()
}

/// Who stopped a call, and whether its work obeyed.
pub(super) fn cancellation(told: &Value, line: NamedLineWriter<'_>) {
    let text = |name: &str| told[name].as_str().map(printable);
    let by = text("by").map(|by| format!("by {by} ({})", text("role").unwrap_or_default()));
    let by = by.unwrap_or_else(|| "by the host".to_owned());
    let at = text("requested_at")
        .map(|at| format!(" at {at}"))
        .unwrap_or_default();
    let obeyed = text("acknowledged_at").map_or_else(
        || "the work was still going on when the host stopped listening".to_owned(),
        |at| format!("the work had stopped at {at}"),
    );
    line(
        "stopped",
        format!("{by}{at}, {}; {obeyed}", text("reason").unwrap_or_default()),
    );
}
