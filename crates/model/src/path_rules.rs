//! Path rules outside of a call: for sources whose processes outlive calls.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use crate::{Principal, ResourceAccess};

/// The path rules in force at one moment.
///
/// A call asks its [`CallContext`](crate::CallContext), which answers for its caller. A process that serves many calls,
/// such as the program of an MCP server, must be shut out of kept paths before any of them comes; its source reads here
/// which paths these are, through [`SourceFeed::path_rules`](crate::SourceFeed::path_rules).
///
/// A rule may be about some callers only. `None` in the place of a caller means the rules that hold for every caller.
pub trait PathRulesInForce: Send + Sync {
    /// Whether rules keep any path from the caller, or may.
    fn has_path_rules(&self, caller: Option<&Principal>) -> bool;

    /// Whether rules let the caller use a path: absolute, links resolved.
    fn may_use(&self, path: &Path, access: ResourceAccess, caller: Option<&Principal>) -> bool;

    /// The number of this set of rules: another set has another number.
    fn generation(&self) -> u64;

    /// How long [`may_use`](Self::may_use) answers the same for the same path and caller. `None`: as long as these
    /// rules are in force.
    fn hold_for(&self) -> Option<Duration>;

    /// Where paths that rules keep from the caller can lie: absolute paths, each meant with all beneath it. `/`: anywhere.
    fn kept_places(&self, caller: Option<&Principal>) -> Vec<PathBuf>;
}
