//! Settings of tools and sources, and the choice between several matching entries.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use toolpost_model::{Declaration, PersistStrategy, Provenance, ToolPattern, ToolSettings};

use super::HostConfig;
use crate::{
    SourceTrustLevel, profiles,
    tool_settings::{filled_from, loosens, restrict, within},
};

/// Settings of tools by name, id or pattern. Look them up in [`ToolIndex`], which combines all of them.
///
/// A key that does not [name a tool exactly](ToolPattern::names_exactly), such as the bare name of an outside tool,
/// may only restrict that tool.
pub type ToolTable = BTreeMap<String, ToolSettings>;

/// The source of an A2E host file's plugins.
const PLUGIN_SOURCE: &str = "amplifier";
/// The longest message of a plugin, in characters. The host's limit for results of modules is lower.
const LONGEST_MESSAGE: usize = 64 << 20;

/// Settings of one source of tools.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceConfig {
    /// The trust in its statements about its tools.
    pub trust: Option<SourceTrustLevel>,
    /// Calls of its tools that run at the same time.
    pub concurrency: Option<usize>,
    /// The shipped settings for its tools.
    pub profile: Option<String>,
}

/// The settings of every tool, indexed, since building a catalog looks up thousands of tools.
pub struct ToolIndex {
    policy: ToolSettingsTier,
    own: ToolSettingsTier,
    profiles: HashMap<String, ToolSettingsTier>,
    restrictions: ToolSettingsTier,
}

impl ToolIndex {
    /// The settings of a tool of a source: those of the policy, then of other files, then of the source's profile;
    /// within each, the most exact entry wins. Untrusted files, and keys that match an outside tool only by its bare
    /// name, restrict the result.
    pub fn of(&self, tool: &Declaration, source: &str) -> ToolSettings {
        let policy = self.policy.of(tool);
        let own = self.own.of(tool);
        let mut found = filled_from(policy.exact, &own.exact);
        if let Some(profile) = self.profiles.get(source) {
            // The operator chose the profile for this source, so its bare names mean the source's tools.
            let entries = profile.all(tool).into_iter();
            found = entries.fold(found, |found, (_, wider)| filled_from(found, wider));
        }
        let loose = policy.restricting.into_iter().chain(own.restricting);
        let found = loose.fold(found, |found, bounds| restrict(bounds, found));
        self.restrictions
            .all(tool)
            .iter()
            .fold(found, |found, (_, bounds)| within(found, bounds))
    }
}

impl HostConfig {
    /// Builds the index.
    pub fn tool_index(&self) -> ToolIndex {
        let profiles = self.sources.iter().filter_map(|(source, set)| {
            let table = profiles::tools(set.profile.as_deref()?)?;
            Some((source.clone(), ToolSettingsTier::of_table(&table)))
        });
        let plugins =
            (!self.plugins.is_empty()).then(|| (PLUGIN_SOURCE.to_owned(), self.plugin_settings()));
        let profiles = profiles.chain(plugins);
        ToolIndex {
            policy: ToolSettingsTier::of_table(&self.policy_tools),
            own: ToolSettingsTier::of_table(&self.tools),
            profiles: profiles.collect(),
            restrictions: ToolSettingsTier::of_table(&self.restricted_tools),
        }
    }

    /// The settings that an A2E host file implies for its plugins: their calls may run concurrently, as in every host
    /// of such files, and a message is passed on whole. Their permissions do not follow from the file.
    fn plugin_settings(&self) -> ToolSettingsTier {
        let mut beside = ToolSettings::default();
        beside.execution.exclusive = Some(false);
        let mut message = beside.clone();
        message.persistence.keep = Some(PersistStrategy::Inline);
        message.persistence.max_inline_chars = Some(LONGEST_MESSAGE);
        let mut table = ToolTable::new();
        table.insert("a2e.*".to_owned(), message);
        for plugin in &self.plugins {
            table.insert(format!("{}.*", plugin.name), beside.clone());
        }
        ToolSettingsTier::of_table(&table)
    }

    /// The keys of `tools` with settings of a trusted file that require an exact name of a tool.
    pub fn loosening_tool_keys(&self) -> BTreeSet<&String> {
        let trusted = self.tools.iter().chain(&self.policy_tools);
        let loosening = trusted.filter(|(_, settings)| loosens(settings));
        loosening.map(|(key, _)| key).collect()
    }

    /// The settings of a key: the policy's first, within the restrictions of untrusted files.
    pub(crate) fn set_under(&self, key: &str) -> ToolSettings {
        let tables = [&self.policy_tools, &self.tools]
            .into_iter()
            .filter_map(|table| table.get(key));
        let set = tables.fold(ToolSettings::default(), filled_from);
        match self.restricted_tools.get(key) {
            Some(bounds) => within(set, bounds),
            None => set,
        }
    }

    /// The settings of one tool of a source.
    pub fn settings_for(&self, tool: &Declaration, source: &str) -> ToolSettings {
        self.tool_index().of(tool, source)
    }
}

/// The entries of one tier.
#[derive(Default)]
struct ToolSettingsTier {
    /// By keys without a `*`.
    named: HashMap<String, ToolSettings>,
    /// The longest first.
    patterns: Vec<(ToolPattern, ToolSettings)>,
}

impl ToolSettingsTier {
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

    /// Every entry that matches a tool, the most exact first: by id, by name, by longer and shorter patterns.
    fn all(&self, tool: &Declaration) -> Vec<(KeyFit, &ToolSettings)> {
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

    fn of(&self, tool: &Declaration) -> TierToolSettings<'_> {
        let mut found = TierToolSettings::default();
        for (fit, settings) in self.all(tool) {
            match fit {
                KeyFit::Exact => found.exact = filled_from(found.exact, settings),
                KeyFit::ByName => found.restricting.push(settings),
            }
        }
        found
    }
}

/// The precision of a key's match with a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum KeyFit {
    /// It names this tool and no tool of the same name from another source.
    Exact,
    /// It is a bare name or pattern, and the tool comes from outside.
    ByName,
}

/// The settings of one tier for a tool.
#[derive(Default)]
struct TierToolSettings<'a> {
    exact: ToolSettings,
    /// Entries with only their restrictions in force.
    restricting: Vec<&'a ToolSettings>,
}
