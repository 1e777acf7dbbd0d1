//! Settings for the tools of well-known modules and servers, shipped with the host. By setting `sources.….profile`,
//! the operator vouches that the source really is that module.

use crate::{ConfigFile, ConfigLayer, HostConfig, LayerTrust, ToolTable};
use toolpost_model::RuleOrigin;

/// Each profile with its file.
const PROFILES: [(&str, &str); 8] = [
    (
        "amplifier-bash",
        include_str!("profiles/amplifier-bash.yaml"),
    ),
    (
        "amplifier-filesystem",
        include_str!("profiles/amplifier-filesystem.yaml"),
    ),
    (
        "amplifier-search",
        include_str!("profiles/amplifier-search.yaml"),
    ),
    ("amplifier-web", include_str!("profiles/amplifier-web.yaml")),
    ("mcp-fetch", include_str!("profiles/mcp-fetch.yaml")),
    (
        "mcp-filesystem",
        include_str!("profiles/mcp-filesystem.yaml"),
    ),
    ("mcp-git", include_str!("profiles/mcp-git.yaml")),
    ("mcp-github", include_str!("profiles/mcp-github.yaml")),
];

/// The names of the shipped profiles.
pub(crate) const NAMES: [&str; PROFILES.len()] = {
    let mut names = [""; PROFILES.len()];
    let mut place = 0;
    while place < names.len() {
        names[place] = PROFILES[place].0;
        place += 1;
    }
    names
};

/// A profile's settings of tools.
pub(crate) fn tools(name: &str) -> Option<ToolTable> {
    let (_, text) = PROFILES.iter().find(|(known, _)| *known == name)?;
    let parsed = ConfigFile::parse(text, name).ok()?;
    let layer = ConfigLayer::new(parsed, LayerTrust::Trusted, RuleOrigin::Builtin);
    Some(HostConfig::resolve(&[layer]).ok()?.0.tools)
}

#[cfg(test)]
mod tests {
    use super::{ConfigFile, NAMES, PROFILES, tools};

    #[test]
    fn every_profile_can_be_read_and_sets_a_class_for_each_tool() {
        for (name, text) in PROFILES {
            ConfigFile::parse(text, name).unwrap_or_else(|error| panic!("{error}"));
            let tools = tools(name).unwrap_or_else(|| panic!("{name}"));
            assert!(!tools.is_empty(), "{name}");
            for (tool, settings) in tools {
                assert!(settings.permission.class.is_some(), "{name}: {tool}");
            }
        }
        assert!(NAMES.is_sorted());
    }
}
