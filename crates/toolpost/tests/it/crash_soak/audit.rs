//! The record afterwards, held against every answer that was given.

use std::collections::{BTreeMap, HashMap};

use toolpost_core::{RecordKind, StoredRecord};
use toolpost_store::JournalReader;

use super::{
    Home,
    caller::{Kind, Said},
};

/// Everything that is on record.
pub(super) struct Audit {
    rows: Vec<StoredRecord>,
    /// The records of each call, oldest first.
    calls: HashMap<String, Vec<usize>>,
    /// The numbers of the records that tell of a start.
    starts: Vec<u64>,
}

/// How a call whose connection broke came to its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Way {
    /// It had ended; the answer was on record.
    FromRecord,
    /// It was open, and the next host gave it its end.
    Recovered,
    /// It was not on record, so the repeat was the first.
    Anew,
}

impl Audit {
    pub(super) fn read(home: &Home) -> Self {
        let reader = JournalReader::open(&home.data_dir().join("journal.db")).unwrap();
        let mut rows: Vec<StoredRecord> = Vec::new();
        loop {
            let page = reader
                .read(rows.last().map_or(0, |row| row.seq), 1_000)
                .unwrap();
            if page.is_empty() {
                break;
            }
            rows.extend(page);
        }
        let mut calls: HashMap<String, Vec<usize>> = HashMap::new();
        for (place, row) in rows.iter().enumerate() {
            if let Some(id) = row.record.invocation_id {
                calls.entry(id.to_string()).or_default().push(place);
            }
        }
        let is_start = |row: &&StoredRecord| row.record.kind == RecordKind::HostStarted;
        let starts = rows.iter().filter(is_start).map(|row| row.seq).collect();
        Self {
            rows,
            calls,
            starts,
        }
    }

    pub(super) fn records(&self) -> usize {
        self.rows.len()
    }

    fn records_of(&self, said: &Said) -> Vec<&StoredRecord> {
        let id = said.answer.json()["invocation_id"]
            .as_str()
            .unwrap()
            .to_owned();
        self.calls[&id]
            .iter()
            .map(|&place| &self.rows[place])
            .collect()
    }

    /// One end for each answer, the same bytes; one call for each key; no call that was not answered.
    pub(super) fn check(&self, said: &[Said]) {
        for one in said {
            let records = self.records_of(one);
            let of = |kind| records.iter().filter(move |row| row.record.kind == kind);
            assert_eq!(
                of(RecordKind::Ended).count(),
                1,
                "the ends of `{}`",
                one.request.key
            );
            assert!(
                of(RecordKind::Started).count() <= 1,
                "the starts of `{}`",
                one.request.key
            );
            let end = of(RecordKind::Ended).next().unwrap();
            let tail = format!("\"result\":{}}}", one.answer.body);
            assert!(
                end.record.body.ends_with(&tail),
                "`{}`: {} and {tail}",
                one.request.key,
                end.record.body
            );
            let key = records[0]
                .record
                .request
                .as_ref()
                .map(|request| request.id.as_str());
            assert_eq!(key, Some(one.request.key.as_str()));
        }
        let mut keys: Vec<&str> = self
            .rows
            .iter()
            .filter_map(|row| row.record.request.as_ref())
            .map(|request| request.id.as_str())
            .collect();
        keys.sort_unstable();
        let all = keys.len();
        keys.dedup();
        assert_eq!(
            (all, keys.len()),
            (said.len(), said.len()),
            "one call for each key and no other"
        );
        assert_eq!(
            self.calls.len(),
            said.len(),
            "no call that was not answered"
        );
    }

    pub(super) fn unknown(&self, said: &[Said]) -> usize {
        said.iter()
            .filter(|one| one.answer.json()["outcome"] == "unknown")
            .count()
    }

    fn way(&self, one: &Said) -> Way {
        let records = self.records_of(one);
        let answered_by = self.starts[one.starts - 1];
        let unknown = one.answer.json()["outcome"] == "unknown";
        match (
            records[0].seq < answered_by,
            records.last().unwrap().seq < answered_by,
        ) {
            (true, true) if !unknown => Way::FromRecord,
            (true, _) => Way::Recovered,
            (false, _) => Way::Anew,
        }
    }

    /// What happened, counted.
    pub(super) fn figures(&self, said: &[Said]) -> String {
        let mut outcomes: BTreeMap<(Kind, String), usize> = BTreeMap::new();
        let mut ways: BTreeMap<Way, usize> = BTreeMap::new();
        for one in said {
            let result = one.answer.json();
            *outcomes
                .entry((one.kind, result["outcome"].as_str().unwrap().to_owned()))
                .or_default() += 1;
            if one.interrupted {
                *ways.entry(self.way(one)).or_default() += 1;
            }
        }
        format!(
            "outcomes {outcomes:?}\ninterrupted calls by the way to their answer {ways:?}\n\
             {} records, {} starts",
            self.rows.len(),
            self.starts.len(),
        )
    }
}
