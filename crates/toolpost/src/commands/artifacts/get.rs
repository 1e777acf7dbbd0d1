//! `toolpost artifacts get`: the bytes of a kept result.

use std::{
    fmt,
    io::{IsTerminal as _, Write},
    path::PathBuf,
    str::FromStr,
};

use anyhow::Context;
use clap::Args;
use sha2::{Digest as _, Sha256};
use toolpost_model::{ArtifactError, ArtifactId, ArtifactRef};
use toolpost_store::BlobFile;

use super::{ArtifactReader, kept_by};
use crate::{
    cli::PlaceArgs,
    environment::{AtomicFileWriter, FileReadAccess},
    exit::CliExit,
    settings,
    terminal::{self, printable},
};

/// How much is read at once.
const PIECE: usize = 256 << 10;

#[derive(Args)]
pub(super) struct GetArgs {
    /// The kept result: `art_…`, as in the result of the call
    id: ArtifactId,
    /// Write to this file, which is either complete or unchanged
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Only these bytes: `0-99`, `100-` or `-100` for the last hundred
    #[arg(long, value_name = "FROM-TO", allow_hyphen_values = true)]
    range: Option<ArtifactByteRange>,
    #[command(flatten)]
    place: PlaceArgs,
}

/// A range of bytes on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ArtifactByteRange {
    /// From a byte on, to another one or to the end.
    From(u64, Option<u64>),
    /// This many from the end.
    Last(u64),
}

/// A text that is no range.
#[derive(Debug)]
struct BadRange;

impl fmt::Display for BadRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a range is `0-99`, `100-` or `-100`")
    }
}

impl std::error::Error for BadRange {}

impl FromStr for ArtifactByteRange {
    type Err = BadRange;

    fn from_str(text: &str) -> Result<Self, BadRange> {
        let (first, last) = text.split_once('-').ok_or(BadRange)?;
        let number = |text: &str| text.parse::<u64>().map_err(|_| BadRange);
        match (first, last) {
            ("", last) => Ok(Self::Last(number(last)?)),
            (first, "") => Ok(Self::From(number(first)?, None)),
            (first, last) => {
                let first = number(first)?;
                let last = number(last)?;
                if first <= last {
                    Ok(Self::From(first, Some(last)))
                } else {
                    Err(BadRange)
                }
            }
        }
    }
}

impl ArtifactByteRange {
    /// The range within this many bytes: the first byte, and the one after the last.
    fn within(self, size: u64) -> (u64, u64) {
        match self {
            Self::From(first, last) => {
                let to = last.map_or(size, |last| last.saturating_add(1)).min(size);
                (first.min(to), to)
            }
            Self::Last(count) => (size.saturating_sub(count), size),
        }
    }
}

pub(super) fn run(arguments: &GetArgs) -> anyhow::Result<CliExit> {
    let kept = ArtifactReader::open(&settings::locate(&arguments.place)?)?;
    let about = find(&kept, arguments.id)?;
    let file = kept
        .files
        .open(&about.digest)
        .context("the kept result cannot be opened")?;
    let file = file.ok_or(ArtifactError::Gone(about.id))?;
    let (from, to) = arguments
        .range
        .map_or((0, about.size), |range| range.within(about.size));
    match &arguments.output {
        Some(path) => {
            let mut saving = AtomicFileWriter::begin(path, FileReadAccess::Owner)?;
            copy(&file, &about, (from, to), &mut saving)?;
            saving.end()?;
        }
        None if !std::io::stdout().is_terminal() => {
            let mut out = std::io::stdout().lock();
            let copied = copy(&file, &about, (from, to), &mut out).and_then(|()| Ok(out.flush()?));
            // The reader closed the pipe on purpose, so this is no error.
            copied.or_else(|error| if has_gone(&error) { Ok(()) } else { Err(error) })?;
        }
        None => {
            anyhow::ensure!(
                is_text(&about.media_type),
                "`{}` is {}, which cannot be shown on a terminal\nhint: write it to a file with `-o FILE`",
                about.id,
                printable(&about.media_type)
            );
            copy(
                &file,
                &about,
                (from, to),
                &mut PrintableTextWriter::default(),
            )?;
        }
    }
    Ok(CliExit::Done)
}

