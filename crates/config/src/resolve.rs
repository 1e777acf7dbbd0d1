//! Resolves layers into the settings as used.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

use toolpost_amplifier::MountPlan;
use toolpost_model::{EffectClass, PermissionMode, SandboxProfile};

use crate::{
    AuthorityReachConfig, ByteSize, ConfigDuration, ConfigError, ConfigErrors, ConfigLayer,
    ConfigNotice, HostConfig, LayerTrust, LocatedValue,
    error::ConfigComplaint,
    mcp_entry::McpSaidOfAll,
    merge::{LayerMerge, power},
    nearest::suggestion,
    snippet::shown,
};

impl HostConfig {
    /// Lays files over the defaults: lower origins first, so that the policy comes last, and before it the command
    /// line; within one origin, later files override earlier ones.
    ///
    /// Trusted files come first, at any place in the list; then the others restrict the result. Settings that they may
    /// not have are ignored, each with a notice.
    pub fn resolve(layers: &[ConfigLayer]) -> Result<(Self, Vec<ConfigNotice>), ConfigErrors> {
        let (mut trusted, untrusted): (Vec<&ConfigLayer>, Vec<&ConfigLayer>) = layers
            .iter()
            .partition(|layer| layer.standing == LayerTrust::Trusted);
        trusted.sort_by_key(|layer| Reverse(layer.origin));
        let mut config = Self::default();
        let mut notices = Vec::new();
        let mut plan = MountPlan::default();
        for layer in &trusted {
            LayerMerge {
                layer,
                trusted_mode: config.mode,
                notices: &mut notices,
            }
            .plans(&mut plan);
            LayerMerge {
                layer,
                trusted_mode: config.mode,
                notices: &mut notices,
            }
            .apply(&mut config);
        }
        let mut servers = McpSaidOfAll::default();
        // Within one origin, the lists of servers come first, and the sections change their entries.
        for layers in trusted.chunk_by(|earlier, later| earlier.origin == later.origin) {
            for layer in layers {
                LayerMerge {
                    layer,
                    trusted_mode: config.mode,
                    notices: &mut notices,
                }
                .mcp_files(&mut servers);
            }
            for layer in layers {
                LayerMerge {
                    layer,
                    trusted_mode: config.mode,
                    notices: &mut notices,
                }
                .mcp(&mut servers);
            }
        }
        config.settle_default_deadline(&trusted);
        let errors = config.disagreements(&trusted);
        if !errors.is_empty() {
            return Err(ConfigErrors::of(errors));
        }
        let trusted_mode = config.mode;
        let trusted_profile = config.sandbox.profile;
        // Untrusted layers come after all trusted ones, independent of their origin. "May only restrict" is a
        // comparison with the settings so far, so those must be final: a trusted layer that came later would override
        // the restriction of an untrusted one before it. The mode to compare with is that of the trusted layers, so
        // that one untrusted layer does not change the permissions of the next.
        for layer in untrusted {
            LayerMerge {
                layer,
                trusted_mode,
                notices: &mut notices,
            }
            .plans(&mut plan);
            LayerMerge {
                layer,
                trusted_mode,
                notices: &mut notices,
            }
            .apply(&mut config);
            LayerMerge {
                layer,
                trusted_mode,
                notices: &mut notices,
            }
            .mcp(&mut servers);
        }
        servers.settle(&mut config.mcp, &mut notices);
        config.take_modules(&plan, &mut notices);
        config.stay_below_ceiling();
        notices.extend(config.stay_out_of_bypass());
        if config.sandbox.profile != trusted_profile {
            config.stay_within_profile();
        }
        Ok((config, notices))
    }

    /// The modules of all plans together.
    fn take_modules(&mut self, plan: &MountPlan, notices: &mut Vec<ConfigNotice>) {
        let (modules, notes) = plan.settle();
        self.modules = modules;
        let key = "include".to_owned();
        notices.extend(notes.into_iter().map(|note| ConfigNotice {
            key: key.clone(),
            place: note.place,
            message: note.message,
        }));
    }

