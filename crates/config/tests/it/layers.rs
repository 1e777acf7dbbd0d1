//! Who may say what.

use std::time::Duration;

use toolpost_config::{ConfigFile, HostConfig, Layer, Notice, Standing};
use toolpost_model::{Mode, RuleOrigin};

fn trusted(text: &str) -> Layer {
    let parsed = ConfigFile::parse(text, "host.yaml").unwrap();
    Layer::new(parsed, Standing::Trusted, RuleOrigin::Config)
}

fn untrusted(text: &str) -> Layer {
    let parsed = ConfigFile::parse(text, "toolpost.yaml").unwrap();
    Layer::new(parsed, Standing::Untrusted, RuleOrigin::Project)
}

fn resolve(layers: &[Layer]) -> (HostConfig, Vec<Notice>) {
    HostConfig::resolve(layers).unwrap()
}

/// Whether an untrusted file's word counts over what a trusted file says.
#[derive(Clone, Copy, Debug)]
enum Word {
    /// It changes the settings, and nobody is told.
    Counts,
    /// It changes nothing, and a notice names this key.
    Ignored(&'static str),
    /// It says what holds anyway.
    Same,
}

fn check(host: &str, project: &str, expected: Word) {
    let (before, _) = resolve(&[trusted(host)]);
    let (after, notices) = resolve(&[untrusted(project), trusted(host)]);
    let keys: Vec<&str> = notices.iter().map(|notice| notice.key.as_str()).collect();
    match expected {
        Word::Counts => {
            assert_ne!(after, before, "{project} over {host}");
            assert!(keys.is_empty(), "{project} over {host}: {keys:?}");
        }
        Word::Ignored(key) => {
            assert_eq!(after, before, "{project} over {host}");
            assert_eq!(keys, [key], "{project} over {host}");
        }
        Word::Same => assert_eq!((after, keys), (before, vec![]), "{project} over {host}"),
    }
}

#[test]
fn an_untrusted_mode_may_only_be_stricter() {
    for (host, project, expected) in [
        ("default", "plan", Word::Counts),
        ("default", "edits", Word::Ignored("mode")),
        ("default", "bypass", Word::Ignored("mode")),
        ("default", "default", Word::Same),
        ("bypass", "edits", Word::Counts),
        ("plan", "default", Word::Ignored("mode")),
    ] {
        check(&format!("mode: {host}"), &format!("mode: {project}"), expected);
    }
}

#[test]
fn untrusted_rules_may_deny_and_ask() {
    check("", "rules: [deny x]", Word::Counts);
    check("", "rules: [ask x]", Word::Counts);
    check("", "rules: [allow x]", Word::Ignored("rules"));
    check("", "rules: [{ effect: allow, class: read }]", Word::Ignored("rules"));
    // Under `plan` asking is looser than what holds without the rule.
    check("mode: plan", "rules: [ask x]", Word::Ignored("rules"));
    check("mode: plan", "rules: [ask class:write]", Word::Ignored("rules"));
    check("mode: plan", "rules: [ask class:read]", Word::Counts);
    check("mode: plan", "rules: [deny x]", Word::Counts);
    // Its own stricter mode does not take its rules away: both stay below what the host said.
    let (config, notices) = resolve(&[untrusted("mode: plan\nrules: [ask x]\n")]);
    assert_eq!((config.mode, config.rules.len(), notices.len()), (Mode::Plan, 1, 0));
}

#[test]
fn untrusted_limits_may_only_be_lower() {
    for (key, lower, higher) in [
        ("concurrency", "8", "65"),
        ("session_concurrency", "1", "17"),
        ("queue", "10", "1025"),
        ("deadline", "30s", "61s"),
        ("inline_chars", "1000", "400001"),
        ("sessions", "3", "2000"),
        ("session_idle", "1h", "48h"),
        ("argument_bytes", "1MiB", "5MiB"),
    ] {
        check("", &format!("limits: {{ {key}: {lower} }}"), Word::Counts);
        let ignored: &'static str = format!("limits.{key}").leak();
        check("", &format!("limits: {{ {key}: {higher} }}"), Word::Ignored(ignored));
    }
    check("", "limits: { deadline_ceiling: 300s }", Word::Counts);
    check("", "limits: { deadline_ceiling: 20m }", Word::Ignored("limits.deadline_ceiling"));
    check("", "limits: { queue: 1024 }", Word::Same);
    check("limits: { queue: 5000 }", "limits: { queue: 4000 }", Word::Counts);
    check("", "limits: { journal: 1MiB }", Word::Ignored("limits.journal"));
    check("", "limits: { journal: 20GiB }", Word::Ignored("limits.journal"));
}

#[test]
fn untrusted_tool_settings_may_only_restrict() {
    for (host, project, expected) in [
        ("", "enabled: false", Word::Counts),
        ("", "enabled: true", Word::Same),
        ("enabled: false", "enabled: true", Word::Ignored("tools.x.enabled")),
        ("", "deferred: true", Word::Counts),
        ("", "deferred: false", Word::Ignored("tools.x.deferred")),
        ("", "timeout: 30s", Word::Counts),
        ("", "timeout: 61s", Word::Ignored("tools.x.timeout")),
        ("timeout: 5s", "timeout: 30s", Word::Ignored("tools.x.timeout")),
        ("timeout: 5m", "timeout: 4m", Word::Counts),
        ("", "class: read", Word::Ignored("tools.x.class")),
        ("", "class: execute", Word::Ignored("tools.x.class")),
        ("", "max_inline_chars: 10", Word::Counts),
        ("", "max_inline_chars: 500000", Word::Ignored("tools.x.max_inline_chars")),
        ("", "approval_required: true", Word::Counts),
        ("", "approval_required: false", Word::Ignored("tools.x.approval_required")),
        ("approval_required: true", "approval_required: false", Word::Ignored("tools.x.approval_required")),
        ("", "requires: { roles: [operator] }", Word::Ignored("tools.x.requires")),
    ] {
        check(
            &format!("tools: {{ x: {{ {host} }} }}"),
            &format!("tools: {{ x: {{ {project} }} }}"),
            expected,
        );
    }
}

#[test]
fn untrusted_files_say_nothing_of_the_outside() {
    check("", "workspace: /", Word::Ignored("workspace"));
    check("", "data_dir: .", Word::Ignored("data_dir"));
    check("", "http: { listen: '0.0.0.0:80' }", Word::Ignored("http.listen"));
    check("", "http: { allowed_hosts: [evil.example] }", Word::Ignored("http.allowed_hosts"));
    check("", "http: { allowed_origins: ['https://evil.example'] }", Word::Ignored("http.allowed_origins"));
    check("", "http: { body_limit: 1MiB }", Word::Ignored("http.body_limit"));
    let token = format!("tokens: [{{ name: me, role: operator, sha256: '{}' }}]", "ab".repeat(32));
    check("", &token, Word::Ignored("tokens"));
    check("", "discovery: { require_shown: false }", Word::Ignored("discovery.require_shown"));
    check("discovery: { require_shown: false }", "discovery: { require_shown: true }", Word::Counts);
    check("", "a2e: { require_negotiated: true }", Word::Counts);
    check("a2e: { require_negotiated: true }", "a2e: { require_negotiated: true }", Word::Same);
    let loosened = Word::Ignored("a2e.require_negotiated");
    check("a2e: { require_negotiated: true }", "a2e: { require_negotiated: false }", loosened);
    check("", "a2e: { host_id: me }", Word::Ignored("a2e.host_id"));
    check("", "a2e: { audit: { path: x } }", Word::Ignored("a2e.audit.path"));
    check("a2e: { audit: { path: y } }", "a2e: { audit: { path: x } }", Word::Ignored("a2e.audit.path"));
    check("", "a2e: { audit: { max_bytes: 1KiB } }", Word::Ignored("a2e.audit.max_bytes"));
    check("", "a2e: { audit: { backup_count: 0 } }", Word::Ignored("a2e.audit.backup_count"));
}

#[test]
fn a_notice_says_where_and_what_would_change_it() {
    let (_, notices) = resolve(&[untrusted("mode: bypass\nrules:\n  - deny x\n  - allow y\n")]);
    let shown: Vec<String> = notices.iter().map(ToString::to_string).collect();
    let why =
        "is ignored: this file is not trusted and may only restrict; `toolpost trust` would change that";
    assert_eq!(
        shown,
        [format!("toolpost.yaml:1: `mode` {why}"), format!("toolpost.yaml:4: `allow y` {why}")]
    );
}

#[test]
fn a_lowered_ceiling_holds_for_everything_below_it() {
    let host = trusted("tools: { x: { timeout: 5m } }\nlimits: { deadline: 2m }\n");
    let (config, notices) = resolve(&[host, untrusted("limits: { deadline_ceiling: 20s, deadline: 90s }")]);
    let limit = Duration::from_secs(20);
    assert_eq!((config.limits.deadline, config.limits.deadline_ceiling), (limit, limit));
    assert_eq!(config.tools["x"].timeout, Some(limit));
    assert!(notices.is_empty());
    // Nobody wrote the default deadline, so a low ceiling alone is no contradiction.
    assert_eq!(resolve(&[trusted("limits: { deadline_ceiling: 20s }")]).0.limits.deadline, limit);
}

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
    assert_eq!((config.mode, config.limits.queue, config.limits.sessions), (Mode::Edits, 7, 6));
    assert_eq!(config.http.allowed_hosts, ["b.example"]);
    let rules: Vec<String> = config.rules.iter().map(ToString::to_string).collect();
    assert_eq!(rules, ["allow a", "deny b"]);
    let tokens: Vec<(&str, u8)> =
        config.tokens.iter().map(|token| (token.name.as_str(), token.sha256[0])).collect();
    assert_eq!(tokens, [("me", 0xbb), ("ci", 0xcc)]);
    assert!(notices.is_empty());
}

#[test]
fn a_trusted_workspace_file_may_say_everything_and_keeps_its_origin() {
    let parsed = ConfigFile::parse("mode: bypass\nrules: [allow x]\n", "toolpost.yaml").unwrap();
    let (config, notices) = resolve(&[Layer::new(parsed, Standing::Trusted, RuleOrigin::Project)]);
    assert_eq!((config.mode, config.rules[0].origin, notices.len()), (Mode::Bypass, RuleOrigin::Project, 0));
}
