//! What is set for tools and sources, and which of several entries counts.

use std::{
    collections::{BTreeMap, HashMap},
    time::Duration,
};

use serde_json::{Map, Value};
use toolpost_model::{
    ArgumentMeaning, Declaration, EffectClass, Interrupt, PersistStrategy, Provenance,
    Requirements, SandboxProfile, ToolPattern,
};

use super::HostConfig;
use crate::{SourceTrustLevel, profiles};

/// Settings of tools by name, id or pattern. Ask [`ToolIndex`], which knows all of them.
///
/// A key that does not [name a tool exactly](ToolPattern::names_exactly), such as the bare name of an outside tool, may
/// only restrict that tool.
pub type ToolTable = BTreeMap<String, ToolConfig>;

/// The source that plugins of an A2E host file are part of.
const PLUGIN_SOURCE: &str = "amplifier";
/// The longest message of a plugin, in characters. The host's limit for results of modules is lower.
const LONGEST_MESSAGE: usize = 64 << 20;

/// Settings of one tool. What is `None` or empty leaves a thing as the tool declares it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolConfig {
    /// Whether the tool can be used at all.
    pub enabled: Option<bool>,
    /// Whether it is kept from agents.
    pub hidden: Option<bool>,
    /// Its name on the wire.
    pub name: Option<String>,
    /// Whether it stays out of lists until a search shows it.
    pub deferred: Option<bool>,
    /// How long one call may run.
    pub timeout: Option<Duration>,
    /// The most a caller may ask for.
    pub ceiling: Option<Duration>,
    /// What its calls count as.
    pub class: Option<EffectClass>,
    /// Whether running it twice equals running it once.
    pub idempotent: Option<bool>,
    /// How many of its calls run at the same time.
    pub concurrency: Option<usize>,
    /// Whether it runs alone in its session.
    pub exclusive: Option<bool>,
    /// What becomes of a running call when others of its batch are canceled.
    pub interrupt: Option<Interrupt>,
    /// The longest text shown whole, in characters.
    pub max_inline_chars: Option<usize>,
    /// What becomes of a result that is too long to be shown whole.
    pub keep: Option<PersistStrategy>,
    /// The largest arguments of one call, in bytes.
    pub argument_bytes: Option<usize>,
    /// Ask a person even where the mode would allow.
    pub approval_required: Option<bool>,
    /// What a caller must offer before it sees the tool.
    pub requires: Option<Requirements>,
    /// What confines its processes, where that is stricter.
    pub sandbox: Option<SandboxProfile>,
    /// Arguments kept out of every record, as JSON pointers.
    pub sensitive: Vec<String>,
    /// Arguments that are filled in where a call leaves them out.
    pub defaults: Map<String, Value>,
    /// What arguments mean to rules.
    pub arguments: Vec<ArgumentMeaning>,
}

impl ToolConfig {
    /// These, and where they leave a thing open, those of a less exact entry.
    #[must_use]
    pub(super) fn or(self, wider: &Self) -> Self {
        let mut sensitive = self.sensitive;
        sensitive.extend(wider.sensitive.iter().cloned());
        sensitive.sort();
        sensitive.dedup();
        let mut defaults = wider.defaults.clone();
        defaults.extend(self.defaults);
        let mut arguments = self.arguments;
        let known: Vec<String> = arguments
            .iter()
            .map(|meaning| meaning.pointer.clone())
            .collect();
        let further = wider
            .arguments
            .iter()
            .filter(|meaning| !known.contains(&meaning.pointer));
        arguments.extend(further.cloned());
        Self {
            enabled: self.enabled.or(wider.enabled),
            hidden: self.hidden.or(wider.hidden),
            name: self.name.or_else(|| wider.name.clone()),
            deferred: self.deferred.or(wider.deferred),
            timeout: self.timeout.or(wider.timeout),
            ceiling: self.ceiling.or(wider.ceiling),
            class: self.class.or(wider.class),
            idempotent: self.idempotent.or(wider.idempotent),
            concurrency: self.concurrency.or(wider.concurrency),
            exclusive: self.exclusive.or(wider.exclusive),
            interrupt: self.interrupt.or(wider.interrupt),
            max_inline_chars: self.max_inline_chars.or(wider.max_inline_chars),
            keep: self.keep.or(wider.keep),
            argument_bytes: self.argument_bytes.or(wider.argument_bytes),
            approval_required: self.approval_required.or(wider.approval_required),
            requires: self.requires.or_else(|| wider.requires.clone()),
            sandbox: self.sandbox.or(wider.sandbox),
            sensitive,
            defaults,
            arguments,
        }
    }

