//! Applies a changed configuration to a running host. The program that owns the files reads them again and passes the
//! result here; running calls keep the configuration that they began with.

use std::sync::Arc;

use parking_lot::Mutex;
use toolpost_config::HostConfig;

use crate::{
    compose::{StartError, ToolConfiguration, policy},
    server::Server,
};

/// The effects of a new configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReloadReport {
    /// The changed sections that are in force.
    pub changed: Vec<&'static str>,
    /// The changed sections that need a restart.
    pub after_restart: Vec<&'static str>,
}

/// Whether a running host applies a changed key of a configuration file without a restart.
pub fn applies_while_running(key: &str) -> bool {
    let section = key.split_once('.').map_or(key, |(section, _)| section);
    matches!(
        section,
        "mode" | "forbid_bypass" | "rules" | "tools" | "sources"
    )
}

/// The configuration in force, and the result of the latest reload.
pub(crate) struct ActiveConfiguration {
    state: Mutex<ConfigurationState>,
}

struct ConfigurationState {
    config: HostConfig,
    reloads: u64,
    after_restart: Vec<&'static str>,
    problem: Option<String>,
}

/// The status for reports.
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
    /// Applies a new configuration as far as possible without a restart: mode, rules, and the settings of tools and
    /// sources. If its rules are invalid, nothing changes.
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
        // Rules and settings can become stricter or looser together. They are replaced one right after the other,
        // without waiting in between, so that hardly any call sees new rules with old settings.
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

    /// Reports that the new configuration is invalid. The old one stays in force; operators see the problem.
    pub fn keep_configuration(&self, problem: impl Into<String>) {
        let mut state = self.loaded().state.lock();
        state.problem = Some(problem.into());
        state.reloads += 1;
    }
}

/// The changed sections that are read only at the start.
fn fixed(now: &HostConfig, next: &HostConfig) -> Vec<&'static str> {
    // The pattern lists every field, so that a new section causes a compile error here and cannot be forgotten.
    let HostConfig {
        mode: _,
        forbid_bypass: _,
        rules: _,
        notes: _,
        tools: _,
        policy_tools: _,
        restricted_tools: _,
        sources: _,
        // Other sections contain the values of all variables that matter.
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
        // The cache of a running host does not change.
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
