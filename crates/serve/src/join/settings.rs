//! Compares the settings of two hosts by a digest of each section.
//!
//! The digests are computed from the debug form of each section, which is equal in both processes because they run the
//! same version of the program. Parts whose debug form is hidden, since they may be secrets, are added explicitly. A
//! digest is sent only over the unix socket to a process of the same user.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use toolpost_config::{HostConfig, McpPiece, McpValues};
use toolpost_model::Secret;

use crate::compose::NativeHandover;

/// A digest for each section, by the name of the section.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct SettingsDigests(BTreeMap<String, String>);

impl SettingsDigests {
    /// The sections in which two hosts differ.
    pub(super) fn differing(&self, other: &Self) -> Vec<String> {
        let names: BTreeSet<&String> = self.0.keys().chain(other.0.keys()).collect();
        names
            .into_iter()
            .filter(|name| self.0.get(*name) != other.0.get(*name))
            .cloned()
            .collect()
    }
}

/// The start options besides the configuration that influence the tools of a host.
#[derive(Clone)]
pub(crate) struct StartSettings {
    credentials: String,
    mcp_values: String,
    /// The embedder's additions, and the place of the tools among A2E's capabilities.
    own_parts: String,
}

impl StartSettings {
    pub(crate) fn new(handover: &NativeHandover, own_parts: &impl fmt::Debug) -> Self {
        let credentials: Vec<(&str, &str)> = handover
            .credentials
            .iter()
            .map(|(name, value)| (name.as_str(), value.reveal()))
            .collect();
        Self {
            credentials: digest(&credentials),
            mcp_values: mcp_values(&handover.mcp.values),
            own_parts: digest(own_parts),
        }
    }

    /// The digests of a configuration and these options.
    pub(super) fn digests(&self, config: &HostConfig) -> SettingsDigests {
        // The pattern lists every field, so that a new section causes a compile error here and cannot be forgotten.
        let HostConfig {
            mode,
            forbid_bypass,
            rules,
            notes,
            workspace,
            // Both hosts use the same data directory.
            data_dir: _,
            // The cache does not influence the modules.
            cache_dir: _,
            roots,
            protect,
            sandbox,
            network,
            code,
            commands,
            hooks,
            authorities,
            // Only variables that other sections name have an influence.
            environment: _,
            tools,
            policy_tools,
            restricted_tools,
            sources,
            http,
            tokens,
            approvals,
            limits,
            retention,
            discovery,
            a2e,
            a2a,
            mcp,
            modules,
            missing_bundles,
            plugins,
            native_tools,
            amplifier,
        } = config;
        // The place of a rule does not influence its meaning.
        let rules: Vec<_> = rules.iter().cloned().map(unplaced).collect();
        let variables = named_variables(config);
        let texts: Vec<String> = mcp
            .texts()
            .flat_map(|text| text.pieces())
            .map(piece)
            .collect();
        let sections = [
            ("mode", digest(&(mode, forbid_bypass))),
            ("rules", digest(&(rules, notes))),
            ("workspace", digest(workspace)),
            ("roots", digest(roots)),
            ("protect", digest(protect)),
            ("sandbox", digest(sandbox)),
            ("network", digest(network)),
            ("code", digest(code)),
            ("commands", digest(commands)),
            ("hooks", digest(hooks)),
            ("authorities", digest(authorities)),
            ("environment", digest(&variables)),
            ("tools", digest(&(tools, policy_tools, restricted_tools))),
            ("sources", digest(&(sources, &self.own_parts))),
            // The rest of the section concerns only the network.
            ("http.body_limit", digest(&http.body_limit)),
            ("tokens", digest(tokens)),
            ("credentials", self.credentials.clone()),
            ("approvals", digest(approvals)),
            ("limits", digest(limits)),
            ("retention", digest(retention)),
            ("discovery", digest(discovery)),
            ("a2e", digest(a2e)),
            ("a2a", digest(a2a)),
            ("mcp", digest(&(mcp, texts, &self.mcp_values))),
            ("modules", digest(&(modules, missing_bundles))),
            ("plugins", digest(&(plugins, native_tools))),
            ("amplifier", digest(amplifier)),
        ];
        SettingsDigests(
            sections
                .into_iter()
                .map(|(name, digest)| (name.to_owned(), digest))
                .collect(),
        )
    }
}

/// The values of the variables that sections name for the host's child processes.
fn named_variables(config: &HostConfig) -> Vec<Option<&String>> {
    let named = config.sandbox.environment.iter();
    let named = named.chain(
        config
            .commands
            .iter()
            .flat_map(|command| &command.environment),
    );
    let named = named.chain(config.hooks.iter().flat_map(|hook| &hook.environment));
    let named = named.chain(
        config
            .authorities
            .iter()
            .flat_map(|authority| authority.environment()),
    );
    let named: BTreeSet<&String> = named.collect();
    named
        .iter()
        .map(|name| config.environment.variables.get(*name))
        .collect()
}

fn unplaced(mut rule: toolpost_model::Rule) -> toolpost_model::Rule {
    rule.place.clear();
    rule
}

fn piece(piece: &McpPiece) -> String {
    match piece {
        McpPiece::Plain(text) => format!("plain {text}"),
        McpPiece::Variable { name, default } => format!("variable {name} {default:?}"),
        McpPiece::File(path) => format!("file {}", path.display()),
        McpPiece::Workspace => "workspace".to_owned(),
        McpPiece::Home => "home".to_owned(),
    }
}

fn mcp_values(values: &McpValues) -> String {
    let McpValues {
        variables,
        files,
        workspace: _,
        home: _,
    } = values;
    let variables: Vec<_> = variables
        .iter()
        .map(|(name, value)| (name, value.reveal()))
        .collect();
    let files: Vec<_> = files
        .iter()
        .map(|(path, value)| (path, value.as_ref().map(Secret::reveal)))
        .collect();
    digest(&(variables, files))
}

pub(crate) fn digest(value: &impl fmt::Debug) -> String {
    const_hex::encode(Sha256::digest(format!("{value:?}").as_bytes()))
}

#[cfg(test)]
mod tests {
    use toolpost_config::HostConfig;
    use toolpost_model::{PermissionMode, Secret};

    use super::StartSettings;
    use crate::compose::NativeHandover;

    fn started(credential: &str) -> StartSettings {
        let credentials = vec![("api".to_owned(), Secret::new(credential))];
        StartSettings::new(
            &NativeHandover {
                credentials,
                ..NativeHandover::default()
            },
            &(),
        )
    }

    #[test]
    fn sections_that_differ_are_named() {
        let own = started("a-secret");
        let config = HostConfig::default();
        let digests = own.digests(&config);
        assert_eq!(
            digests.differing(&started("a-secret").digests(&config)),
            Vec::<String>::new()
        );
        let mut other = HostConfig {
            mode: PermissionMode::Bypass,
            ..config.clone()
        };
        other.sandbox.require = true;
        other.http.listen = ([127, 0, 0, 1], 1).into();
        assert_eq!(digests.differing(&own.digests(&other)), ["mode", "sandbox"]);
        assert_eq!(
            digests.differing(&started("b-secret").digests(&config)),
            ["credentials"]
        );
    }
}
