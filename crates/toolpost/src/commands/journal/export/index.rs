//! Where the record tells what other records stand on: starts, sessions, catalogs and surfaces, by number.

use std::collections::HashMap;

use serde::Deserialize;
use toolpost_core::{RecordKind, StoredRecord};
use toolpost_model::{ContentDigest, SessionId, SurfaceId};

#[derive(Default)]
pub(super) struct Index {
    starts: Vec<u64>,
    opened: HashMap<SessionId, u64>,
    catalogs: Vec<CatalogPiece>,
    surfaces: HashMap<SurfaceId, SurfacePlace>,
}

struct CatalogPiece {
    seq: u64,
    /// A whole catalog begins here.
    begins: bool,
    /// With this piece, this is what can be called.
    completes: Option<ContentDigest>,
}

#[derive(Clone, Copy)]
struct SurfacePlace {
    seq: u64,
    catalog: ContentDigest,
}

#[derive(Deserialize)]
struct CatalogHead {
    digest: ContentDigest,
    whole: bool,
    part: u32,
    parts: u32,
}

#[derive(Deserialize)]
struct SurfaceHead {
    surface_id: SurfaceId,
    catalog: ContentDigest,
}

impl Index {
    pub(super) fn note(&mut self, row: &StoredRecord) {
        let (seq, body) = (row.seq, row.record.body.as_str());
        match row.record.kind {
            RecordKind::HostStarted => self.starts.push(seq),
            RecordKind::SessionOpened => {
                if let Some(id) = &row.record.session_id {
                    self.opened.insert(id.clone(), seq);
                }
            }
            RecordKind::Catalog => {
                let Ok(head) = serde_json::from_str::<CatalogHead>(body) else { return };
                let completes = (head.part == head.parts).then_some(head.digest);
                let begins = head.whole && head.part == 1;
                self.catalogs.push(CatalogPiece { seq, begins, completes });
            }
            RecordKind::Surface => {
                let Ok(head) = serde_json::from_str::<SurfaceHead>(body) else { return };
                // Surfaces of one id are the same, so the first is as good as any.
                let place = SurfacePlace { seq, catalog: head.catalog };
                self.surfaces.entry(head.surface_id).or_insert(place);
            }
            RecordKind::SessionClosed
            | RecordKind::Accepted
            | RecordKind::Asked
            | RecordKind::Decided
            | RecordKind::Started
            | RecordKind::Ended
            | RecordKind::Pruned => {}
        }
    }

    /// The start of the host that wrote a record.
    pub(super) fn start_of(&self, seq: u64) -> Option<u64> {
        let after = self.starts.partition_point(|start| *start <= seq);
        after.checked_sub(1).map(|place| self.starts[place])
    }

    pub(super) fn opening_of(&self, session: &SessionId) -> Option<u64> {
        self.opened.get(session).copied()
    }

    /// The records that tell a surface: its own, and those of its catalog.
    pub(super) fn surface(&self, id: &SurfaceId) -> Vec<u64> {
        let Some(place) = self.surfaces.get(id) else { return Vec::new() };
        let is_it = |piece: &&CatalogPiece| piece.completes == Some(place.catalog);
        // Told before the surface, or, where old records were removed, told again behind it.
        let before = self.catalogs.iter().rev().filter(|piece| piece.seq < place.seq).find(is_it);
        let told = before.or_else(|| self.catalogs.iter().find(is_it));
        let Some(last) = told.map(|piece| piece.seq) else { return vec![place.seq] };
        let up_to: Vec<&CatalogPiece> = self.catalogs.iter().filter(|piece| piece.seq <= last).collect();
        let from = up_to.iter().rposition(|piece| piece.begins).unwrap_or_default();
        up_to[from..].iter().map(|piece| piece.seq).chain([place.seq]).collect()
    }
}
