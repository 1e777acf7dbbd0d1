//! `amplifier` and the plans under `include`. Modules are programs, so only trusted files may add them or give them
//! anything; an untrusted file may restrict them.

use std::{fmt::Display, path::PathBuf};

use toolpost_amplifier::MountPlan;
use toolpost_model::SandboxProfile;

use crate::{
    AmplifierConfig, AmplifierSection, LayerTrust, LocatedValue, ModuleInstall, ModuleIsolation,
    NativeReplacement, RootConfig, WasmConfig, WasmEntry, snippet::shown,
};

use super::{LayerMerge, native::power, never, some};

impl LayerMerge<'_> {
    /// Lays the layer's plans over the earlier ones.
    pub(crate) fn plans(&mut self, plan: &mut MountPlan) {
        match self.layer.standing {
            LayerTrust::Trusted => {
                for over in &self.layer.plans {
                    *plan = over.clone().over(std::mem::take(plan));
                }
            }
            LayerTrust::Untrusted | LayerTrust::LastGood => {
                for LocatedValue { value, at } in &self.layer.parsed.file().include {
                    self.ignored(
                        "include",
                        *at,
                        &format!("include: {}", shown(&value.path().to_string_lossy())),
                    );
                }
            }
        }
    }

    pub(super) fn amplifier(&mut self, amplifier: &mut AmplifierConfig, outer: SandboxProfile) {
        let file = &self.layer.parsed.file().amplifier;
        self.put(
            "amplifier.isolation",
            &mut amplifier.isolation,
            file.isolation,
            |_, new| *new == ModuleIsolation::Process,
        );
        self.put(
            "amplifier.install",
            &mut amplifier.install,
            file.install,
            |_, new| *new == ModuleInstall::Offline,
        );
        self.put("amplifier.core", &mut amplifier.core, file.core, never);
        self.put(
            "amplifier.python",
            &mut amplifier.python,
            self.layer.path(&file.python),
            never,
        );
        self.put(
            "amplifier.sandbox",
            &mut amplifier.sandbox,
            some(file.sandbox),
            |now, new| new.is_some_and(|new| power(new) < power(now.unwrap_or(outer))),
        );
        self.put(
            "amplifier.post_on_failure",
            &mut amplifier.post_on_failure,
            file.post_on_failure,
            never,
        );
        let mount_timeout = file.mount_timeout.map(LocatedValue::converted);
        self.put(
            "amplifier.mount_timeout",
            &mut amplifier.mount_timeout,
            some(mount_timeout),
            never,
        );
        let max_result = file.max_result.map(LocatedValue::converted);
        self.put(
            "amplifier.max_result",
            &mut amplifier.max_result,
            some(max_result),
            never,
        );
        let replaced = file.replace_native.as_ref().map(|words| LocatedValue {
            value: NativeReplacement::of_words(words.value.values().iter().map(|word| &word.value)),
            at: words.at,
        });
        self.put(
            "amplifier.replace_native",
            &mut amplifier.replace_native,
            replaced,
            never,
        );
        self.grants(amplifier, file);
    }

    fn grants(&mut self, amplifier: &mut AmplifierConfig, file: &AmplifierSection) {
        for name in &file.pass {
            self.grant(
                "amplifier.pass",
                &mut amplifier.pass,
                name.clone(),
                &name.value,
            );
        }
        for name in &file.fetch_pass {
            self.grant(
                "amplifier.fetch_pass",
                &mut amplifier.fetch_pass,
                name.clone(),
                &name.value,
            );
        }
        for (key, list, written) in [
            (
                "amplifier.readable",
                &mut amplifier.readable,
                &file.readable,
            ),
            (
                "amplifier.writable",
                &mut amplifier.writable,
                &file.writable,
            ),
        ] {
            for LocatedValue { value, at } in written {
                let path = LocatedValue {
                    value: self.layer.beneath(value),
                    at: *at,
                };
                self.grant(key, list, path, value.display());
            }
        }
        for (name, value) in &file.environment {
            if self.allowed("amplifier.environment", name, value) {
                amplifier
                    .environment
                    .insert(name.clone(), value.value.clone());
            }
        }
        for (module, standing) in &file.hooks {
            if self.allowed("amplifier.hooks", module, standing) {
                amplifier.hooks.insert(module.clone(), standing.value);
            }
        }
        for (module, entry) in &file.wasm {
            if self.allowed("amplifier.wasm", module, entry) {
                amplifier
                    .wasm
                    .insert(module.clone(), self.wasm(&entry.value));
            }
        }
    }

    /// Whether the file may set this key for a name; adds a notice if not.
    fn allowed<T>(&mut self, key: &str, name: impl Display, written: &LocatedValue<T>) -> bool {
        match self.layer.standing {
            LayerTrust::Trusted => true,
            LayerTrust::Untrusted | LayerTrust::LastGood => {
                self.ignored(
                    key,
                    written.at,
                    &format!("{key}: {}", shown(&name.to_string())),
                );
                false
            }
        }
    }

    fn wasm(&self, entry: &WasmEntry) -> WasmConfig {
        let folder = |path: &PathBuf| self.layer.beneath(path);
        let directories = entry.directories.iter().map(|directory| RootConfig {
            path: folder(&directory.value.path.value),
            access: directory.value.access.into(),
        });
        let variables = entry
            .environment
            .iter()
            .map(|(name, value)| (name.clone(), value.value.clone()));
        WasmConfig {
            directories: directories.collect(),
            network: entry.network.is_some_and(|network| network.value),
            environment: variables.collect(),
            memory: entry.memory.map(|memory| memory.value.into()),
        }
    }
}
