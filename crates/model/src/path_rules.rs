//! Path rules outside of a call: for sources whose processes outlive calls.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use crate::{Principal, ResourceAccess};

/// The path rules in force at one moment.
///
/// A call asks its [`CallContext`](crate::CallContext), which answers for its caller. A process that serves many calls,
/// such as the program of an MCP server, must be shut out of hidden paths before the first call; its source reads these
/// paths here, through [`SourceFeed::path_rules`](crate::SourceFeed::path_rules).
///
/// A rule may apply to some callers only. `None` as the caller means the rules that hold for every caller.
pub trait PathRulesInForce: Send + Sync {
    /// Whether rules hide, or may hide, any path from the caller.
    fn has_path_rules(&self, caller: Option<&Principal>) -> bool;

    /// Whether rules let the caller use a path: absolute, links resolved.
    fn may_use(&self, path: &Path, access: ResourceAccess, caller: Option<&Principal>) -> bool;

    /// The number of this set of rules; every new set gets another number.
    fn generation(&self) -> u64;

    /// How long an answer of [`may_use`](Self::may_use) stays valid for one path and caller. `None`: as long as these
    /// rules are in force.
    fn hold_for(&self) -> Option<Duration>;

    /// The places of paths that rules hide from the caller: absolute paths, each with everything beneath it. `/` means
    /// anywhere.
    fn kept_places(&self, caller: Option<&Principal>) -> Vec<PathBuf>;
}