    /// A ceiling below the default deadline lowers it: the default is in no file, so the two do not conflict.
    fn settle_default_deadline(&mut self, trusted: &[&ConfigLayer]) {
        if trusted
            .iter()
            .all(|layer| layer.parsed.file().limits.deadline.is_none())
        {
            self.limits.deadline = self.limits.deadline.min(self.limits.deadline_ceiling);
        }
    }

    /// One file that forbids the mode `bypass` forbids it for all files.
    fn stay_out_of_bypass(&mut self) -> Option<ConfigNotice> {
        if !self.forbid_bypass || self.mode != PermissionMode::Bypass {
            return None;
        }
        self.mode = PermissionMode::Default;
        let message =
            "mode `bypass` is forbidden by `forbid_bypass`; the mode is `default`".to_owned();
        Some(ConfigNotice {
            key: "mode".to_owned(),
            place: "forbid_bypass".to_owned(),
            message,
        })
    }

    /// A ceiling that an untrusted file lowered also bounds the settings of trusted files.
    fn stay_below_ceiling(&mut self) {
        let ceiling = self.limits.deadline_ceiling;
        self.limits.deadline = self.limits.deadline.min(ceiling);
        let tables = [
            &mut self.tools,
            &mut self.policy_tools,
            &mut self.restricted_tools,
        ];
        for tool in tables.into_iter().flat_map(|table| table.values_mut()) {
            let execution = &mut tool.execution;
            execution.timeout = execution.timeout.map(|timeout| timeout.min(ceiling));
            execution.ceiling = execution.ceiling.map(|own| own.min(ceiling));
        }
        for server in &mut self.mcp.servers {
            server.timeout = server.timeout.map(|timeout| timeout.min(ceiling));
        }
    }

    /// A profile that an untrusted file tightened also bounds commands with a profile of their own.
    fn stay_within_profile(&mut self) {
        let limit = self.sandbox.profile;
        let modules = &mut self.amplifier.sandbox;
        *modules = modules.map(|own| {
            if power(own) > power(limit) {
                limit
            } else {
                own
            }
        });
        for server in &mut self.mcp.servers {
            server.sandbox = server.sandbox.map(|own| {
                if power(own) > power(limit) {
                    limit
                } else {
                    own
                }
            });
        }
        for command in &mut self.commands {
            // Without a profile of its own, a command of the class `network` would get the network.
            let implied =
                (command.class == EffectClass::Network).then_some(SandboxProfile::Network);
            let own = command.profile.or(implied);
            command.profile = own.map(|own| {
                if power(own) > power(limit) {
                    limit
                } else {
                    own
                }
            });
        }
    }

    /// Settings of trusted files that contradict each other.
    fn disagreements(&self, trusted: &[&ConfigLayer]) -> Vec<ConfigError> {
        let mut errors = Vec::new();
        let deadline = last(trusted, |layer| layer.parsed.file().limits.deadline);
        errors.extend(
            deadline.and_then(|(layer, at)| self.over_ceiling(layer, "limits.deadline", at)),
        );
        let names: BTreeSet<&String> = self.policy_tools.keys().chain(self.tools.keys()).collect();
        for name in names {
            let timeout = last(trusted, |layer| {
                layer.parsed.file().tools.get(name)?.value.timeout
            });
            let key = format!("tools.{name}.timeout");
            errors.extend(timeout.and_then(|(layer, at)| self.over_ceiling(layer, &key, at)));
            let ceiling = last(trusted, |layer| {
                layer.parsed.file().tools.get(name)?.value.ceiling
            });
            let key = format!("tools.{name}.ceiling");
            errors.extend(ceiling.and_then(|(layer, at)| self.over_ceiling(layer, &key, at)));
        }
        errors.extend(self.unknown_authorities(trusted));
        errors.extend(self.journal_without_room(trusted));
        errors.extend(self.shared_hashes(trusted));
        errors
    }

