//! `toolpost journal tail`: the newest records, and with `--follow` new ones.

use std::{collections::BTreeMap, thread, time::Duration};

use clap::Args;
use toolpost_core::{Query, StoredRecord};
use toolpost_store::JournalReader;

pub(super) use super::line::JournalRecordRow;
use super::{filters::FilterArgs, line::print, open};
use crate::{cli::PlaceArgs, exit::CliExit, settings};

/// The polling interval of `--follow`.
const LOOK_AGAIN: Duration = Duration::from_millis(250);
const PAGE: usize = 1_000;

#[derive(Args)]
pub(super) struct TailArgs {
    /// How many records
    #[arg(short = 'n', long, value_name = "COUNT", default_value_t = 20)]
    lines: usize,
    /// Continue with new records as they are written
    #[arg(short, long)]
    follow: bool,
    /// Print one JSON object per line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    filters: FilterArgs,
    #[command(flatten)]
    place: PlaceArgs,
}

pub(super) fn run(arguments: &TailArgs) -> anyhow::Result<CliExit> {
    let reader = open(&settings::locate(&arguments.place)?)?;
    // Read first: records that are written meanwhile appear in the first poll.
    let mut last = reader.last_seq()?;
    let query = (!arguments.filters.is_empty()).then(|| arguments.filters.query(arguments.lines));
    let rows = match &query {
        Some(query) => tail_of(&reader, query, arguments.lines)?,
        None => reader.tail(arguments.lines)?,
    };
    for row in rows.iter().filter(|row| row.seq <= last) {
        print(row, arguments.json)?;
    }
    if !arguments.follow {
        return Ok(CliExit::Done);
    }
    loop {
        let rows = reader.read(last, PAGE)?;
        for row in &rows {
            last = row.seq;
            if query
                .as_ref()
                .map_or(Ok(true), |query| passes(&reader, query, row))?
            {
                print(row, arguments.json)?;
            }
        }
        if rows.is_empty() {
            thread::sleep(LOOK_AGAIN);
        }
    }
}

/// The newest records of the matching calls, oldest first.
fn tail_of(
    reader: &JournalReader,
    query: &Query,
    count: usize,
) -> anyhow::Result<Vec<StoredRecord>> {
    let mut rows = BTreeMap::new();
    for call in reader.find(query)? {
        let Some(id) = call.record.invocation_id else {
            continue;
        };
        rows.extend(reader.records_of(id)?.into_iter().map(|row| (row.seq, row)));
    }
    let skipped = rows.len().saturating_sub(count);
    Ok(rows.into_values().skip(skipped).collect())
}

/// Whether a new record belongs to a matching call. The outcome of a call is known only with its last record.
fn passes(reader: &JournalReader, query: &Query, row: &StoredRecord) -> anyhow::Result<bool> {
    let Some(id) = row.record.invocation_id else {
        return Ok(false);
    };
    let mut known = reader.records_of(id)?;
    known.retain(|other| other.seq <= row.seq);
    Ok(query.fits(&known))
}
