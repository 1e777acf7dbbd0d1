//! What a host that only looks is given of a data directory: everything that decides, and nothing that it could change.

use std::{path::Path, sync::Arc};

use toolpost_config::CredentialConfig;
use toolpost_core::{RememberedRule, RuleStore, RuleStoreError};
use toolpost_model::{InvocationId, Secret};
use toolpost_store::{DataDir, JournalReader, RulesFile};

/// The rules that were remembered in a data directory, so that `explain` decides as `call` does.
pub(crate) fn rules_to_look_at(data_dir: &Path) -> Arc<dyn RuleStore> {
    Arc::new(RulesToLookAt(DataDir::at(data_dir).ok()))
}

struct RulesToLookAt(Option<DataDir>);

impl RuleStore for RulesToLookAt {
    /// A host that serves rewrites rules of an older form from its journal. A host that only looks has another journal,
    /// so they are rewritten here, from the journal of the data directory.
    fn load(&self) -> Result<Vec<RememberedRule>, RuleStoreError> {
        let Some(data_dir) = &self.0 else { return Ok(Vec::new()) };
        let mut rules = RulesFile::new(data_dir).load()?;
        let older = rules.iter_mut().filter(|rule| rule.needs_tool_id());
        let mut journal = None;
        for rule in older {
            let journal = journal.get_or_insert_with(|| JournalReader::open(&data_dir.journal_path()).ok());
            let records = journal.as_ref().and_then(|journal| journal.records_of(rule.ask_id).ok());
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

/// Values that stand for credentials in a host that never sends one. Whether a call may have a credential is decided by its
/// name, so the real value need not be read.
pub(crate) fn placeholders(credentials: &[CredentialConfig]) -> Vec<(String, Secret)> {
    let placeholder = |_: &CredentialConfig| Secret::new(InvocationId::new().to_string());
    credentials.iter().map(|credential| (credential.name.clone(), placeholder(credential))).collect()
}
