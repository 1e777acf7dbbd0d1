//! The excerpt of an output for the model: all of it, or its head and its tail.

use std::io;

use toolpost_processes::{clean, whole_characters};

use super::{kept::KeptOutput, log::OutputLog};

/// The limits of an excerpt.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ShownLimits {
    pub(crate) head_bytes: usize,
    pub(crate) tail_bytes: usize,
    pub(crate) head_lines: usize,
    pub(crate) tail_lines: usize,
}

impl Default for ShownLimits {
    /// The tail is larger than the head, because errors are usually at the end of an output.
    fn default() -> Self {
        Self {
            head_bytes: 8 * 1024,
            tail_bytes: 16 * 1024,
            head_lines: 300,
            tail_lines: 700,
        }
    }
}

impl ShownLimits {
    /// The limits for an excerpt of at most `bytes`.
    pub(crate) fn of_bytes(bytes: usize) -> Self {
        let head_bytes = bytes / 3;
        let head_lines = usize::MAX;
        let tail_lines = usize::MAX;
        Self {
            head_bytes,
            tail_bytes: bytes - head_bytes,
            head_lines,
            tail_lines,
        }
    }

    /// Whether an output is within the limits.
    pub(crate) fn fit(self, log: &OutputLog) -> bool {
        self.take(log.total(), log.lines())
    }

    fn take(self, bytes: u64, lines: u64) -> bool {
        bytes <= self.bytes() as u64 && lines <= self.lines() as u64
    }

    fn bytes(self) -> usize {
        self.head_bytes + self.tail_bytes
    }

    fn lines(self) -> usize {
        self.head_lines.saturating_add(self.tail_lines)
    }
}

/// The excerpt of an output.
pub(crate) struct OutputExcerpt {
    pub(crate) head: String,
    /// The part that was left out, and the tail after it.
    pub(crate) cut: Option<OutputOmission>,
    pub(crate) lossy: bool,
}

/// A part that was left out, and the tail.
pub(crate) struct OutputOmission {
    /// The position of the part.
    pub(crate) offset: u64,
    /// The number of its first line, counted from 1, if it begins with a whole line.
    pub(crate) line: Option<u64>,
    pub(crate) bytes: u64,
    pub(crate) lines: u64,
    pub(crate) tail: String,
}

impl OutputExcerpt {
    /// The text, with `mark` in the place of the part that was left out.
    pub(crate) fn text(&self, mark: impl FnOnce(&OutputOmission) -> String) -> String {
        match &self.cut {
            None => self.head.clone(),
            Some(cut) => {
                let gap = if self.head.is_empty() || self.head.ends_with('\n') {
                    ""
                } else {
                    "\n"
                };
                format!("{}{gap}{}\n{}", self.head, mark(cut), cut.tail)
            }
        }
    }

    /// All shown text, in pieces.
    pub(crate) fn pieces(&self) -> impl Iterator<Item = &str> {
        std::iter::once(self.head.as_str()).chain(self.cut.as_ref().map(|cut| cut.tail.as_str()))
    }
}

/// The source of an output.
#[derive(Clone, Copy)]
pub(crate) enum OutputSource<'w> {
    Log(&'w OutputLog),
    Kept(&'w KeptOutput),
}

impl OutputSource<'_> {
    fn size(self) -> (u64, u64) {
        match self {
            Self::Log(log) => (log.total(), log.lines()),
            Self::Kept(kept) => (kept.about.size, kept.lines),
        }
    }

    /// Bytes with their position.
    async fn read(self, offset: u64, limit: usize) -> io::Result<(Vec<u8>, u64)> {
        match self {
            Self::Log(log) => log
                .read(offset, limit)
                .await
                .map(|page| (page.bytes, page.offset)),
            Self::Kept(kept) => kept.read(offset, limit).await.map(|bytes| (bytes, offset)),
        }
    }
}

