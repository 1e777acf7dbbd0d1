//! The first phase: the tools that exist, their behaviour, and their visibility.
//!
//! A [`Catalog`] is an immutable snapshot. The host swaps in a new one when a source's list changes; running calls keep
//! the one that they began with.

pub(crate) mod declaration;
mod declared;
mod discovery;
pub(crate) mod interface;
mod pins;
pub(crate) mod schema;
pub(crate) mod search;
pub(crate) mod surface;

use std::{collections::HashMap, sync::Arc};

use toolpost_model::{
    Declaration, EffectOrigin, NATIVE_NAMESPACES, Provenance, SourceProblem, ToolId, WireNaming,
};

pub use declaration::{CatalogEntry, CatalogNotice};
pub(crate) use declared::RecordedDeclarations;
pub use interface::{OperatorSettings, SourceSettings, SourceTrust};
pub use pins::{MemoryPins, PinStore, PinStoreError};
pub(crate) use schema::ViolationKind;
pub use schema::{Schema, SchemaError, SchemaViolation};
pub use surface::{Surface, SurfaceEntry, ToolFilter};

use crate::{
    execution::credentials::CredentialGrants,
    port::SourceIndex,
    record::{
        declared::{CatalogDigest, tool_text},
        redaction::Redactor,
    },
};
use search::SearchIndex;

pub(crate) struct SourceTools {
    pub(crate) source: SourceIndex,
    pub(crate) name: Arc<str>,
    pub(crate) naming: WireNaming,
    pub(crate) provenance: Provenance,
    pub(crate) origin: EffectOrigin,
    pub(crate) declarations: Vec<Declaration>,
}

/// All tools of all sources at one moment.
pub struct Catalog {
    entries: Vec<Arc<CatalogEntry>>,
    by_name: HashMap<Box<str>, u32>,
    /// The source of each namespace: the first one that listed a tool in it.
    namespaces: HashMap<Box<str>, SourceIndex>,
    index: SearchIndex,
    /// Missing sources and parts of sources, in a fixed order.
    unavailable: Vec<SourceProblem>,
    digest: CatalogDigest,
}

impl Catalog {
    /// Builds the snapshot. A tool that cannot be admitted is left out and reported; the others are unaffected.
    ///
    /// Names are given out by provenance: compiled-in tools first, then mount plans, then all others. The order in
    /// which sources were added does not matter. Otherwise an outside tool could take the name of a compiled-in one,
    /// only because its source came first.
    pub(crate) fn build(
        mut sources: Vec<SourceTools>,
        mut unavailable: Vec<SourceProblem>,
        settings: &dyn OperatorSettings,
        credentials: &CredentialGrants,
        redactor: &dyn Redactor,
    ) -> (Self, Vec<CatalogNotice>) {
        unavailable.sort_unstable();
        let mut notices: Vec<CatalogNotice> = unavailable
            .iter()
            .cloned()
            .map(CatalogNotice::Unavailable)
            .collect();
        let mut catalog = Self {
            unavailable,
            ..Self::empty()
        };
        for tools in &mut sources {
            tools
                .declarations
                .iter_mut()
                .for_each(|tool| tool.provenance = tools.provenance);
        }
        let replaceable = take_replaceable(&mut sources, settings);
        let claims = NameClaims::of(sources.iter().chain(&replaceable), settings);
        // A stable sort: sources of one provenance stay in the order in which they were added.
        sources.sort_by_key(|tools| tools.provenance);
        let plans_end = sources.partition_point(|tools| tools.provenance < Provenance::Outside);
        let outside = sources.split_off(plans_end);
        for tools in sources {
            catalog.admit_all(tools, settings, &claims, &mut notices);
        }
        // A native tool stays if no plan has taken its name, so that a module that fails to load leaves no gap.
        for mut tools in replaceable {
            tools
                .declarations
                .retain(|native| !catalog.is_replaced(&native.tool_id, &mut notices));
            catalog.admit_all(tools, settings, &claims, &mut notices);
        }
        for tools in outside {
            catalog.admit_all(tools, settings, &claims, &mut notices);
        }
        notices.extend(unused_replacements(settings, &notices));
        let known = |name: &str| catalog.by_name.contains_key(name);
        notices.extend(interface::unused(settings, &catalog.entries, known));
        notices.extend(interface::bare_names(settings, &catalog.entries));
        catalog.index.finish();
        let text = |entry: &Arc<CatalogEntry>| tool_text(entry, credentials, redactor);
        let texts = catalog
            .entries
            .iter()
            .map(|entry| (entry.id(), text(entry)));
        catalog.digest = CatalogDigest::of(texts, &catalog.unavailable);
        (catalog, notices)
    }

