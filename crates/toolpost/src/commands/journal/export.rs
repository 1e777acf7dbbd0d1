//! `toolpost journal export`: the record, or a part of it, as lines that need no Toolpost to read.

mod index;
mod selection;

use std::{
    io::{self, Write},
    path::PathBuf,
};

use clap::{Args, ValueEnum};
use indicatif::ProgressBar;
use jiff::Timestamp;
use toolpost_core::{Export, ExportFormat, StoredRecord};
use toolpost_model::{InvocationId, SessionId};
use toolpost_store::JournalReader;

use super::{filters::moment, open};
use crate::{
    cli::PlaceArgs,
    environment::{AtomicFileWriter, FileReadAccess},
    exit::CliExit,
    settings, terminal,
};
use selection::RecordSelection;

/// How many records are read at a time.
const PAGE: usize = 500;

/// Writes one JSON object per line. The export includes the records that the selected ones refer to: the session, the
/// tools, the surface, the host's start, and the calls that made the calls. So every id can be found in the same
/// export.
#[derive(Args)]
pub(super) struct ExportArgs {
    /// The format
    #[arg(long, value_enum, default_value_t = JournalExportFormat::Jsonl)]
    format: JournalExportFormat,
    /// Only the records of one session
    #[arg(long, value_name = "ID", conflicts_with = "call")]
    session: Option<String>,
    /// Only one call, and its nested calls
    #[arg(long, value_name = "ID")]
    call: Option<InvocationId>,
    /// Calls with a record at or after this time: an age (`2h`, `30d`), a day (`2026-11-16`) or a time with its zone
    #[arg(long, value_name = "WHEN", value_parser = moment, conflicts_with = "call")]
    since: Option<Timestamp>,
    /// Calls with a record before this time, in the same forms
    #[arg(long, value_name = "WHEN", value_parser = moment, conflicts_with = "call")]
    until: Option<Timestamp>,
    /// Write to a file, which appears once it is complete; by default stdout
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    place: PlaceArgs,
}

#[derive(Clone, Copy, ValueEnum)]
enum JournalExportFormat {
    /// The records of the Agent Tool draft, version 0.2.0
    AgentTool,
    /// The journal's own records, each with its position in the chain
    Jsonl,
    /// One line per call, with the fields of an A2E host's audit file
    A2eAudit,
}

/// The selected records.
pub(super) enum ExportScope {
    Call(InvocationId),
    Some {
        session: Option<SessionId>,
        since: Option<Timestamp>,
        until: Option<Timestamp>,
    },
    All,
}

impl ExportArgs {
    fn wanted(&self) -> ExportScope {
        let session = self.session.clone().map(SessionId::new);
        match (self.call, session, self.since, self.until) {
            (Some(id), ..) => ExportScope::Call(id),
            (None, None, None, None) => ExportScope::All,
            (None, session, since, until) => ExportScope::Some {
                session,
                since,
                until,
            },
        }
    }
}

pub(super) fn run(arguments: &ExportArgs) -> anyhow::Result<CliExit> {
    let reader = open(&settings::locate(&arguments.place)?)?;
    let export = Export::new(match arguments.format {
        JournalExportFormat::AgentTool => ExportFormat::AgentTool,
        JournalExportFormat::Jsonl => ExportFormat::Jsonl,
        JournalExportFormat::A2eAudit => {
            ExportFormat::A2eAudit(toolpost_a2e::projection::error_code)
        }
    });
    let wanted = arguments.wanted();
    match &arguments.output {
        None => {
            let written = write(&reader, &wanted, export, io::stdout().lock());
            // The reader closed the pipe on purpose, so this is no error.
            written.or_else(|error| {
                if is_broken_pipe(&error) {
                    Ok(ExportCounts::default())
                } else {
                    Err(error)
                }
            })?;
        }
        Some(path) => {
            let mut file = AtomicFileWriter::begin(path, FileReadAccess::Owner)?;
            let ExportCounts { records, lines } = write(&reader, &wanted, export, &mut file)?;
            file.end()?;
            anstream::eprintln!(
                "wrote {lines} lines from {records} records to {}",
                path.display()
            );
        }
    }
    Ok(CliExit::Done)
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error
        .downcast_ref::<io::Error>()
        .is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

#[derive(Default)]
struct ExportCounts {
    records: u64,
    lines: u64,
}

/// The output lines.
struct ExportLines<W> {
    export: Export,
    to: W,
    lines: Vec<String>,
    written: ExportCounts,
    bar: ProgressBar,
}

impl<W: Write> ExportLines<W> {
    fn export_record(&mut self, row: &StoredRecord) -> anyhow::Result<()> {
        self.export.take(row, &mut self.lines)?;
        self.written.records += 1;
        self.bar.inc(1);
        self.send()
    }

    fn send(&mut self) -> anyhow::Result<()> {
        for line in self.lines.drain(..) {
            self.written.lines += 1;
            self.to.write_all(line.as_bytes())?;
            self.to.write_all(b"\n")?;
        }
        Ok(())
    }

    fn finish(mut self) -> anyhow::Result<ExportCounts> {
        self.export.finish(&mut self.lines);
        self.send()?;
        self.to.flush()?;
        self.bar.finish_and_clear();
        Ok(self.written)
    }
}

fn write(
    reader: &JournalReader,
    wanted: &ExportScope,
    export: Export,
    to: impl Write,
) -> anyhow::Result<ExportCounts> {
    let selection = RecordSelection::of(reader, wanted)?;
    let count = selection.count(reader)?;
    let bar = terminal::bar(count, "writing");
    let mut writing = ExportLines {
        export,
        to,
        lines: Vec::new(),
        written: ExportCounts::default(),
        bar,
    };
    selection.visit(reader, |row| writing.export_record(row))?;
    writing.finish()
}
