//! Control groups: a leaf for each job, which counts its memory and processes and can kill all of them. Version 1,
//! version 2 or both are used, as far as this process may; the code finds that out by trying.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rustix::process::{Pid, Signal};

use super::HostName;
use crate::job::ProcessLimits;
use crate::message::CountingGroups;

const VERSION_1: &str = "cgroup1";
const VERSION_2: &str = "cgroup2";

/// The groups that leaves can be created in.
#[derive(Debug, Default)]
pub(crate) struct Cgroups {
    /// Version 1, one group per controller.
    memory: Option<PathBuf>,
    processes: Option<PathBuf>,
    /// Version 2.
    unified: Option<UnifiedCgroup>,
}

#[derive(Debug)]
struct UnifiedCgroup {
    group: PathBuf,
    /// Whether it counts memory and processes; otherwise it can only kill.
    counts: bool,
    kills: bool,
}

/// The purpose of a leaf.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum CgroupPurpose {
    Counting,
    /// Also used if it can only kill, because the job has no namespace that does it.
    CountingAndKilling,
}

impl Cgroups {
    pub(crate) fn find(host: &HostName) -> Self {
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let place = |controller| own_group(&mounts, &groups, controller);
        let usable = |place: Option<PathBuf>| place.filter(|group| can_make_leaves(group, host));
        let mut found = Self {
            memory: usable(place(Some("memory"))),
            processes: usable(place(Some("pids"))),
            unified: None,
        };
        if let Some(group) = usable(place(None)) {
            let counts = found.memory.is_none() && found.processes.is_none() && delegate(&group);
            let probe = group.join(host.next());
            let kills = fs::create_dir(&probe).is_ok() && probe.join("cgroup.kill").exists();
            let _ = fs::remove_dir(&probe);
            found.unified = Some(UnifiedCgroup {
                group,
                counts,
                kills,
            });
        }
        for group in found.groups() {
            sweep(group, host);
        }
        found
    }

    /// A description for people.
    pub(crate) fn describe(&self) -> String {
        let mut parts = Vec::new();
        let mut say = |there: bool, what: &str| {
            if there {
                parts.push(what.to_owned());
            }
        };
        say(self.memory.is_some(), "memory by version 1");
        say(self.processes.is_some(), "processes by version 1");
        let unified = self.unified.as_ref();
        say(
            unified.is_some_and(|unified| unified.counts),
            "memory and processes by version 2",
        );
        say(
            unified.is_some_and(|unified| unified.kills),
            "killing by version 2",
        );
        if parts.is_empty() {
            "none that this user may use".to_owned()
        } else {
            parts.join(", ")
        }
    }

    fn groups(&self) -> impl Iterator<Item = &PathBuf> {
        let unified = self.unified.as_ref().map(|unified| &unified.group);
        self.memory.iter().chain(&self.processes).chain(unified)
    }

    /// Creates a leaf. A group that cannot be created is left out, and the launcher's report lists the uncounted
    /// limits.
    pub(crate) fn leaf(
        &self,
        host: &HostName,
        limits: &ProcessLimits,
        purpose: CgroupPurpose,
    ) -> JobCgroup {
        let name = host.next();
        let mut leaf = JobCgroup::default();
        if let Some(group) = &self.memory
            && let Ok(folder) = leaf.make(group, &name)
            && write(&folder, "memory.limit_in_bytes", limits.memory_bytes).is_ok()
        {
            // Fails on machines that do not count swap. The kernel requires the memory limit to be set first.
            let _ = write(&folder, "memory.memsw.limit_in_bytes", limits.memory_bytes);
            leaf.counting.memory = Some(VERSION_1.to_owned());
            leaf.kills_counted = Some(folder.join("memory.oom_control"));
        }
        if let Some(group) = &self.processes
            && let Ok(folder) = leaf.make(group, &name)
            && write(&folder, "pids.max", limits.processes).is_ok()
        {
            leaf.counting.processes = Some(VERSION_1.to_owned());
        }
        if let Some(unified) = &self.unified
            && (unified.counts || (unified.kills && purpose == CgroupPurpose::CountingAndKilling))
            && let Ok(folder) = leaf.make(&unified.group, &name)
        {
            if unified.counts && write(&folder, "memory.max", limits.memory_bytes).is_ok() {
                let _ = write(&folder, "memory.swap.max", 0);
                leaf.counting.memory = Some(VERSION_2.to_owned());
                leaf.kills_counted = Some(folder.join("memory.events"));
            }
            if unified.counts && write(&folder, "pids.max", limits.processes).is_ok() {
                leaf.counting.processes = Some(VERSION_2.to_owned());
            }
            leaf.kill = unified.kills.then(|| folder.join("cgroup.kill"));
        }
        leaf
    }
}

