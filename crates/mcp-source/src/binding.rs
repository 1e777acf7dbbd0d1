//! Path rules for the program of a server: its callers, the paths that its sandbox must hide, and the messages about
//! programs that cannot be confined in this way.

use std::sync::Arc;

use parking_lot::Mutex;
use toolpost_model::{
    ErrorClass, PathRulesInForce, Principal, SandboxPlan, SandboxProfile, ToolFailure,
};
use toolpost_processes::{CallerRules, GuardCache, PathGuards};

use super::{McpProgram, McpTransport, process, server::McpUpstream};

/// The callers of one connection. A rule may hide a path from only one of them. A shared program cannot tell its
/// callers apart, so its sandbox hides the paths of all.
#[derive(Default)]
pub(super) struct ServedCallers {
    lists: Mutex<ProgramCallers>,
    /// The result of the last search for hidden paths.
    guards: Arc<GuardCache>,
}

#[derive(Default)]
struct ProgramCallers {
    /// Callers with open sessions, and the number of their sessions.
    present: Vec<(Principal, usize)>,
    /// The callers when the running program was started. A caller that left counts until the next start; otherwise
    /// short sessions would restart the program again and again.
    bound: Vec<Principal>,
}

impl ServedCallers {
    /// Adds a session of a caller.
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

    /// Removes a session of a caller.
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

    /// Notes that a program is started for the present callers. Returns whether the previous program also counted
    /// callers that have left.
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

    /// The rules for all callers together. `None`: they hide no path from any of them.
    fn rules(&self, rules: &Arc<dyn PathRulesInForce>) -> Option<CallerRules> {
        let callers = self.lists.lock();
        let present = callers.present.iter().map(|(caller, _)| caller);
        let gone = callers
            .bound
            .iter()
            .filter(|caller| present.clone().all(|known| known != *caller));
        let all = present.clone().chain(gone);
        let is_nobody = callers.present.is_empty() && callers.bound.is_empty();
        // A cheap test first: every call comes here, and most hosts have no path rules.
        let keeps_any = is_nobody || all.clone().any(|caller| rules.has_path_rules(Some(caller)));
        keeps_any
            .then(|| CallerRules::of(Arc::clone(rules), all.cloned().collect()))
            .flatten()
    }
}

impl McpUpstream {
    fn program(&self) -> Option<&McpProgram> {
        match &self.settings.transport {
            McpTransport::Stdio(program) => Some(program),
            McpTransport::Http { .. } => None,
        }
    }

    fn path_rules(&self) -> Option<Arc<dyn PathRulesInForce>> {
        self.feed.get()?.path_rules()
    }

    /// Whether rules hide any path from a caller, so that the sandbox of the server's program must hide it too.
    pub(super) fn must_guard(&self, caller: Option<&Principal>) -> bool {
        self.program().is_some()
            && self
                .path_rules()
                .is_some_and(|rules| rules.has_path_rules(caller))
    }

    /// The paths that the sandbox of the program must hide, for the present callers and those of the running program.
    /// Searches the program's files if there are such rules.
    pub(super) async fn guards(&self, audience: &ServedCallers) -> Result<PathGuards, ToolFailure> {
        let (Some(program), Some(children)) = (self.program(), &self.children) else {
            return Ok(PathGuards::default());
        };
        // A sandbox that cannot hide paths gets no guards; the calls ask instead (`guard_lack`).
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

    /// The sandbox of the program.
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

    /// The way to the server, to which rules about its tools are bound: the URL, or the program with its arguments and
    /// whether it is cut off from every network.
    pub(super) fn route(&self) -> String {
        match &self.settings.transport {
            McpTransport::Http { url, .. } => url.to_string(),
            McpTransport::Stdio(program) => {
                let is_cut_off = self
                    .plan()
                    .is_some_and(|plan| !plan.network && plan.lack.is_none());
                serde_json::json!([program.command, program.args, is_cut_off]).to_string()
            }
        }
    }

    /// Why the sandbox cannot hide single paths, if it cannot.
    pub(super) fn guard_lack(&self) -> Option<&'static str> {
        let profile = self.program()?.profile;
        match (profile, &self.children) {
            (SandboxProfile::None, _) => Some("it runs without a sandbox (`sandbox: none`)"),
            (_, Some(children)) if children.can_guard(profile) => None,
            (_, _) => Some("this machine has no namespaces for its sandbox"),
        }
    }

    /// The health message if rules hide paths from every caller and the program's sandbox cannot hide them.
    pub(super) fn unbound(&self) -> Option<String> {
        let lack = self.guard_lack().filter(|_| self.must_guard(None))?;
        Some(format!(
            "path rules cannot bind it, so every call needs approval: {lack}"
        ))
    }

    /// The caution if `reads` is set and this machine cannot enforce it.
    pub(super) fn unlimited(&self) -> Option<String> {
        let program = self.program()?;
        let is_confined = self.children.as_ref()?.confined(program.profile).is_some();
        (program.reads.is_some() && !is_confined).then(|| {
            format!(
                "`reads` limits the files that the MCP server `{}` can read, but this machine cannot enforce that",
                self.settings.name
            )
        })
    }

    /// The caution if the program's sandbox cannot hide paths that rules hide from the caller.
    pub(super) fn unguarded(&self, lack: &str) -> String {
        let name = &self.settings.name;
        format!(
            "rules keep paths from this call, but the MCP server `{name}` can reach them: {lack}"
        )
    }

    /// The caution while running calls delay the restart of an outdated program.
    pub(super) fn outdated(&self) -> String {
        format!(
            "the path rules, or the files that they keep, changed after the start of the MCP server `{}`, which may still \
             reach those files; it restarts once it is idle",
            self.settings.name
        )
    }

    /// The failure of a call if the program became outdated after the decision: the decision did not include this
    /// caution.
    pub(super) fn outdated_meanwhile(&self) -> ToolFailure {
        ToolFailure::of(ErrorClass::DependencyUnavailable, self.outdated())
            .code("server_outdated")
            .hint("send the call again; while the server is busy, the call needs approval")
            .untouched()
    }
}
