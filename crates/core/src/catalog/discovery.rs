//! Listing and finding tools for a session. The session may call the deferred tools that it is shown, and the first
//! time is recorded.

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
    /// Records the deferred tools that the session sees for the first time, and lets it call them from then on. A tool
    /// whose discovery could not be recorded stays undiscovered, so the next list records it.
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
        // A list is answered even if the journal cannot be written. The calls of these tools are then refused.
        if self.append(record, AppendStrength::Committed).await.is_ok() {
            session.discover(body.tools);
        }
    }
}

impl Host {
    /// Lists or searches the tools that a session may see. Listed deferred tools count as discovered.
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

    /// One tool by name, if the session may see it. It counts as discovered.
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