fn find(kept: &ArtifactReader, id: ArtifactId) -> anyhow::Result<ArtifactRef> {
    let rows = kept.journal.records_of(id.invocation)?;
    let listed = rows
        .iter()
        .rev()
        .find_map(kept_by)
        .map(|(_, artifacts)| artifacts);
    let found = listed.into_iter().flatten().find(|piece| piece.id == id);
    Ok(found.ok_or(ArtifactError::Unknown(id))?)
}

/// Copies a range. A copy of the whole is checked against the digest.
fn copy(
    file: &BlobFile,
    about: &ArtifactRef,
    range: (u64, u64),
    to: &mut impl Write,
) -> anyhow::Result<()> {
    let damaged = || ArtifactError::Damaged(about.id);
    anyhow::ensure!(file.size() == about.size, damaged());
    let (mut at, end) = range;
    let bar = terminal::bar(end - at, "reading");
    let mut hasher = Sha256::new();
    while at < end {
        let limit = usize::try_from(end - at).unwrap_or(PIECE).min(PIECE);
        let piece = file
            .read(at, limit)
            .context("the kept result cannot be read")?;
        anyhow::ensure!(!piece.is_empty(), damaged());
        hasher.update(&piece);
        to.write_all(&piece)?;
        at += piece.len() as u64;
        bar.inc(piece.len() as u64);
    }
    bar.finish_and_clear();
    let digest: [u8; 32] = hasher.finalize().into();
    anyhow::ensure!(
        range != (0, about.size) || digest == about.digest.0,
        damaged()
    );
    Ok(())
}

fn has_gone(error: &anyhow::Error) -> bool {
    let failed = error.downcast_ref::<std::io::Error>();
    failed.is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
}

fn is_text(media_type: &str) -> bool {
    let essence = media_type.split(';').next().unwrap_or_default().trim();
    essence.starts_with("text/")
        || ["json", "xml", "yaml"].iter().any(|kind| {
            essence
                .strip_suffix(kind)
                .is_some_and(|before| before.ends_with(['/', '+']))
        })
}

/// Text on a terminal, made harmless line by line.
#[derive(Default)]
struct PrintableTextWriter {
    /// An incomplete line.
    begun: Vec<u8>,
}

impl PrintableTextWriter {
    fn show(&mut self, end: usize) {
        let rest = self.begun.split_off(end);
        let lines = std::mem::replace(&mut self.begun, rest);
        terminal::print_text(format_args!(
            "{}",
            printable(&String::from_utf8_lossy(&lines))
        ));
    }
}

impl Write for PrintableTextWriter {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.begun.extend_from_slice(bytes);
        let whole = self
            .begun
            .iter()
            .rposition(|byte| *byte == b'\n')
            .map_or(0, |at| at + 1);
        let all = self.begun.len();
        self.show(if whole == 0 && all > PIECE {
            all
        } else {
            whole
        });
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Drop for PrintableTextWriter {
    fn drop(&mut self) {
        self.show(self.begun.len());
    }
}

#[cfg(test)]
mod tests {
    use super::{ArtifactByteRange, is_text};

    #[test]
    fn ranges_as_they_are_typed() {
        for (text, expected) in [
            ("0-9", Some((0, 10))),
            ("90-", Some((90, 100))),
            ("-10", Some((90, 100))),
            ("-500", Some((0, 100))),
            ("50-500", Some((50, 100))),
            ("200-300", Some((100, 100))),
            ("9-0", None),
            ("-", None),
            ("x", None),
        ] {
            let range = text
                .parse::<ArtifactByteRange>()
                .ok()
                .map(|range| range.within(100));
            assert_eq!(range, expected, "{text}");
        }
    }

    #[test]
    fn what_a_terminal_can_show() {
        for (media_type, expected) in [
            ("text/plain; charset=utf-8", true),
            ("application/json", true),
            ("application/problem+json", true),
            ("image/svg+xml", true),
            ("application/octet-stream", false),
            ("image/png", false),
        ] {
            assert_eq!(is_text(media_type), expected, "{media_type}");
        }
    }
}
