//! Layer 2: the operator's settings on top of a tool's own interface.

use std::{collections::HashMap, sync::Arc};

use serde_json::{Map, Value};
use toolpost_model::{
    ClassFact, Declaration, EffectOrigin, Interface, Lifecycle, LoadingStrategy, PrincipalRole,
    Provenance, ToolId, ToolPattern, ToolSettings,
};

use super::{CatalogEntry, CatalogNotice};

/// The settings that can only restrict a tool. No others apply to an outside tool that a bare name happens to match.
fn restrictions(settings: &ToolSettings) -> ToolSettings {
    let mut restrictions = ToolSettings::default();
    restrictions.surface.enabled = settings.surface.enabled.filter(|enabled| !enabled);
    restrictions.surface.hidden = settings.surface.hidden;
    restrictions
        .input
        .sensitive
        .clone_from(&settings.input.sensitive);
    let required = settings.permission.approval_required;
    restrictions.permission.approval_required = required.filter(|required| *required);
    restrictions.execution.exclusive = settings.execution.exclusive.filter(|exclusive| *exclusive);
    restrictions.execution.sandbox = settings.execution.sandbox;
    restrictions
}

/// The trust in a source's statements about its tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourceTrust {
    /// Statements about behaviour are ignored.
    None,
    /// Statements may tighten the treatment of a call, never loosen it.
    Claims,
    /// Statements count like those of compiled-in code.
    Full,
}

/// The operator's settings for a source.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceSettings {
    /// The trust in the source; by default, the source's own origin decides.
    pub trust: Option<SourceTrust>,
    /// The limit of concurrent calls of its tools.
    pub concurrency: Option<usize>,
}

/// The operator's settings, read for each tool when the catalog is built.
pub trait OperatorSettings: Send + Sync + 'static {
    /// The settings of a tool from the source of that name. A key that does not [name the tool
    /// exactly](toolpost_model::ToolPattern::names_exactly) may only restrict the tool.
    fn of(&self, tool: &Declaration, source: &str) -> Option<ToolSettings>;

    /// The names and patterns of all settings, so that a notice can name one without a tool.
    fn names(&self) -> Vec<String>;

    /// The [`names`](Self::names) with a setting that loosens.
    fn loosening_names(&self) -> Vec<String> {
        self.names()
    }

    /// Further settings that grant something to tools by name, each with its key: credentials, the tools of code.
    fn grants(&self) -> Vec<(String, ToolPattern)> {
        Vec::new()
    }

    /// Whether a mount plan's tool of this name replaces the native one.
    fn replaces_native(&self, name: &str) -> bool {
        let _ = name;
        false
    }

    /// The names that the operator lists for [`replaces_native`](Self::replaces_native), so that a notice can name one
    /// that replaces nothing.
    fn replaced_names(&self) -> Vec<String> {
        Vec::new()
    }

    /// The settings of a source.
    fn source(&self, name: &str) -> SourceSettings {
        let _ = name;
        SourceSettings::default()
    }

    /// The sources with settings.
    fn source_names(&self) -> Vec<String> {
        Vec::new()
    }
}

/// Settings by name or id; the id comes first, because it is more exact.
impl OperatorSettings for HashMap<String, ToolSettings> {
    fn of(&self, tool: &Declaration, _source: &str) -> Option<ToolSettings> {
        let id = &tool.tool_id;
        let by_name = || {
            let found = self.get(id.name())?;
            Some(match tool.provenance {
                Provenance::CompiledIn => found.clone(),
                Provenance::MountPlan | Provenance::Outside => restrictions(found),
            })
        };
        self.get(id.as_str()).cloned().or_else(by_name)
    }

    fn names(&self) -> Vec<String> {
        self.keys().cloned().collect()
    }
}

/// The declaration as far as the source is trusted, and the origin of its statements.
pub(super) fn heard(
    trust: Option<SourceTrust>,
    own: EffectOrigin,
    declaration: &mut Declaration,
) -> EffectOrigin {
    match trust {
        None => own,
        Some(SourceTrust::Full) => EffectOrigin::HostCode,
        Some(SourceTrust::Claims) => EffectOrigin::Claimed,
        Some(SourceTrust::None) => {
            let rendering = std::mem::take(&mut declaration.interface.rendering);
            declaration.interface = Interface {
                rendering,
                ..Interface::default()
            };
            EffectOrigin::Claimed
        }
    }
}

pub(super) fn apply(settings: &ToolSettings, declaration: &mut Declaration) {
    if settings.surface.enabled == Some(false) {
        declaration.lifecycle = Lifecycle::Disabled;
    }
    if let Some(deferred) = settings.surface.deferred {
        declaration.loading = if deferred {
            LoadingStrategy::Deferred
        } else {
            LoadingStrategy::Eager
        };
    }
    if let Some(requires) = &settings.surface.requires {
        declaration.requires = requires.clone();
    }
    if settings.surface.hidden == Some(true) {
        declaration.requires.roles = vec![PrincipalRole::Operator];
    }
    if !settings.input.defaults.is_empty() {
        declaration.input.schema = optional(&declaration.input.schema, &settings.input.defaults);
    }
    let interface = &mut declaration.interface;
    if let Some(class) = settings.permission.class {
        interface.safety.class = ClassFact::Always(class);
    }
    if let Some(idempotent) = settings.execution.idempotent {
        interface.execution.idempotent = idempotent;
    }
    if settings.persistence.max_inline_chars.is_some() {
        interface.persistence.max_inline_chars = settings.persistence.max_inline_chars;
    }
    if let Some(keep) = settings.persistence.keep {
        interface.persistence.strategy = keep;
    }
    if let Some(required) = settings.permission.approval_required {
        interface.permission.approval_required = required;
        // The operator's setting, in either direction, replaces the tool's own request.
        interface.permission.approval_requested = false;
    }
    let execution = &mut interface.execution;
    execution.interrupt = settings.execution.interrupt.unwrap_or(execution.interrupt);
    let meant = &settings.permission.arguments;
    let meanings = &mut interface.permission.arguments;
    meanings.retain(|own| !meant.iter().any(|meaning| meaning.pointer == own.pointer));
    meanings.extend(meant.iter().cloned());
}

