//! The calls that a call was made by, and those that it made.

use serde_json::Value;
use toolpost_core::{RecordKind, StoredRecord};
use toolpost_model::InvocationId;
use toolpost_store::JournalReader;

use super::{CallRecordPrinter, NamedLineWriter};
use crate::terminal::{DIM, printable, styled};

/// Records read at once.
const PAGE: u64 = 512;
/// A call beside which more was recorded than this is not searched to its beginning.
const MOST_PAGES: usize = 64;
/// More calls than this are counted.
const TOLD: usize = 32;

pub(super) fn print_parent_call(story: &CallRecordPrinter<'_>, line: NamedLineWriter<'_>) {
    if let Some(parent) = story.text("/call/parent") {
        line("made by", parent);
    }
}

/// The calls that it made. They are on record between its beginning and its end, so only there is looked.
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
    let parent = id.to_string();
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
        children.extend(
            page.into_iter()
                .rev()
                .filter(|row| is_made_by(row, &parent)),
        );
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
            "there may be more: too much was recorded meanwhile to look through all of it"
                .to_owned(),
        );
    }
    Ok(())
}

/// Whether a record is the first of a call that this one made.
fn is_made_by(row: &StoredRecord, parent: &str) -> bool {
    let body = &row.record.body;
    // Most records do not name it at all, and need not be read.
    body.contains(parent)
        && serde_json::from_str::<Value>(body).is_ok_and(|body| body["call"]["parent"] == parent)
}

fn describe_nested_call(reader: &JournalReader, first: &StoredRecord) -> anyhow::Result<String> {
    let Some(id) = first.record.invocation_id else {
        return Ok(String::new());
    };
    let rows = reader.records_of(id)?;
    let story = CallRecordPrinter::of(&rows);
    let tool = story
        .text("/tool_id")
        .or_else(|| story.text("/call/tool"))
        .unwrap_or_default();
    let outcome = story
        .text("/result/outcome")
        .unwrap_or_else(|| "no end on record".to_owned());
    let micros = story
        .part("/result/timings/total_us")
        .and_then(Value::as_u64)
        .unwrap_or_default();
    let facts = styled(
        DIM,
        format!(
            "{:.3} ms {}",
            micros as f64 / 1_000.0,
            printable(&id.to_string())
        ),
    );
    Ok(format!("{tool}: {outcome} {facts}"))
}