/// The groups of one job; empty if there are none.
#[derive(Debug, Default)]
pub(crate) struct JobCgroup {
    folders: Vec<PathBuf>,
    pub(crate) counting: CountingGroups,
    /// The file in which the kernel counts kills at the memory limit.
    kills_counted: Option<PathBuf>,
    kill: Option<PathBuf>,
}

impl JobCgroup {
    fn make(&mut self, group: &Path, name: &str) -> io::Result<PathBuf> {
        let folder = group.join(name);
        fs::create_dir(&folder)?;
        self.counting.join.push(folder.join("cgroup.procs").into());
        self.folders.push(folder.clone());
        Ok(folder)
    }

    pub(crate) fn ran_out_of_memory(&self) -> bool {
        let text = self
            .kills_counted
            .as_ref()
            .and_then(|file| fs::read_to_string(file).ok())
            .unwrap_or_default();
        let count = text.lines().find_map(|line| line.strip_prefix("oom_kill "));
        count
            .and_then(|count| count.trim().parse::<u64>().ok())
            .is_some_and(|count| count > 0)
    }

    /// Kills all members at once, if the kernel can.
    pub(crate) fn kill(&self) {
        if let Some(file) = &self.kill {
            let _ = fs::write(file, "1");
        }
    }

    /// Kills the members one by one, for groups without a kill file.
    pub(crate) fn kill_each(&self) {
        self.folders.iter().for_each(|folder| kill_members(folder));
    }

    /// Whether the group has no members.
    pub(crate) fn is_empty(&self) -> bool {
        let members =
            |folder: &PathBuf| fs::read_to_string(folder.join("cgroup.procs")).unwrap_or_default();
        self.folders.iter().all(|folder| members(folder).is_empty())
    }

    /// Removes the groups. False while one still has members.
    pub(crate) fn remove(&mut self) -> bool {
        self.folders.retain(|folder| match fs::remove_dir(folder) {
            Ok(()) => false,
            Err(error) => error.kind() != io::ErrorKind::NotFound,
        });
        self.folders.is_empty()
    }
}

fn write(folder: &Path, file: &str, value: u64) -> io::Result<()> {
    fs::write(folder.join(file), value.to_string())
}

fn kill_members(folder: &Path) {
    let members = fs::read_to_string(folder.join("cgroup.procs")).unwrap_or_default();
    for pid in members
        .lines()
        .filter_map(|line| line.parse().ok())
        .filter_map(Pid::from_raw)
    {
        let _ = rustix::process::kill_process(pid, Signal::KILL);
    }
}

fn can_make_leaves(group: &Path, host: &HostName) -> bool {
    let probe = group.join(host.next());
    let made = fs::create_dir(&probe).is_ok();
    let joinable = made
        && fs::OpenOptions::new()
            .write(true)
            .open(probe.join("cgroup.procs"))
            .is_ok();
    let _ = fs::remove_dir(&probe);
    joinable
}