    /// These within the bounds that files set which may only restrict. They set nothing else.
    #[must_use]
    pub(super) fn within(self, bounds: &Self) -> Self {
        let sandbox = match (self.sandbox, bounds.sandbox) {
            (Some(own), Some(bound)) => Some(own.stricter(bound)),
            (own, bound) => own.or(bound),
        };
        // What a tool gets without a wish may be less than any of these, so a bound never becomes its deadline.
        let longest = smaller(bounds.timeout, bounds.ceiling);
        let clamped = |time: Option<Duration>| {
            time.map(|time| longest.map_or(time, |longest| time.min(longest)))
        };
        let ceiling = if longest.is_some() {
            smaller(self.ceiling.or(self.timeout), longest)
        } else {
            self.ceiling
        };
        Self {
            enabled: stricter(self.enabled, bounds.enabled, false),
            hidden: stricter(self.hidden, bounds.hidden, true),
            deferred: stricter(self.deferred, bounds.deferred, true),
            timeout: clamped(self.timeout),
            ceiling,
            idempotent: stricter(self.idempotent, bounds.idempotent, false),
            concurrency: smaller(self.concurrency, bounds.concurrency),
            exclusive: stricter(self.exclusive, bounds.exclusive, true),
            max_inline_chars: smaller(self.max_inline_chars, bounds.max_inline_chars),
            argument_bytes: smaller(self.argument_bytes, bounds.argument_bytes),
            approval_required: stricter(self.approval_required, bounds.approval_required, true),
            sandbox,
            ..self
        }
    }
}

impl ToolConfig {
    /// What these settings restrict, applied to `found`: all that counts where a key only happens to fit a tool.
    fn restrict(&self, found: Self) -> Self {
        // These numbers may be larger than the tool's own or the host's, which are not known here.
        let bounds = Self {
            max_inline_chars: None,
            argument_bytes: None,
            ..self.clone()
        };
        let mut restricted = found.within(&bounds);
        restricted.sensitive.extend(self.sensitive.iter().cloned());
        restricted.sensitive.sort();
        restricted.sensitive.dedup();
        restricted
    }

    /// Whether anything in it counts only where the key names the tool exactly.
    pub fn loosens(&self) -> bool {
        self.restrict(Self::default()) != *self
    }
}

/// The strict answer where either gives it, else the first.
fn stricter(own: Option<bool>, bound: Option<bool>, strict: bool) -> Option<bool> {
    if bound == Some(strict) { bound } else { own }
}

/// The smaller of two limits, where none is no limit. (`Option`'s own order would take none for the smallest.)
fn smaller<T: Ord>(one: Option<T>, other: Option<T>) -> Option<T> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

/// Settings of one source of tools.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceConfig {
    /// How far its word counts.
    pub trust: Option<SourceTrustLevel>,
    /// How many calls of its tools run at the same time.
    pub concurrency: Option<usize>,
    /// The shipped settings for its tools.
    pub profile: Option<String>,
    /// Whether its tools are kept from agents.
    pub hidden: Option<bool>,
}

/// The settings of every tool, ready to be asked for one: thousands of tools are looked up when a catalog is built.
pub struct ToolIndex {
    policy: Tier,
    own: Tier,
    profiles: HashMap<String, Tier>,
    restrictions: Tier,
}

impl ToolIndex {
    /// The settings that count for a tool of a source: those of the policy, then of other files, then of the source's
    /// profile; within each, the most exact entry wins. Untrusted files, and keys that fit an outside tool only by its bare
    /// name, restrict the outcome.
    pub fn of(&self, tool: &Declaration, source: &str) -> ToolConfig {
        let policy = self.policy.of(tool);
        let own = self.own.of(tool);
        let mut found = policy.exact.or(&own.exact);
        if let Some(profile) = self.profiles.get(source) {
            // The operator chose the profile for this source, so its bare names mean the source's tools.
            let entries = profile.all(tool).into_iter();
            found = entries.fold(found, |found, (_, wider)| found.or(wider));
        }
        let loose = policy.restricting.into_iter().chain(own.restricting);
        let found = loose.fold(found, |found, bounds| bounds.restrict(found));
        self.restrictions
            .all(tool)
            .iter()
            .fold(found, |found, (_, bounds)| found.within(bounds))
    }
}

