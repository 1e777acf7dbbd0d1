//! `toolpost journal search`: finds calls by their properties and their text, newest first.

use clap::Args;
use serde_json::{Value, json};
use toolpost_core::{
    CallRecordBody, CallRecordHead, Query, Record, RecordBodyMember, StoredRecord,
};
use toolpost_store::JournalReader;

use super::{filters::FilterArgs, line::print, open};
use crate::{
    cli::PlaceArgs,
    exit::CliExit,
    settings,
    terminal::{self, DIM, say, spelled_out, styled},
};

/// How many calls are read between two steps of the bar.
const PAGE: usize = 500;
/// Characters shown before and behind a word that was found.
const AROUND: usize = 50;

#[derive(Args)]
pub(super) struct JournalSearchArgs {
    /// Words that must all be in the arguments or the result, ignoring case
    #[arg(long, value_name = "WORDS")]
    text: Option<String>,
    /// How many calls
    #[arg(short = 'n', long, value_name = "COUNT", default_value_t = 20)]
    lines: usize,
    /// Print one JSON object per line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    filters: FilterArgs,
    #[command(flatten)]
    place: PlaceArgs,
}

pub(super) fn run(arguments: &JournalSearchArgs) -> anyhow::Result<CliExit> {
    let reader = open(&settings::locate(&arguments.place)?)?;
    let words = JournalSearchWords::of(arguments.text.as_deref().unwrap_or_default());
    let head = reader.head()?;
    let bar = terminal::bar((head.seq + 1).saturating_sub(head.first), "searching");
    let mut left = arguments.lines;
    let limit = if words.is_empty() { left } else { PAGE };
    let mut pages = reader.find_pages(Query {
        limit,
        ..arguments.filters.query(0)
    })?;
    while left > 0 {
        let calls = pages.next_page()?;
        for call in &calls {
            if left == 0 {
                break;
            }
            let Some(excerpt) = words.look_in(&reader, call)? else {
                continue;
            };
            left -= 1;
            bar.suspend(|| show(call, &excerpt, arguments.json))?;
        }
        let Some(last) = calls.last().filter(|_| calls.len() == limit) else {
            break;
        };
        bar.set_position(head.seq.saturating_sub(last.seq));
    }
    bar.finish_and_clear();
    if left > 0 && left == arguments.lines {
        anstream::eprintln!("{}", styled(DIM, "no call matches"));
    }
    Ok(CliExit::Done)
}

fn show(call: &StoredRecord, excerpt: &str, json: bool) -> anyhow::Result<()> {
    print(call, json)?;
    if !json && !excerpt.is_empty() {
        say!("       {}", styled(DIM, spelled_out(excerpt)));
    }
    Ok(())
}

/// The words to find, in lower case.
struct JournalSearchWords(Vec<String>);

impl JournalSearchWords {
    fn of(text: &str) -> Self {
        Self(text.split_whitespace().map(str::to_lowercase).collect())
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// An excerpt around the first word, if the text has all of them.
    fn look_in(
        &self,
        reader: &JournalReader,
        call: &StoredRecord,
    ) -> anyhow::Result<Option<String>> {
        let Some(first) = self.0.first() else {
            return Ok(Some(String::new()));
        };
        // The arguments are in the first record of a call. If a call has only one record, its end, they are in that.
        let records = match call.record.invocation_id {
            Some(id) if !holds_request(&call.record) => reader.records_of(id)?,
            _ => vec![call.clone()],
        };
        if !self.may_be_in(&records) {
            return Ok(None);
        }
        let mut transcript = String::new();
        for record in &records {
            collect(&record.record, &mut transcript);
        }
        let small = transcript.to_lowercase();
        let all = self.0.iter().all(|word| small.contains(word));
        Ok(all.then(|| excerpt(&small, &transcript, first)))
    }

    /// Avoids the parsing of records that cannot contain the words: JSON writes most letters as they are.
    fn may_be_in(&self, records: &[StoredRecord]) -> bool {
        let bodies: Vec<String> = records
            .iter()
            .map(|row| row.record.body.to_lowercase())
            .collect();
        let is_plain =
            |word: &str| !word.contains(|c: char| c == '"' || c == '\\' || c.is_control());
        self.0
            .iter()
            .filter(|word| is_plain(word))
            .all(|word| bodies.iter().any(|body| body.contains(word)))
    }
}

/// Whether a record has the request of its call.
fn holds_request(record: &Record) -> bool {
    let head = record.read_body::<CallRecordHead<'_>>();
    head.is_ok_and(|head| head.call.is_some())
}

/// Adds the request and the result.
fn collect(record: &Record, transcript: &mut String) {
    let Ok(body) = record.read_body::<CallRecordBody<'_>>() else {
        return;
    };
    let requested = body.call.as_ref().and_then(|call| call.arguments.as_ref());
    for arguments in [requested, body.arguments.as_ref()].into_iter().flatten() {
        texts(&arguments.read_as().unwrap_or_default(), transcript);
    }
    let Some(Ok(result)) = body.result.as_ref().map(RecordBodyMember::read) else {
        return;
    };
    texts(&json!(result.content), transcript);
    if let Some(structured) = &result.structured_content {
        texts(structured, transcript);
    }
    let message = result.error.as_ref().map(|error| &error.message);
    for text in [result.summary.as_ref(), message].into_iter().flatten() {
        line(text, transcript);
    }
}

