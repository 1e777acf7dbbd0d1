//! Path rules for programs that outlive calls: the programs of MCP servers.
//!
//! A command is started for one call, and the paths that rules close to its caller are closed to it. A program that
//! serves many calls must not see the paths that rules close to any of its callers. The host searches for these paths
//! when the program starts and again before each call, because rules and files change in between. A search looks at
//! every name in the program's view, so [`GuardCache`] skips it while neither rules nor files have changed.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Instant,
};

use parking_lot::Mutex;
use toolpost_model::{PathRulesInForce, Principal, ResourceAccess};
use toolpost_sandbox::SandboxRoot;

use crate::workspace::{KeepingRules, KeptPaths, PathMark, SearchTrail};

/// The path rules for the callers of one program.
pub struct CallerRules {
    rules: Arc<dyn PathRulesInForce>,
    callers: Vec<Principal>,
}

impl CallerRules {
    /// Without callers, these are the rules that apply to every caller. `None` if no rule closes a path.
    pub fn of(rules: Arc<dyn PathRulesInForce>, callers: Vec<Principal>) -> Option<Self> {
        let found = Self { rules, callers };
        let keeps_any = found
            .each()
            .any(|caller| found.rules.has_path_rules(caller));
        keeps_any.then_some(found)
    }

    fn each(&self) -> impl Iterator<Item = Option<&Principal>> {
        let everybody = self.callers.is_empty().then_some(None);
        self.callers.iter().map(Some).chain(everybody)
    }
}

impl KeepingRules for CallerRules {
    fn kept_places(&self) -> Vec<PathBuf> {
        self.each()
            .flat_map(|caller| self.rules.kept_places(caller))
            .collect()
    }

    fn may_use(&self, path: &Path, access: ResourceAccess) -> bool {
        self.each()
            .all(|caller| self.rules.may_use(path, access, caller))
    }

    /// A cancellation does not stop the search, because the next call needs the same one.
    fn is_canceled(&self) -> bool {
        false
    }
}

/// The view of an operator's program, besides the system's own directories.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramSight {
    /// The directories it works in.
    pub roots: Vec<SandboxRoot>,
    /// Further paths it may read, in addition to the readable paths of every child.
    pub readable: Vec<PathBuf>,
}

/// The paths that are closed to a program, and the files that they were during the search.
#[derive(Clone, Debug, Default)]
pub struct PathGuards {
    pub(super) kept: Arc<KeptPaths>,
    marks: Arc<[PathMark]>,
}

impl PathGuards {
    fn new(kept: KeptPaths) -> Self {
        let marks = kept.marks().into();
        Self {
            kept: Arc::new(kept),
            marks,
        }
    }

    /// Whether a program with these guards has exactly the other ones.
    pub fn is_same(&self, other: &Self) -> bool {
        self.marks == other.marks
    }

    /// Whether a path is hidden from the program.
    pub fn hides(&self, path: &Path) -> bool {
        self.kept
            .masked
            .iter()
            .any(|masked| path.starts_with(masked))
    }
}

/// The last search for one program.
#[derive(Debug, Default)]
pub struct GuardCache(Mutex<Option<Arc<FinishedSearch>>>);

#[derive(Debug)]
struct FinishedSearch {
    question: GuardSearchKey,
    /// The time at which a rule expires.
    holds_until: Option<Instant>,
    trail: SearchTrail,
    guards: PathGuards,
}

/// The inputs of a search.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct GuardSearchKey {
    generation: u64,
    callers: Vec<Principal>,
    sight: ProgramSight,
}

impl GuardSearchKey {
    pub(super) fn new(rules: &CallerRules, sight: &ProgramSight) -> Self {
        let callers = rules.callers.clone();
        Self {
            generation: rules.rules.generation(),
            callers,
            sight: sight.clone(),
        }
    }
}

impl GuardCache {
    /// The guards of the last search if they are still valid. Checks every directory of that search.
    pub(super) fn guards(&self, question: &GuardSearchKey) -> Option<PathGuards> {
        let last = self.0.lock().clone();
        let last = last.filter(|last| last.question == *question)?;
        let holds = last.holds_until.is_none_or(|until| Instant::now() < until);
        (holds && last.trail.is_unchanged()).then(|| last.guards.clone())
    }

    /// Stores the result of a search.
    pub(super) fn keep(
        &self,
        question: GuardSearchKey,
        rules: &CallerRules,
        (kept, trail): (KeptPaths, SearchTrail),
    ) -> PathGuards {
        let guards = PathGuards::new(kept);
        let holds_until = rules
            .rules
            .hold_for()
            .map(|duration| Instant::now() + duration);
        let search = FinishedSearch {
            question,
            holds_until,
            trail,
            guards: guards.clone(),
        };
        *self.0.lock() = Some(Arc::new(search));
        guards
    }
}
