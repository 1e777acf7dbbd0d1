//! The variables of the host's environment that its child processes may see.

use std::{ffi::OsString, path::PathBuf};

use toolpost_config::{ChildVariables, HostConfig};
use toolpost_modules::SUPPLY_VARIABLES;

/// Variables that are harmless, or needed to find programs, beside those that begin with `LC_`.
const SHOWN: [&str; 8] = [
    "PATH", "LANG", "TZ", "TMPDIR", "USER", "LOGNAME", "SHELL", "NO_COLOR",
];
/// The folders of toolchains that are not in their usual place in the home folder.
const TOOLCHAINS: [&str; 4] = ["CARGO_HOME", "RUSTUP_HOME", "PYENV_ROOT", "NVM_DIR"];

/// The variables that children may see: those above, and those of the configuration.
///
/// A value that is not UTF-8 is left out, since a configuration could not contain it. A relative home is left out too:
/// it would mean another folder for each process.
pub(crate) fn child_variables(config: &HostConfig) -> ChildVariables {
    shown_to_children(config, std::env::vars_os())
}

fn shown_to_children(
    config: &HostConfig,
    environment: impl Iterator<Item = (OsString, OsString)>,
) -> ChildVariables {
    let of_commands = config
        .commands
        .iter()
        .flat_map(|command| &command.environment);
    let of_hooks = config.hooks.iter().flat_map(|hook| &hook.environment);
    let of_authorities = config
        .authorities
        .iter()
        .flat_map(|authority| authority.environment());
    // Modules get the variables that are passed to them, and the fetcher those for fetching; no other process gets
    // either.
    let of_modules = config
        .amplifier
        .pass
        .iter()
        .chain(&config.amplifier.fetch_pass);
    let of_servers = config.mcp.servers.iter().flat_map(|server| &server.pass);
    let named = config
        .sandbox
        .environment
        .iter()
        .chain(of_commands)
        .chain(of_hooks)
        .chain(of_authorities)
        .chain(of_modules);
    let named = named.chain(of_servers);
    let named: Vec<&str> = named.map(String::as_str).collect();
    let shown = |name: &str| {
        SHOWN.contains(&name)
            || TOOLCHAINS.contains(&name)
            || name.starts_with("LC_")
            || (!config.modules.is_empty() && SUPPLY_VARIABLES.contains(&name))
            || named.contains(&name)
    };
    let mut children = ChildVariables::default();
    for (name, value) in environment {
        let Ok(name) = name.into_string() else {
            continue;
        };
        if name == "HOME" {
            children.home = Some(PathBuf::from(value)).filter(|home| home.is_absolute());
        } else if let (true, Ok(value)) = (shown(&name), value.into_string()) {
            children.variables.insert(name, value);
        }
    }
    children
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt;

    use toolpost_config::{ConfigFile, ConfigLayer, LayerTrust};
    use toolpost_model::RuleOrigin;

    use super::*;

    fn check(yaml: &str, given: &[(&str, &str)], home: Option<&str>, names: &[&str]) {
        let parsed = ConfigFile::parse(yaml, "t").unwrap();
        let layer = ConfigLayer::new(parsed, LayerTrust::Trusted, RuleOrigin::Cli);
        let (config, _) = HostConfig::resolve(&[layer]).unwrap();
        let given = given
            .iter()
            .map(|(name, value)| (OsString::from(name), OsString::from(value)));
        let broken = OsString::from_vec(vec![b'x', 0xff]);
        let given = given.chain([("LC_X".into(), broken.clone()), (broken, "x".into())]);
        let shown = shown_to_children(&config, given);
        assert_eq!(shown.home, home.map(PathBuf::from));
        assert_eq!(
            shown
                .variables
                .keys()
                .map(String::as_str)
                .collect::<Vec<_>>(),
            names,
            "{yaml}"
        );
    }

    #[test]
    fn only_what_is_listed_or_named_is_shown() {
        let given = [
            ("PATH", "/bin"),
            ("LC_ALL", "C"),
            ("HOME", "/home/me"),
            ("CARGO_HOME", "/opt/cargo"),
            ("JAVA_HOME", "/opt/java"),
            ("STAGE", "live"),
            ("GITHUB_TOKEN", "hunter2"),
            ("LD_PRELOAD", "/evil.so"),
        ];
        check(
            "",
            &given,
            Some("/home/me"),
            &["CARGO_HOME", "LC_ALL", "PATH"],
        );
        let yaml = "sandbox: { environment: [JAVA_HOME, MISSING] }\n\
                    commands: { x: { description: d, argv: [a], environment: [STAGE] } }\n";
        check(
            yaml,
            &given,
            Some("/home/me"),
            &["CARGO_HOME", "JAVA_HOME", "LC_ALL", "PATH", "STAGE"],
        );
        check("", &[("HOME", "relative")], None, &[]);
    }
}