fn texts(value: &Value, transcript: &mut String) {
    match value {
        Value::Null => {}
        Value::Bool(_) | Value::Number(_) => line(&value.to_string(), transcript),
        Value::String(text) => line(text, transcript),
        Value::Array(items) => items.iter().for_each(|item| texts(item, transcript)),
        Value::Object(members) => {
            // Only the text of a content block counts, not its type.
            if let (Some(Value::String(text)), true) =
                (members.get("text"), members.contains_key("type"))
            {
                return line(text, transcript);
            }
            for (key, value) in members {
                line(key, transcript);
                texts(value, transcript);
            }
        }
    }
}

fn line(text: &str, transcript: &mut String) {
    transcript.push_str(text);
    transcript.push('\n');
}

/// The text around a word. Lower case may be longer than upper case, so positions are counted in characters, which is
/// exact enough for display.
fn excerpt(small: &str, transcript: &str, word: &str) -> String {
    let at = small.find(word).map_or(0, |at| small[..at].chars().count());
    let begin = at.saturating_sub(AROUND);
    let piece: String = transcript
        .chars()
        .skip(begin)
        .take(at - begin + word.chars().count() + AROUND)
        .collect();
    let piece: Vec<&str> = piece.split_whitespace().collect();
    format!("{}{}", if begin > 0 { "… " } else { "" }, piece.join(" "))
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use toolpost_core::{Record, RecordKind};
    use toolpost_model::ResultContent;
    use toolpost_testkit::every_end;

    use super::{collect, excerpt};

    #[test]
    fn a_transcript_is_what_was_asked_and_what_came_back() {
        let mut result = every_end().swap_remove(0).1;
        result.content = vec![ResultContent::text("some \"words\"")];
        let body = json!({
            "tool_id": "a.b",
            "call": {
                "tool": "b",
                "arguments": { "path": "x.txt", "deep": [1, { "k": "v" }] },
                "principal": "agent",
                "role": "agent",
                "face": "http",
            },
            "result": result,
        });
        let record = Record {
            kind: RecordKind::Ended,
            at: jiff::Timestamp::UNIX_EPOCH,
            invocation_id: None,
            session_id: None,
            request: None,
            facets: None,
            body: body.to_string(),
        };
        let mut transcript = String::new();
        collect(&record, &mut transcript);
        assert_eq!(transcript, "path\nx.txt\ndeep\n1\nk\nv\nsome \"words\"\n");
    }

    #[test]
    fn an_excerpt_shows_the_word_in_its_surroundings() {
        let check = |text: &str, word: &str, expected: &str| {
            assert_eq!(excerpt(&text.to_lowercase(), text, word), expected);
        };
        check("a Needle\n in hay", "needle", "a Needle in hay");
        check(
            &format!("{} Needle", "ü".repeat(60)),
            "needle",
            &format!("… {} Needle", "ü".repeat(49)),
        );
    }
}
