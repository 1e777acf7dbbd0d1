//! The inputs of a read-only host from a data directory: all that decides about calls, and nothing that it could
//! change.

use std::{path::Path, sync::Arc};

use toolpost_config::{AuthorityReachConfig, CredentialConfig, HostConfig};
use toolpost_core::{
    Blob, BlobError, BlobStore, BlobWriter, RememberedRule, RuleStore, RuleStoreError, StoragePlace,
};
use toolpost_model::{BoxFuture, ContentDigest, InvocationId, Secret};
use toolpost_store::{BlobFiles, DataDir, JournalReader, RulesFile};

/// The remembered rules of a data directory, so that `explain` decides as `call` does.
pub(crate) fn rules_to_look_at(data_dir: &Path) -> Arc<dyn RuleStore> {
    Arc::new(RulesToLookAt(DataDir::at(data_dir).ok()))
}

struct RulesToLookAt(Option<DataDir>);

impl RuleStore for RulesToLookAt {
    /// A serving host converts rules of an older form with the help of its journal. A read-only host has another
    /// journal, so they are converted here, from the journal of the data directory.
    fn load(&self) -> Result<Vec<RememberedRule>, RuleStoreError> {
        let Some(data_dir) = &self.0 else {
            return Ok(Vec::new());
        };
        let mut rules = RulesFile::new(data_dir).load()?;
        let older = rules.iter_mut().filter(|rule| rule.needs_tool_id());
        let mut journal = None;
        for rule in older {
            let journal =
                journal.get_or_insert_with(|| JournalReader::open(&data_dir.journal_path()).ok());
            let records = journal
                .as_ref()
                .and_then(|journal| journal.records_of(rule.ask_id).ok());
            if let Some(exact) = records.and_then(|records| rule.exact_from(&records)) {
                *rule = exact;
            }
        }
        Ok(rules)
    }

    // A read-only host leaves the file unchanged, even if it would convert a rule of an older form.
    fn remember(&self, _: &[RememberedRule]) -> Result<(), RuleStoreError> {
        Ok(())
    }

    fn forget(&self, _: &str) -> Result<bool, RuleStoreError> {
        Ok(false)
    }
}

/// The artifact folder of a host with this data directory, so that `explain` can name it. A read-only host writes
/// nothing there.
pub(crate) fn blobs_to_look_at(data_dir: &Path) -> Arc<dyn BlobStore> {
    Arc::new(BlobsToLookAt(BlobFiles::of_folder(data_dir)))
}

struct BlobsToLookAt(BlobFiles);

impl BlobStore for BlobsToLookAt {
    fn create(&self) -> BoxFuture<'_, Result<Box<dyn BlobWriter>, BlobError>> {
        let refusal = BlobError::Storage("a read-only host keeps no results".to_owned());
        Box::pin(std::future::ready(Err(refusal)))
    }

    fn place(&self) -> StoragePlace {
        self.0.place()
    }

    fn open(&self, _: ContentDigest) -> BoxFuture<'_, Result<Arc<dyn Blob>, BlobError>> {
        Box::pin(std::future::ready(Err(BlobError::Missing)))
    }
}

/// The credentials of a host that calls no tool. Decisions about credentials use their names alone, so a placeholder
/// replaces the value. Only authorities are really asked, so the values that they are sent are looked up.
pub(crate) fn credentials_to_look_at(config: &HostConfig) -> Vec<(String, Secret)> {
    let is_sent = |credential: &CredentialConfig| {
        config
            .authorities
            .iter()
            .any(|authority| match &authority.reach {
                AuthorityReachConfig::Endpoint {
                    credential: Some(name),
                    ..
                } => *name == credential.name,
                AuthorityReachConfig::Endpoint {
                    credential: None, ..
                }
                | AuthorityReachConfig::Program { .. } => false,
            })
    };
    let value = |credential: &CredentialConfig| {
        let looked_up = || {
            super::credentials(std::slice::from_ref(credential))
                .ok()?
                .pop()
        };
        let found = is_sent(credential).then(looked_up).flatten();
        found.unwrap_or_else(|| {
            (
                credential.name.clone(),
                Secret::new(InvocationId::new().to_string()),
            )
        })
    };
    config.network.credentials.iter().map(value).collect()
}
