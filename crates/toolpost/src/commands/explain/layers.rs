//! An explanation in plain text: the verdict, then each layer's part and its reason, then the ways to change the
//! verdict.

use std::fmt::Display;

use serde::Deserialize;
use serde_json::Value;
use toolpost_core::{CallDeadline, WaitReason};
use toolpost_model::{ClassFinding, ToolError};

use super::super::journal::story;
use crate::terminal::{BOLD, DIM, GREEN, RED, YELLOW, printable, say, styled};

pub(super) fn print_explanation(explanation: &Value) {
    let verdict = match (&explanation["would_run"], explanation["would_ask"] == true) {
        (Value::Bool(true), _) => styled(GREEN, "it would run"),
        (_, true) => styled(YELLOW, "an operator would be asked"),
        (_, false) => styled(RED, "it would not run"),
    };
    line("verdict", verdict);
    let layers = &explanation["layers"];
    declaration(explanation, &layers["declaration"]);
    interface(explanation, &layers["interface"]);
    surface(&layers["surface"]);
    invocation(&layers["invocation"]);
    hooks(explanation, layers);
    permission(explanation, &layers["permission"]);
    scheduling(explanation, &layers["scheduling"]);
    execution(explanation, &layers["execution"]);
    result(&layers["result"]);
    persistence(&layers["persistence"]);
    if let Some(message) = text(explanation, "/error/message") {
        line("because", message);
        if let Some(hint) = text(explanation, "/error/hint") {
            line("hint", hint);
        }
        if let Ok(error) = ToolError::deserialize(&explanation["error"]) {
            line("retry", story::retry(&error));
        }
    }
    for (place, change) in list(explanation, "/would_change").enumerate() {
        let then = change["then"]
            .as_str()
            .map(|then| styled(DIM, format!(" -> {then}")));
        let setting = change["setting"]
            .as_str()
            .map(|setting| format!(": `{}`", printable(setting)));
        let advice = text(change, "/text").unwrap_or_default();
        let told = format!(
            "{advice}{}{}",
            setting.unwrap_or_default(),
            then.unwrap_or_default()
        );
        line(if place == 0 { "to change" } else { "" }, told);
    }
}

fn line(name: &str, text: impl Display) {
    say!("{}  {text}", styled(BOLD, format!("{name:<11}")));
}

/// A line of the layer above it.
fn beneath(name: &str, text: impl Display) {
    say!("             {name:<9}  {text}");
}

fn text(value: &Value, pointer: &str) -> Option<String> {
    value
        .pointer(pointer)
        .and_then(Value::as_str)
        .map(printable)
}

fn words(value: &Value, pointer: &str) -> String {
    text(value, pointer).unwrap_or_default().replace('_', " ")
}

fn list<'a>(value: &'a Value, pointer: &str) -> impl Iterator<Item = &'a Value> {
    value
        .pointer(pointer)
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
}

fn typed_list<'a, T: Deserialize<'a>>(value: &'a Value, pointer: &str) -> impl Iterator<Item = T> {
    list(value, pointer).filter_map(|one| T::deserialize(one).ok())
}

fn declaration(explanation: &Value, layer: &Value) {
    let asked = text(explanation, "/tool").unwrap_or_default();
    let Some(id) = text(layer, "/tool_id") else {
        return line("declaration", format!("no tool is called `{asked}`"));
    };
    let by = words(layer, "/matched_by");
    line(
        "declaration",
        format!(
            "{id}, found by its {by}, from source `{}`",
            words(layer, "/source")
        ),
    );
}

fn interface(explanation: &Value, layer: &Value) {
    if layer.is_null() {
        return;
    }
    let class = match (
        text(explanation, "/effects/class"),
        text(layer, "/class/always"),
    ) {
        (Some(class), _) | (None, Some(class)) => format!("class {class}"),
        (None, None) => "a class that depends on the arguments".to_owned(),
    };
    let by = match layer["vouched_by"].as_str().unwrap_or_default() {
        "host_code" => "declared by the host's own code",
        "operator" => "set by the operator",
        _ => "claimed by the tool, which can only make it stricter",
    };
    let mut told = format!("{class}, {by}");
    for (name, said) in [
        ("destructive", "it may destroy data for good"),
        ("approval_required", "every call needs approval"),
        (
            "approval_requested",
            "the tool requests approval of every call",
        ),
    ] {
        if layer[name] == true {
            told.push_str(&format!("; {said}"));
        }
    }
    line("interface", told);
    for touched in list(explanation, "/effects/uses") {
        let access = touched["access"].as_str().unwrap_or_default();
        beneath(
            "touches",
            format!("{} ({access})", text(touched, "/key").unwrap_or_default()),
        );
    }
}