impl HostConfig {
    /// Prepares the settings of tools for being asked.
    pub fn tool_index(&self) -> ToolIndex {
        let profiles = self.sources.iter().filter_map(|(source, set)| {
            let table = profiles::tools(set.profile.as_deref()?)?;
            Some((source.clone(), Tier::of_table(&table)))
        });
        let plugins =
            (!self.plugins.is_empty()).then(|| (PLUGIN_SOURCE.to_owned(), self.plugin_settings()));
        let profiles = profiles.chain(plugins);
        ToolIndex {
            policy: Tier::of_table(&self.policy_tools),
            own: Tier::of_table(&self.tools),
            profiles: profiles.collect(),
            restrictions: Tier::of_table(&self.restricted_tools),
        }
    }

    /// What an A2E host file says of its plugins by being there: their calls may run beside each other, as every host of
    /// such files runs them, and a message is handed over whole. It says nothing of what they may do.
    fn plugin_settings(&self) -> Tier {
        let beside = ToolConfig {
            exclusive: Some(false),
            ..ToolConfig::default()
        };
        let message = ToolConfig {
            keep: Some(PersistStrategy::Inline),
            max_inline_chars: Some(LONGEST_MESSAGE),
            ..beside.clone()
        };
        let mut table = ToolTable::new();
        table.insert("a2e.*".to_owned(), message);
        for plugin in &self.plugins {
            table.insert(format!("{}.*", plugin.name), beside.clone());
        }
        Tier::of_table(&table)
    }

    /// The settings of one tool of a source.
    pub fn settings_for(&self, tool: &Declaration, source: &str) -> ToolConfig {
        self.tool_index().of(tool, source)
    }
}

/// Entries of one standing.
#[derive(Default)]
struct Tier {
    /// By keys without a `*`.
    named: HashMap<String, ToolConfig>,
    /// The longest first.
    patterns: Vec<(ToolPattern, ToolConfig)>,
}

impl Tier {
    fn of_table(table: &ToolTable) -> Self {
        let mut tier = Self::default();
        for (key, settings) in table {
            match key.parse::<ToolPattern>() {
                Ok(pattern) if key.contains('*') => tier.patterns.push((pattern, settings.clone())),
                _ => {
                    tier.named.insert(key.clone(), settings.clone());
                }
            }
        }
        tier.patterns
            .sort_by_key(|(pattern, _)| std::cmp::Reverse(pattern.as_str().len()));
        tier
    }

    /// Every entry that fits a tool, the most exact first: by id, by name, by longer and shorter patterns.
    fn all(&self, tool: &Declaration) -> Vec<(KeyFit, &ToolConfig)> {
        let id = &tool.tool_id;
        let is_compiled_in = tool.provenance == Provenance::CompiledIn;
        let by_name_fit = if is_compiled_in {
            KeyFit::Exact
        } else {
            KeyFit::ByName
        };
        let by_id = self
            .named
            .get(id.as_str())
            .map(|settings| (KeyFit::Exact, settings));
        let wire_form = id.wire_form();
        let exact = |pattern: &ToolPattern| match pattern.names_exactly(tool) {
            true => KeyFit::Exact,
            false => KeyFit::ByName,
        };
        let by_wire_form = self.named.get(wire_form.as_str()).map(|settings| {
            (
                wire_form.parse().as_ref().map_or(KeyFit::ByName, exact),
                settings,
            )
        });
        let by_name = self
            .named
            .get(id.name())
            .map(|settings| (by_name_fit, settings));
        let fitting = self
            .patterns
            .iter()
            .filter(|(pattern, _)| pattern.matches(id, &[]));
        let fitting = fitting.map(|(pattern, settings)| (exact(pattern), settings));
        by_id
            .into_iter()
            .chain(by_wire_form)
            .chain(by_name)
            .chain(fitting)
            .collect()
    }

    fn of(&self, tool: &Declaration) -> TierSettings<'_> {
        let mut found = TierSettings::default();
        for (fit, settings) in self.all(tool) {
            match fit {
                KeyFit::Exact => found.exact = found.exact.or(settings),
                KeyFit::ByName => found.restricting.push(settings),
            }
        }
        found
    }
}

/// How a key fits a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum KeyFit {
    /// It names this tool and no tool of the same name from elsewhere.
    Exact,
    /// It is a bare name or pattern, and the tool comes from outside.
    ByName,
}

/// What one tier sets for a tool.
#[derive(Default)]
struct TierSettings<'a> {
    exact: ToolConfig,
    /// Entries of which only what restricts counts.
    restricting: Vec<&'a ToolConfig>,
}
