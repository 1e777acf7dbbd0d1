//! `hooks` of all layers add up. A file cannot remove or replace another file's hook, so a guard that one file sets up
//! stays.

use std::path::PathBuf;

use crate::{HookConfig, LayerTrust, LocatedValue};

use super::LayerMerge;

impl LayerMerge<'_> {
    pub(super) fn hooks(
        &mut self,
        hooks: &mut Vec<HookConfig>,
        written: &[LocatedValue<HookConfig>],
    ) {
        for LocatedValue { value: hook, at } in written {
            match self.layer.standing {
                LayerTrust::Trusted => hooks.push(self.with_whole_paths(hook)),
                // It would run a program of the project's choice, and could change the arguments of calls.
                LayerTrust::Untrusted | LayerTrust::LastGood => {
                    self.ignored("hooks", *at, &format!("hooks: {}", hook.name));
                }
            }
        }
    }

    /// A word of a command that begins as a relative path is a file beside the configuration.
    fn with_whole_paths(&self, hook: &HookConfig) -> HookConfig {
        let mut whole = hook.clone();
        whole
            .files
            .extend(self.make_files_whole(&mut whole.command));
        whole.writable = whole
            .writable
            .iter()
            .map(|path| self.layer.beneath(path))
            .collect();
        whole
    }

    /// Resolves the file paths in the words of a command, and returns them.
    pub(super) fn make_files_whole(&self, command: &mut [String]) -> Vec<PathBuf> {
        let mut files = Vec::new();
        for word in command {
            let above = word.starts_with("../").then(|| PathBuf::from(&*word));
            let Some(file) = word.strip_prefix("./").map(PathBuf::from).or(above) else {
                continue;
            };
            let file = self.layer.beneath(&file);
            *word = file.to_string_lossy().into_owned();
            files.push(file);
        }
        files
    }
}