fn surface(layer: &Value) {
    let visibility = match &layer["visibility"] {
        Value::String(word) => printable(word),
        // `{"blocked": "policy"}`
        Value::Object(map) => map
            .keys()
            .next()
            .map(|key| printable(key))
            .unwrap_or_default(),
        _ => "missing".to_owned(),
    };
    line(
        "surface",
        format!("{visibility}: {}", text(layer, "/why").unwrap_or_default()),
    );
}

fn invocation(layer: &Value) {
    let verdict = match layer["schema"].as_str().unwrap_or_default() {
        "fits" => "the arguments fit the schema",
        "violated" => "the arguments do not fit the schema",
        "refused" => "the arguments fit the schema, but the tool refuses them",
        "unreadable" => "the arguments cannot be read",
        _ => "the arguments were not checked",
    };
    let redacted = if layer["redacted"] == true {
        "; some are redacted in every record"
    } else {
        ""
    };
    line("invocation", format!("{verdict}{redacted}"));
    for violation in list(layer, "/violations") {
        let at = text(violation, "/at")
            .filter(|at| !at.is_empty())
            .unwrap_or_else(|| "all".to_owned());
        let expected = text(violation, "/expected");
        let given = text(violation, "/given");
        let told = format!(
            "{at}: expected {}, got {}",
            expected.unwrap_or_default(),
            given.unwrap_or_default()
        );
        beneath("fault", told);
    }
    for mutation in list(layer, "/mutations") {
        let fields: Vec<String> = list(mutation, "/changed_fields")
            .filter_map(Value::as_str)
            .map(printable)
            .collect();
        beneath(
            "changed",
            format!("{} by {}", fields.join(", "), words(mutation, "/source")),
        );
    }
}

fn hooks(explanation: &Value, layers: &Value) {
    let mut name = "hooks";
    for plan in list(layers, "/hooks") {
        let events: Vec<&str> = list(plan, "/events").filter_map(Value::as_str).collect();
        let told = format!(
            "`{}` ({}) would run: {}",
            text(plan, "/name").unwrap_or_default(),
            words(plan, "/standing"),
            events.join(", ")
        );
        line(name, told);
        name = "";
    }
    typed_list(explanation, "/hooks").for_each(|run| story::hook(&run, &beneath));
}

fn permission(explanation: &Value, layer: &Value) {
    let Some(decision) = explanation.get("decision") else {
        return;
    };
    let behavior = text(decision, "/behavior");
    let why = text(decision, "/reason/text");
    line(
        "permission",
        format!(
            "{}: {}",
            behavior.unwrap_or_default(),
            why.unwrap_or_default()
        ),
    );
    if let Some(subject) = text(decision, "/subject") {
        beneath("part", subject);
    }
    if let Ok(finding) = ClassFinding::deserialize(&decision["classified"]) {
        beneath("class", story::class_finding(&finding));
    }
    typed_list(decision, "/delegated").for_each(|vote| story::delegated(&vote, &beneath));
    for opaque in list(decision, "/opaque") {
        beneath(
            "unclear",
            styled(YELLOW, printable(opaque.as_str().unwrap_or_default())),
        );
    }
    for rule in list(layer, "/considered") {
        let written = text(rule, "/rule");
        let place = text(rule, "/place");
        let told = format!(
            "`{}` ({})",
            written.unwrap_or_default(),
            place.unwrap_or_default()
        );
        let why = text(rule, "/why")
            .map(|why| styled(DIM, format!(": {why}")))
            .unwrap_or_default();
        beneath(
            rule["voice"].as_str().unwrap_or_default(),
            format!("{told}{why}"),
        );
    }
    if let Some(more) = layer["left_out"].as_u64() {
        beneath("", format!("and {more} more rules without influence"));
    }
    let parts: Vec<&Value> = list(explanation, "/parts").collect();
    for part in parts.iter().filter(|_| parts.len() > 1) {
        let behavior = text(part, "/behavior");
        let because = text(part, "/reason/text");
        let subject = text(part, "/subject").unwrap_or_else(|| "the call itself".to_owned());
        let told = format!(
            "{}: {subject} ({})",
            behavior.unwrap_or_default(),
            because.unwrap_or_default()
        );
        beneath("part", told);
    }
    for note in list(decision, "/notes") {
        beneath(
            "note",
            styled(YELLOW, printable(note.as_str().unwrap_or_default())),
        );
    }
}

