//! `toolpost artifacts list`: the artifacts, the newest first.

use std::convert::Infallible;

use clap::Args;
use serde::Serialize;
use toolpost_core::StoredRecord;
use toolpost_model::{ArtifactRef, SessionId, ToolId};

use super::{ArtifactReader, kept_by};
use crate::{
    cli::PlaceArgs,
    exit::CliExit,
    settings,
    terminal::{self, DIM, RED, printable, say, styled},
};

/// How many records are read at a time.
const PAGE: u64 = 1_000;

#[derive(Args)]
pub(super) struct ArtifactListArgs {
    /// How many to list
    #[arg(short = 'n', long, value_name = "COUNT", default_value_t = 20)]
    lines: usize,
    /// Only kept results of one session
    #[arg(long, value_name = "ID", value_parser = session)]
    session: Option<SessionId>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    place: PlaceArgs,
}

fn session(id: &str) -> Result<SessionId, Infallible> {
    Ok(SessionId::new(id))
}

/// A kept result and its origin.
#[derive(Serialize)]
struct ArtifactListRow {
    #[serde(flatten)]
    piece: ArtifactRef,
    tool: Option<ToolId>,
    session_id: Option<SessionId>,
    at: jiff::Timestamp,
    /// Whether its bytes still exist.
    kept: bool,
}

pub(super) fn run(arguments: &ArtifactListArgs) -> anyhow::Result<CliExit> {
    let kept = ArtifactReader::open(&settings::locate(&arguments.place)?)?;
    let mut lines = Vec::new();
    let mut before = kept.journal.last_seq()?;
    let bar = terminal::bar(before, "looking");
    while before > 0 && lines.len() < arguments.lines {
        let after = before.saturating_sub(PAGE);
        let rows = kept.journal.read(after, usize::try_from(before - after)?)?;
        let of_session = |row: &&StoredRecord| {
            arguments.session.is_none() || row.record.session_id == arguments.session
        };
        for row in rows.iter().rev().filter(of_session) {
            lines.extend(of_record(&kept, row)?);
        }
        bar.inc(before - after);
        before = after;
    }
    bar.finish_and_clear();
    lines.truncate(arguments.lines);
    if arguments.json {
        say!("{}", serde_json::to_string_pretty(&lines)?);
        return Ok(CliExit::Done);
    }
    for line in &lines {
        let ArtifactListRow {
            piece, tool, at, ..
        } = line;
        let gone = if line.kept {
            String::new()
        } else {
            format!(" {}", styled(RED, "gone"))
        };
        say!(
            "{} {} {} {} {} {}{gone}",
            piece.id,
            styled(DIM, at.strftime("%Y-%m-%d %H:%M:%S")),
            printable(tool.as_ref().map_or("-", ToolId::as_str)),
            printable(&piece.name),
            printable(&piece.media_type),
            size(piece.size)
        );
    }
    Ok(CliExit::Done)
}

fn of_record(kept: &ArtifactReader, row: &StoredRecord) -> anyhow::Result<Vec<ArtifactListRow>> {
    let Some((tool, artifacts)) = kept_by(row) else {
        return Ok(Vec::new());
    };
    let line = |piece: ArtifactRef| {
        Ok(ArtifactListRow {
            kept: kept.files.open(&piece.digest)?.is_some(),
            piece,
            tool: tool.clone(),
            session_id: row.record.session_id.clone(),
            at: row.record.at,
        })
    };
    artifacts.into_iter().map(line).collect()
}

/// A number of bytes for people.
fn size(bytes: u64) -> String {
    indicatif::HumanBytes(bytes).to_string()
}
