//! An index of the records that other records refer to: starts, sessions, catalogs and surfaces, by number.

use std::collections::HashMap;

use toolpost_core::{RecordKind, RestatableHead, StoredRecord};
use toolpost_model::{SessionId, SurfaceId};

#[derive(Default)]
pub(super) struct ExportContextIndex {
    starts: Vec<u64>,
    opened: HashMap<SessionId, u64>,
    catalogs: Vec<CatalogPiece>,
    surfaces: HashMap<SurfaceId, SurfacePlace>,
}

struct CatalogPiece {
    seq: u64,
    /// The number of the first copy: a restatement repeats records that retention would have removed.
    told: u64,
    /// A whole catalog begins here.
    begins: bool,
    /// The digest of the catalog that this piece completes.
    completes: Option<String>,
}

struct SurfacePlace {
    seq: u64,
    told: u64,
    catalog: String,
}

impl ExportContextIndex {
    pub(super) fn note(&mut self, row: &StoredRecord) {
        let seq = row.seq;
        match row.record.kind {
            RecordKind::HostStarted => self.starts.push(seq),
            RecordKind::SessionOpened => {
                if let Some(id) = &row.record.session_id {
                    self.opened.insert(id.clone(), seq);
                }
            }
            RecordKind::Catalog => {
                let Ok(head) = row.record.read_body::<RestatableHead>() else {
                    return;
                };
                let completes = (head.part == head.parts).then_some(head.digest);
                let begins = head.whole && head.part == 1;
                let told = head.restated.map_or(seq, |restated| restated.seq);
                let place = self.catalogs.partition_point(|piece| piece.told <= told);
                self.catalogs.insert(
                    place,
                    CatalogPiece {
                        seq,
                        told,
                        begins,
                        completes,
                    },
                );
            }
            RecordKind::Surface => {
                let Ok(head) = row.record.read_body::<RestatableHead>() else {
                    return;
                };
                // Surfaces with the same id are equal, so the first one serves.
                let told = head.restated.map_or(seq, |restated| restated.seq);
                let place = SurfacePlace {
                    seq,
                    told,
                    catalog: head.catalog,
                };
                let id = SurfaceId::new(head.surface_id);
                self.surfaces.entry(id).or_insert(place);
            }
            RecordKind::SessionClosed
            | RecordKind::Accepted
            | RecordKind::Asked
            | RecordKind::Decided
            | RecordKind::Started
            | RecordKind::Ended
            | RecordKind::Discovered
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

    /// The records of a surface: its own, and those of its catalog.
    pub(super) fn surface(&self, id: &SurfaceId) -> Vec<u64> {
        let Some(place) = self.surfaces.get(id) else {
            return Vec::new();
        };
        let is_it = |piece: &CatalogPiece| piece.completes.as_ref() == Some(&place.catalog);
        let before = self
            .catalogs
            .iter()
            .rposition(|piece| piece.told < place.told && is_it(piece));
        let Some(last) = before.or_else(|| self.catalogs.iter().position(is_it)) else {
            return vec![place.seq];
        };
        let from = self.catalogs[..=last]
            .iter()
            .rposition(|piece| piece.begins)
            .unwrap_or_default();
        self.catalogs[from..=last]
            .iter()
            .map(|piece| piece.seq)
            .chain([place.seq])
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use toolpost_core::{Record, RecordKind, StoredRecord};
    use toolpost_model::SurfaceId;

    use super::ExportContextIndex;

    fn digest(mark: u8) -> String {
        format!("sha256:{}", format!("{mark:02x}").repeat(32))
    }

    fn index(rows: &[(u64, RecordKind, Value)]) -> ExportContextIndex {
        let mut index = ExportContextIndex::default();
        for (seq, kind, body) in rows {
            let record = Record {
                kind: *kind,
                at: jiff::Timestamp::UNIX_EPOCH,
                invocation_id: None,
                session_id: None,
                request: None,
                facets: None,
                body: body.to_string(),
            };
            index.note(&StoredRecord {
                seq: *seq,
                record,
                hash: [0; 32],
            });
        }
        index
    }

    fn piece(mark: u8, whole: bool, part: u32, parts: u32) -> Value {
        json!({ "digest": digest(mark), "whole": whole, "part": part, "parts": parts, "declared": [] })
    }

    fn surface(id: &str, catalog: u8) -> Value {
        json!({ "surface_id": id, "catalog": digest(catalog), "loaded": [] })
    }

    #[test]
    fn a_surface_comes_with_the_whole_catalog_and_the_changes_up_to_it() {
        let index = index(&[
            (2, RecordKind::Catalog, piece(1, true, 1, 2)),
            (3, RecordKind::Catalog, piece(1, true, 2, 2)),
            (4, RecordKind::Surface, surface("one", 1)),
            (7, RecordKind::Catalog, piece(2, false, 1, 1)),
            (8, RecordKind::Surface, surface("two", 2)),
            (9, RecordKind::Catalog, piece(3, true, 1, 1)),
            (10, RecordKind::Surface, surface("three", 3)),
        ]);
        let of = |id: &str| index.surface(&SurfaceId::new(id));
        assert_eq!(of("one"), [2, 3, 4]);
        assert_eq!(of("two"), [2, 3, 7, 8]);
        assert_eq!(of("three"), [9, 10]);
        assert!(of("four").is_empty());
    }

    #[test]
    fn what_was_told_again_counts_where_it_was_told_first() {
        let mut again = piece(1, true, 1, 1);
        again["restated"] = json!({ "seq": 2, "at": "2026-11-16T00:00:00Z" });
        let index = index(&[
            (7, RecordKind::Catalog, piece(2, false, 1, 1)),
            (8, RecordKind::Surface, surface("two", 2)),
            (12, RecordKind::Catalog, again),
        ]);
        assert_eq!(index.surface(&SurfaceId::new("two")), [12, 7, 8]);
    }
}