    /// Rules with an undefined authority, and authorities with an undefined credential, in trusted files.
    fn unknown_authorities(&self, trusted: &[&ConfigLayer]) -> Vec<ConfigError> {
        let authorities: Vec<&str> = self
            .authorities
            .iter()
            .map(|authority| authority.name.as_str())
            .collect();
        let credentials: Vec<&str> = self
            .network
            .credentials
            .iter()
            .map(|credential| credential.name.as_str())
            .collect();
        let mut errors = Vec::new();
        for layer in trusted {
            let source = layer.parsed.source();
            for LocatedValue { value: rule, at } in &layer.parsed.checked().rules {
                let Some(name) = rule
                    .delegate
                    .as_ref()
                    .filter(|name| !authorities.contains(&name.as_str()))
                else {
                    continue;
                };
                let message = format!(
                    "the rule `{rule}` delegates to `{name}`, and no trusted file defines that authority"
                );
                let hint = suggestion(name.as_str(), &authorities, "the authorities are")
                    .unwrap_or_else(|| {
                        format!("define it under `authorities.{name}`, with a `url` or a `command`")
                    });
                errors.push(source.error(ConfigComplaint::new(*at, message).hint(Some(hint))));
            }
            for LocatedValue {
                value: authority,
                at,
            } in &layer.parsed.checked().authorities
            {
                let AuthorityReachConfig::Endpoint {
                    credential: Some(name),
                    ..
                } = &authority.reach
                else {
                    continue;
                };
                if !credentials.contains(&name.as_str()) {
                    let message = format!(
                        "the authority `{}` names the credential `{}`, which no trusted file defines",
                        authority.name,
                        shown(name)
                    );
                    let hint = suggestion(name, &credentials, "the credentials are");
                    errors.push(source.error(ConfigComplaint::new(*at, message).hint(hint)));
                }
            }
        }
        errors
    }

    fn over_ceiling(
        &self,
        layer: &ConfigLayer,
        key: &str,
        written: LocatedValue<ConfigDuration>,
    ) -> Option<ConfigError> {
        let ceiling = ConfigDuration::new(self.limits.deadline_ceiling);
        if written.value <= ceiling {
            return None;
        }
        let message = format!(
            "`{key}` is {}, longer than `limits.deadline_ceiling`, which is {ceiling}",
            written.value
        );
        let complaint = ConfigComplaint::new(written.at, message)
            .hint(Some("raise the ceiling or shorten this".to_owned()));
        Some(layer.parsed.source().error(complaint))
    }

    /// A journal limit below the retention limit would stop the calls before any record is removed.
    fn journal_without_room(&self, trusted: &[&ConfigLayer]) -> Option<ConfigError> {
        let limit = ByteSize::new(self.limits.journal);
        let (layer, size) = last(trusted, |layer| layer.parsed.file().retention.journal.size)?;
        if size.value < limit {
            return None;
        }
        let message = format!(
            "`retention.journal.size` is {}, not less than `limits.journal`, which is {limit}",
            size.value
        );
        let hint =
            "the journal would be full before anything is removed; lower this or raise the limit";
        Some(
            layer
                .parsed
                .source()
                .error(ConfigComplaint::new(size.at, message).hint(Some(hint.to_owned()))),
        )
    }

    /// Within one file this was checked already; here the two values come from two files.
    fn shared_hashes(&self, trusted: &[&ConfigLayer]) -> Option<ConfigError> {
        let mut names: BTreeMap<[u8; 32], &str> = BTreeMap::new();
        let second = self
            .tokens
            .iter()
            .find(|token| names.insert(token.sha256, &token.name).is_some())?;
        let (layer, token) = last(trusted, |layer| {
            layer
                .parsed
                .checked()
                .tokens
                .iter()
                .find(|token| token.value == *second)
                .cloned()
        })?;
        let message = format!(
            "the token `{}` has the hash of another file's token",
            second.name
        );
        Some(
            layer
                .parsed
                .source()
                .error(ConfigComplaint::new(token.at, message)),
        )
    }
}

/// The last layer with a value, and that value.
fn last<'a, T>(
    layers: &[&'a ConfigLayer],
    said: impl Fn(&ConfigLayer) -> Option<T>,
) -> Option<(&'a ConfigLayer, T)> {
    layers
        .iter()
        .rev()
        .find_map(|layer| said(layer).map(|said| (*layer, said)))
}