/// Lets children of a group be counted. Version 2 counts them only if the parent enables it, and a parent that does may
/// have no processes of its own. A host that is alone in its group, as a service with delegation, therefore moves
/// itself into a child group first.
fn delegate(group: &Path) -> bool {
    let controllers = fs::read_to_string(group.join("cgroup.controllers")).unwrap_or_default();
    let has = |name| controllers.split_whitespace().any(|one| one == name);
    if !has("memory") || !has("pids") {
        return false;
    }
    let switch_on = || fs::write(group.join("cgroup.subtree_control"), "+memory +pids").is_ok();
    let enabled = fs::read_to_string(group.join("cgroup.subtree_control")).unwrap_or_default();
    let on = |name| enabled.split_whitespace().any(|one| one == name);
    if (on("memory") && on("pids")) || switch_on() {
        return true;
    }
    let members = fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
    let own = std::process::id().to_string();
    if members.lines().ne([own.as_str()]) {
        return false;
    }
    let below = group.join("toolpost-host");
    let moved =
        fs::create_dir(&below).is_ok() && fs::write(below.join("cgroup.procs"), &own).is_ok();
    moved && switch_on()
}

fn sweep(group: &Path, host: &HostName) {
    for entry in fs::read_dir(group).into_iter().flatten().flatten() {
        if !entry
            .file_name()
            .to_str()
            .is_some_and(|name| host.is_of_a_dead_host(name))
        {
            continue;
        }
        let folder = entry.path();
        let _ = fs::write(folder.join("cgroup.kill"), "1");
        kill_members(&folder);
        // A group with dying members cannot be removed; the next start tries again.
        let _ = fs::remove_dir(&folder);
    }
}

/// The folder of this process's group: for a controller of version 1, or for version 2.
fn own_group(mounts: &str, groups: &str, controller: Option<&str>) -> Option<PathBuf> {
    let lists = |list: &str| controller.is_some_and(|name| list.split(',').any(|one| one == name));
    let mount = mounts.lines().find_map(|line| {
        let (before, after) = line.split_once(" - ")?;
        let mut after = after.split(' ');
        let kind = after.next()?;
        let options = after.nth(1)?;
        let wanted = match controller {
            Some(_) => kind == "cgroup" && lists(options),
            None => kind == "cgroup2",
        };
        let mut before = before.split(' ').skip(3);
        wanted.then_some((before.next()?, before.next()?))
    });
    let (root, place) = mount?;
    let path = groups.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let controllers = parts.next()?;
        let path = parts.next()?;
        let wanted = if controller.is_some() {
            lists(controllers)
        } else {
            controllers.is_empty()
        };
        wanted.then_some(path)
    })?;
    let beneath = Path::new(path).strip_prefix(root).ok()?;
    Some(Path::new(place).join(beneath))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_group_of_a_controller_is_found_in_what_is_mounted() {
        let hybrid = "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755\n\
                      35 31 0:32 / /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory\n\
                      39 31 0:36 /docker/a /sys/fs/cgroup/cpu,pids rw - cgroup cgroup rw,cpu,pids\n\
                      41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";
        let groups = "4:memory:/jobs/b\n3:cpu,pids:/docker/a/c\n0::/\n";
        for (controller, expected) in [
            (Some("memory"), Some("/sys/fs/cgroup/memory/jobs/b")),
            (Some("pids"), Some("/sys/fs/cgroup/cpu,pids/c")),
            (Some("blkio"), None),
            (None, Some("/sys/fs/cgroup/unified/")),
        ] {
            let found = own_group(hybrid, groups, controller);
            assert_eq!(found, expected.map(PathBuf::from), "{controller:?}");
        }
        let unified = "30 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw,nsdelegate\n";
        let groups = "0::/system.slice/toolpost.service\n";
        let service = "/sys/fs/cgroup/system.slice/toolpost.service";
        assert_eq!(
            own_group(unified, groups, None),
            Some(PathBuf::from(service))
        );
        assert_eq!(own_group(unified, groups, Some("memory")), None);
    }
}
