//! The command line as a layer of its own, so that its values pass the same checks as all others.

use std::path::PathBuf;

use toolpost_config::{
    A2eSection, AmplifierSection, ConfigFile, ConfigLayer, IncludeEntry, LayerTrust,
    NetworkSection, OneOrMany, RootAccess, RootEntry, RuleEntry, SandboxSection,
};
use toolpost_model::{Rule, RuleOrigin};

use crate::{
    cli::{ConfineArgs, PolicyArgs},
    environment,
};

/// The layer of the flags.
pub(super) fn flags(policy: &PolicyArgs) -> anyhow::Result<ConfigLayer> {
    let rules = [
        ("allow", &policy.allow),
        ("ask", &policy.ask),
        ("deny", &policy.deny),
        (Rule::DELEGATE, &policy.delegate),
    ];
    let lines = rules
        .iter()
        .flat_map(|(word, tools)| tools.iter().map(move |tool| format!("{word} {tool}")));
    let plans = policy
        .modules
        .mount_plan
        .iter()
        .cloned()
        .map(IncludeEntry::Plan);
    let servers = policy
        .modules
        .mcp_config
        .iter()
        .cloned()
        .map(IncludeEntry::Mcp);
    let a2e_host = policy
        .modules
        .a2e_config
        .iter()
        .cloned()
        .map(IncludeEntry::A2e);
    let import_paths = policy
        .modules
        .a2e_import_path
        .iter()
        .map(|path| environment::whole_path(path).into());
    let file = ConfigFile {
        mode: policy.mode.map(Into::into),
        rules: lines.map(|line| RuleEntry::Line(line).into()).collect(),
        include: plans
            .chain(servers)
            .chain(a2e_host)
            .map(Into::into)
            .collect(),
        a2e: A2eSection {
            import_paths: import_paths.collect(),
            ..A2eSection::default()
        },
        amplifier: AmplifierSection {
            replace_native: OneOrMany::of(&policy.modules.replace_native).map(Into::into),
            ..AmplifierSection::default()
        },
        ..confines(&policy.confines)
    };
    Ok(ConfigLayer::new(
        file.check("command line")?,
        LayerTrust::Trusted,
        RuleOrigin::Cli,
    ))
}

fn confines(flags: &ConfineArgs) -> ConfigFile {
    let root = |path: &PathBuf, access| {
        RootEntry {
            path: path.clone().into(),
            access,
        }
        .into()
    };
    let read = flags
        .read_root
        .iter()
        .map(|path| root(path, RootAccess::Read));
    let write = flags.root.iter().map(|path| root(path, RootAccess::Write));
    ConfigFile {
        roots: read.chain(write).collect(),
        sandbox: SandboxSection {
            profile: flags.sandbox.map(Into::into),
            require: flags.require_sandbox.then(|| true.into()),
            ..SandboxSection::default()
        },
        network: NetworkSection {
            private: flags
                .allow_private
                .iter()
                .cloned()
                .map(Into::into)
                .collect(),
            ..NetworkSection::default()
        },
        ..ConfigFile::default()
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use toolpost_config::{ConfigErrors, HostConfig, NativeReplacement, RootConfig};
    use toolpost_model::{ResourceAccess, SandboxProfile};

    use super::*;
    use crate::cli::ModuleArgs;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        policy: PolicyArgs,
    }

    fn resolved(words: &[&str]) -> anyhow::Result<HostConfig> {
        let line = Line::try_parse_from(["x"].iter().chain(words))?;
        assert_eq!(line.policy.is_empty(), words.is_empty(), "{words:?}");
        Ok(HostConfig::resolve(&[flags(&line.policy)?])?.0)
    }

    #[test]
    fn each_flag_reaches_its_own_setting() {
        assert_eq!(resolved(&[]).unwrap(), HostConfig::default());
        let roots = resolved(&["--root", "a", "--read-root", "b", "--root", "c"])
            .unwrap()
            .roots;
        let root = |path: &str, access| RootConfig {
            path: path.into(),
            access,
        };
        assert_eq!(
            roots,
            [
                root("b", ResourceAccess::Read),
                root("a", ResourceAccess::Write),
                root("c", ResourceAccess::Write)
            ]
        );
        assert_eq!(
            resolved(&["--sandbox", "none"]).unwrap().sandbox.profile,
            SandboxProfile::None
        );
        let plans = flags(&PolicyArgs {
            modules: ModuleArgs {
                mount_plan: vec!["a".into(), "b".into()],
                mcp_config: vec!["c".into()],
                ..ModuleArgs::default()
            },
            ..PolicyArgs::default()
        });
        let plans = plans.unwrap();
        let included: Vec<PathBuf> = plans.includes().collect();
        assert_eq!(included, [PathBuf::from("a"), PathBuf::from("b")]);
        assert_eq!(
            plans.mcp_includes().collect::<Vec<_>>(),
            [PathBuf::from("c")]
        );
        let replaced =
            resolved(&["--replace-native", "read_file", "--replace-native", "grep"]).unwrap();
        assert_eq!(
            replaced.amplifier.replace_native.names(),
            ["read_file", "grep"]
        );
        let replaced = resolved(&["--replace-native", "all"]).unwrap();
        assert_eq!(replaced.amplifier.replace_native, NativeReplacement::All);
        assert!(resolved(&["--require-sandbox"]).unwrap().sandbox.require);
        let network = resolved(&[
            "--allow-private",
            "http://127.0.0.1:1",
            "--allow-private",
            "http://a/b",
        ])
        .unwrap();
        assert_eq!(
            network.network.private,
            ["http://127.0.0.1:1/", "http://a/b"]
        );
    }

    #[test]
    fn rules_are_whole_selectors() {
        let line = [
            "--allow",
            "shell(cargo test *)",
            "--ask",
            "fs.write(deploy/**)",
            "--deny",
            "mcp.*[/force]",
        ];
        let rules: Vec<String> = resolved(&line)
            .unwrap()
            .rules
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(
            rules,
            [
                "allow shell(cargo test *)",
                "ask fs.write(deploy/**)",
                "deny mcp.*[/force]"
            ]
        );
        assert!(resolved(&["--allow", "shell(cargo"]).is_err());
    }

    #[test]
    fn what_is_no_url_is_refused_like_in_a_file() {
        let error = resolved(&["--allow-private", "127.0.0.1:80"]).unwrap_err();
        assert!(
            error.is::<ConfigErrors>() && error.to_string().contains("--> command line"),
            "{error}"
        );
    }
}