/// Reads the excerpt of an output.
pub(crate) async fn shown(
    output: OutputSource<'_>,
    limits: ShownLimits,
) -> io::Result<OutputExcerpt> {
    let (total, lines) = output.size();
    if limits.take(total, lines) {
        let (bytes, _) = output.read(0, limits.bytes()).await?;
        let cleaned = clean(&bytes);
        return Ok(OutputExcerpt {
            head: cleaned.text,
            cut: None,
            lossy: cleaned.lossy,
        });
    }
    let (head, _) = output.read(0, limits.head_bytes).await?;
    let head = &head[..head_end(&head, limits.head_lines)];
    let from = total
        .saturating_sub(limits.tail_bytes as u64)
        .max(head.len() as u64);
    let (tail, tail_offset) = output.read(from, limits.tail_bytes).await?;
    let start = tail_start(&tail, limits.tail_lines);
    let offset = head.len() as u64;
    let tail_from = tail_offset + start as u64;
    let tail = &tail[start..];
    let count = |bytes: &[u8]| bytes.iter().filter(|&&byte| byte == b'\n').count() as u64;
    let partial = u64::from(tail.last().is_some_and(|&last| last != b'\n'));
    let hidden_lines = lines.saturating_sub(count(head) + count(tail) + partial);
    let line = (head.is_empty() || head.ends_with(b"\n")).then(|| count(head) + 1);
    let head = clean(head);
    let tail = clean(tail);
    let bytes = tail_from.saturating_sub(offset);
    let cut = OutputOmission {
        offset,
        line,
        bytes,
        lines: hidden_lines,
        tail: tail.text,
    };
    Ok(OutputExcerpt {
        head: head.text,
        cut: Some(cut),
        lossy: head.lossy || tail.lossy,
    })
}

/// The end of the head: after a whole line if there is one, otherwise between two characters.
fn head_end(bytes: &[u8], lines: usize) -> usize {
    let ends = || {
        bytes
            .iter()
            .enumerate()
            .filter(|(_, byte)| **byte == b'\n')
            .map(|(at, _)| at + 1)
    };
    match ends()
        .nth(lines.saturating_sub(1))
        .or_else(|| ends().next_back())
    {
        Some(end) if end * 2 >= bytes.len() || ends().count() >= lines => end,
        _ => whole_characters(bytes),
    }
}

/// The start of the tail: at a whole line if there is one.
fn tail_start(bytes: &[u8], lines: usize) -> usize {
    let is_end =
        |(at, byte): (usize, &u8)| (*byte == b'\n' && at + 1 < bytes.len()).then_some(at + 1);
    let by_lines = bytes
        .iter()
        .enumerate()
        .rev()
        .filter_map(is_end)
        .nth(lines.saturating_sub(1));
    let first = || {
        bytes
            .iter()
            .enumerate()
            .find_map(is_end)
            .filter(|start| start * 2 <= bytes.len())
    };
    by_lines
        .or_else(first)
        .unwrap_or_else(|| first_character(bytes))
}

fn first_character(bytes: &[u8]) -> usize {
    bytes
        .iter()
        .take(3)
        .take_while(|byte| (0x80..0xc0).contains(*byte))
        .count()
}

#[cfg(test)]
mod tests {
    use cap_std::{ambient_authority, fs::Dir};

    use super::{OutputSource, ShownLimits, shown};
    use crate::shell::{log::OutputLog, spool::SpoolDirectory};

    const SMALL: ShownLimits = ShownLimits {
        head_bytes: 20,
        tail_bytes: 20,
        head_lines: 4,
        tail_lines: 3,
    };

    async fn text(output: &str) -> String {
        let dir = Dir::open_ambient_dir("/tmp", ambient_authority()).unwrap();
        let log = OutputLog::new(
            SpoolDirectory::from(std::os::fd::OwnedFd::from(dir)),
            1 << 20,
        );
        log.append(output.as_bytes()).await;
        let shown = shown(OutputSource::Log(&log), SMALL).await.unwrap();
        shown.text(|cut| format!("[{} {} {}]", cut.offset, cut.bytes, cut.lines))
    }

    #[tokio::test]
    async fn small_outputs_are_whole_and_large_ones_have_a_head_and_a_tail() {
        let check = async |output: &str, expected: &str| {
            assert_eq!(text(output).await, expected, "{output:?}");
        };
        check("", "").await;
        check("a\nb\n", "a\nb\n").await;
        check(&"x".repeat(40), &"x".repeat(40)).await;
        check("1\n2\n3\n4\n5\n6\n7\n", "1\n2\n3\n4\n5\n6\n7\n").await;
        check(
            "1\n2\n3\n4\n5\n6\n7\n8\n9\n",
            "1\n2\n3\n4\n[8 4 2]\n7\n8\n9\n",
        )
        .await;
        check(
            "first line here\nsecond line here\nthird line here\nlast\n",
            "first line here\n[16 18 1]\nhird line here\nlast\n",
        )
        .await;
        check(
            &"y".repeat(50),
            &format!("{0}\n[20 10 0]\n{0}", "y".repeat(20)),
        )
        .await;
        check(
            &"é".repeat(25),
            &format!("{0}\n[20 10 0]\n{0}", "é".repeat(10)),
        )
        .await;
    }
}
