//! `toolpost a2a normalize`: recorded or piped tool events, merged or sent on in the canonical vocabulary.

use std::{
    io::{self, BufWriter, IsTerminal as _, StdoutLock, Write},
    path::PathBuf,
};

use clap::{Args, ValueEnum};
use serde::Serialize;
use toolpost_a2a::{
    DataPart, Receiver, ReceiverCounts, ReceiverOptions, UnreadableEventText, VocabularyBridge,
};

use super::lines::{EventInputLine, EventLineReader, LONGEST};
use crate::{
    environment,
    exit::CliExit,
    terminal::{self, printable},
};

#[derive(Args)]
pub(super) struct NormalizeArgs {
    /// JSON lines or server-sent events with payloads, parts, messages, tasks, items of streams or JSON-RPC answers of
    /// A2A 0.3 or 1.0, or lines of AI SDK 4's data stream; standard input by default
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// The form of the output
    #[arg(long = "as", value_name = "FORM", value_enum, default_value_t = NormalizeOutputFormat::Calls)]
    form: NormalizeOutputFormat,
    /// Leave out events in the metadata of text parts, as older agents send them
    #[arg(long)]
    no_sidecars: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum NormalizeOutputFormat {
    /// One JSON array of the merged calls, after everything was read
    Calls,
    /// Canonical data parts of A2A, one per line, as soon as each is known
    Parts,
}

pub(super) fn run(arguments: &NormalizeArgs) -> anyhow::Result<CliExit> {
    let lines = EventLineReader::new(environment::open_input(arguments.file.as_deref())?);
    let options = ReceiverOptions {
        sidecars: !arguments.no_sidecars,
        ..ReceiverOptions::default()
    };
    let mut out = NormalizedOutput::new();
    let written = match arguments.form {
        NormalizeOutputFormat::Calls => merge(lines, options, &mut out),
        NormalizeOutputFormat::Parts => write_parts(lines, options, &mut out),
    };
    match written {
        // The reader closed the pipe on purpose, so this is no error.
        Err(error) if has_gone(&error) => Ok(CliExit::Done),
        Err(error) => Err(error),
        Ok(tally) => {
            warn_left_out_events(tally);
            Ok(CliExit::Done)
        }
    }
}

fn merge(
    lines: EventLineReader<impl io::Read>,
    options: ReceiverOptions,
    out: &mut NormalizedOutput,
) -> anyhow::Result<ReceiverCounts> {
    let mut receiver = Receiver::new(options);
    lines.each(|number, line, _| {
        if let Some(text) = readable(number, &line) {
            warn_if_unreadable(number, receiver.receive_line(text).map(drop));
        }
        anyhow::Ok(())
    })?;
    let tally = receiver.tally();
    let mut before = "[";
    for part in receiver.into_parts() {
        out.write(before)?;
        out.write("\n")?;
        out.write_json(&part)?;
        before = ",";
    }
    out.write(if before == "[" { "[]\n" } else { "\n]\n" })?;
    out.flush()?;
    Ok(tally)
}

fn write_parts(
    lines: EventLineReader<impl io::Read>,
    options: ReceiverOptions,
    out: &mut NormalizedOutput,
) -> anyhow::Result<ReceiverCounts> {
    let mut bridge = VocabularyBridge::new(options);
    lines.each(|number, line, more| {
        let mut sent = Ok(());
        if let Some(text) = readable(number, &line) {
            let send = |part: DataPart<'_>| out.write_line(&part, &mut sent);
            warn_if_unreadable(number, bridge.receive_line(text, send));
        }
        sent?;
        // Flushed before the wait for the next line, but not after each line of a file.
        if more { Ok(()) } else { out.flush() }
    })?;
    let mut sent = Ok(());
    bridge.finish(|part| out.write_line(&part, &mut sent));
    sent?;
    out.flush()?;
    Ok(bridge.receiver().tally())
}

/// The text of a line with content. An unreadable line is reported and skipped.
fn readable<'a>(number: u64, line: &EventInputLine<'a>) -> Option<&'a str> {
    match line {
        EventInputLine::Text(text) => return Some(text),
        EventInputLine::Blank => {}
        EventInputLine::TooLong => warn_left_out_line(
            number,
            format_args!("it is longer than {} MiB", LONGEST >> 20),
        ),
        EventInputLine::NoText => warn_left_out_line(number, "it is not UTF-8"),
    }
    None
}

fn warn_if_unreadable(number: u64, received: Result<(), UnreadableEventText>) {
    if let Err(error) = received {
        warn_left_out_line(number, error);
    }
}

fn warn_left_out_line(number: u64, why: impl std::fmt::Display) {
    terminal::warn(format_args!(
        "line {number} is left out: {}",
        printable(&why.to_string())
    ));
}

/// Warns about events that the parts do not show.
fn warn_left_out_events(tally: ReceiverCounts) {
    let told = |count: u64, why: &str| {
        if count > 0 {
            let events = if count == 1 { "event" } else { "events" };
            terminal::warn(format_args!("{count} {events} left out: {why}"));
        }
    };
    told(tally.without_id, "no call id");
    told(tally.beyond_bounds, "too many calls were open");
}

fn has_gone(error: &anyhow::Error) -> bool {
    let failed = error.downcast_ref::<io::Error>();
    failed.is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

/// Standard output: unchanged for programs, made harmless on a terminal.
struct NormalizedOutput {
    to: BufWriter<StdoutLock<'static>>,
    shown: bool,
}

impl NormalizedOutput {
    fn new() -> Self {
        let stdout = io::stdout();
        Self {
            shown: stdout.is_terminal(),
            to: BufWriter::with_capacity(64 << 10, stdout.lock()),
        }
    }

    fn write(&mut self, text: &str) -> anyhow::Result<()> {
        Ok(self.to.write_all(text.as_bytes())?)
    }

    fn write_json(&mut self, value: &impl Serialize) -> anyhow::Result<()> {
        let text = serde_json::to_string(value)?;
        if self.shown {
            self.write(&printable(&text))
        } else {
            self.write(&text)
        }
    }

    /// Writes a line unless an earlier one failed.
    fn write_line(&mut self, value: &impl Serialize, written: &mut anyhow::Result<()>) {
        if written.is_ok() {
            *written = self.write_json(value).and_then(|()| self.write("\n"));
        }
    }

    fn flush(&mut self) -> anyhow::Result<()> {
        Ok(self.to.flush()?)
    }
}
