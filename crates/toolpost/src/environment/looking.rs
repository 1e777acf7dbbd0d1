//! What a host that only looks is given of a data directory: everything that decides, and nothing that it could change.

use std::{path::Path, sync::Arc};

use toolpost_config::{AuthorityReachConfig, CredentialConfig, HostConfig};
use toolpost_core::{
    Blob, BlobError, BlobStore, BlobWriter, RememberedRule, RuleStore, RuleStoreError, StoragePlace,
};
use toolpost_model::{BoxFuture, ContentDigest, InvocationId, Secret};
use toolpost_store::{BlobFiles, DataDir, JournalReader, RulesFile};

/// The rules that were remembered in a data directory, so that `explain` decides as `call` does.
pub(crate) fn rules_to_look_at(data_dir: &Path) -> Arc<dyn RuleStore> {
    Arc::new(RulesToLookAt(DataDir::at(data_dir).ok()))
}

struct RulesToLookAt(Option<DataDir>);

impl RuleStore for RulesToLookAt {
    /// A host that serves rewrites rules of an older form from its journal. A host that only looks has another journal,
    /// so they are rewritten here, from the journal of the data directory.
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

    // A host that only looks leaves the file as it is, also where it would rewrite a rule of an older form.
    fn remember(&self, _: &RememberedRule) -> Result<(), RuleStoreError> {
        Ok(())
    }

    fn forget(&self, _: &str) -> Result<bool, RuleStoreError> {
        Ok(false)
    }
}

/// The place where a host with this data directory keeps results, so that `explain` names it. A host that only looks
/// keeps none.
pub(crate) fn blobs_to_look_at(data_dir: &Path) -> Arc<dyn BlobStore> {
    Arc::new(BlobsToLookAt(BlobFiles::of_folder(data_dir)))
}

struct BlobsToLookAt(BlobFiles);

impl BlobStore for BlobsToLookAt {
    fn create(&self) -> BoxFuture<'_, Result<Box<dyn BlobWriter>, BlobError>> {
        let refusal = BlobError::Storage("a host that only looks keeps no results".to_owned());
        Box::pin(std::future::ready(Err(refusal)))
    }

    fn place(&self) -> StoragePlace {
        self.0.place()
    }

    fn open(&self, _: ContentDigest) -> BoxFuture<'_, Result<Arc<dyn Blob>, BlobError>> {
        Box::pin(std::future::ready(Err(BlobError::Missing)))
    }
}

/// The credentials of a host that calls no tool. Whether a call may have a credential is decided by its name, so a
/// placeholder stands for the value. Only an authority is really asked, so the value that it is sent is looked up.
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
