//! Layer 2: the operator's settings on top of what a tool says of itself.

use std::{collections::HashMap, time::Duration};

use toolpost_model::{
    ClassFact, Declaration, EffectClass, Interrupt, Lifecycle, Loading, Requirements, ToolId,
};

use super::CatalogNotice;

/// What an operator can set for one tool.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolSettings {
    /// `false` takes it off every surface.
    pub enabled: Option<bool>,
    /// Whether it waits to be discovered.
    pub deferred: Option<bool>,
    /// Its deadline: what it gets, and the most a caller may wish for.
    pub timeout: Option<Duration>,
    /// Its class: the operator vouches for it.
    pub class: Option<EffectClass>,
    /// The largest text shown whole.
    pub max_inline_chars: Option<usize>,
    /// Ask even where a mode would allow.
    pub approval_required: Option<bool>,
    /// What a surface must offer before it shows the tool.
    pub requires: Option<Requirements>,
    /// Calls of it that run at the same time, in all sessions together.
    pub concurrency: Option<usize>,
    /// Whether its calls run alone in their session: the operator knows better than the tool.
    pub exclusive: Option<bool>,
    /// How often a call that may be run again is tried again after a failure that may pass.
    pub retries: Option<u32>,
    /// What becomes of a running call when others of its batch are canceled.
    pub interrupt: Option<Interrupt>,
}

/// The operator's settings, asked for each tool when the catalog is built.
pub trait OperatorSettings: Send + Sync + 'static {
    /// What is set for a tool.
    fn of(&self, tool: &ToolId) -> Option<ToolSettings>;

    /// The names under which something is set, so that one that fits no tool can be pointed out.
    fn names(&self) -> Vec<String>;
}

/// Settings by name or id; the id is looked at first, as it is the more exact of the two.
impl OperatorSettings for HashMap<String, ToolSettings> {
    fn of(&self, tool: &ToolId) -> Option<ToolSettings> {
        self.get(tool.as_str()).or_else(|| self.get(tool.name())).cloned()
    }

    fn names(&self) -> Vec<String> {
        self.keys().cloned().collect()
    }
}

pub(super) fn apply(settings: &ToolSettings, declaration: &mut Declaration) {
    if settings.enabled == Some(false) {
        declaration.lifecycle = Lifecycle::Disabled;
    }
    if let Some(deferred) = settings.deferred {
        declaration.loading = if deferred { Loading::Deferred } else { Loading::Eager };
    }
    let interface = &mut declaration.interface;
    if let Some(class) = settings.class {
        interface.safety.class = ClassFact::Always(class);
    }
    if settings.max_inline_chars.is_some() {
        interface.persistence.max_inline_chars = settings.max_inline_chars;
    }
    if let Some(required) = settings.approval_required {
        interface.permission.approval_required = required;
    }
    let execution = &mut interface.execution;
    execution.retries = settings.retries.unwrap_or(execution.retries);
    execution.interrupt = settings.interrupt.unwrap_or(execution.interrupt);
    if let Some(requires) = &settings.requires {
        declaration.requires = requires.clone();
    }
}

/// Settings whose key names no tool: most likely a typing mistake, and silence would hide it.
pub(super) fn unused(settings: &dyn OperatorSettings, known: impl Fn(&str) -> bool) -> Vec<CatalogNotice> {
    let mut names = settings.names();
    names.retain(|name| !known(name));
    names.sort();
    names.into_iter().map(|name| CatalogNotice::UnusedSettings { name }).collect()
}
