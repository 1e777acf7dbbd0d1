//! Loads the remembered rules at the start of a host.

use std::sync::Arc;

use toolpost_model::{Rule, Selector, ToolId, ToolPattern};

use super::{RememberedRule, RuleStore, operator::blocking};
use crate::{
    catalog::CatalogNotice,
    record::{
        body::VerdictBody,
        journal::{Journal, RecordKind, StoredRecord},
    },
};

/// The loaded rules, with notices about the dropped ones.
#[derive(Default)]
pub(crate) struct FoundRules {
    pub(crate) rules: Vec<RememberedRule>,
    pub(crate) notices: Vec<CatalogNotice>,
}

/// Loads the remembered rules. If the store cannot be read, no rule counts, because all of them allow something.
///
/// Older hosts stored the bare name of a tool, so that an approval for the `echo` of one server allowed the `echo` of
/// every server. Such a rule is rewritten to the id of the tool that its question was about. Without the record of that
/// question the rule is dropped: a guess from the name could allow a different tool.
pub(crate) async fn load(store: &Arc<dyn RuleStore>, journal: &dyn Journal) -> FoundRules {
    let mut found = FoundRules::default();
    let reading = Arc::clone(store);
    let loaded = match blocking(move || reading.load()).await {
        Ok(loaded) => loaded,
        Err(error) => {
            tracing::error!(%error, "the remembered rules cannot be read and are ignored");
            found
                .notices
                .push(CatalogNotice::RememberedRules(error.to_string()));
            return found;
        }
    };
    let now = crate::port::now();
    for kept in loaded {
        match kept.to_rule() {
            Err(error) => {
                found.notices.push(CatalogNotice::RememberedRules(format!(
                    "`{}`: {error}",
                    kept.rule
                )));
            }
            Ok(_) if kept.expires <= now => {}
            Ok(_) if !kept.needs_tool_id() => found.rules.push(kept),
            Ok(_) => match exact_rule_on_record(journal, &kept).await {
                Some(exact) => {
                    save(store, &exact).await;
                    found.rules.push(exact);
                }
                None => {
                    found.notices.push(CatalogNotice::DroppedRule {
                        rule: kept.rule.clone(),
                    });
                    forget(store, kept.id).await;
                }
            },
        }
    }
    found
}

async fn exact_rule_on_record(
    journal: &dyn Journal,
    kept: &RememberedRule,
) -> Option<RememberedRule> {
    let records = journal.records_of(kept.ask_id).await.ok()?;
    kept.exact_from(&records)
}

impl RememberedRule {
    /// Whether an older host stored this rule, with a tool's bare name. It counts only once
    /// [`exact_from`](Self::exact_from) has rewritten it.
    pub fn needs_tool_id(&self) -> bool {
        let names_tools = |rule: &Rule| match rule.selector {
            Selector::Tool { .. } => true,
            Selector::Class(_)
            | Selector::Reads(_)
            | Selector::Writes(_)
            | Selector::Reaches(_) => false,
        };
        self.tool_id.is_none() && self.to_rule().is_ok_and(|rule| names_tools(&rule))
    }

    /// The same rule for the tool that its question was about, from the records of the call that raised the question.
    ///
    /// A call whose facts changed while it waited asked again under a new id. That rare answer is not looked for in
    /// the whole journal: its rule is dropped, and the person is asked once more.
    pub fn exact_from(&self, records: &[StoredRecord]) -> Option<Self> {
        let answers = records
            .iter()
            .filter(|row| row.record.kind == RecordKind::Decided);
        let mut bodies = answers.filter_map(|row| row.record.read_body::<VerdictBody>().ok());
        let tool: ToolId = bodies
            .find(|body| body.ask_id == self.ask_id)?
            .tool_id
            .parse()
            .ok()?;
        let mut rule = self.to_rule().ok()?;
        if let Selector::Tool { tools, .. } = &mut rule.selector {
            *tools = tool.rule_form().parse::<ToolPattern>().ok()?;
        }
        Some(Self {
            rule: rule.to_string(),
            tool_id: Some(tool),
            ..self.clone()
        })
    }
}

/// Writes a rewritten rule back. A failure costs nothing now: the next start rewrites it again.
async fn save(store: &Arc<dyn RuleStore>, rule: &RememberedRule) {
    let store = Arc::clone(store);
    let rule = rule.clone();
    if let Err(error) = blocking(move || store.remember(std::slice::from_ref(&rule))).await {
        tracing::warn!(%error, "a remembered rule could not be rewritten to name its tool by id");
    }
}

async fn forget(store: &Arc<dyn RuleStore>, id: String) {
    let store = Arc::clone(store);
    if let Err(error) = blocking(move || store.forget(&id)).await {
        tracing::warn!(%error, "a remembered rule without a tool id could not be removed");
    }
}
