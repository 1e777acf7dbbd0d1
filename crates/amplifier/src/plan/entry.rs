//! The entries of `tools` and `hooks`, and the overrides by module.

use serde_json::{Map, Value};

use crate::ModuleSource;

use super::{NoteWeight, PlanDiagnostics, kind_of, merge};

/// The most modules of a plan.
const MOST: usize = 256;

/// A list of entries, in the order of their first occurrence.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct PlanEntryList {
    pub(super) list: Vec<PlanEntry>,
    /// Whether it replaces the list beneath.
    replaces: bool,
}

/// A module in one plan.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct PlanEntry {
    /// The key for merging: its `id`, or its `module`.
    pub(super) key: String,
    /// `None`: it changes an entry of another plan.
    pub(super) module: Option<String>,
    pub(super) source: Option<ModuleSource>,
    pub(super) config: Map<String, Value>,
    /// The place of its first occurrence.
    pub(super) place: String,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct ModuleOverride {
    pub(super) source: Option<ModuleSource>,
    pub(super) config: Map<String, Value>,
}

impl ModuleOverride {
    /// Lays a later list over this one.
    pub(super) fn lay(&mut self, over: Self) {
        self.source = over.source.or(self.source.take());
        self.config = merge::merge_tables(std::mem::take(&mut self.config), over.config);
    }
}

impl PlanEntryList {
    pub(super) fn over(self, under: Self) -> Self {
        if self.replaces {
            return self;
        }
        let mut merged = under;
        for entry in self.list {
            match merged
                .list
                .iter_mut()
                .find(|earlier| earlier.key == entry.key)
            {
                Some(earlier) => earlier.lay(entry),
                None => merged.list.push(entry),
            }
        }
        merged
    }
}

impl PlanEntry {
    fn lay(&mut self, over: Self) {
        self.module = over.module.or(self.module.take());
        self.source = over.source.or(self.source.take());
        self.config = merge::merge_tables(std::mem::take(&mut self.config), over.config);
    }
}

/// Reads a section of entries.
pub(super) fn entries(
    section: &str,
    value: &Value,
    reading: &mut PlanDiagnostics<'_>,
) -> PlanEntryList {
    let (items, replaces) = match (value, merge::replacement(value)) {
        (_, Some(items)) => (items, true),
        (Value::Array(items), None) => (items, false),
        (Value::Null, None) => return PlanEntryList::default(),
        (other, None) => {
            let message = format!(
                "`{section}` must be a list of modules, not {}",
                kind_of(other)
            );
            reading.error(section, format!("{section}_type"), message);
            return PlanEntryList::default();
        }
    };
    if items.len() > MOST {
        let message = format!(
            "`{section}` has {} modules, the limit is {MOST}",
            items.len()
        );
        reading.error(section, format!("{section}_type"), message);
        return PlanEntryList::default();
    }
    if items.is_empty() && !replaces {
        reading.note(section, NoteWeight::Info, format!("`{section}` is empty"));
    }
    let mut read = PlanEntryList {
        list: Vec::new(),
        replaces,
    };
    for (index, item) in items.iter().enumerate() {
        let Some(entry) = entry(&format!("{section}[{index}]"), item, reading) else {
            continue;
        };
        // Of two entries in one list, the second is laid over the first.
        read = PlanEntryList {
            list: vec![entry],
            replaces: false,
        }
        .over(read);
    }
    PlanEntryList { replaces, ..read }
}

fn entry(path: &str, item: &Value, reading: &mut PlanDiagnostics<'_>) -> Option<PlanEntry> {
    let Value::Object(table) = item else {
        let message = format!(
            "a module must be a table with a `module`, not {}",
            kind_of(item)
        );
        reading.error(path, format!("{path}_type"), message);
        return None;
    };
    let module = name(path, "module", table.get("module"), reading)?;
    let id = name(path, "id", table.get("id"), reading)?;
    let Some(key) = id.or_else(|| module.clone()) else {
        reading.error(
            path,
            format!("{path}_module_required"),
            "the key `module` is missing",
        );
        return None;
    };
    let source = table.get("source").filter(|source| !source.is_null());
    let source = source.and_then(|source| reading.source(path, source));
    let config = config(path, table.get("config"), reading);
    for key in table
        .keys()
        .filter(|key| !matches!(key.as_str(), "module" | "id" | "source" | "config"))
    {
        let message = match key.as_str() {
            "instance_id" => "`instance_id` is for providers only, and is ignored".to_owned(),
            other => format!(
                "the key `{}` is unknown, and is ignored",
                other.escape_debug()
            ),
        };
        reading.note(path, NoteWeight::Info, message);
    }
    Some(PlanEntry {
        key,
        module,
        source,
        config,
        place: reading.place(path),
    })
}

/// The inner `None` means a missing key, the outer one an error.
fn name(
    path: &str,
    key: &str,
    value: Option<&Value>,
    reading: &mut PlanDiagnostics<'_>,
) -> Option<Option<String>> {
    match value {
        None | Some(Value::Null) => Some(None),
        Some(Value::String(text)) if text.trim().is_empty() => {
            reading.error(
                path,
                format!("{path}_{key}_empty"),
                format!("`{key}` is empty"),
            );
            None
        }
        Some(Value::String(text)) => {
            // The name becomes part of the names of tools, files and messages.
            let legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
            if text.len() > 128 || !text.chars().all(legal) || text.starts_with(['-', '.']) {
                let message = format!(
                    "`{}` is not a module name; names have up to 128 letters, digits, `_`, `-` and `.`",
                    text.escape_debug()
                );
                reading.error(path, format!("{path}_{key}_type"), message);
                return None;
            }
            Some(Some(text.clone()))
        }
        Some(other) => {
            let message = format!("`{key}` must be a text, not {}", kind_of(other));
            reading.error(path, format!("{path}_{key}_type"), message);
            None
        }
    }
}

fn config(
    path: &str,
    value: Option<&Value>,
    reading: &mut PlanDiagnostics<'_>,
) -> Map<String, Value> {
    match value {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(table)) => {
            let entry =
                |(key, value): (&String, &Value)| (key.clone(), reading.expanded(value.clone()));
            table.iter().map(entry).collect()
        }
        Some(other) => {
            let message = format!("`config` must be a table, not {}", kind_of(other));
            reading.error(path, format!("{path}_config_type"), message);
            Map::new()
        }
    }
}

/// Reads one entry of `overrides`.
pub(super) fn one_override(
    path: &str,
    value: &Value,
    reading: &mut PlanDiagnostics<'_>,
) -> Option<ModuleOverride> {
    let Value::Object(table) = value else {
        let message = format!("an override must be a table, not {}", kind_of(value));
        reading.error(path, format!("{path}_type"), message);
        return None;
    };
    let source = table.get("source").filter(|source| !source.is_null());
    let source = source.and_then(|source| reading.source(path, source));
    Some(ModuleOverride {
        source,
        config: config(path, table.get("config"), reading),
    })
}
