//! Landlock: the files that a process may access, independent of mounts. With namespaces it is a second wall, and
//! without them it is the only one for files.

use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, LandlockStatus, PathBeneath, PathFd,
    RestrictionStatus, Ruleset, RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetError,
    RulesetStatus, Scope, make_bitflags,
};

/// The newest version that this code was written for. The crate leaves out rights that the kernel does not have.
const NEWEST: ABI = ABI::V9;

/// Reading and executing.
pub(crate) fn reading() -> BitFlags<AccessFs> {
    AccessFs::from_read(NEWEST)
}

/// Listing the names in directories, without access to the files.
pub(crate) fn listing() -> BitFlags<AccessFs> {
    AccessFs::ReadDir.into()
}

/// Everything except creating and controlling devices.
pub(crate) fn writing() -> BitFlags<AccessFs> {
    let devices = make_bitflags!(AccessFs::{MakeChar | MakeBlock | IoctlDev});
    AccessFs::from_all(NEWEST) & !devices
}

/// Connecting to sockets with a path.
pub(crate) fn talking() -> BitFlags<AccessFs> {
    AccessFs::ResolveUnix.into()
}

/// Using devices such as `/dev/null`.
pub(crate) fn using() -> BitFlags<AccessFs> {
    make_bitflags!(AccessFs::{ReadFile | WriteFile | ReadDir | Truncate})
}

/// Whether connections may be opened. Landlock can refuse TCP only.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum TcpAccess {
    Free,
    Refused,
}

/// Whether processes outside may get signals and connections over abstract sockets.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum OutsideProcesses {
    Reachable,
    OutOfReach,
}

/// A set of Landlock rules under construction. Nothing is in force before [`LandlockFence::close`].
pub(crate) struct LandlockFence {
    rules: RulesetCreated,
}

/// The enforcement after a fence is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LandlockEnforcement {
    /// The version in force; `None` if nothing is in force.
    pub(crate) abi: Option<u32>,
}

impl LandlockFence {
    pub(crate) fn new(tcp: TcpAccess, neighbours: OutsideProcesses) -> Result<Self, RulesetError> {
        let mut rules = Ruleset::default().handle_access(AccessFs::from_all(NEWEST))?;
        if tcp == TcpAccess::Refused {
            rules = rules.handle_access(AccessNet::from_all(NEWEST))?;
        }
        if neighbours == OutsideProcesses::OutOfReach {
            rules = rules.scope(Scope::from_all(NEWEST))?;
        }
        Ok(Self {
            rules: rules.create()?,
        })
    }

    /// Skips a path that does not exist, because a process cannot access it either.
    pub(crate) fn allow(
        self,
        path: &Path,
        access: BitFlags<AccessFs>,
    ) -> Result<Self, RulesetError> {
        match PathFd::new(path) {
            Ok(opened) => self.allow_opened(&opened, access),
            Err(_) => Ok(self),
        }
    }

    pub(crate) fn allow_opened(
        mut self,
        opened: impl AsFd,
        access: BitFlags<AccessFs>,
    ) -> Result<Self, RulesetError> {
        let is_directory = rustix::fs::fstat(&opened)
            .is_ok_and(|stat| rustix::fs::FileType::from_raw_mode(stat.st_mode).is_dir());
        let access = if is_directory {
            access
        } else {
            access & AccessFs::from_file(NEWEST)
        };
        if !access.is_empty() {
            self.rules = self.rules.add_rule(PathBeneath::new(opened, access))?;
        }
        Ok(self)
    }

    /// Applies the rules to the calling thread and everything that it starts.
    pub(crate) fn close(self) -> Result<LandlockEnforcement, RulesetError> {
        let RestrictionStatus {
            ruleset, landlock, ..
        } = self.rules.restrict_self()?;
        let abi = match (ruleset, landlock) {
            (RulesetStatus::NotEnforced, _) => None,
            (_, LandlockStatus::Available { effective_abi, .. }) => Some(effective_abi as u32),
            (_, LandlockStatus::NotEnabled | LandlockStatus::NotImplemented) => None,
        };
        Ok(LandlockEnforcement { abi })
    }
}

/// The parts of a tree that may be read if `hidden` may not; `None` if that would take too many rules.
///
/// Landlock rules only allow and never forbid, so a hidden path inside of a readable tree is left out by allowing its
/// siblings at every level instead. Links among the siblings are left out: a rule for a link applies to its target,
/// which has a rule of its own or is hidden.
pub(crate) fn around(tree: &Path, hidden: &[PathBuf], bound: usize) -> Option<Vec<PathBuf>> {
    if hidden.iter().any(|one| tree.starts_with(one)) {
        return Some(Vec::new());
    }
    if !hidden.iter().any(|one| one.starts_with(tree)) {
        return Some(vec![tree.to_owned()]);
    }
    let mut found = Vec::new();
    for name in super::names_in(tree).unwrap_or_default() {
        let path = tree.join(name);
        if !super::room::is_link(&path) {
            found.extend(around(&path, hidden, bound.checked_sub(found.len())?)?);
        }
    }
    (found.len() <= bound).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn siblings_of_what_is_hidden_are_named() {
        let tree = tempfile::tempdir().unwrap();
        let at = |name: &str| tree.path().join(name);
        for name in ["a", "a/secret", "a/plain", "b"] {
            rustix::fs::mkdir(at(name), rustix::fs::Mode::RWXU).unwrap();
        }
        rustix::fs::symlink("secret", at("a/way")).unwrap();
        let sorted = |mut paths: Vec<PathBuf>| {
            paths.sort();
            paths
        };
        let hidden = [at("a/secret")];
        assert_eq!(
            around(tree.path(), &hidden, 10).map(sorted),
            Some(vec![at("a/plain"), at("b")])
        );
        assert_eq!(around(tree.path(), &hidden, 1), None);
        assert_eq!(around(&at("a/secret/deep"), &hidden, 10), Some(Vec::new()));
        assert_eq!(around(&at("b"), &hidden, 10), Some(vec![at("b")]));
    }
}
