//! Remembered rules, which operators saved with an approval, as `rules.json` in the data directory.
//!
//! Every rule in it allows something. A file that is damaged, or that other users could have written, is therefore
//! ignored and left unchanged: the host reports it, and an operator decides.

use std::{
    io,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};
use toolpost_core::{RememberedRule, RuleStore, RuleStoreError};

use crate::{
    data_dir::DataDir,
    disk::{self, FileLock, FilePrivacy},
};

/// Far more than operators approve, and well within the limit of a small file.
const MAX_RULES: usize = 4_096;

#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RulesFileBody {
    rules: Vec<RememberedRule>,
}

/// The remembered rules of one data directory.
pub struct RulesFile {
    path: PathBuf,
    /// Locked for each change, because a host and a command beside it may both write.
    lock: PathBuf,
}

impl RulesFile {
    /// The rules of this data directory. Nothing is read yet.
    pub fn new(data_dir: &DataDir) -> Self {
        let path = data_dir.rules_path();
        Self {
            lock: path.with_extension("lock"),
            path,
        }
    }

    /// The path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn read(&self) -> Result<RulesFileBody, RuleStoreError> {
        match disk::read_small(&self.path).map_err(|source| self.failed("read", source))? {
            None => Ok(RulesFileBody::default()),
            Some((bytes, FilePrivacy::Private)) => {
                serde_json::from_slice(&bytes).map_err(|source| {
                    let reason = format!(
                        "`{}` is damaged: {source}; repair or delete it",
                        self.path.display()
                    );
                    RuleStoreError {
                        reason,
                        source: Some(source.into()),
                    }
                })
            }
            Some((_, FilePrivacy::OwnedBy(_) | FilePrivacy::OpenToOthers(_))) => {
                let reason = format!(
                    "`{}` is accessible to other users; check it, then `chmod 600` or delete it",
                    self.path.display()
                );
                Err(RuleStoreError {
                    reason,
                    source: None,
                })
            }
        }
    }

    fn change(
        &self,
        edit: impl FnOnce(&mut Vec<RememberedRule>) -> Result<bool, RuleStoreError>,
    ) -> Result<bool, RuleStoreError> {
        let _turn =
            FileLock::exclusive(&self.lock).map_err(|source| self.failed("lock", source))?;
        let mut listing = self.read()?;
        let changed = edit(&mut listing.rules)?;
        if changed {
            let text = serde_json::to_vec_pretty(&listing)
                .map_err(|source| self.failed("write", io::Error::other(source)))?;
            disk::replace(&self.path, &text).map_err(|source| self.failed("write", source))?;
        }
        Ok(changed)
    }

    fn failed(&self, doing: &str, source: io::Error) -> RuleStoreError {
        let reason = format!("cannot {doing} `{}`: {source}", self.path.display());
        RuleStoreError {
            reason,
            source: Some(source.into()),
        }
    }
}

impl RuleStore for RulesFile {
    fn load(&self) -> Result<Vec<RememberedRule>, RuleStoreError> {
        Ok(self.read()?.rules)
    }

    fn remember(&self, rules: &[RememberedRule]) -> Result<(), RuleStoreError> {
        let new = rules;
        self.change(|rules| {
            // Rules that had expired before the new ones were approved are dropped.
            rules.retain(|kept| {
                new.iter()
                    .all(|new| !new.replaces(kept) && kept.expires > new.at)
            });
            if rules.len() + new.len() > MAX_RULES {
                let reason = format!(
                    "{} remembered rules and {} new ones are more than {MAX_RULES}; forget some of them",
                    rules.len(),
                    new.len()
                );
                return Err(RuleStoreError {
                    reason,
                    source: None,
                });
            }
            rules.extend_from_slice(new);
            Ok(true)
        })?;
        Ok(())
    }

    fn forget(&self, id: &str) -> Result<bool, RuleStoreError> {
        self.change(|rules| {
            let before = rules.len();
            rules.retain(|kept| kept.id != id);
            Ok(rules.len() < before)
        })
    }
}
