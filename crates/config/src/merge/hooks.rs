//! `hooks` of all layers add up. No file can take away or replace another's: a guard that one file sets up stands
//! whatever the others say.

use std::path::PathBuf;

use crate::{HookConfig, Located, Standing};

use super::Merge;

impl Merge<'_> {
    pub(super) fn hooks(&mut self, hooks: &mut Vec<HookConfig>, written: &[Located<HookConfig>]) {
        for Located { value: hook, at } in written {
            match self.layer.standing {
                Standing::Trusted => hooks.push(HookConfig {
                    command: hook.command.iter().map(|word| self.word(word)).collect(),
                    writable: hook.writable.iter().map(|path| self.layer.beneath(path)).collect(),
                    ..hook.clone()
                }),
                // It would run a program of the project's choosing, and could change what calls say.
                Standing::Untrusted => self.ignored("hooks", *at, &format!("hooks: {}", hook.name)),
            }
        }
    }

    /// A word of a command. One that begins as a relative path is a file beside the configuration.
    fn word(&self, word: &str) -> String {
        let above = word.starts_with("../").then(|| PathBuf::from(word));
        let file = word.strip_prefix("./").map(PathBuf::from).or(above);
        file.map_or_else(|| word.to_owned(), |file| self.layer.beneath(&file).to_string_lossy().into_owned())
    }
}
