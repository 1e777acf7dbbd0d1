//! The top level of a plan: the sections that are read, those of other programs, and unknown ones.

use serde_json::{Map, Value};

use super::{
    BundleHeader, BundleIncludeEntry, IncludeTarget, MountPlan, NoteWeight, PlanDiagnostics, entry,
    kind_of,
};

/// Sections that belong to the agent, with their purpose.
const OF_THE_AGENT: [(&str, &str); 10] = [
    ("session", "the agent's own loop and memory"),
    ("providers", "models"),
    ("agents", "further agents"),
    ("orchestrator", "the agent's loop"),
    ("context", "the agent's memory"),
    ("spawn", "settings of further agents"),
    ("instruction", "text for the model"),
    ("skills", "text for the model"),
    ("modes", "the agent's own modes"),
    ("metadata", "notes of its author"),
];

pub(super) fn read(value: &Value, reading: &mut PlanDiagnostics<'_>) -> MountPlan {
    let empty = Map::new();
    let root = match value {
        Value::Object(root) => root,
        // An empty file plans nothing.
        Value::Null => &empty,
        other => {
            let message = format!("a plan must be a table of sections, not {}", kind_of(other));
            reading.error("", "root_type", message);
            return MountPlan::default();
        }
    };
    let mut plan = MountPlan::default();
    for (section, value) in root {
        match section.as_str() {
            "tools" => plan.tools = entry::entries(section, value, reading),
            "hooks" => plan.hooks = entry::entries(section, value, reading),
            "overrides" => overrides(&mut plan, value, reading),
            "sources" => sources(&mut plan, value, reading),
            "bundle" => plan.header = header(value, reading),
            "includes" => plan.includes = includes(value, reading),
            "session" => {
                session(value, reading);
                of_the_agent(section, reading);
            }
            other if OF_THE_AGENT.iter().any(|(name, _)| *name == other) => {
                of_the_agent(section, reading);
            }
            other => {
                let message = format!(
                    "the section `{}` is unknown, and is ignored",
                    other.escape_debug()
                );
                reading.note(section, NoteWeight::Warning, message);
            }
        }
    }
    plan
}

fn of_the_agent(section: &str, reading: &mut PlanDiagnostics<'_>) {
    let what = OF_THE_AGENT
        .iter()
        .find(|(name, _)| *name == section)
        .map_or("", |(_, what)| what);
    let message = format!(
        "`{section}` ({what}) is ignored: it is for the agent, this host mounts tools and hooks"
    );
    reading.note(section, NoteWeight::Info, message);
}

/// The section is not used here, but a plan that every agent would refuse is refused here too.
fn session(value: &Value, reading: &mut PlanDiagnostics<'_>) {
    let Value::Object(table) = value else {
        let message = format!("`session` must be a table, not {}", kind_of(value));
        reading.error("session", "session_type", message);
        return;
    };
    for part in ["orchestrator", "context"] {
        let path = format!("session.{part}");
        match table.get(part) {
            None | Some(Value::Null | Value::String(_)) => {}
            Some(Value::Object(module)) => match module.get("module") {
                Some(Value::String(name)) if !name.trim().is_empty() => {}
                Some(Value::String(_)) => {
                    reading.error(&path, format!("{path}_module_empty"), "`module` is empty");
                }
                None | Some(Value::Null) => {
                    reading.error(
                        &path,
                        format!("{path}_module_required"),
                        "the key `module` is missing",
                    );
                }
                Some(other) => {
                    let message = format!("`module` must be a text, not {}", kind_of(other));
                    reading.error(&path, format!("{path}_module_type"), message);
                }
            },
            Some(other) => {
                let message = format!("`{path}` must be a name or a table, not {}", kind_of(other));
                reading.error(&path, format!("{path}_type"), message);
            }
        }
    }
}

fn header(value: &Value, reading: &mut PlanDiagnostics<'_>) -> BundleHeader {
    let text = |key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
    if !value.is_object() && !value.is_null() {
        let message = format!("`bundle` must be a table, not {}", kind_of(value));
        reading.error("bundle", "bundle_type", message);
    }
    BundleHeader {
        name: text("name"),
        namespace_root: text("namespace_root"),
    }
}

fn includes(value: &Value, reading: &mut PlanDiagnostics<'_>) -> Vec<BundleIncludeEntry> {
    let Value::Array(items) = value else {
        if !value.is_null() {
            let message = format!("`includes` must be a list, not {}", kind_of(value));
            reading.error("includes", "includes_type", message);
        }
        return Vec::new();
    };
    let mut found = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let path = format!("includes[{index}]");
        let source = match item {
            Value::Object(table) if table.contains_key("bundle") => &table["bundle"],
            other => other,
        };
        let named = source.as_str().and_then(named);
        let target = named.or_else(|| reading.source(&path, source).map(IncludeTarget::Source));
        found.extend(target.map(|target| BundleIncludeEntry {
            target,
            place: reading.place(&path),
        }));
    }
    found
}

/// `foundation:behaviors/x`: a part of a bundle by the bundle's name. A single letter before the colon is a drive.
fn named(text: &str) -> Option<IncludeTarget> {
    let (namespace, path) = text.trim().split_once(':')?;
    let is_name = namespace.len() > 1 && !namespace.contains(['+', '/', '.', '~']);
    (is_name && !path.starts_with("//")).then(|| IncludeTarget::Named {
        namespace: namespace.to_owned(),
        path: path.to_owned(),
    })
}

fn overrides(plan: &mut MountPlan, value: &Value, reading: &mut PlanDiagnostics<'_>) {
    let Value::Object(table) = value else {
        if !value.is_null() {
            let message = format!(
                "`overrides` must be a table of modules, not {}",
                kind_of(value)
            );
            reading.error("overrides", "overrides_type", message);
        }
        return;
    };
    for (id, value) in table {
        let path = format!("overrides.{}", id.escape_debug());
        if let Some(read) = entry::one_override(&path, value, reading) {
            plan.overrides.entry(id.clone()).or_default().lay(read);
        }
    }
}

/// `sources: {modules: {<module>: <source>}}`, as settings of the agent have it.
fn sources(plan: &mut MountPlan, value: &Value, reading: &mut PlanDiagnostics<'_>) {
    let modules = match value {
        Value::Object(table) => table.get("modules").unwrap_or(&Value::Null),
        Value::Null => return,
        other => {
            let message = format!("`sources` must be a table, not {}", kind_of(other));
            reading.error("sources", "sources_type", message);
            return;
        }
    };
    for (id, value) in modules.as_object().into_iter().flatten() {
        let path = format!("sources.modules.{}", id.escape_debug());
        let source = reading.source(&path, value);
        plan.overrides.entry(id.clone()).or_default().source = source;
    }
}
