//! `tools` and `sources`. The settings of files that may only restrict are kept apart from the others: they bound
//! them, even if the others are more exact.

use toolpost_model::{ArgumentMeaning, RuleOrigin, ToolSettings};

use crate::{
    FilePosition, HostConfig, LayerTrust, LocatedValue, SourceConfig, SourceEntry,
    SourceTrustLevel, ToolEntry, ToolTable,
    tool_settings::{
        LowerLimit, SettingDirection, StricterFlag, StricterProfile, TrustedOnly, each_tool_setting,
    },
};

use super::{LayerMerge, never, some};

impl LayerMerge<'_> {
    pub(super) fn tools(&mut self, config: &mut HostConfig) {
        for (name, entry) in &self.layer.parsed.file().tools {
            let mut tool = self
                .tool_table(config)
                .get(name)
                .cloned()
                .unwrap_or_default();
            self.tool(name, &mut tool, config, entry.value.clone());
            // Ignored settings leave no entry behind.
            if tool != ToolSettings::default() {
                self.tool_table(config).insert(name.clone(), tool);
            }
        }
    }

    fn tool_table<'c>(&self, config: &'c mut HostConfig) -> &'c mut ToolTable {
        match (self.layer.standing, self.layer.origin) {
            (LayerTrust::Trusted, RuleOrigin::Policy) => &mut config.policy_tools,
            (LayerTrust::Trusted, _) => &mut config.tools,
            (LayerTrust::Untrusted | LayerTrust::LastGood, _) => &mut config.restricted_tools,
        }
    }

    fn tool(&mut self, name: &str, tool: &mut ToolSettings, host: &HostConfig, file: ToolEntry) {
        let key = |setting: &str| format!("tools.{name}.{setting}");
        let before = host.set_under(name);
        macro_rules! bind {
            ($($group:ident.$setting:ident: $direction:expr;)*) => {
                $(if let Some(written) = file.$setting.map(LocatedValue::converted)
                    && self.may_set(&key(stringify!($setting)), host, before.$group.$setting, &written, &$direction)
                {
                    tool.$group.$setting = Some(written.value);
                })*
            };
        }
        each_tool_setting!(bind);
        for LocatedValue { value: pointer, at } in file.sensitive {
            // An agent could hide its own arguments from the record.
            if self.may_grant(&key("sensitive"), at) && !tool.input.sensitive.contains(&pointer) {
                tool.input.sensitive.push(pointer);
            }
        }
        if let Some(LocatedValue { value, at }) = file.defaults
            && self.may_grant(&key("defaults"), at)
        {
            tool.input.defaults.extend(value);
        }
        for (pointer, LocatedValue { value: kinds, at }) in file.arguments {
            if self.may_grant(&key("arguments"), at) {
                let meanings = &mut tool.permission.arguments;
                meanings.retain(|meaning| meaning.pointer != pointer);
                let meaning = |kind| ArgumentMeaning {
                    pointer: pointer.clone(),
                    kind,
                };
                meanings.extend(kinds.0.into_iter().map(meaning));
            }
        }
    }

    /// Whether this file may set a key of trusted files; adds a notice if not.
    fn may_grant(&mut self, key: &str, at: FilePosition) -> bool {
        let may = self.layer.standing == LayerTrust::Trusted;
        if !may {
            self.ignored(key, at, key);
        }
        may
    }

    /// Whether the file may set this value. Adds a notice if it may not and the value would change something.
    fn may_set<T: PartialEq>(
        &mut self,
        key: &str,
        host: &HostConfig,
        before: Option<T>,
        written: &LocatedValue<T>,
        direction: &impl SettingDirection<T>,
    ) -> bool {
        let now = before.or(direction.usual());
        let may = self.layer.standing == LayerTrust::Trusted
            || direction.restricts(host, now.as_ref(), &written.value);
        if !may && now.as_ref() != Some(&written.value) {
            self.ignored(key, written.at, key);
        }
        may
    }

    pub(super) fn sources(&mut self, config: &mut HostConfig) {
        for (name, entry) in &self.layer.parsed.file().sources {
            let mut source = config.sources.get(name).cloned().unwrap_or_default();
            self.source(name, &mut source, &entry.value, config.limits.concurrency);
            if source != SourceConfig::default() {
                config.sources.insert(name.clone(), source);
            }
        }
    }

    fn source(&mut self, name: &str, source: &mut SourceConfig, file: &SourceEntry, most: usize) {
        let key = |setting: &str| format!("sources.{name}.{setting}");
        // The source's default trust is unknown here, so only the lowest level is certainly less.
        let less = |now: &Option<SourceTrustLevel>, new: &Option<SourceTrustLevel>| match now {
            Some(now) => *new < Some(*now),
            None => *new == Some(SourceTrustLevel::None),
        };
        self.put(&key("trust"), &mut source.trust, some(file.trust), less);
        let fewer = |now: &Option<usize>, new: &Option<usize>| *new < Some(now.unwrap_or(most));
        self.put(
            &key("concurrency"),
            &mut source.concurrency,
            some(file.concurrency),
            fewer,
        );
        self.put(
            &key("profile"),
            &mut source.profile,
            some(file.profile.clone()),
            never,
        );
    }
}
