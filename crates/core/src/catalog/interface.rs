//! Layer 2: the operator's settings on top of what a tool says of itself.

use std::{collections::HashMap, time::Duration};

use toolpost_model::{ClassFact, Declaration, EffectClass, Lifecycle, Loading, Requirements};

use super::CatalogNotice;

/// What an operator can set for one tool.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolSettings {
    /// `false` takes it off every surface.
    pub enabled: Option<bool>,
    /// Whether it waits to be discovered.
    pub deferred: Option<bool>,
    /// Its deadline.
    pub timeout: Option<Duration>,
    /// Its class: the operator vouches for it.
    pub class: Option<EffectClass>,
    /// The largest text shown whole.
    pub max_inline_chars: Option<usize>,
    /// Ask even where a mode would allow.
    pub approval_required: Option<bool>,
    /// What a surface must offer before it shows the tool.
    pub requires: Option<Requirements>,
}

pub(super) fn apply(settings: &ToolSettings, declaration: &mut Declaration) {
    if settings.enabled == Some(false) {
        declaration.lifecycle = Lifecycle::Disabled;
    }
    if let Some(deferred) = settings.deferred {
        declaration.loading = if deferred { Loading::Deferred } else { Loading::Eager };
    }
    let interface = &mut declaration.interface;
    if let Some(timeout) = settings.timeout {
        interface.execution.timeout_ms = Some(timeout.as_millis().try_into().unwrap_or(u64::MAX));
    }
    if let Some(class) = settings.class {
        interface.safety.class = ClassFact::Always(class);
    }
    if settings.max_inline_chars.is_some() {
        interface.persistence.max_inline_chars = settings.max_inline_chars;
    }
    if let Some(required) = settings.approval_required {
        interface.permission.approval_required = required;
    }
    if let Some(requires) = &settings.requires {
        declaration.requires = requires.clone();
    }
}

/// Settings whose key names no tool: most likely a typing mistake, and silence would hide it.
pub(super) fn unused(
    settings: &HashMap<String, ToolSettings>,
    known: impl Fn(&str) -> bool,
) -> Vec<CatalogNotice> {
    let mut names: Vec<&String> = settings.keys().filter(|name| !known(name)).collect();
    names.sort();
    names.into_iter().map(|name| CatalogNotice::UnusedSettings { name: name.clone() }).collect()
}
