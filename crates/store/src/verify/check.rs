//! The state of a check on its way through the records.

use std::collections::HashMap;

use rusqlite::Row;
use toolpost_core::{FacetReader, GENESIS, RecordKind, StoredRecord, chain};
use toolpost_model::InvocationId;

use super::{
    ArtifactCounts, JournalFlaw, SealedHead, VerifyProblem, VerifyReport,
    artifacts::ReferencedBlobs,
};
use crate::journal::{
    JournalReadError, anchor::PruneAnchor, decode, facet, query::RowExtras, stored_hash,
};

/// A file with faults everywhere need not list them all.
const MOST_PROBLEMS: usize = 1000;

/// The state of a call, from the records so far.
#[derive(Clone, Copy, PartialEq)]
enum CheckedCallState {
    Open,
    Ended,
}

pub(super) struct JournalCheck {
    report: VerifyReport,
    calls: HashMap<InvocationId, CheckedCallState>,
    facets: FacetReader,
    /// The last record that the facet table covers.
    facets_up_to: u64,
    /// The head to find, until it is seen.
    awaited: Option<SealedHead>,
    /// The blobs that records name; `None` without a check of artifacts.
    pub(super) named: Option<ReferencedBlobs>,
    /// The expected number of the next row.
    next: u64,
    /// The hash that the next row builds on; unknown after a hole or a row with an unreadable hash. It is the stored
    /// hash, not the computed one, so that one changed row is one fault and does not fail the whole rest of the chain.
    previous: Option<[u8; 32]>,
}

impl JournalCheck {
    pub(super) fn new(awaited: Option<SealedHead>, wants_artifacts: bool) -> Self {
        let report = VerifyReport {
            records: 0,
            invocations: 0,
            first: None,
            last: None,
            head: SealedHead::NOTHING,
            removed_up_to: 0,
            removal_is_sound: true,
            removed_head: None,
            open_invocations: Vec::new(),
            artifacts: ArtifactCounts::default(),
            problems: Vec::new(),
            problems_left_out: 0,
        };
        Self {
            report,
            calls: HashMap::new(),
            facets: FacetReader::default(),
            facets_up_to: 0,
            // An empty journal has a head too.
            awaited: awaited.filter(|head| *head != SealedHead::NOTHING),
            named: wants_artifacts.then(ReferencedBlobs::default),
            next: 1,
            previous: Some(GENESIS),
        }
    }

    pub(super) fn records(&self) -> u64 {
        self.report.records
    }

    pub(super) fn counts(&mut self) -> &mut ArtifactCounts {
        &mut self.report.artifacts
    }

    pub(super) fn found(&mut self, seq: u64, what: JournalFlaw) {
        self.report.removal_is_sound &= !what.concerns_removal();
        if self.report.problems.len() < MOST_PROBLEMS {
            self.report.problems.push(VerifyProblem { seq, what });
        } else {
            self.report.problems_left_out += 1;
        }
    }

    /// Notes a flaw at the present record.
    pub(super) fn found_here(&mut self, what: JournalFlaw) {
        self.found(self.next, what);
    }

    pub(super) fn facets_up_to(&mut self, seq: i64) {
        self.facets_up_to = u64::try_from(seq).unwrap_or(0);
    }

    /// Starts at the oldest record. A running host may have removed some of those that were not read yet.
    pub(super) fn begin_at(&mut self, anchor: Option<PruneAnchor>) {
        let Some(PruneAnchor { up_to, hash }) = anchor else {
            return;
        };
        if up_to >= self.next {
            self.next = up_to + 1;
            self.previous = Some(hash);
            self.report.removed_up_to = up_to;
            self.report.head = SealedHead {
                seq: Some(up_to),
                hash,
            };
            self.saw(up_to, &hash);
        }
    }

