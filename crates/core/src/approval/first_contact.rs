//! The offer in a question about a server: its tools, and a rule for each one that only reads.
//!
//! Without it, every tool of a new server asks by itself, and an operator who answers the tenth question of the same kind
//! no longer reads it. With it, one answer covers the tools that only read, and the tools that write go on asking.

use jiff::Timestamp;
use sha2::{Digest as _, Sha256};
use toolpost_model::{
    CallHash, Declaration, EffectClass, OfferedTool, Rule, RuleOrigin, SourceReadOffer, ToolId,
    Visibility,
};

use crate::{
    catalog::{CatalogEntry, Surface},
    invocation::{PipelineCall, ResolvedTool},
    permission::PolicyEngine,
};

/// The number of tools that an offer lists. No tool is offered beyond the list, because an operator allows only what the
/// question shows. The next question of the source lists the others.
const LISTED: usize = 30;
/// The number of a source's tools that are considered; the tools after them are never offered. A question is drafted for
/// each call that asks, and a hostile source may declare thousands.
const CONSIDERED: usize = 1_000;
/// The length of a tool's description in the offer.
const ABOUT_CHARS: usize = 120;
/// The part of a description that is prepared for display.
const ABOUT_BYTES: usize = 1_024;

/// A call that asks, and the tools beside its own.
pub(crate) struct FirstContact<'a> {
    pub(crate) call: &'a PipelineCall,
    pub(crate) resolved: &'a ResolvedTool,
    pub(crate) surface: &'a Surface,
    pub(crate) engine: &'a dyn PolicyEngine,
    pub(crate) at: Timestamp,
}

impl FirstContact<'_> {
    /// The offer, if the source pins its definitions and a yes would allow anything. `shown` makes a text fit for display,
    /// and `speakable` refuses rules that cannot be displayed.
    ///
    /// The class of a tool is the server's own claim, so it decides nothing here: it selects the tools that are offered,
    /// and the operator's yes is what loosens. A tool that reads the open world counts only if its server cannot reach a
    /// network, because a read that leaves the machine can carry data out.
    pub(crate) fn offer(
        &self,
        shown: &impl Fn(&str) -> String,
        speakable: impl Fn(&Rule) -> bool,
    ) -> Option<SourceReadOffer> {
        let entry = &self.resolved.entry;
        entry.declaration().definition.as_ref()?;
        // The host itself asks about each call of this server, whatever rules allow.
        if self.resolved.source.caution(entry.id()).is_some() {
            return None;
        }
        let is_cut_off = self.is_without_network();
        let mut found: Vec<(bool, &CatalogEntry)> = self
            .of_source()
            .take(CONSIDERED)
            .map(|entry| {
                let tool = entry.declaration();
                let is_offered = reads_only(tool, is_cut_off)
                    && self.would_change(entry)
                    && bound_rule(tool).is_some_and(|rule| speakable(&rule));
                (is_offered, entry)
            })
            .collect();
        found.sort_by_key(|(is_offered, _)| !is_offered);
        let listed = |&(is_offered, entry): &(bool, &CatalogEntry)| {
            let tool = entry.declaration();
            Some(OfferedTool {
                tool_id: tool.tool_id.clone(),
                about: about(&tool.description, shown),
                definition: tool.definition.clone()?,
                is_offered,
            })
        };
        let offer = SourceReadOffer {
            source: shown(&entry.source_name),
            reaches_network: !is_cut_off,
            tools: found.iter().take(LISTED).filter_map(listed).collect(),
            more: self.of_source().count().saturating_sub(LISTED),
        };
        let offers_any = offer.offered().next().is_some();
        offers_any.then_some(offer)
    }

    /// The tools of the same source that the caller can use.
    fn of_source(&self) -> impl Iterator<Item = &CatalogEntry> {
        let is_usable = |visibility: Visibility| match visibility {
            Visibility::Loaded | Visibility::Deferred => true,
            Visibility::Unlisted | Visibility::Blocked(_) => false,
        };
        self.surface
            .all()
            .filter(move |(entry, visibility)| {
                entry.source == self.resolved.entry.source && is_usable(*visibility)
            })
            .map(|(entry, _)| &**entry)
    }

    /// Whether a rule would let calls of the tool pass that ask now.
    fn would_change(&self, entry: &CatalogEntry) -> bool {
        let tool = entry.declaration();
        let interface = &tool.interface;
        let always_asks =
            interface.permission.approval_required || interface.safety.requires_user_interaction;
        let principal = self.call.session.principal();
        let class = entry.fixed_class();
        !always_asks
            && self
                .engine
                .is_open_to_allow(tool, class, principal, self.at)
    }

    /// Whether the server's process cannot reach a network. `false` without a process of this machine.
    fn is_without_network(&self) -> bool {
        let Some(input) = &self.call.inputs.call else {
            return false;
        };
        // The settings of one tool may narrow its sandbox, but not that of the others.
        self.resolved
            .source
            .sandbox(self.resolved.entry.id(), input, None)
            .is_some_and(|plan| !plan.network && plan.lack.is_none())
    }
}

fn reads_only(tool: &Declaration, is_cut_off: bool) -> bool {
    let safety = &tool.interface.safety;
    !safety.destructive
        && match safety.class.worst() {
            EffectClass::Read => true,
            EffectClass::Network => is_cut_off,
            EffectClass::Write | EffectClass::Execute | EffectClass::Unknown => false,
        }
}

/// The rule that allows a tool as it is defined now.
fn bound_rule(tool: &Declaration) -> Option<Rule> {
    rule_of(&tool.tool_id, tool.definition.as_ref()?)
}

/// The rule that allows a tool as the question shows it. It is read from its text, because that is what is stored.
pub(super) fn rule_of(tool_id: &ToolId, definition: &str) -> Option<Rule> {
    let line = format!("allow {}", tool_id.rule_form());
    let rule = Rule::parse(&line, RuleOrigin::Local, "").ok()?;
    Some(Rule {
        definition: Some(definition.to_owned()),
        ..rule
    })
}

/// The hash of an offer, for the record of its question.
pub(crate) fn hash_offer(offer: &SourceReadOffer) -> CallHash {
    // An offer has no map with keys that are not texts, so it can always be written.
    let text = serde_json::to_vec(offer).unwrap_or_default();
    CallHash(Sha256::digest(text).into())
}

/// The beginning of a description, in one line.
fn about(description: &str, shown: &impl Fn(&str) -> String) -> String {
    let beginning = &description[..description.floor_char_boundary(ABOUT_BYTES)];
    let line: Vec<&str> = beginning.split_whitespace().collect();
    let line = shown(&line.join(" "));
    match line.char_indices().nth(ABOUT_CHARS) {
        None => line,
        Some((end, _)) => format!("{}…", &line[..end]),
    }
}
