//! Nothing is left after many jobs: no descriptor, mount, control group, process or file.

use std::path::{Path, PathBuf};

use toolpost_model::{SandboxProfile, SandboxTier};

use crate::bench_of_jobs::{Bench, eventually};
use crate::roles;

fn count(path: impl AsRef<Path>, wanted: impl Fn(&str) -> bool) -> usize {
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
    entries
        .filter(|entry| wanted(&entry.file_name().to_string_lossy()))
        .count()
}

/// Folders under which this process could make control groups.
fn groups() -> Vec<PathBuf> {
    let mut found = Vec::new();
    let own = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    for mount in std::fs::read_dir("/sys/fs/cgroup")
        .into_iter()
        .flatten()
        .flatten()
    {
        found.push(mount.path());
        let paths = own.lines().filter_map(|line| line.rsplit(':').next());
        found.extend(paths.map(|path| mount.path().join(path.trim_start_matches('/'))));
    }
    found.push(PathBuf::from("/sys/fs/cgroup"));
    found.sort();
    found.dedup();
    found
}

fn groups_of(pid: u32) -> usize {
    let of_pid = format!("-{pid}-");
    groups()
        .iter()
        .map(|group| {
            count(group, |name| {
                name.starts_with("toolpost-") && name.contains(&of_pid)
            })
        })
        .sum()
}

/// Control groups that hosts have left which are no longer there.
pub(crate) fn groups_of_the_dead() -> usize {
    let is_dead = |name: &str| {
        let pid = name
            .strip_prefix("toolpost-")
            .and_then(|rest| rest.split('-').nth(1));
        pid.is_some_and(|pid| !Path::new("/proc").join(pid).exists())
    };
    groups().iter().map(|group| count(group, is_dead)).sum()
}

/// The mounts of this process, without the disks that a soak mounts beside it.
fn mounts() -> usize {
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    mounts
        .lines()
        .filter(|line| !line.contains(" toolpost-soak "))
        .count()
}

#[derive(Debug, PartialEq, Eq)]
struct Holdings {
    descriptors: usize,
    mounts: usize,
    groups: usize,
    children: usize,
    folders: usize,
}

impl Holdings {
    fn now() -> Self {
        let pid = std::process::id();
        let is_child = |name: &str| {
            let stat = std::fs::read_to_string(format!("/proc/{name}/stat")).unwrap_or_default();
            let parent = stat
                .rsplit_once(')')
                .and_then(|(_, rest)| rest.split_whitespace().nth(1)?.parse().ok());
            parent == Some(pid)
        };
        let of_pid = format!("-{pid}-");
        Self {
            descriptors: count("/proc/self/fd", |_| true),
            mounts: mounts(),
            groups: groups_of(pid),
            children: count("/proc", |name| {
                name.parse::<u32>().is_ok() && is_child(name)
            }),
            folders: count("/tmp", |name| {
                name.starts_with("toolpost-") && name.contains(&of_pid)
            }),
        }
    }
}

#[tokio::test]
async fn many_jobs_leave_nothing_behind() {
    if roles::role().is_none() {
        return roles::must_succeed(roles::again(
            "leaks::many_jobs_leave_nothing_behind",
            "alone",
        ));
    }
    let benches = [
        Bench::new(),
        Bench::at_most(SandboxTier::B),
        Bench::new().profile(SandboxProfile::None),
        Bench::new().profile(SandboxProfile::Network),
    ];
    for bench in &benches {
        bench.run("true").await.ok();
    }
    eventually("the first jobs are cleared up", || {
        Holdings::now().groups + Holdings::now().children == 0
    })
    .await;
    let before = Holdings::now();
    for round in 0..100 {
        let bench = &benches[round % benches.len()];
        match round % 5 {
            0 => drop(bench.start("sleep 1000").await),
            1 => drop(
                bench
                    .start("setsid sleep 1000 & sleep 1000")
                    .await
                    .kill()
                    .await,
            ),
            2 => drop(bench.run_job(bench.job(&["no-such-program"])).await),
            _ => drop(bench.run("echo x; sleep 1000 & true").await.ok()),
        }
    }
    let mut after = Holdings::now();
    eventually("everything is as before", || {
        after = Holdings::now();
        after == before
    })
    .await;
}
