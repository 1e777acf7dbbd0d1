//! The sections of the native tools. Lists add up, since each entry is a grant or a protection of its own and a flag
//! should not remove the grants of a file. An entry with a name replaces an earlier one of that name.

use std::{fmt::Display, path::Path};

use toolpost_model::{SandboxProfile, ToolPattern};

use crate::{
    CodeConfig, CodeSection, CommandConfig, CredentialConfig, CredentialSource, HostConfig,
    LayerTrust, LocatedValue, NetworkConfig, NetworkSection, ProtectConfig, ProtectSection,
    RootConfig, RootEntry, SandboxConfig, SandboxSection, check::sandbox::tool_pattern,
    snippet::shown,
};

use super::{LayerMerge, lower};

impl LayerMerge<'_> {
    pub(super) fn native(&mut self, config: &mut HostConfig) {
        let file = self.layer.parsed.file();
        let checked = self.layer.parsed.checked();
        self.roots(&mut config.roots, &file.roots);
        self.protect(&mut config.protect, &file.protect);
        self.sandbox(&mut config.sandbox, &file.sandbox);
        self.network(&mut config.network, &file.network, &checked.network.private);
        self.credentials(
            &mut config.network.credentials,
            &checked.network.credentials,
        );
        self.code(&mut config.code, &file.code);
        self.commands(&mut config.commands, &checked.commands);
    }

    /// Adds a grant of a trusted file, unless it exists already.
    pub(super) fn grant<T: PartialEq>(
        &mut self,
        key: &str,
        granted: &mut Vec<T>,
        new: LocatedValue<T>,
        shown: impl Display,
    ) {
        if granted.contains(&new.value) {
            return;
        }
        match self.layer.standing {
            LayerTrust::Trusted => granted.push(new.value),
            LayerTrust::Untrusted | LayerTrust::LastGood => {
                self.ignored(key, new.at, &format!("{key}: {shown}"));
            }
        }
    }

    fn roots(&mut self, roots: &mut Vec<RootConfig>, written: &[LocatedValue<RootEntry>]) {
        for LocatedValue {
            value: RootEntry { path, access },
            at,
        } in written
        {
            let root = RootConfig {
                path: self.layer.beneath(&path.value),
                access: (*access).into(),
            };
            if self.layer.standing == LayerTrust::Trusted {
                // The last entry for a folder counts.
                roots.retain(|earlier| earlier.path != root.path);
            }
            self.grant(
                "roots",
                roots,
                LocatedValue {
                    value: root,
                    at: *at,
                },
                shown_path(&path.value),
            );
        }
    }

    fn protect(&mut self, protect: &mut ProtectConfig, file: &ProtectSection) {
        self.put(
            "protect.defaults",
            &mut protect.defaults,
            file.defaults,
            |_, new| *new,
        );
        self.put("protect.git", &mut protect.git, file.git, |_, new| *new);
        for path in &file.paths {
            // Every file may protect more.
            if !protect.paths.contains(&path.value) {
                protect.paths.push(path.value.clone());
            }
        }
    }

    fn sandbox(&mut self, sandbox: &mut SandboxConfig, file: &SandboxSection) {
        self.put(
            "sandbox.profile",
            &mut sandbox.profile,
            file.profile,
            |now, new| power(*new) < power(*now),
        );
        self.put(
            "sandbox.require",
            &mut sandbox.require,
            file.require,
            |_, new| *new,
        );
        for LocatedValue { value, at } in &file.readable {
            let path = LocatedValue {
                value: self.layer.beneath(value),
                at: *at,
            };
            self.grant(
                "sandbox.readable",
                &mut sandbox.readable,
                path,
                shown_path(value),
            );
        }
        for name in &file.environment {
            self.grant(
                "sandbox.environment",
                &mut sandbox.environment,
                name.clone(),
                &name.value,
            );
        }
        self.put("sandbox.memory", &mut sandbox.memory, file.memory, lower);
        self.put(
            "sandbox.processes",
            &mut sandbox.processes,
            file.processes,
            lower,
        );
        self.put("sandbox.tmp", &mut sandbox.tmp, file.tmp, lower);
        self.put(
            "sandbox.file_size",
            &mut sandbox.file_size,
            file.file_size,
            lower,
        );
        self.put(
            "sandbox.open_files",
            &mut sandbox.open_files,
            file.open_files,
            lower,
        );
        self.put(
            "sandbox.lifetime",
            &mut sandbox.lifetime,
            file.lifetime,
            lower,
        );
    }

    fn network(
        &mut self,
        network: &mut NetworkConfig,
        file: &NetworkSection,
        private: &[LocatedValue<String>],
    ) {
        for prefix in private {
            self.grant(
                "network.private",
                &mut network.private,
                prefix.clone(),
                &prefix.value,
            );
        }
        self.put(
            "network.max_body",
            &mut network.max_body,
            file.max_body,
            lower,
        );
    }

    fn credentials(
        &mut self,
        known: &mut Vec<CredentialConfig>,
        written: &[LocatedValue<CredentialConfig>],
    ) {
        for LocatedValue {
            value: credential,
            at,
        } in written
        {
            if self.layer.standing != LayerTrust::Trusted {
                let what = format!("network.credentials: {}", credential.name);
                self.ignored("network.credentials", *at, &what);
                continue;
            }
            let mut credential = credential.clone();
            if let CredentialSource::File(path) = &mut credential.source {
                *path = self.layer.beneath(path);
            }
            known.retain(|earlier| earlier.name != credential.name);
            known.push(credential);
        }
    }

    fn code(&mut self, code: &mut CodeConfig, file: &CodeSection) {
        let tools = file.tools.as_ref().map(|tools| LocatedValue {
            value: tools
                .value
                .iter()
                .filter_map(|pattern| tool_pattern(&pattern.value))
                .collect::<Vec<_>>(),
            at: tools.at,
        });
        self.put("code.tools", &mut code.tools, tools, |now, new| {
            new != now && new.iter().all(|new| now.iter().any(|now| covers(now, new)))
        });
        self.put("code.memory", &mut code.memory, file.memory, lower);
        self.put("code.calls", &mut code.calls, file.calls, lower);
        self.put("code.python3", &mut code.python3, file.python3, |_, new| {
            !new
        });
    }

    fn commands(
        &mut self,
        commands: &mut Vec<CommandConfig>,
        written: &[LocatedValue<CommandConfig>],
    ) {
        for LocatedValue { value: command, at } in written {
            match self.layer.standing {
                LayerTrust::Trusted => {
                    commands.retain(|earlier| earlier.name != command.name);
                    commands.push(command.clone());
                }
                LayerTrust::Untrusted | LayerTrust::LastGood => {
                    self.ignored(
                        "commands",
                        *at,
                        &format!("commands: {}", shown(&command.name)),
                    );
                }
            }
        }
    }
}

/// The rank of a profile by its permissions.
pub(crate) fn power(profile: SandboxProfile) -> u8 {
    match profile {
        SandboxProfile::ReadOnly => 0,
        SandboxProfile::WorkspaceWrite => 1,
        SandboxProfile::Network => 2,
        SandboxProfile::None => 3,
    }
}

/// Whether `wide` grants every tool that `narrow` grants. Bare patterns grant only the host's own tools, so a pattern
/// of ids is never within one of names.
fn covers(wide: &ToolPattern, narrow: &ToolPattern) -> bool {
    let is_alike = wide.is_qualified() == narrow.is_qualified();
    let all = wide == &ToolPattern::every_id();
    let narrow = narrow.as_str();
    let fits = match wide
        .as_str()
        .strip_suffix('*')
        .filter(|stem| !stem.contains('*'))
    {
        Some(stem) => narrow.starts_with(stem),
        None => wide.as_str() == narrow || (!narrow.contains('*') && wide.matches_name(narrow)),
    };
    all || (is_alike && fits)
}

fn shown_path(path: &Path) -> String {
    shown(&path.to_string_lossy())
}
