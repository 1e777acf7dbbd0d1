//! Records the catalog and the surfaces, before the calls that refer to them.

use std::collections::{HashMap, HashSet};

use parking_lot::Mutex;
use toolpost_model::{SurfaceId, ToolId};

use super::{Catalog, Surface};
use crate::{
    host::HostInner,
    record::{
        body::{CatalogOnRecord, SurfaceRecordBody},
        declared,
        journal::{AppendStrength, JournalError, Record, RecordKind},
        rendering::written,
    },
};

/// The tools and surfaces that this host has on record.
#[derive(Default)]
pub(crate) struct RecordedDeclarations {
    /// `None` until the host's start is on record: an earlier record would belong to the previous host.
    catalog: tokio::sync::Mutex<Option<RecordedCatalog>>,
    surfaces: Mutex<HashSet<SurfaceId>>,
}

#[derive(Default)]
struct RecordedCatalog {
    on_record: Option<CatalogOnRecord>,
    tools: HashMap<ToolId, [u8; 32]>,
}

/// The limit of remembered surfaces. A surface beyond it may be recorded again.
const REMEMBERED_SURFACES: usize = 1 << 16;

fn tools_of(catalog: &Catalog) -> impl Iterator<Item = (&ToolId, [u8; 32])> {
    let ids = catalog.entries().iter().map(|entry| entry.id());
    ids.zip(catalog.digest().tools.iter().copied())
}

impl HostInner {
    /// Whether the recorded catalog is the present one.
    pub(crate) fn is_told_by(&self, on_record: &CatalogOnRecord) -> bool {
        self.state.catalog.current.load().digest().whole == on_record.digest
    }

    /// Called after the start is on record: later records belong to this host. `on_record` is the last catalog of
    /// earlier hosts.
    pub(crate) async fn begin_telling(
        &self,
        on_record: Option<CatalogOnRecord>,
    ) -> Result<(), JournalError> {
        let same = on_record.filter(|on_record| self.is_told_by(on_record));
        let catalog = self.state.catalog.current.load_full();
        let tools = match same {
            Some(_) => tools_of(&catalog)
                .map(|(id, digest)| (id.clone(), digest))
                .collect(),
            None => HashMap::new(),
        };
        *self.state.catalog.declared.catalog.lock().await = Some(RecordedCatalog {
            on_record: same,
            tools,
        });
        self.tell_catalog().await
    }

    /// Records the present catalog, if the recorded one differs.
    pub(crate) async fn tell_catalog(&self) -> Result<(), JournalError> {
        let mut told = self.state.catalog.declared.catalog.lock().await;
        let Some(told) = told.as_mut() else {
            return Ok(());
        };
        let catalog = self.state.catalog.current.load_full();
        let digest = catalog.digest().whole;
        if told
            .on_record
            .is_some_and(|on_record| on_record.digest == digest)
        {
            return Ok(());
        }
        let whole = told.on_record.is_none();
        let is_new = |(id, digest): (&ToolId, [u8; 32])| told.tools.get(id) != Some(&digest);
        let news = catalog
            .entries()
            .iter()
            .zip(tools_of(&catalog))
            .filter(|(_, tool)| is_new(*tool));
        let texts = news.map(|(entry, _)| {
            declared::tool_text(entry, &self.credentials, &*self.record.redactor)
        });
        let now: HashMap<ToolId, [u8; 32]> = tools_of(&catalog)
            .map(|(id, digest)| (id.clone(), digest))
            .collect();
        let mut removed: Vec<ToolId> = told
            .tools
            .keys()
            .filter(|id| !now.contains_key(*id))
            .cloned()
            .collect();
        removed.sort_unstable();
        let bodies =
            declared::catalog_bodies(digest, whole, texts, &removed, catalog.unavailable());
        // If one of the parts cannot be written, the record holds neither the old catalog nor the new one. The state is
        // therefore taken out first, and the next try records the catalog as a whole.
        let before = std::mem::take(told);
        let mut from = before.on_record.map(|on_record| on_record.from);
        for body in bodies {
            let seq = self
                .append_numbered(record(RecordKind::Catalog, body), AppendStrength::Committed)
                .await?;
            from.get_or_insert(seq);
        }
        told.on_record = from.map(|from| CatalogOnRecord { digest, from });
        told.tools = now;
        Ok(())
    }

    /// Records a surface and its catalog, unless this host did so before.
    pub(crate) async fn tell_surface(&self, surface: &Surface) -> Result<(), JournalError> {
        let write = || async {
            if self
                .state
                .catalog
                .declared
                .surfaces
                .lock()
                .contains(surface.id())
            {
                return Ok(());
            }
            self.tell_catalog().await?;
            let body = written(
                &SurfaceRecordBody::of(surface),
                256 + 32 * surface.catalog().entries().len(),
            );
            self.append(record(RecordKind::Surface, body), AppendStrength::Committed)
                .await?;
            let mut told = self.state.catalog.declared.surfaces.lock();
            if told.len() >= REMEMBERED_SURFACES {
                told.clear();
            }
            told.insert(surface.id().clone());
            Ok(())
        };
        surface.told.get_or_try_init(write).await.map(|_| ())
    }
}

fn record(kind: RecordKind, body: String) -> Record {
    Record {
        kind,
        at: crate::port::now(),
        invocation_id: None,
        session_id: None,
        request: None,
        facets: None,
        body,
    }
}