    fn admit_all(
        &mut self,
        mut tools: SourceTools,
        settings: &dyn OperatorSettings,
        claims: &NameClaims,
        notices: &mut Vec<CatalogNotice>,
    ) {
        let of_source = settings.source(&tools.name);
        for mut declaration in std::mem::take(&mut tools.declarations) {
            if !self.may_use_namespace(&declaration.tool_id, &tools) {
                notices.push(CatalogNotice::NamespaceTaken {
                    refused: declaration.tool_id,
                });
                continue;
            }
            notices.extend(claims.drop_aliases(&mut declaration));
            match declaration::admit(declaration, &tools, settings, &of_source, self) {
                Ok((entry, odd)) => {
                    notices.extend(odd);
                    self.insert(entry);
                }
                Err(notice) => notices.push(notice),
            }
        }
    }

    /// Whether a mount plan's tool has the name of this native tool, which is then not served.
    fn is_replaced(&self, native: &ToolId, notices: &mut Vec<CatalogNotice>) -> bool {
        let holder = self.get(native.name());
        let by = holder.filter(|entry| entry.declaration().provenance == Provenance::MountPlan);
        notices.extend(by.map(|entry| CatalogNotice::NativeReplaced {
            native: native.clone(),
            by: entry.id().clone(),
        }));
        by.is_some()
    }

    pub(crate) fn empty() -> Self {
        Self {
            entries: Vec::new(),
            by_name: HashMap::new(),
            namespaces: HashMap::new(),
            index: SearchIndex::default(),
            unavailable: Vec::new(),
            digest: CatalogDigest::of(std::iter::empty(), &[]),
        }
    }

    /// The identity of the catalog in records.
    pub(crate) fn digest(&self) -> &CatalogDigest {
        &self.digest
    }

    fn insert(&mut self, entry: CatalogEntry) {
        let place = u32::try_from(self.entries.len()).unwrap_or(u32::MAX);
        for name in entry.names() {
            self.by_name.entry(name.into()).or_insert(place);
        }
        self.namespaces
            .entry(entry.id().namespace().into())
            .or_insert(entry.source);
        self.index.add(&entry);
        self.entries.push(Arc::new(entry));
    }

    /// Whether a source may list a tool in this namespace. Rules name the tools of a source by its namespace (`allow
    /// github.*`), so two sources never share one, unless both are compiled in.
    fn may_use_namespace(&self, id: &ToolId, from: &SourceTools) -> bool {
        let namespace = id.namespace();
        match from.provenance {
            Provenance::CompiledIn => true,
            Provenance::MountPlan | Provenance::Outside => {
                !NATIVE_NAMESPACES.contains(&namespace)
                    && self
                        .namespaces
                        .get(namespace)
                        .is_none_or(|holder| *holder == from.source)
            }
        }
    }

    /// All tools: compiled-in ones first, then by source.
    pub fn entries(&self) -> &[Arc<CatalogEntry>] {
        &self.entries
    }

    /// Sources, and parts of sources, that are missing.
    pub fn unavailable(&self) -> &[SourceProblem] {
        &self.unavailable
    }

    /// The place of a tool, by wire name, alias or id.
    pub(crate) fn place_of(&self, name: &str) -> Option<usize> {
        self.by_name.get(name).map(|&place| place as usize)
    }

    /// A tool by wire name, alias or id.
    pub fn get(&self, name: &str) -> Option<&Arc<CatalogEntry>> {
        self.place_of(name).map(|place| &self.entries[place])
    }

