//! Compiles the rules of a configuration.

use std::path::Path;

use toolpost_config::HostConfig;
use toolpost_core::{PathBaseFolders, Policy, PolicySpec};
use toolpost_model::{PermissionMode, Rule, RuleOrigin};
use toolpost_modules::allowed_message_patterns;

use super::StartError;

pub(crate) fn policy(config: &HostConfig) -> Result<Policy, StartError> {
    let spec = PolicySpec {
        mode: config.mode,
        rules: config
            .rules
            .iter()
            .cloned()
            .chain(plugin_rules(config))
            .collect(),
        places: places(config),
        notes: config.notes.clone(),
    };
    Policy::compile(spec).map_err(StartError::Rules)
}

/// The rules that allow messages of A2E plugins by default. The messages use the state that a plugin keeps for its
/// agent, and the operator added the plugin for that purpose. The modes `plan` and `never-ask` have no such default.
fn plugin_rules(config: &HostConfig) -> Vec<Rule> {
    let has_default = match config.mode {
        PermissionMode::Plan | PermissionMode::NeverAsk => false,
        PermissionMode::Default
        | PermissionMode::Edits
        | PermissionMode::Sandboxed
        | PermissionMode::Bypass => !config.plugins.is_empty(),
    };
    let patterns = allowed_message_patterns().filter(|_| has_default);
    let rules = patterns.map(|pattern| {
        Rule::parse(
            &format!("allow {pattern}"),
            RuleOrigin::Builtin,
            "default for A2E plugins",
        )
    });
    rules.filter_map(Result::ok).collect()
}

/// The base folders of paths in rules.
pub(super) fn places(config: &HostConfig) -> PathBaseFolders {
    // Tools report real paths, so rules must use the real folders too.
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    PathBaseFolders {
        workspace: config.workspace.as_deref().map(real),
        home: config.environment.home.clone(),
        roots: config.roots.iter().map(|root| real(&root.path)).collect(),
    }
}