fn scheduling(explanation: &Value, layer: &Value) {
    if layer.is_null() {
        return;
    }
    if layer["unscheduled"] == true {
        return line("scheduling", "it needs no slot and no lock".to_owned());
    }
    if let Some(refused) = text(layer, "/refused") {
        return line(
            "scheduling",
            styled(RED, format!("it cannot be scheduled: {refused}")),
        );
    }
    let now = &layer["now"];
    let waits: Vec<WaitReason> = typed_list(now, "/waits_for").collect();
    let alone = if now["alone"] == true {
        ", alone in its session"
    } else {
        ""
    };
    let once = if explanation["would_run"] == true {
        "it"
    } else {
        "once allowed, it"
    };
    let when = match waits.is_empty() {
        true => format!("{once} would run at once{alone}"),
        false => format!("{once} would wait{alone}"),
    };
    let slots = |name: &str| {
        let count = |part: &str| now[name][part].as_u64().unwrap_or_default();
        format!("{} of {}", count("used"), count("limit"))
    };
    let load = format!(
        "(slots: host {}, session {}; queue {})",
        slots("host"),
        slots("session"),
        slots("queue")
    );
    line("scheduling", format!("{when} {}", styled(DIM, load)));
    waits
        .iter()
        .for_each(|reason| beneath("waits for", story::wait_reason(reason)));
    if let Some(refused) = text(now, "/refused") {
        beneath("but", styled(RED, refused));
    }
    for lock in list(now, "/locks") {
        let access = lock["access"].as_str().unwrap_or_default();
        beneath(
            "holds",
            format!("{} ({access})", text(lock, "/key").unwrap_or_default()),
        );
    }
}

fn execution(explanation: &Value, layer: &Value) {
    if layer.is_null() {
        return;
    }
    line("execution", words(layer, "/kind"));
    if let Ok(deadline) = CallDeadline::deserialize(&layer["deadline"]) {
        let tool = text(explanation, "/tool").unwrap_or_default();
        story::deadline(deadline, &tool, &beneath);
    }
    let plan = &layer["sandbox"];
    match (
        text(plan, "/profile"),
        text(explanation, "/effects/confined"),
    ) {
        (Some(profile), _) => {
            let network = if plan["network"] == true {
                "with the network"
            } else {
                "without network"
            };
            beneath(
                "sandbox",
                format!("{profile} on tier {}, {network}", words(plan, "/tier")),
            );
            for (name, pointer) in [("writes", "/writable"), ("reads", "/readable")] {
                let paths: Vec<String> = list(plan, pointer)
                    .filter_map(Value::as_str)
                    .map(printable)
                    .collect();
                if !paths.is_empty() {
                    beneath(name, paths.join(", "));
                }
            }
            if let Some(lack) = text(plan, "/lack") {
                beneath("lacks", styled(YELLOW, lack));
            }
        }
        (None, Some(profile)) => beneath("sandbox", profile),
        (None, None) => {}
    }
    if let Some(unbound) = text(layer, "/unbound_paths") {
        beneath("path rules", styled(YELLOW, unbound));
    }
}

fn result(layer: &Value) {
    if let Some(most) = layer["inline_chars"].as_u64() {
        let strategy = words(layer, "/strategy");
        line(
            "result",
            format!("up to {most} characters are shown; larger results: {strategy}"),
        );
    }
}

fn persistence(layer: &Value) {
    let Some(preview) = layer["preview_chars"].as_u64() else {
        return;
    };
    let shown = match preview {
        0 => "larger results are not shown".to_owned(),
        _ => format!("{preview} characters of a larger result are shown"),
    };
    let kept = match (
        text(layer, "/not_kept"),
        words(layer, "/kept/place").as_str(),
    ) {
        (Some(why), _) => format!("it is not kept: {why}"),
        (None, "memory") => "the whole result is kept in memory until the host ends".to_owned(),
        (None, _) => match text(layer, "/kept/folder") {
            Some(folder) => format!("the whole result is kept in `{folder}`"),
            None => "the whole result is kept on disk".to_owned(),
        },
    };
    let strategy = words(layer, "/strategy");
    line("persistence", format!("{strategy}: {shown}, and {kept}"));
    if let (Some(used), Some(limit)) = (
        layer["kept"]["used_bytes"].as_u64(),
        layer["kept"]["limit_bytes"].as_u64(),
    ) {
        beneath(
            "room",
            format!("{used} of {limit} bytes of kept results are in use"),
        );
    }
    let readers: Vec<&str> = list(layer, "/kept/read_with")
        .filter_map(Value::as_str)
        .collect();
    if !readers.is_empty() {
        beneath("read with", format!("`{}`", readers.join("`, `")));
    }
}
