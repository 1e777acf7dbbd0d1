//! Listing and looking up tools for a session. Deferred tools that are shown may be called from then on, and the first time
//! that a session is shown one is on record.

use std::sync::Arc;

use toolpost_model::{ToolId, Visibility};

use super::{SurfaceEntry, ToolFilter};
use crate::{
    host::{Host, HostInner},
    record::{
        body::{DiscoveryBody, DiscoveryWay},
        journal::{AppendStrength, Record, RecordKind},
        rendering::written,
    },
    session::Session,
};

impl HostInner {
    /// Puts those of the deferred tools on record that a session was not shown before, and lets it call them from then on. A
    /// tool whose discovery could not be recorded stays undiscovered, so that the next list records it.
    async fn discover(
        &self,
        session: &Session,
        shown: impl Iterator<Item = ToolId>,
        way: DiscoveryWay,
    ) {
        let tools: Vec<ToolId> = shown.filter(|tool| !session.has_discovered(tool)).collect();
        if tools.is_empty() || self.record.journal_room.check(session.principal()).is_err() {
            return;
        }
        let expected = 64 + 32 * tools.len();
        let body = DiscoveryBody { tools, way };
        let record = Record {
            kind: RecordKind::Discovered,
            at: crate::port::now(),
            invocation_id: None,
            session_id: Some(session.id().clone()),
            request: None,
            facets: None,
            body: written(&body, expected),
        };
        // A list is answered also while the journal cannot be written. The calls that follow from it are not.
        if self.append(record, AppendStrength::Committed).await.is_ok() {
            session.discover(body.tools);
        }
    }
}

impl Host {
    /// Lists or searches the tools a session may see. Deferred tools that are listed count as shown.
    pub async fn list(&self, session: &Session, filter: &ToolFilter) -> Vec<SurfaceEntry> {
        session.touch();
        self.inner.freshen_sources().await;
        let surface = self.surface(session);
        let is_search = !filter.query.trim().is_empty();
        let mut preferred = Vec::new();
        if is_search {
            for source in &self.inner.sources.list {
                if let Some(search) = source.search(&filter.query, filter.limit.unwrap_or(50)) {
                    let found = search.await;
                    let catalog = surface.catalog();
                    preferred.push(
                        found
                            .iter()
                            .filter_map(|id| catalog.place_of(id.as_str()))
                            .collect(),
                    );
                }
            }
        }
        let listed = surface.list(filter, &preferred);
        let deferred = listed
            .iter()
            .filter(|tool| tool.visibility == Visibility::Deferred);
        let way = if is_search {
            DiscoveryWay::Search
        } else {
            DiscoveryWay::Listing
        };
        self.inner
            .discover(session, deferred.map(|tool| tool.entry.id().clone()), way)
            .await;
        listed
    }

    /// One tool by name, where the session may see it. Counts as shown.
    pub async fn show(&self, session: &Session, name: &str) -> Option<SurfaceEntry> {
        session.touch();
        let surface = self.surface(session);
        let (entry, visibility) = surface.find(name)?;
        match visibility {
            Visibility::Unlisted | Visibility::Blocked(_) => return None,
            Visibility::Loaded => {}
            Visibility::Deferred => {
                let shown = std::iter::once(entry.id().clone());
                self.inner
                    .discover(session, shown, DiscoveryWay::Name)
                    .await;
            }
        }
        Some(SurfaceEntry {
            entry: Arc::clone(entry),
            visibility,
        })
    }
}