    /// Places of matching tools, best first.
    pub(crate) fn search(&self, query: &str) -> impl Iterator<Item = usize> {
        self.index.search(query)
    }

    /// Up to three names that look like a mistyped one.
    pub(crate) fn similar(&self, name: &str) -> Vec<&str> {
        search::similar(name, self.entries.iter().map(|entry| entry.name()))
    }
}

/// Separates the native tools that the operator lets mount plans replace. They are admitted after the plans' tools.
fn take_replaceable(
    sources: &mut [SourceTools],
    settings: &dyn OperatorSettings,
) -> Vec<SourceTools> {
    let is_replaceable = |native: &mut Declaration| {
        let id = &native.tool_id;
        // Commands are excluded: they are the operator's own tools, and the operator can rename one instead of
        // replacing it.
        let is_native = NATIVE_NAMESPACES.contains(&id.namespace()) && id.namespace() != "commands";
        is_native && settings.replaces_native(id.name())
    };
    let compiled_in = sources
        .iter_mut()
        .filter(|tools| tools.provenance == Provenance::CompiledIn);
    let taken = compiled_in.map(|tools| SourceTools {
        declarations: tools.declarations.extract_if(.., is_replaceable).collect(),
        source: tools.source,
        name: Arc::clone(&tools.name),
        naming: tools.naming,
        provenance: tools.provenance,
        origin: tools.origin,
    });
    taken
        .filter(|tools| !tools.declarations.is_empty())
        .collect()
}

/// The names that tools claim for themselves. An alias gives way to each of them, whichever tool comes first: a tool
/// must not receive the calls of another through an alias.
struct NameClaims(HashMap<String, Vec<(ToolId, Provenance)>>);

impl NameClaims {
    fn of<'a>(
        sources: impl Iterator<Item = &'a SourceTools> + Clone,
        settings: &dyn OperatorSettings,
    ) -> Self {
        let mut claims: HashMap<String, Vec<(ToolId, Provenance)>> = HashMap::new();
        // Most catalogs have no alias, and then there is nothing to compare.
        let has_aliases = sources
            .clone()
            .flat_map(|tools| &tools.declarations)
            .any(|tool| !tool.aliases.is_empty());
        for tools in sources.filter(|_| has_aliases) {
            for tool in &tools.declarations {
                let given = settings
                    .of(tool, &tools.name)
                    .and_then(|chosen| chosen.surface.name);
                let wanted =
                    given.unwrap_or_else(|| declaration::wanted_name(&tool.tool_id, tools.naming));
                claims
                    .entry(wanted)
                    .or_default()
                    .push((tool.tool_id.clone(), tools.provenance));
            }
        }
        Self(claims)
    }

    /// Removes aliases that are names of other tools. A compiled-in tool gives way only to compiled-in tools.
    fn drop_aliases(&self, tool: &mut Declaration) -> Vec<CatalogNotice> {
        let is_claimed = |alias: &str| {
            self.0
                .get(alias)
                .into_iter()
                .flatten()
                .any(|(id, provenance)| {
                    *id != tool.tool_id
                        && (tool.provenance != Provenance::CompiledIn
                            || *provenance == Provenance::CompiledIn)
                })
        };
        let (lost, free): (Vec<_>, Vec<_>) = std::mem::take(&mut tool.aliases)
            .into_iter()
            .partition(|alias| is_claimed(alias));
        tool.aliases = free;
        lost.into_iter()
            .map(|alias| CatalogNotice::AliasTaken {
                tool: tool.tool_id.clone(),
                alias,
            })
            .collect()
    }
}

/// Names under `amplifier.replace_native` that replace nothing.
fn unused_replacements(
    settings: &dyn OperatorSettings,
    notices: &[CatalogNotice],
) -> Vec<CatalogNotice> {
    let is_used = |name: &String| {
        notices.iter().any(
            |notice| matches!(notice, CatalogNotice::NativeReplaced { native, .. } if native.name() == name),
        )
    };
    let unused = settings
        .replaced_names()
        .into_iter()
        .filter(|name| !is_used(name));
    unused
        .map(|name| CatalogNotice::NothingReplaces { name })
        .collect()
}
