//! Path rules for programs that outlive calls: the programs of MCP servers.
//!
//! A command is started for one call and kept from the paths that rules keep from its caller. A program that serves many
//! calls is kept from the paths that rules keep from any of its callers. What is kept is looked for when the program is
//! started and again before each call, since rules and files change meanwhile. [`GuardCache`] spares a call that search
//! while neither has changed.

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
    /// Without callers, the rules that hold for every caller. `None`: they keep no path from any of them.
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

    /// The next call needs the same search.
    fn is_canceled(&self) -> bool {
        false
    }
}

/// What a program of the operator's sees beside the system's own directories.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramSight {
    /// Where it works.
    pub roots: Vec<SandboxRoot>,
    /// What it may read beside them and beside what every child may read.
    pub readable: Vec<PathBuf>,
}

/// What a program is kept from, and which files that were when somebody looked.
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

    /// Whether a program that is kept from these paths is kept from the others, and from no more.
    pub fn is_same(&self, other: &Self) -> bool {
        self.marks == other.marks
    }

    /// Whether the program could not read a path.
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
    /// When a rule ends by itself.
    holds_until: Option<Instant>,
    trail: SearchTrail,
    guards: PathGuards,
}

/// What a search was about.
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
    /// What the last search found, if it would find the same again. Looks at every directory of that search.
    pub(super) fn guards(&self, question: &GuardSearchKey) -> Option<PathGuards> {
        let last = self.0.lock().clone();
        let last = last.filter(|last| last.question == *question)?;
        let holds = last.holds_until.is_none_or(|until| Instant::now() < until);
        (holds && last.trail.is_unchanged()).then(|| last.guards.clone())
    }

    /// Keeps what a search found.
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
