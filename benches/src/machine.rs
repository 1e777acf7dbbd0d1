//! Facts from the kernel about this process: processor time and resources.
#![expect(
    clippy::disallowed_methods,
    reason = "the kernel's own figures are files"
)]

use std::{
    collections::HashMap,
    path::Path,
    time::{Duration, Instant},
};

use anyhow::Context;
use rustix::{
    io::Errno,
    process::{WaitOptions, getpid, set_child_subreaper, wait},
    time::{ClockId, clock_gettime},
};

/// Processor time in milliseconds, in user code and in the kernel.
#[derive(Clone, Copy)]
pub(crate) struct CpuTime {
    /// Of this process.
    pub(crate) own: f64,
    /// Of children that have ended and were waited for, and of their children. In ticks of usually 10 ms.
    pub(crate) children: f64,
}

impl CpuTime {
    pub(crate) fn now() -> anyhow::Result<Self> {
        let own = clock_gettime(ClockId::ProcessCPUTime);
        let stat = std::fs::read_to_string("/proc/self/stat")?;
        let (_, after_name) = stat.rsplit_once(')').context("a name in /proc/self/stat")?;
        let waited_for: Vec<u64> = after_name
            .split_whitespace()
            .skip(13)
            .take(2)
            .filter_map(|ticks| ticks.parse().ok())
            .collect();
        let ticks: u64 = waited_for.iter().sum();
        Ok(Self {
            own: own.tv_sec as f64 * 1e3 + own.tv_nsec as f64 / 1e6,
            children: ticks as f64 * 1e3 / rustix::param::clock_ticks_per_second() as f64,
        })
    }

    pub(crate) fn since(self, earlier: Self) -> Self {
        Self {
            own: self.own - earlier.own,
            children: self.children - earlier.children,
        }
    }
}

/// Waits until this process has no children, not even zombies: a thread of the host collects them.
pub(crate) async fn childless(patience: Duration) -> anyhow::Result<()> {
    let given_up = Instant::now() + patience;
    while has_children()? && Instant::now() < given_up {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    Ok(())
}

/// Makes this process the new parent of all orphans among its descendants. So the benchmark overlooks no process that
/// was left behind, and counts the time of a process even if its parent did not wait for it.
pub(crate) fn adopt_orphans() -> anyhow::Result<()> {
    Ok(set_child_subreaper(Some(getpid()))?)
}

/// Waits for orphans. Not to be used while another thread waits for a child.
pub(crate) async fn collect_orphans(patience: Duration) -> anyhow::Result<()> {
    let given_up = Instant::now() + patience;
    while Instant::now() < given_up {
        match wait(WaitOptions::NOHANG) {
            Ok(Some(_)) | Err(Errno::INTR) => {}
            Ok(None) => tokio::time::sleep(Duration::from_millis(1)).await,
            Err(Errno::CHILD) => break,
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(())
}

fn has_children() -> anyhow::Result<bool> {
    for thread in std::fs::read_dir("/proc/self/task")? {
        // A thread that has ended meanwhile passed its children to another, which the next round checks.
        let children = std::fs::read_to_string(thread?.path().join("children")).unwrap_or_default();
        if !children.is_empty() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Resources that processes of this run could leave behind.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Belongings {
    pub(crate) processes: usize,
    pub(crate) mounts: usize,
    pub(crate) cgroups: usize,
    pub(crate) folders: usize,
    pub(crate) descriptors: usize,
    pub(crate) threads: usize,
}

impl Belongings {
    /// Only processes of this run have `mark` in their command lines.
    pub(crate) fn count(mark: &str) -> anyhow::Result<Self> {
        Ok(Self {
            processes: processes(mark)?,
            mounts: std::fs::read_to_string("/proc/self/mountinfo")?
                .lines()
                .count(),
            cgroups: named_after_this_host(Path::new("/sys/fs/cgroup"), Depth::Beneath),
            folders: named_after_this_host(Path::new("/tmp"), Depth::Itself),
            // Without the descriptor of this listing.
            descriptors: std::fs::read_dir("/proc/self/fd")?.count() - 1,
            threads: std::fs::read_dir("/proc/self/task")?.count(),
        })
    }
}

/// Descendants of this process, zombies included, and marked processes that another process has adopted.
fn processes(mark: &str) -> anyhow::Result<usize> {
    let mut parents = HashMap::new();
    let mut marked = Vec::new();
    for entry in std::fs::read_dir("/proc")? {
        let path = entry?.path();
        let Some(pid) = path
            .file_name()
            .and_then(|name| name.to_str()?.parse::<u32>().ok())
        else {
            continue;
        };
        let Ok(stat) = std::fs::read_to_string(path.join("stat")) else {
            continue;
        };
        let parent = stat
            .rsplit_once(')')
            .and_then(|(_, after)| after.split_whitespace().nth(1)?.parse().ok());
        parents.insert(pid, parent.unwrap_or(0_u32));
        let command_line = std::fs::read(path.join("cmdline")).unwrap_or_default();
        if String::from_utf8_lossy(&command_line).contains(mark) {
            marked.push(pid);
        }
    }
    let own = std::process::id();
    let descends = |pid: &u32| {
        std::iter::successors(parents.get(pid).copied(), |parent| {
            parents.get(parent).copied()
        })
        .any(|ancestor| ancestor == own)
    };
    Ok(parents
        .keys()
        .filter(|pid| descends(pid) || marked.contains(pid))
        .count())
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Depth {
    Itself,
    Beneath,
}

/// Folders that the launcher has named after this process.
fn named_after_this_host(folder: &Path, depth: Depth) -> usize {
    let own = format!("-{}-", std::process::id());
    let mut found = 0;
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            continue;
        }
        let name = entry.file_name();
        found += usize::from(
            name.to_string_lossy().starts_with("toolpost-")
                && name.to_string_lossy().contains(&own),
        );
        if depth == Depth::Beneath {
            found += named_after_this_host(&entry.path(), depth);
        }
    }
    found
}
