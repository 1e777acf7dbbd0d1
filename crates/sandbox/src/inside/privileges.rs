//! Drops the privileges of a process for good, and reads the result back from the kernel.

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::thread::{CapabilitySet, CapabilitySets};

/// No program executed from here on can gain privileges by set-user-ID bits or file capabilities.
pub(crate) fn no_new_privileges() -> Result<(), Errno> {
    rustix::thread::set_no_new_privs(true)
}

/// Drops every capability. Root without capabilities still owns root's files, which is why secrets are masked.
pub(crate) fn drop_capabilities() -> Result<(), Errno> {
    let _ = rustix::thread::clear_ambient_capability_set();
    for number in 0..64 {
        // Either past the last capability of the kernel, or without the right to change the bounding set. The remaining
        // set is read back afterwards.
        if rustix::thread::remove_capability_from_bounding_set(CapabilitySet::from_bits_retain(
            1 << number,
        ))
        .is_err()
        {
            break;
        }
    }
    let nothing = CapabilitySet::empty();
    let sets = CapabilitySets {
        effective: nothing,
        permitted: nothing,
        inheritable: nothing,
    };
    rustix::thread::set_capabilities(None, sets)
}

/// The kernel's view of this process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PrivilegeStatus {
    /// The process has no capability and cannot get one by executing a program.
    pub(crate) powerless: bool,
    /// Executing a program adds no privileges.
    pub(crate) no_new_privileges: bool,
    /// A system call filter is in force.
    pub(crate) filtered: bool,
}

impl PrivilegeStatus {
    pub(crate) fn look() -> Result<Self, Errno> {
        let status = rustix::fs::open(
            "/proc/thread-self/status",
            OFlags::RDONLY | OFlags::CLOEXEC,
            Mode::empty(),
        )?;
        let mut text = vec![0; 8192];
        let length = rustix::io::read(&status, &mut text)?;
        Ok(Self::read(&String::from_utf8_lossy(&text[..length])))
    }

    fn read(status: &str) -> Self {
        let value = |name: &str| {
            let line = status
                .lines()
                .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            line.map(str::trim).unwrap_or_default()
        };
        let no_new_privileges = value("NoNewPrivs") == "1";
        let empty =
            |name| value(name).len() == 16 && value(name).bytes().all(|digit| digit == b'0');
        let held = ["CapInh", "CapPrm", "CapEff", "CapAmb"];
        // The bounding set limits only the capabilities that executing a program could add, and with `no_new_privs`
        // that is none.
        let powerless = held.into_iter().all(empty) && (empty("CapBnd") || no_new_privileges);
        Self {
            powerless,
            no_new_privileges,
            filtered: value("Seccomp") == "2",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn standing_is_read_from_the_kernels_words() {
        let none = "0000000000000000";
        let all = "000001ffffffffff";
        for (effective, bounding, no_new, powerless) in [
            (none, none, "0", true),
            (none, all, "1", true),
            (none, all, "0", false),
            (all, none, "1", false),
        ] {
            let status = format!(
                "Name:\tx\nCapInh:\t{none}\nCapPrm:\t{none}\nCapEff:\t{effective}\nCapBnd:\t{bounding}\n\
                 CapAmb:\t{none}\nNoNewPrivs:\t{no_new}\nSeccomp:\t2\nSeccomp_filters:\t1\n"
            );
            let standing = PrivilegeStatus::read(&status);
            assert_eq!(standing.powerless, powerless, "{status}");
            assert!(standing.filtered);
        }
        assert_eq!(PrivilegeStatus::read(""), PrivilegeStatus::default());
    }
}
