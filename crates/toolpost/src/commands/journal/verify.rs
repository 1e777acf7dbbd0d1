//! `toolpost journal verify`: was the record changed?

use clap::Args;
use serde_json::json;

use super::open;
use crate::{
    cli::PlaceArgs,
    exit::Exit,
    settings,
    terminal::{self, GREEN, RED, say, styled},
};

#[derive(Args)]
pub(super) struct VerifyArgs {
    /// The head hash from an earlier check: records cut off at the end show only against it
    #[arg(long, value_name = "HASH")]
    head: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    place: PlaceArgs,
}

pub(super) fn run(arguments: &VerifyArgs) -> anyhow::Result<Exit> {
    let reader = open(&settings::locate(&arguments.place)?)?;
    let bar = terminal::bar(reader.last_seq()?, "checking");
    let report = reader.verify(|done, total| {
        bar.set_length(total);
        bar.set_position(done);
    })?;
    bar.finish_and_clear();
    let head: String = report.head.iter().map(|byte| format!("{byte:02x}")).collect();
    let mut problems: Vec<String> =
        report.problems.iter().map(|problem| format!("record {}: {}", problem.seq, problem.what)).collect();
    // An older head must be found among the hashes: the record may have grown since, never shrunk.
    if let Some(expected) = &arguments.head
        && !has_hash(&reader, expected)?
    {
        problems.push(format!("no record has the hash `{expected}`: records were cut off or replaced"));
    }
    if arguments.json {
        let open: Vec<String> = report.open_invocations.iter().map(ToString::to_string).collect();
        say!(
            "{}",
            serde_json::to_string_pretty(&json!({
                "clean": problems.is_empty(), "records": report.records, "invocations": report.invocations,
                "first": report.first, "last": report.last, "head": head, "open_invocations": open,
                "problems": problems, "problems_left_out": report.problems_left_out,
            }))?
        );
    } else {
        for problem in &problems {
            say!("{} {problem}", styled(RED, "broken:"));
        }
        let verdict = if problems.is_empty() {
            styled(GREEN, "clean")
        } else {
            styled(RED, "the record was tampered with or damaged")
        };
        say!(
            "{verdict}: {} records of {} calls, {} open",
            report.records,
            report.invocations,
            report.open_invocations.len()
        );
        say!("head {head}");
    }
    Ok(if problems.is_empty() { Exit::Done } else { Exit::Failed })
}

fn has_hash(reader: &toolpost_store::JournalReader, expected: &str) -> anyhow::Result<bool> {
    let mut after = 0;
    loop {
        let rows = reader.read(after, 1_000)?;
        let Some(last) = rows.last() else { return Ok(false) };
        after = last.seq;
        let is_it = |hash: &[u8; 32]| {
            hash.iter().map(|byte| format!("{byte:02x}")).collect::<String>() == expected.to_lowercase()
        };
        if rows.iter().any(|row| is_it(&row.hash)) {
            return Ok(true);
        }
    }
}
