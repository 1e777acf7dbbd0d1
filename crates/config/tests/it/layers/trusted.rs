//! Trusted files over one another.

use toolpost_config::{ConfigFile, ConfigLayer, LayerTrust};
use toolpost_model::{PermissionMode, RuleOrigin};

use super::{resolve, trusted};

#[test]
fn later_trusted_files_override_key_by_key() {
    let hash = |pair: &str| pair.repeat(32);
    let first = format!(
        "mode: edits\nrules: [allow a]\nlimits: {{ queue: 5, sessions: 6 }}\nhttp: {{ allowed_hosts: [a.example] }}\n\
         tokens:\n  - {{ name: ci, sha256: '{}' }}\n  - {{ name: me, sha256: '{}' }}\n",
        hash("aa"),
        hash("bb")
    );
    let second = format!(
        "rules: [deny b]\nlimits: {{ queue: 7 }}\nhttp: {{ allowed_hosts: [b.example] }}\n\
         tokens: [{{ name: ci, role: operator, sha256: '{}' }}]\n",
        hash("cc")
    );
    let (config, notices) = resolve(&[trusted(&first), trusted(&second)]);
    assert_eq!(
        (config.mode, config.limits.queue, config.limits.sessions),
        (PermissionMode::Edits, 7, 6)
    );
    assert_eq!(config.http.allowed_hosts, ["b.example"]);
    let rules: Vec<String> = config.rules.iter().map(ToString::to_string).collect();
    assert_eq!(rules, ["allow a", "deny b"]);
    let tokens: Vec<(&str, u8)> = config
        .tokens
        .iter()
        .map(|token| (token.name.as_str(), token.sha256[0]))
        .collect();
    assert_eq!(tokens, [("me", 0xbb), ("ci", 0xcc)]);
    assert!(notices.is_empty());
}

#[test]
fn a_trusted_workspace_file_may_say_everything_and_keeps_its_origin() {
    let parsed = ConfigFile::parse("mode: bypass\nrules: [allow x]\n", "toolpost.yaml").unwrap();
    let (config, notices) = resolve(&[ConfigLayer::new(
        parsed,
        LayerTrust::Trusted,
        RuleOrigin::Project,
    )]);
    assert_eq!(
        (config.mode, config.rules[0].origin, notices.len()),
        (PermissionMode::Bypass, RuleOrigin::Project, 0)
    );
}
