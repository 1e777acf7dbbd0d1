//! The parents of a call and its nested calls.

use toolpost_core::{CallRecordHead, RecordKind, StoredRecord};
use toolpost_model::InvocationId;
use toolpost_store::JournalReader;

use super::{CallRecordPrinter, NamedLineWriter};
use crate::terminal::{DIM, styled};

/// Records read at once.
const PAGE: u64 = 512;
/// The search for the beginning of a call ends after this many pages.
const MOST_PAGES: usize = 64;
/// Calls beyond this number are only counted.
const TOLD: usize = 32;

pub(super) fn print_parent_call(story: &CallRecordPrinter<'_>, line: NamedLineWriter<'_>) {
    if let Some(parent) = story.request().and_then(|request| request.parent) {
        line("made by", parent.to_string());
    }
}

/// The nested calls. Their records lie between the call's first and last one, so only those are searched.
pub(super) fn print_nested_calls(
    reader: &JournalReader,
    id: InvocationId,
    rows: &[StoredRecord],
    line: NamedLineWriter<'_>,
) -> anyhow::Result<()> {
    let ended = rows.iter().find(|row| row.record.kind == RecordKind::Ended);
    let mut end = match ended {
        Some(row) => row.seq,
        None => reader.last_seq()?,
    };
    let began = i64::try_from(id.unix_millis()).unwrap_or(i64::MAX);
    let mut children = Vec::new();
    let mut pages = 0;
    let mut complete = true;
    while end > 0 {
        if pages == MOST_PAGES {
            complete = false;
            break;
        }
        pages += 1;
        let start = end.saturating_sub(PAGE);
        let page = reader.read(start, usize::try_from(end - start).unwrap_or_default())?;
        let before = page
            .first()
            .is_none_or(|row| row.record.at.as_millisecond() < began);
        children.extend(page.into_iter().rev().filter(|row| is_made_by(row, id)));
        if before {
            break;
        }
        end = start;
    }
    children.reverse();
    for child in children.iter().take(TOLD) {
        line("made", describe_nested_call(reader, child)?);
    }
    if children.len() > TOLD {
        line("", format!("and {} more", children.len() - TOLD));
    }
    if !complete {
        line(
            "",
            "there may be more: too many records to search all of them".to_owned(),
        );
    }
    Ok(())
}

/// Whether a record is the first one of a nested call of this one.
fn is_made_by(row: &StoredRecord, parent: InvocationId) -> bool {
    let head = row.record.read_body::<CallRecordHead<'_>>();
    head.is_ok_and(|head| head.call.is_some_and(|call| call.parent == Some(parent)))
}

fn describe_nested_call(reader: &JournalReader, first: &StoredRecord) -> anyhow::Result<String> {
    let Some(id) = first.record.invocation_id else {
        return Ok(String::new());
    };
    let rows = reader.records_of(id)?;
    let story = CallRecordPrinter::of(&rows);
    let (outcome, micros) = match &story.result {
        Some(result) => (result.outcome.as_str(), result.timings.total_us),
        None => ("no end on record", 0),
    };
    let facts = format!("{:.3} ms {id}", micros as f64 / 1_000.0);
    Ok(format!(
        "{}: {outcome} {}",
        story.tool(),
        styled(DIM, facts)
    ))
}