    pub(super) fn visit(&mut self, row: &Row<'_>, beside: RowExtras) {
        self.report.records += 1;
        let number = row.get::<_, i64>(0).unwrap_or(0);
        let Some(seq) = u64::try_from(number).ok().filter(|&seq| seq > 0) else {
            return self.found(0, JournalFlaw::Number { number });
        };
        if seq < self.next {
            return self.found(seq, JournalFlaw::BeforeAnchor);
        }
        if seq > self.next {
            self.found(
                seq,
                JournalFlaw::Missing {
                    first: self.next,
                    last: seq - 1,
                },
            );
            self.previous = None;
        }
        self.next = seq + 1;
        match decode(row) {
            Ok(stored) => self.visit_record(&stored, row, beside),
            Err(JournalReadError::Damaged { column, why, .. }) => {
                self.found(seq, JournalFlaw::Column { column, why });
            }
            Err(error @ (JournalReadError::Sqlite(_) | JournalReadError::OlderFormat)) => {
                self.found(seq, JournalFlaw::Storage(error.to_string()));
            }
        }
        self.previous = stored_hash(row);
        if let Some(hash) = self.previous {
            self.report.head = SealedHead {
                seq: Some(seq),
                hash,
            };
            self.saw(seq, &hash);
        }
    }

    fn saw(&mut self, seq: u64, hash: &[u8; 32]) {
        let is_it = |head: &SealedHead| head.hash == *hash && head.seq.is_none_or(|at| at == seq);
        if self.awaited.as_ref().is_some_and(is_it) {
            self.awaited = None;
        }
    }

    fn visit_record(&mut self, stored: &StoredRecord, row: &Row<'_>, beside: RowExtras) {
        let StoredRecord { seq, record, hash } = stored;
        if self
            .previous
            .is_some_and(|previous| chain(&previous, *seq, record) != *hash)
        {
            self.found(*seq, JournalFlaw::Chain);
        }
        let told = self.facets.read(record);
        // Only a JSON object can be read for facets.
        if told.is_none() && !record.has_object() {
            self.found(*seq, JournalFlaw::Body);
        }
        if beside == RowExtras::Facets {
            let kept = facet::beside(row, record.at, record.session_id.as_ref());
            let agree = match (&told, kept) {
                (None, None) => true,
                // The table may lack the newest records, because it follows them in large pieces.
                (Some(told), None) => !told.is_whole() || *seq > self.facets_up_to,
                (Some(told), Some(Some(kept))) => told.agree_with(&kept),
                (None, Some(_)) | (Some(_), Some(None)) => false,
            };
            if !agree {
                self.found(*seq, JournalFlaw::Facets);
            }
        }
        if let (Some(named), Some(told)) = (&mut self.named, &told) {
            named.add(*seq, record.at, &told.contents);
        }
        if let Some(id) = record.invocation_id {
            self.visit_call(*seq, id, record.kind);
        }
        self.report.first.get_or_insert(record.at);
        self.report.last = Some(record.at);
    }

    fn visit_call(&mut self, seq: u64, id: InvocationId, kind: RecordKind) {
        // An answer may come after the call that asked has ended, with advice to its caller to call again.
        if kind == RecordKind::Decided {
            return;
        }
        let ends = kind == RecordKind::Ended;
        let state = if ends {
            CheckedCallState::Ended
        } else {
            CheckedCallState::Open
        };
        let before = self.calls.insert(id, state);
        if before == Some(CheckedCallState::Ended) {
            self.calls.insert(id, CheckedCallState::Ended);
            self.found(
                seq,
                if ends {
                    JournalFlaw::SecondEnd(id)
                } else {
                    JournalFlaw::AfterEnd(id)
                },
            );
        }
    }

    pub(super) fn finish(mut self) -> VerifyReport {
        if let Some(head) = self.awaited.take() {
            let up_to = self.report.removed_up_to;
            match head.seq {
                Some(seq) if seq < up_to => self.report.removed_head = Some(head),
                Some(seq) => self.found(seq.min(self.next), JournalFlaw::Head(head)),
                None if up_to > 0 => self.report.removed_head = Some(head),
                None => self.found(0, JournalFlaw::Head(head)),
            }
        }
        self.report
            .problems
            .sort_by_key(|problem| (problem.seq == 0, problem.seq));
        self.report.invocations = self.calls.len() as u64;
        let open = self
            .calls
            .into_iter()
            .filter(|(_, state)| *state == CheckedCallState::Open);
        self.report.open_invocations = open.map(|(id, _)| id).collect();
        self.report.open_invocations.sort();
        self.report
    }
}
