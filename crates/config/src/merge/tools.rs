//! `tools` and `sources`. What a file that may only restrict says of tools is kept apart from what the others say:
//! it bounds them, whichever entry is the more exact.

use toolpost_model::{ArgumentMeaning, RuleOrigin, SandboxProfile};

use crate::{
    HostConfig, LayerTrust, LimitsConfig, LocatedValue, Position, SourceConfig, SourceEntry,
    SourceTrustLevel, ToolConfig, ToolEntry,
};

use super::{Merge, never, some};

/// What holds for a tool before a file speaks of it.
struct EarlierToolSettings {
    set: ToolConfig,
    limits: LimitsConfig,
    profile: SandboxProfile,
}

impl Merge<'_> {
    pub(super) fn tools(&mut self, config: &mut HostConfig) {
        for (name, entry) in &self.layer.parsed.file().tools {
            let before = EarlierToolSettings {
                set: config.set_under(name),
                limits: config.limits.clone(),
                profile: config.sandbox.profile,
            };
            let table = match (self.layer.standing, self.layer.origin) {
                (LayerTrust::Trusted, RuleOrigin::Policy) => &mut config.policy_tools,
                (LayerTrust::Trusted, _) => &mut config.tools,
                (LayerTrust::Untrusted | LayerTrust::LastGood, _) => &mut config.restricted_tools,
            };
            let mut tool = table.get(name).cloned().unwrap_or_default();
            self.comparable(name, &mut tool, &before, &entry.value);
            self.others(name, &mut tool, &before.set, &entry.value);
            // What was only ignored leaves no entry behind.
            if tool != ToolConfig::default() {
                table.insert(name.clone(), tool);
            }
        }
    }

    /// What has a stricter direction.
    fn comparable(
        &mut self,
        name: &str,
        tool: &mut ToolConfig,
        before: &EarlierToolSettings,
        file: &ToolEntry,
    ) {
        let key = |setting: &str| format!("tools.{name}.{setting}");
        let EarlierToolSettings {
            set,
            limits,
            profile,
        } = before;
        self.bind(
            &key("enabled"),
            &mut tool.enabled,
            set.enabled.or(Some(true)).as_ref(),
            file.enabled,
            |_, new| !new,
        );
        self.bind(
            &key("hidden"),
            &mut tool.hidden,
            set.hidden.or(Some(false)).as_ref(),
            file.hidden,
            |_, new| *new,
        );
        self.bind(
            &key("deferred"),
            &mut tool.deferred,
            set.deferred.as_ref(),
            file.deferred,
            |_, new| *new,
        );
        let timeout = file.timeout.map(LocatedValue::converted);
        let shorter = |now: Option<&_>, new: &_| *new < *now.unwrap_or(&limits.deadline);
        self.bind(
            &key("timeout"),
            &mut tool.timeout,
            set.timeout.as_ref(),
            timeout,
            shorter,
        );
        let ceiling = file.ceiling.map(LocatedValue::converted);
        let shorter = |now: Option<&_>, new: &_| *new < *now.unwrap_or(&limits.deadline_ceiling);
        self.bind(
            &key("ceiling"),
            &mut tool.ceiling,
            set.ceiling.as_ref(),
            ceiling,
            shorter,
        );
        self.bind(
            &key("idempotent"),
            &mut tool.idempotent,
            set.idempotent.as_ref(),
            file.idempotent,
            |_, new| !new,
        );
        let asks = file.approval_required;
        self.bind(
            &key("approval_required"),
            &mut tool.approval_required,
            set.approval_required.as_ref(),
            asks,
            |_, new| *new,
        );
        let tighter = |now: Option<&SandboxProfile>, new: &SandboxProfile| {
            let now = *now.unwrap_or(profile);
            now != *new && now.stricter(*new) == *new
        };
        self.bind(
            &key("sandbox"),
            &mut tool.sandbox,
            set.sandbox.as_ref(),
            file.sandbox,
            tighter,
        );
        self.counted(name, tool, before, file);
    }

    /// How many, how often and how large: less is stricter.
    fn counted(
        &mut self,
        name: &str,
        tool: &mut ToolConfig,
        before: &EarlierToolSettings,
        file: &ToolEntry,
    ) {
        let key = |setting: &str| format!("tools.{name}.{setting}");
        let EarlierToolSettings { set, limits, .. } = before;
        let fewer = |now: Option<&_>, new: &_| *new < *now.unwrap_or(&limits.concurrency);
        self.bind(
            &key("concurrency"),
            &mut tool.concurrency,
            set.concurrency.as_ref(),
            file.concurrency,
            fewer,
        );
        self.bind(
            &key("exclusive"),
            &mut tool.exclusive,
            set.exclusive.as_ref(),
            file.exclusive,
            |_, new| *new,
        );
        let fewer = |now: Option<&_>, new: &_| *new < *now.unwrap_or(&limits.inline_chars);
        let chars = file.max_inline_chars;
        self.bind(
            &key("max_inline_chars"),
            &mut tool.max_inline_chars,
            set.max_inline_chars.as_ref(),
            chars,
            fewer,
        );
        let bytes = file.argument_bytes.map(LocatedValue::converted);
        let fewer = |now: Option<&_>, new: &_| *new < *now.unwrap_or(&limits.argument_bytes);
        self.bind(
            &key("argument_bytes"),
            &mut tool.argument_bytes,
            set.argument_bytes.as_ref(),
            bytes,
            fewer,
        );
    }

    /// What only a trusted file may say.
    fn others(&mut self, name: &str, tool: &mut ToolConfig, now: &ToolConfig, file: &ToolEntry) {
        let key = |setting: &str| format!("tools.{name}.{setting}");
        let nobody = |_: Option<&_>, _: &_| false;
        self.bind(
            &key("name"),
            &mut tool.name,
            now.name.as_ref(),
            file.name.clone(),
            nobody,
        );
        // Even a class of more power is no restriction: a rule may allow exactly that class.
        let nobody = |_: Option<&_>, _: &_| false;
        self.bind(
            &key("class"),
            &mut tool.class,
            now.class.as_ref(),
            file.class,
            nobody,
        );
        let nobody = |_: Option<&_>, _: &_| false;
        self.bind(
            &key("interrupt"),
            &mut tool.interrupt,
            now.interrupt.as_ref(),
            file.interrupt,
            nobody,
        );
        // To show more is no restriction, and to keep less would hide what a tool did.
        let nobody = |_: Option<&_>, _: &_| false;
        let keep = file.keep.map(LocatedValue::converted);
        self.bind(
            &key("keep"),
            &mut tool.keep,
            now.keep.as_ref(),
            keep,
            nobody,
        );
        // It would take the place of what the tool itself asks for, which may be more.
        let nobody = |_: Option<&_>, _: &_| false;
        self.bind(
            &key("requires"),
            &mut tool.requires,
            now.requires.as_ref(),
            file.requires.clone(),
            nobody,
        );
        for LocatedValue { value: pointer, at } in &file.sensitive {
            // An agent could hide what it does from the record.
            if self.may_grant(&key("sensitive"), *at) && !tool.sensitive.contains(pointer) {
                tool.sensitive.push(pointer.clone());
            }
        }
        if let Some(LocatedValue {
            value: defaults,
            at,
        }) = &file.defaults
            && self.may_grant(&key("defaults"), *at)
        {
            tool.defaults.extend(defaults.clone());
        }
        for (pointer, LocatedValue { value: kinds, at }) in &file.arguments {
            if self.may_grant(&key("arguments"), *at) {
                tool.arguments.retain(|meaning| meaning.pointer != *pointer);
                let meaning = |&kind| ArgumentMeaning {
                    pointer: pointer.clone(),
                    kind,
                };
                tool.arguments.extend(kinds.0.iter().map(meaning));
            }
        }
    }

    /// Whether a file may say what only a trusted one may; says so where it may not.
    fn may_grant(&mut self, key: &str, at: Position) -> bool {
        let may = self.layer.standing == LayerTrust::Trusted;
        if !may {
            self.ignored(key, at, key);
        }
        may
    }

    /// Sets a value in the table of the file's standing, if it may.
    fn bind<T: PartialEq>(
        &mut self,
        key: &str,
        target: &mut Option<T>,
        now: Option<&T>,
        written: Option<LocatedValue<T>>,
        restricts: impl FnOnce(Option<&T>, &T) -> bool,
    ) {
        let Some(LocatedValue { value, at }) = written else {
            return;
        };
        if self.layer.standing == LayerTrust::Trusted || restricts(now, &value) {
            *target = Some(value);
        } else if now != Some(&value) {
            self.ignored(key, at, key);
        }
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
        // What a source is trusted by itself is not known here, so only the least of all is surely less.
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
        self.put(
            &key("hidden"),
            &mut source.hidden,
            some(file.hidden),
            |_, new| *new == Some(true),
        );
    }
}
