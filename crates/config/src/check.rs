//! Checks of values that have the right shape but cannot be intended. All checks run, so that all complaints come at
//! once.

mod a2a;
pub(crate) mod a2e;
mod amplifier;
mod approvals;
mod authorities;
mod commands;
mod hooks;
mod http;
pub(crate) mod limits;
pub(crate) mod mcp;
mod network;
mod retention;
mod roots;
mod rules;
pub(crate) mod sandbox;
mod tokens;
mod tools;

use std::net::SocketAddr;

use toolpost_model::Rule;

use crate::{
    AuthorityConfig, CommandConfig, ConfigFile, HookConfig, LocatedValue, TokenConfig,
    error::{ConfigComplaint, ConfigSourceText},
    mcp_entry::McpSaid,
    snippet::shown,
};

/// The values from the check of a file, so that their texts are parsed only once.
#[derive(Clone, Debug)]
pub(crate) struct CheckedValues {
    /// In the order of the file. The layer sets their origin.
    pub(crate) rules: Vec<LocatedValue<Rule>>,
    pub(crate) listen: Option<LocatedValue<SocketAddr>>,
    pub(crate) tokens: Vec<LocatedValue<TokenConfig>>,
    pub(crate) network: network::CheckedNetworkValues,
    pub(crate) commands: Vec<LocatedValue<CommandConfig>>,
    pub(crate) hooks: Vec<LocatedValue<HookConfig>>,
    pub(crate) authorities: Vec<LocatedValue<AuthorityConfig>>,
    /// With their paths as written.
    pub(crate) mcp: Vec<LocatedValue<(String, McpSaid)>>,
}

pub(crate) fn check(
    file: &ConfigFile,
    source: ConfigSourceText<'_>,
) -> (CheckedValues, Vec<ConfigComplaint>) {
    let mut complaints = Vec::new();
    let checked = CheckedValues {
        rules: rules::check(&file.rules, source, &mut complaints),
        listen: http::check(&file.http, &mut complaints),
        tokens: tokens::check(&file.tokens, &mut complaints),
        network: network::check(&file.network, source, &mut complaints),
        commands: commands::check(&file.commands, source, &mut complaints),
        hooks: hooks::check(&file.hooks, source, &mut complaints),
        authorities: authorities::check(&file.authorities, source, &mut complaints),
        mcp: mcp::check(&file.mcp, source, &mut complaints),
    };
    roots::check(&file.roots, &file.protect, &mut complaints);
    sandbox::check(&file.sandbox, &mut complaints);
    sandbox::check_code(&file.code, &mut complaints);
    tools::check(&file.tools, &mut complaints);
    tools::check_sources(&file.sources, &mut complaints);
    approvals::check(&file.approvals, &mut complaints);
    limits::check(&file.limits, &mut complaints);
    retention::check(&file.retention, &mut complaints);
    a2e::check(&file.a2e, &mut complaints);
    a2a::check(&file.a2a, &mut complaints);
    amplifier::check(file, &mut complaints);
    let paths = [
        ("workspace", &file.workspace),
        ("data_dir", &file.data_dir),
        ("a2e.audit.path", &file.a2e.audit.path),
    ];
    for (key, path) in paths {
        complaints.extend(path.as_ref().and_then(|path| path_complaint(key, path)));
    }
    (checked, complaints)
}

/// Refuses a path that this library cannot resolve without a guess.
pub(crate) fn path_complaint(
    key: &str,
    path: &LocatedValue<std::path::PathBuf>,
) -> Option<ConfigComplaint> {
    let text = path.value.to_string_lossy();
    if text.is_empty() {
        return Some(ConfigComplaint::new(path.at, format!("`{key}` is empty")));
    }
    let home = text == "~" || text.starts_with("~/");
    let message = format!(
        "`{key}` is `{}`, and `~` is not expanded here",
        shown(&text)
    );
    home.then(|| {
        ConfigComplaint::new(path.at, message).hint(Some("write the whole path".to_owned()))
    })
}
