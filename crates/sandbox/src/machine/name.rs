//! Names for a host's objects on the machine. They identify the host, so that a later one can remove the objects of a
//! host that died.

use std::fs;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::probe::started_at;

const PREFIX: &str = "toolpost";

/// Shared by all launchers of a process, because their names are in the same folders.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// A host process, distinct from any other with the same process id.
#[derive(Debug)]
pub(crate) struct HostName {
    /// The namespace that the process id belongs to.
    namespace: u64,
    pid: u32,
    /// The start time, in the kernel's ticks.
    started: u64,
}

impl HostName {
    pub(crate) fn own() -> Self {
        let pid = std::process::id();
        let namespace = fs::read_link("/proc/self/ns/pid").ok();
        let namespace = namespace.and_then(|link| {
            link.to_string_lossy()
                .trim_matches(|c: char| !c.is_ascii_digit())
                .parse()
                .ok()
        });
        let started = started(pid).unwrap_or_default();
        Self {
            namespace: namespace.unwrap_or_default(),
            pid,
            started,
        }
    }

    pub(crate) fn started(&self) -> u64 {
        self.started
    }

    /// A name that this process has not used before.
    pub(crate) fn next(&self) -> String {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let Self {
            namespace,
            pid,
            started,
        } = self;
        format!("{PREFIX}-{namespace}-{pid}-{started}-{number}")
    }

    /// Whether the name belongs to a host that would be visible from here and no longer exists.
    pub(crate) fn is_of_a_dead_host(&self, name: &str) -> bool {
        let Some(rest) = name
            .strip_prefix(PREFIX)
            .and_then(|rest| rest.strip_prefix('-'))
        else {
            return false;
        };
        let numbers: Option<Vec<u64>> = rest.split('-').map(|part| part.parse().ok()).collect();
        let Some([namespace, pid, start, _]) = numbers.as_deref() else {
            return false;
        };
        let Ok(pid) = u32::try_from(*pid) else {
            return false;
        };
        *namespace == self.namespace && started(pid) != Some(*start)
    }
}

fn started(pid: u32) -> Option<u64> {
    started_at(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_dead_hosts_are_swept() {
        let own = HostName::own();
        let HostName {
            namespace,
            pid,
            started,
        } = own;
        for (name, dead) in [
            (own.next(), false),
            (
                format!("toolpost-{namespace}-{pid}-{}-0", started + 1),
                true,
            ),
            (
                format!("toolpost-{}-{pid}-{}-0", namespace + 1, started + 1),
                false,
            ),
            (format!("toolpost-{namespace}-{pid}"), false),
            ("toolpost.slice".to_owned(), false),
            ("user.slice".to_owned(), false),
        ] {
            assert_eq!(own.is_of_a_dead_host(&name), dead, "{name}");
        }
    }
}
