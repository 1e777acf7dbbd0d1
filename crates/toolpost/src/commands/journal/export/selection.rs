//! The records of an export: the selected ones, and those that they refer to.

use std::collections::{BTreeSet, HashMap, HashSet};

use anyhow::bail;
use toolpost_core::{RecordKind, StandsOn, StoredRecord, SurfaceRecordBody};
use toolpost_model::{InvocationId, SessionId, SurfaceId};
use toolpost_store::JournalReader;

use super::{ExportScope, PAGE, index::ExportContextIndex};
use crate::terminal;

pub(super) enum RecordSelection {
    /// All records, in order.
    All,
    /// These, by number.
    Some(BTreeSet<u64>),
}

/// The parts of a selected call that were seen.
#[derive(Default)]
struct SeenCallRecords {
    first: bool,
    end: bool,
}

/// A selection while it is made.
#[derive(Default)]
struct ExportSelectionBuilder {
    index: ExportContextIndex,
    chosen: BTreeSet<u64>,
    calls: HashMap<InvocationId, SeenCallRecords>,
    surfaces: HashSet<SurfaceId>,
    sessions: HashSet<SessionId>,
    parents: Vec<InvocationId>,
}

impl RecordSelection {
    pub(super) fn of(reader: &JournalReader, wanted: &ExportScope) -> anyhow::Result<Self> {
        let mut gathering = ExportSelectionBuilder::default();
        match wanted {
            ExportScope::All => return Ok(Self::All),
            ExportScope::Call(id) => gathering.call(reader, *id)?,
            ExportScope::Some {
                session,
                since,
                until,
            } => {
                let is_wanted = |row: &StoredRecord| {
                    session
                        .as_ref()
                        .is_none_or(|session| row.record.session_id.as_ref() == Some(session))
                        && since.is_none_or(|since| row.record.at >= since)
                        && until.is_none_or(|until| row.record.at < until)
                };
                gathering.scan(reader, |row| Ok(is_wanted(row)))?;
                if let (Some(session), true) = (session, gathering.chosen.is_empty()) {
                    bail!("session `{session}` has no records in that time");
                }
            }
        }
        gathering.complete(reader)?;
        Ok(Self::Some(gathering.chosen))
    }

    pub(super) fn count(&self, reader: &JournalReader) -> anyhow::Result<u64> {
        match self {
            Self::All => Ok(reader.last_seq()?),
            Self::Some(chosen) => Ok(chosen.len() as u64),
        }
    }

    /// Passes every selected record on, oldest first.
    pub(super) fn visit(
        &self,
        reader: &JournalReader,
        mut show: impl FnMut(&StoredRecord) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        match self {
            Self::All => pages(reader, |row| show(row)),
            Self::Some(chosen) => {
                let mut numbers = chosen.iter().copied().peekable();
                while let Some(first) = numbers.next() {
                    let mut count = 1;
                    while count < PAGE && numbers.next_if_eq(&(first + count as u64)).is_some() {
                        count += 1;
                    }
                    let rows = reader.read(first - 1, count)?;
                    // A running host may have removed some meanwhile, and then later ones take their place in the
                    // page.
                    let behind = first + count as u64;
                    rows.iter()
                        .filter(|row| row.seq < behind)
                        .try_for_each(&mut show)?;
                }
                Ok(())
            }
        }
    }
}

fn pages(
    reader: &JournalReader,
    mut show: impl FnMut(&StoredRecord) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let mut after = 0;
    loop {
        let rows = reader.read(after, PAGE)?;
        let Some(last) = rows.last() else {
            return Ok(());
        };
        after = last.seq;
        rows.iter().try_for_each(&mut show)?;
    }
}

impl ExportSelectionBuilder {
    /// Reads the whole journal: a record may refer to one that lies far before it.
    fn scan(
        &mut self,
        reader: &JournalReader,
        mut is_wanted: impl FnMut(&StoredRecord) -> anyhow::Result<bool>,
    ) -> anyhow::Result<()> {
        let bar = terminal::bar(reader.last_seq()?, "looking");
        pages(reader, |row| {
            self.index.note(row);
            if is_wanted(row)? {
                self.choose(row)?;
            }
            bar.inc(1);
            Ok(())
        })?;
        bar.finish_and_clear();
        Ok(())
    }

    /// A call and its nested calls.
    fn call(&mut self, reader: &JournalReader, id: InvocationId) -> anyhow::Result<()> {
        let rows = reader.records_of(id)?;
        let Some(last) = rows.last().map(|row| row.seq) else {
            bail!("call `{id}` is not in this journal")
        };
        rows.iter().try_for_each(|row| self.choose(row))?;
        // A call with only one record, its end, is written after its nested calls, so the pairs are joined last.
        let began = jiff::Timestamp::from_millisecond(i64::try_from(id.unix_millis())?)?;
        let mut made: HashMap<InvocationId, Vec<InvocationId>> = HashMap::new();
        self.scan(reader, |row| {
            if let Some(inner) = row.record.invocation_id
                && row.seq < last
                && row.record.at >= began
                && row.record.kind != RecordKind::Decided
                && let Some(parent) = StandsOn::of(row)?.parent
            {
                made.entry(parent).or_default().push(inner);
            }
            Ok(false)
        })?;
        let mut line = made.remove(&id).unwrap_or_default();
        while let Some(inner) = line.pop() {
            self.choose_call(reader, inner)?;
            line.extend(made.remove(&inner).unwrap_or_default());
        }
        Ok(())
    }

    fn choose(&mut self, row: &StoredRecord) -> anyhow::Result<()> {
        self.chosen.insert(row.seq);
        self.sessions.extend(row.record.session_id.clone());
        let Some(id) = row.record.invocation_id else {
            if row.record.kind == RecordKind::Surface {
                let body: SurfaceRecordBody = row.record.read_body()?;
                self.surfaces.insert(body.surface_id);
            }
            return Ok(());
        };
        let seen = self.calls.entry(id).or_default();
        if row.record.kind == RecordKind::Decided {
            return Ok(());
        }
        let stands = StandsOn::of(row)?;
        seen.first |= stands.is_first;
        seen.end |= row.record.kind == RecordKind::Ended;
        self.surfaces.extend(stands.surface);
        self.parents.extend(stands.parent);
        Ok(())
    }

    fn choose_call(&mut self, reader: &JournalReader, id: InvocationId) -> anyhow::Result<()> {
        reader
            .records_of(id)?
            .iter()
            .try_for_each(|row| self.choose(row))
    }

    /// Adds the missing records: the rest of calls that were seen in part, the calls above them, and all records that
    /// they refer to.
    fn complete(&mut self, reader: &JournalReader) -> anyhow::Result<()> {
        let in_part = self
            .calls
            .iter()
            .filter(|(_, seen)| !seen.first || !seen.end)
            .map(|(id, _)| *id);
        for id in in_part.collect::<Vec<_>>() {
            self.choose_call(reader, id)?;
        }
        while let Some(parent) = self.parents.pop() {
            if !self.calls.contains_key(&parent) {
                self.choose_call(reader, parent)?;
            }
        }
        for surface in &self.surfaces {
            self.chosen.extend(self.index.surface(surface));
        }
        for session in &self.sessions {
            self.chosen.extend(self.index.opening_of(session));
        }
        let starts: Vec<u64> = self
            .chosen
            .iter()
            .filter_map(|seq| self.index.start_of(*seq))
            .collect();
        self.chosen.extend(starts);
        Ok(())
    }
}
