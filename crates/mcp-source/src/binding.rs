//! How path rules bind the program of a server: whom it serves, what it must be kept from, and what is said where it
//! is not.

use std::sync::Arc;

use parking_lot::Mutex;
use toolpost_model::{
    ErrorClass, PathRulesInForce, Principal, SandboxPlan, SandboxProfile, ToolFailure,
};
use toolpost_processes::{CallerRules, GuardCache, PathGuards};

use super::{McpProgram, McpTransport, process, server::McpUpstream};

/// The callers that one connection serves. Rules may keep a path from one of them only; a program that several share is
/// kept from the paths of all.
#[derive(Default)]
pub(super) struct ServedCallers {
    lists: Mutex<ProgramCallers>,
    /// What the last search for their program found.
    guards: Arc<GuardCache>,
}

#[derive(Default)]
struct ProgramCallers {
    /// Those with a session, and how many sessions each has.
    present: Vec<(Principal, usize)>,
    /// Those for whom the program that runs was started. One that leaves does not count less until the next start: else
    /// short sessions would start the program again and again.
    bound: Vec<Principal>,
}

impl ServedCallers {
    /// A session begins.
    pub(super) fn join(&self, caller: &Principal) {
        let mut callers = self.lists.lock();
        match callers
            .present
            .iter_mut()
            .find(|(known, _)| known == caller)
        {
            Some((_, sessions)) => *sessions += 1,
            None => callers.present.push((caller.clone(), 1)),
        }
    }

    /// A session is over.
    pub(super) fn part(&self, caller: &Principal) {
        let mut callers = self.lists.lock();
        if let Some((_, sessions)) = callers
            .present
            .iter_mut()
            .find(|(known, _)| known == caller)
        {
            *sessions = sessions.saturating_sub(1);
        }
        callers.present.retain(|(_, sessions)| *sessions > 0);
    }

    /// A program is started for those who are there now. Gives whether the last one was started for others, too.
    pub(super) fn bind(&self) -> bool {
        let mut callers = self.lists.lock();
        let present = callers
            .present
            .iter()
            .map(|(caller, _)| caller.clone())
            .collect();
        let before = std::mem::replace(&mut callers.bound, present);
        before.iter().any(|caller| !callers.bound.contains(caller))
    }

    /// The rules for all of them. `None`: no path is kept from any.
    fn rules(&self, rules: &Arc<dyn PathRulesInForce>) -> Option<CallerRules> {
        let callers = self.lists.lock();
        let present = callers.present.iter().map(|(caller, _)| caller);
        let gone = callers
            .bound
            .iter()
            .filter(|caller| present.clone().all(|known| known != *caller));
        let all = present.clone().chain(gone);
        let is_nobody = callers.present.is_empty() && callers.bound.is_empty();
        // Most hosts have no such rules, and then every call asks this.
        let keeps_any = is_nobody || all.clone().any(|caller| rules.has_path_rules(Some(caller)));
        keeps_any
            .then(|| CallerRules::of(Arc::clone(rules), all.cloned().collect()))
            .flatten()
    }
}

impl McpUpstream {
    /// The program, where the server is one.
    fn program(&self) -> Option<&McpProgram> {
        match &self.settings.transport {
            McpTransport::Stdio(program) => Some(program),
            McpTransport::Http { .. } => None,
        }
    }

    fn path_rules(&self) -> Option<Arc<dyn PathRulesInForce>> {
        self.feed.get()?.path_rules()
    }

    /// Whether rules keep any path from a caller that the server's program would have to be kept from.
    pub(super) fn must_guard(&self, caller: Option<&Principal>) -> bool {
        self.program().is_some()
            && self
                .path_rules()
                .is_some_and(|rules| rules.has_path_rules(caller))
    }

    /// What rules keep from the callers of a program that would be started now, or runs. Looks through its files where
    /// there are such rules.
    pub(super) async fn guards(&self, audience: &ServedCallers) -> Result<PathGuards, ToolFailure> {
        let (Some(program), Some(children)) = (self.program(), &self.children) else {
            return Ok(PathGuards::default());
        };
        // Where nothing can keep the program from a path, its calls ask.
        let rules = self
            .path_rules()
            .filter(|_| children.can_guard(program.profile));
        match rules.and_then(|rules| audience.rules(&rules)) {
            Some(rules) => {
                let sight = process::sight(program, children)?;
                children
                    .guards(program.profile, sight, rules, Arc::clone(&audience.guards))
                    .await
            }
            None => Ok(PathGuards::default()),
        }
    }

    /// What confines the program.
    pub(super) fn plan(&self) -> Option<SandboxPlan> {
        let program = self.program()?;
        let children = self.children.as_ref()?;
        let narrow = program
            .reads
            .as_ref()
            .and_then(|only| children.narrow_sight(only).ok());
        let sight = narrow.unwrap_or_else(|| children.whole_sight());
        Some(children.plan_in(program.profile, sight.roots))
    }

    /// Why single paths cannot be kept from the program, where they cannot.
    pub(super) fn guard_lack(&self) -> Option<&'static str> {
        let profile = self.program()?.profile;
        match (profile, &self.children) {
            (SandboxProfile::None, _) => Some("it runs without a sandbox (`sandbox: none`)"),
            (_, Some(children)) if children.can_guard(profile) => None,
            (_, _) => Some("this machine has no namespaces for its sandbox"),
        }
    }

    /// What an operator is told of a program that cannot be kept from what rules keep from every caller.
    pub(super) fn unbound(&self) -> Option<String> {
        let lack = self.guard_lack().filter(|_| self.must_guard(None))?;
        Some(format!(
            "path rules cannot bind it, so every call asks: {lack}"
        ))
    }

    /// What a caller is told of a program that `reads` does not limit.
    pub(super) fn unlimited(&self) -> Option<String> {
        let program = self.program()?;
        let is_confined = self.children.as_ref()?.confined(program.profile).is_some();
        (program.reads.is_some() && !is_confined).then(|| {
            format!(
                "`reads` limits which files the MCP server `{}` sees, and this machine cannot confine that",
                self.settings.name
            )
        })
    }

    /// What a caller is told of a program that cannot be kept from paths.
    pub(super) fn unguarded(&self, lack: &str) -> String {
        let name = &self.settings.name;
        format!(
            "rules keep paths from this call, and nothing keeps the MCP server `{name}` from them: {lack}"
        )
    }

    /// What a caller is told while other calls keep an outdated program from being started anew.
    pub(super) fn outdated(&self) -> String {
        format!(
            "the MCP server `{}` was started before the path rules, or the files that they keep, changed, and may still \
             reach those files; it is started anew once it is idle",
            self.settings.name
        )
    }

    /// How a call ends that nobody was asked about, because all this happened after the decision.
    pub(super) fn outdated_meanwhile(&self) -> ToolFailure {
        ToolFailure::of(ErrorClass::DependencyUnavailable, self.outdated())
            .code("server_outdated")
            .hint("send the call again; while the server is busy, an operator is asked about it")
            .untouched()
    }
}
