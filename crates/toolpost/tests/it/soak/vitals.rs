//! What a host occupies: read from the kernel while nothing runs in it.

use std::fmt;

/// How much more than after the warm-up is still flat. Allocators and caches need some room; a leak under this traffic
/// passes it within minutes.
const MORE_MEMORY: u64 = 64 << 20;
const MORE_DESCRIPTORS: u64 = 16;
const MORE_THREADS: u64 = 8;
/// Up to eight idle interpreters wait two minutes for the next code of their session.
const MORE_PROCESSES: u64 = 8;
/// Each of them is held by a socket, a pipe and a handle on its process.
const DESCRIPTORS_OF_A_PROCESS: u64 = 3;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Vitals {
    /// Bytes of memory of its own.
    memory: u64,
    descriptors: u64,
    threads: u64,
    /// Its descendants.
    processes: u64,
}

impl Vitals {
    pub(super) fn of(pid: u32) -> Option<Self> {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        let field = |name: &str| -> Option<u64> {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            line.trim_start_matches(':')
                .split_whitespace()
                .next()?
                .parse()
                .ok()
        };
        Some(Self {
            memory: field("RssAnon")? << 10,
            descriptors: std::fs::read_dir(format!("/proc/{pid}/fd")).ok()?.count() as u64,
            threads: field("Threads")?,
            processes: descendants(pid),
        })
    }

    /// Why this is no longer flat, compared with an earlier reading.
    pub(super) fn growth(&self, before: &Self) -> Option<String> {
        let of_processes =
            DESCRIPTORS_OF_A_PROCESS * self.processes.saturating_sub(before.processes);
        let grown = [
            ("memory", self.memory, before.memory, MORE_MEMORY),
            (
                "descriptors",
                self.descriptors,
                before.descriptors,
                MORE_DESCRIPTORS + of_processes,
            ),
            ("threads", self.threads, before.threads, MORE_THREADS),
            (
                "processes",
                self.processes,
                before.processes,
                MORE_PROCESSES,
            ),
        ];
        let (what, now, before, more) = grown
            .into_iter()
            .find(|(_, now, before, more)| *now > before + more)?;
        Some(format!(
            "{what} grew from {before} to {now}, more than {more}"
        ))
    }
}

impl fmt::Display for Vitals {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            memory,
            descriptors,
            threads,
            processes,
        } = self;
        let memory = memory >> 20;
        write!(
            formatter,
            "{memory} MiB, {descriptors} descriptors, {threads} threads, {processes} processes"
        )
    }
}

/// How many processes descend from one.
fn descendants(pid: u32) -> u64 {
    let parents: Vec<(u32, u32)> = std::fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .filter_map(|entry| {
            let pid = entry.ok()?.file_name().to_str()?.parse().ok()?;
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
            // The name of the program is in brackets, and may contain some.
            let parent = stat
                .rsplit_once(')')?
                .1
                .split_whitespace()
                .nth(1)?
                .parse()
                .ok()?;
            Some((pid, parent))
        })
        .collect();
    let mut found = vec![pid];
    let mut at = 0;
    while let Some(above) = found.get(at).copied() {
        found.extend(
            parents
                .iter()
                .filter(|(_, parent)| *parent == above)
                .map(|(pid, _)| *pid),
        );
        at += 1;
    }
    found.len() as u64 - 1
}
