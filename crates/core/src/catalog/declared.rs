//! Putting on record what can be called and who sees it, before the calls that stand on it.

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

/// What this host has on record of its tools and surfaces.
#[derive(Default)]
pub(crate) struct RecordedDeclarations {
    /// `None` before the start is on record: what is written then would belong to the host before.
    catalog: tokio::sync::Mutex<Option<RecordedCatalog>>,
    surfaces: Mutex<HashSet<SurfaceId>>,
}

/// The catalog that the record tells.
#[derive(Default)]
struct RecordedCatalog {
    on_record: Option<CatalogOnRecord>,
    tools: HashMap<ToolId, [u8; 32]>,
}

/// More surfaces than this are not remembered as written; one of them may be written again.
const REMEMBERED_SURFACES: usize = 1 << 16;

fn tools_of(catalog: &Catalog) -> impl Iterator<Item = (&ToolId, [u8; 32])> {
    let ids = catalog.entries().iter().map(|entry| entry.id());
    ids.zip(catalog.digest().tools.iter().copied())
}

impl HostInner {
    /// Whether the record tells the catalog as it is now.
    pub(crate) fn is_told_by(&self, on_record: &CatalogOnRecord) -> bool {
        self.state.catalog.current.load().digest().whole == on_record.digest
    }

    /// The start is on record; what follows is of this host. `on_record` is what the hosts before it told last.
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

    /// Puts on record what can be called now, where the record says otherwise.
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
        // Should one of the pieces fail, what is told is neither the old nor the new, and the whole is told again.
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

    /// Puts a surface on record, with the catalog it looks at, unless this host did so before.
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