/// The schema for callers: fields with a default of the operator are optional. The default values are not shown,
/// because they may be private.
fn optional(schema: &Arc<Value>, defaults: &Map<String, Value>) -> Arc<Value> {
    let mut schema = Arc::clone(schema);
    let required = schema.get("required").and_then(Value::as_array);
    let filled = |name: &Value| {
        name.as_str()
            .is_some_and(|name| defaults.contains_key(name))
    };
    if required.is_some_and(|required| required.iter().any(filled))
        && let Some(required) = Arc::make_mut(&mut schema)
            .get_mut("required")
            .and_then(Value::as_array_mut)
    {
        required.retain(|name| !filled(name));
    }
    schema
}

/// Settings whose key matches nothing: most likely a typing mistake, which the notice makes visible.
pub(super) fn unused(
    settings: &dyn OperatorSettings,
    entries: &[Arc<CatalogEntry>],
    known: impl Fn(&str) -> bool,
) -> Vec<CatalogNotice> {
    let fits = |name: &String| match name.parse::<ToolPattern>() {
        Ok(pattern) => entries.iter().any(|entry| pattern.matches(entry.id(), &[])),
        Err(_) => false,
    };
    let mut names = settings.names();
    names.retain(|name| !known(name) && !fits(name));
    names.sort();
    names
        .into_iter()
        .map(|name| CatalogNotice::UnusedSettings { name })
        .collect()
}

/// Settings that loosen or grant something by a bare name that only outside tools have: they do not apply to those.
pub(super) fn bare_names(
    settings: &dyn OperatorSettings,
    entries: &[Arc<CatalogEntry>],
) -> Vec<CatalogNotice> {
    let declarations: Vec<&Declaration> = entries.iter().map(|entry| entry.declaration()).collect();
    let mut names = settings.loosening_names();
    names.sort();
    let tables = names.iter().filter_map(|name| {
        let line = |exact: &ToolPattern| format!("tools.\"{exact}\"");
        bare_name(
            format!("`tools.{name}`"),
            &name.parse().ok()?,
            &declarations,
            line,
        )
    });
    let grants = settings.grants();
    let lists = grants.iter().filter_map(|(key, pattern)| {
        bare_name(
            format!("`{pattern}` in `{key}`"),
            pattern,
            &declarations,
            ToString::to_string,
        )
    });
    tables.chain(lists).collect()
}

fn bare_name(
    what: String,
    pattern: &ToolPattern,
    tools: &[&Declaration],
    line: impl Fn(&ToolPattern) -> String,
) -> Option<CatalogNotice> {
    let meant = unmeant(pattern, tools)?;
    let instead = exact_patterns(pattern, &meant).iter().map(line).collect();
    Some(CatalogNotice::BareName {
        what,
        meant,
        instead,
    })
}

/// Patterns that name these tools exactly: each by its id, or for a pattern with `*` the same pattern within each
/// namespace.
pub(crate) fn exact_patterns(pattern: &ToolPattern, meant: &[ToolId]) -> Vec<ToolPattern> {
    let within = |id: &ToolId| match id.namespace() {
        // A rule reads `fs.` as the beginning of a rule about paths.
        "fs" => format!("fs__{pattern}"),
        namespace => format!("{namespace}.{pattern}"),
    };
    let mut texts: Vec<String> = match pattern.as_str().contains('*') {
        true => meant.iter().map(within).collect(),
        false => meant.iter().map(|id| id.rule_form().into_owned()).collect(),
    };
    texts.dedup();
    texts.iter().filter_map(|text| text.parse().ok()).collect()
}

/// The outside tools that a pattern matches by name without naming them exactly. `None` if there are none, or if a name
/// without `*` belongs to a compiled-in tool, because the pattern then means that tool.
pub(crate) fn unmeant(pattern: &ToolPattern, tools: &[&Declaration]) -> Option<Vec<ToolId>> {
    if pattern.is_qualified() {
        return None;
    }
    let is_wild = pattern.as_str().contains('*');
    let fits = |tool: &&&Declaration| pattern.matches(&tool.tool_id, &tool.aliases);
    let (exact, unmeant): (Vec<&Declaration>, Vec<&Declaration>) = tools
        .iter()
        .filter(fits)
        .copied()
        .partition(|tool| pattern.names_exactly(tool));
    let unmeant: Vec<ToolId> = unmeant
        .into_iter()
        .map(|tool| tool.tool_id.clone())
        .collect();
    (!unmeant.is_empty() && (is_wild || exact.is_empty())).then_some(unmeant)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::optional;

    #[test]
    fn what_is_filled_in_need_not_be_sent() {
        let schema = Arc::new(json!({ "type": "object", "required": ["a", "b"] }));
        let defaults = json!({ "b": 1, "c": 2 });
        let shown = optional(&schema, defaults.as_object().unwrap());
        assert_eq!(*shown, json!({ "type": "object", "required": ["a"] }));
        let untouched = optional(&schema, json!({ "x": 1 }).as_object().unwrap());
        assert!(Arc::ptr_eq(&schema, &untouched));
    }
}
