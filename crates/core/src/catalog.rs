//! The first phase: what can be called, how it behaves, and who sees it.
//!
//! A [`Catalog`] is an immutable snapshot. The host swaps in a new one when a source's list changes, and calls
//! that are under way keep the one they began with.

pub(crate) mod declaration;
pub(crate) mod interface;
mod pins;
pub(crate) mod schema;
pub(crate) mod search;
pub(crate) mod surface;

use std::{collections::HashMap, sync::Arc};

use toolpost_model::{Declaration, EffectOrigin, Naming, SourceProblem};

pub use declaration::{CatalogNotice, Entry};
pub use interface::{OperatorSettings, SourceSettings, SourceTrust, ToolSettings};
pub use pins::{MemoryPins, PinStore, PinStoreError};
pub use schema::{Schema, SchemaError, Violation};
pub use surface::{Listing, Surface, ToolFilter};

use crate::{
    port::SourceIndex,
    record::{
        declared::{self, CatalogDigest},
        redaction::Redactor,
    },
};
use search::SearchIndex;

/// One source's tools, as listed.
pub(crate) struct SourceTools {
    pub(crate) source: SourceIndex,
    pub(crate) name: Arc<str>,
    pub(crate) naming: Naming,
    pub(crate) origin: EffectOrigin,
    pub(crate) declarations: Vec<Declaration>,
}

/// Every tool of every source at one moment.
pub struct Catalog {
    entries: Vec<Arc<Entry>>,
    by_name: HashMap<Box<str>, u32>,
    index: SearchIndex,
    /// What should be there and is not, in a fixed order.
    unavailable: Vec<SourceProblem>,
    digest: CatalogDigest,
}

impl Catalog {
    /// Builds the snapshot. A tool that cannot be taken is left out and reported; the others are not harmed.
    pub(crate) fn build(
        sources: Vec<SourceTools>,
        mut unavailable: Vec<SourceProblem>,
        settings: &dyn OperatorSettings,
        redactor: &dyn Redactor,
    ) -> (Self, Vec<CatalogNotice>) {
        unavailable.sort_unstable();
        let mut notices: Vec<CatalogNotice> =
            unavailable.iter().cloned().map(CatalogNotice::Unavailable).collect();
        let mut catalog = Self { unavailable, ..Self::empty() };
        for mut tools in sources {
            let of_source = settings.source(&tools.name);
            for declaration in std::mem::take(&mut tools.declarations) {
                match declaration::admit(declaration, &tools, settings, &of_source, &catalog.by_name) {
                    Ok((entry, odd)) => {
                        notices.extend(odd);
                        catalog.insert(entry);
                    }
                    Err(notice) => notices.push(notice),
                }
            }
        }
        let known = |name: &str| catalog.by_name.contains_key(name);
        notices.extend(interface::unused(settings, &catalog.entries, known));
        catalog.index.finish();
        let texts = catalog.entries.iter().map(|entry| (entry.id(), declared::tool_text(entry, redactor)));
        catalog.digest = CatalogDigest::of(texts, &catalog.unavailable);
        (catalog, notices)
    }

    /// Nothing can be called.
    pub(crate) fn empty() -> Self {
        Self {
            entries: Vec::new(),
            by_name: HashMap::new(),
            index: SearchIndex::default(),
            unavailable: Vec::new(),
            digest: CatalogDigest::of(std::iter::empty(), &[]),
        }
    }

    /// What it is known by in records.
    pub(crate) fn digest(&self) -> &CatalogDigest {
        &self.digest
    }

    fn insert(&mut self, entry: Entry) {
        let place = u32::try_from(self.entries.len()).unwrap_or(u32::MAX);
        for name in entry.names() {
            self.by_name.entry(name.into()).or_insert(place);
        }
        self.index.add(&entry);
        self.entries.push(Arc::new(entry));
    }

    /// All tools, in the order of their sources.
    pub fn entries(&self) -> &[Arc<Entry>] {
        &self.entries
    }

    /// Sources, and parts of sources, that should be there and are not.
    pub fn unavailable(&self) -> &[SourceProblem] {
        &self.unavailable
    }

    /// The place of a tool, by wire name, alias or id.
    pub(crate) fn place_of(&self, name: &str) -> Option<usize> {
        self.by_name.get(name).map(|&place| place as usize)
    }

    /// A tool by wire name, alias or id.
    pub fn get(&self, name: &str) -> Option<&Arc<Entry>> {
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
