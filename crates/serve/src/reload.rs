//! Taking up a changed configuration while the host runs. Whoever knows the files reads them again and says what came
//! of it; calls that are under way go on as they began.

use std::sync::Arc;

use parking_lot::Mutex;
use toolpost_config::HostConfig;

use crate::{
    compose::{StartError, ToolConfiguration, policy},
    server::Server,
};

/// What came of taking up a configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReloadReport {
    /// The sections that changed and are in force.
    pub changed: Vec<&'static str>,
    /// The sections that changed and wait for the host to be started again.
    pub after_restart: Vec<&'static str>,
}

/// The configuration in force, and how the last try to take up another one went.
pub(crate) struct ActiveConfiguration {
    state: Mutex<ConfigurationState>,
}

struct ConfigurationState {
    config: HostConfig,
    reloads: u64,
    after_restart: Vec<&'static str>,
    problem: Option<String>,
}

/// The same, for telling.
pub(crate) struct ConfigurationStatus {
    pub(crate) mode: toolpost_model::PermissionMode,
    pub(crate) reloads: u64,
    pub(crate) after_restart: Vec<&'static str>,
    pub(crate) problem: Option<String>,
}

impl ActiveConfiguration {
    pub(crate) fn of(config: HostConfig) -> Self {
        Self {
            state: Mutex::new(ConfigurationState {
                config,
                reloads: 0,
                after_restart: Vec::new(),
                problem: None,
            }),
        }
    }

    pub(crate) fn config(&self) -> HostConfig {
        self.state.lock().config.clone()
    }

    pub(crate) fn told(&self) -> ConfigurationStatus {
        let state = self.state.lock();
        ConfigurationStatus {
            mode: state.config.mode,
            reloads: state.reloads,
            after_restart: state.after_restart.clone(),
            problem: state.problem.clone(),
        }
    }
}

impl Server {
    /// Puts another configuration in force, as far as that can be done while the host runs: mode, rules, and the
    /// settings of tools and sources. Where its rules mean nothing, everything stays as it is.
    pub async fn reload(&self, config: HostConfig) -> Result<ReloadReport, StartError> {
        let now = self.loaded().state.lock().config.clone();
        let after_restart = fixed(&now, &config);
        let next = HostConfig {
            mode: config.mode,
            forbid_bypass: config.forbid_bypass,
            rules: config.rules,
            notes: config.notes,
            tools: config.tools,
            policy_tools: config.policy_tools,
            restricted_tools: config.restricted_tools,
            sources: config.sources,
            ..now.clone()
        };
        let rules = (now.mode, &now.rules, &now.notes) != (next.mode, &next.rules, &next.notes);
        let tables = |config: &HostConfig| {
            (
                config.tools.clone(),
                config.policy_tools.clone(),
                config.restricted_tools.clone(),
            )
        };
        let tools = tables(&now) != tables(&next);
        let sources = now.sources != next.sources;
        let policy = if rules { Some(policy(&next)?) } else { None };
        // Stricter or looser, rules and settings change together as nearly as can be: nothing waits in between.
        if let Some(policy) = policy {
            self.host().replace_policy(Arc::new(policy));
        }
        if tools || sources {
            self.host()
                .replace_settings(ToolConfiguration::of(&next))
                .await;
        }
        let changed = [("rules", rules), ("tools", tools), ("sources", sources)];
        let changed = changed
            .into_iter()
            .filter_map(|(name, changed)| changed.then_some(name))
            .collect();
        let mut state = self.loaded().state.lock();
        state.config = next;
        state.reloads += 1;
        state.problem = None;
        state.after_restart.clone_from(&after_restart);
        Ok(ReloadReport {
            changed,
            after_restart,
        })
    }

    /// Notes that the configuration changed and cannot be taken up. What was in force stays; operators are told.
    pub fn keep_configuration(&self, problem: impl Into<String>) {
        let mut state = self.loaded().state.lock();
        state.problem = Some(problem.into());
        state.reloads += 1;
    }
}

/// The sections that differ and are only read when a host starts.
fn fixed(now: &HostConfig, next: &HostConfig) -> Vec<&'static str> {
    // Taken apart whole, so that a new section has to be thought about here.
    let HostConfig {
        mode: _,
        forbid_bypass: _,
        rules: _,
        notes: _,
        tools: _,
        policy_tools: _,
        restricted_tools: _,
        sources: _,
        // Of the environment, only what other sections name can differ.
        environment: _,
        workspace,
        data_dir,
        roots,
        protect,
        sandbox,
        network,
        code,
        commands,
        hooks,
        authorities,
        http,
        tokens,
        approvals,
        limits,
        retention,
        discovery,
        a2e,
        a2a,
        // Nobody changes it while a host runs.
        cache_dir: _,
        plugins,
        native_tools,
        modules,
        missing_bundles,
        amplifier,
        mcp,
    } = now;
    let sections = [
        ("workspace", *workspace != next.workspace),
        ("data_dir", *data_dir != next.data_dir),
        ("roots", *roots != next.roots),
        ("protect", *protect != next.protect),
        ("sandbox", *sandbox != next.sandbox),
        ("network", *network != next.network),
        ("code", *code != next.code),
        ("commands", *commands != next.commands),
        ("hooks", *hooks != next.hooks),
        ("authorities", *authorities != next.authorities),
        ("http", *http != next.http),
        ("tokens", *tokens != next.tokens),
        ("approvals", *approvals != next.approvals),
        ("limits", *limits != next.limits),
        ("retention", *retention != next.retention),
        ("discovery", *discovery != next.discovery),
        ("a2e", *a2e != next.a2e),
        ("a2a", *a2a != next.a2a),
        (
            "modules",
            (modules, missing_bundles) != (&next.modules, &next.missing_bundles),
        ),
        (
            "plugins",
            (plugins, native_tools) != (&next.plugins, &next.native_tools),
        ),
        ("amplifier", *amplifier != next.amplifier),
        ("mcp", *mcp != next.mcp),
    ];
    sections
        .into_iter()
        .filter_map(|(name, differs)| differs.then_some(name))
        .collect()
}
