//! Who may say what.

mod exact_names;
mod trusted;

use std::time::Duration;

use toolpost_config::{
    ConfigFile, ConfigLayer, ConfigNotice, CredentialSource, HostConfig, LayerTrust,
};
use toolpost_model::{PermissionMode, ResourceAccess, RuleOrigin, SandboxProfile};

use crate::native;

fn trusted(text: &str) -> ConfigLayer {
    let parsed = ConfigFile::parse(text, "host.yaml").unwrap();
    ConfigLayer::new(parsed, LayerTrust::Trusted, RuleOrigin::Cli)
}

fn untrusted(text: &str) -> ConfigLayer {
    let parsed = ConfigFile::parse(text, "toolpost.yaml").unwrap();
    ConfigLayer::new(parsed, LayerTrust::Untrusted, RuleOrigin::Project)
}

fn resolve(layers: &[ConfigLayer]) -> (HostConfig, Vec<ConfigNotice>) {
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
        ("sandboxed", "edits", Word::Counts),
        ("edits", "sandboxed", Word::Ignored("mode")),
        ("default", "never-ask", Word::Counts),
        // Plan asks where a rule says so.
        ("never-ask", "plan", Word::Ignored("mode")),
    ] {
        check(
            &format!("mode: {host}"),
            &format!("mode: {project}"),
            expected,
        );
    }
}

#[test]
fn untrusted_rules_may_deny_and_ask() {
    check("", "rules: [deny x]", Word::Counts);
    check("", "rules: [ask x]", Word::Counts);
    check("", "rules: [allow x]", Word::Ignored("rules"));
    check(
        "",
        "rules: [{ rule: allow class:read }]",
        Word::Ignored("rules"),
    );
    // Under `plan` asking is looser than what holds without the rule.
    check("mode: plan", "rules: [ask x]", Word::Ignored("rules"));
    check(
        "mode: plan",
        "rules: [ask class:write]",
        Word::Ignored("rules"),
    );
    check("mode: plan", "rules: [ask class:read]", Word::Counts);
    check("mode: plan", "rules: [deny x]", Word::Counts);
    // Where nobody is asked, a rule that asks denies.
    check("mode: never-ask", "rules: [ask x]", Word::Counts);
    // Its own stricter mode does not take its rules away: both stay below what the host said.
    let (config, notices) = resolve(&[untrusted("mode: plan\nrules: [ask x]\n")]);
    assert_eq!(
        (config.mode, config.rules.len(), notices.len()),
        (PermissionMode::Plan, 1, 0)
    );
}

#[test]
fn untrusted_limits_may_only_be_lower() {
    for (key, lower, higher) in [
        ("concurrency", "8", "65"),
        ("session_concurrency", "1", "17"),
        ("queue", "10", "1025"),
        ("streams", "10", "1025"),
        ("processes", "1", "65"),
        ("deadline", "30s", "61s"),
        ("inline_chars", "1000", "50001"),
        ("sessions", "3", "2000"),
        ("session_idle", "1h", "48h"),
        ("argument_bytes", "1MiB", "5MiB"),
    ] {
        check("", &format!("limits: {{ {key}: {lower} }}"), Word::Counts);
        let ignored: &'static str = format!("limits.{key}").leak();
        check(
            "",
            &format!("limits: {{ {key}: {higher} }}"),
            Word::Ignored(ignored),
        );
    }
    check("", "limits: { deadline_ceiling: 300s }", Word::Counts);
    check(
        "",
        "limits: { deadline_ceiling: 20m }",
        Word::Ignored("limits.deadline_ceiling"),
    );
    check("", "limits: { queue: 1024 }", Word::Same);
    check(
        "limits: { queue: 5000 }",
        "limits: { queue: 4000 }",
        Word::Counts,
    );
    for share in ["1%", "100%"] {
        check(
            "",
            &format!("limits: {{ share: {share} }}"),
            Word::Ignored("limits.share"),
        );
    }
    for reserve in ["0%", "50%"] {
        let written = format!("limits: {{ operator_reserve: {reserve} }}");
        check("", &written, Word::Ignored("limits.operator_reserve"));
    }
    check(
        "",
        "limits: { journal: 1MiB }",
        Word::Ignored("limits.journal"),
    );
    check(
        "",
        "limits: { journal: 20GiB }",
        Word::Ignored("limits.journal"),
    );
    check(
        "",
        "limits: { artifacts: 1GiB }",
        Word::Ignored("limits.artifacts"),
    );
    check(
        "",
        "limits: { artifact: 1GiB }",
        Word::Ignored("limits.artifact"),
    );
}

#[test]
fn untrusted_tool_settings_may_only_restrict() {
    for (host, project, expected) in [
        ("", "enabled: false", Word::Counts),
        ("", "enabled: true", Word::Same),
        (
            "enabled: false",
            "enabled: true",
            Word::Ignored("tools.x.enabled"),
        ),
        ("", "deferred: true", Word::Counts),
        ("", "deferred: false", Word::Ignored("tools.x.deferred")),
        ("", "timeout: 30s", Word::Counts),
        ("", "timeout: 61s", Word::Ignored("tools.x.timeout")),
        (
            "timeout: 5s",
            "timeout: 30s",
            Word::Ignored("tools.x.timeout"),
        ),
        ("timeout: 5m", "timeout: 4m", Word::Counts),
        ("", "class: read", Word::Ignored("tools.x.class")),
        ("", "class: execute", Word::Ignored("tools.x.class")),
        ("", "max_inline_chars: 10", Word::Counts),
        (
            "",
            "max_inline_chars: 500000",
            Word::Ignored("tools.x.max_inline_chars"),
        ),
        ("", "keep: redact", Word::Ignored("tools.x.keep")),
        ("", "keep: inline", Word::Ignored("tools.x.keep")),
        ("", "approval_required: true", Word::Counts),
        (
            "",
            "approval_required: false",
            Word::Ignored("tools.x.approval_required"),
        ),
        (
            "approval_required: true",
            "approval_required: false",
            Word::Ignored("tools.x.approval_required"),
        ),
        (
            "",
            "requires: { roles: [operator] }",
            Word::Ignored("tools.x.requires"),
        ),
        ("", "hidden: true", Word::Counts),
        ("", "hidden: false", Word::Same),
        (
            "hidden: true",
            "hidden: false",
            Word::Ignored("tools.x.hidden"),
        ),
        ("", "name: y", Word::Ignored("tools.x.name")),
        ("", "ceiling: 5m", Word::Counts),
        ("", "ceiling: 10m", Word::Ignored("tools.x.ceiling")),
        ("", "idempotent: false", Word::Counts),
        ("", "idempotent: true", Word::Ignored("tools.x.idempotent")),
        ("", "concurrency: 1", Word::Counts),
        ("", "concurrency: 64", Word::Ignored("tools.x.concurrency")),
        ("", "exclusive: true", Word::Counts),
        ("", "exclusive: false", Word::Ignored("tools.x.exclusive")),
        ("", "interrupt: block", Word::Ignored("tools.x.interrupt")),
        ("", "argument_bytes: 1KiB", Word::Counts),
        (
            "",
            "argument_bytes: 5MiB",
            Word::Ignored("tools.x.argument_bytes"),
        ),
        ("", "sandbox: read-only", Word::Counts),
        ("", "sandbox: none", Word::Ignored("tools.x.sandbox")),
        // An agent could hide what it did.
        (
            "",
            "sensitive: [/command]",
            Word::Ignored("tools.x.sensitive"),
        ),
        (
            "",
            "defaults: { force: true }",
            Word::Ignored("tools.x.defaults"),
        ),
        (
            "",
            "arguments: { /command: read_path }",
            Word::Ignored("tools.x.arguments"),
        ),
    ] {
        check(
            &format!("tools: {{ x: {{ {host} }} }}"),
            &format!("tools: {{ x: {{ {project} }} }}"),
            expected,
        );
    }
}

#[test]
fn untrusted_source_settings_may_only_restrict() {
    for (host, project, expected) in [
        ("", "trust: none", Word::Counts),
        ("", "trust: claims", Word::Ignored("sources.x.trust")),
        ("", "trust: full", Word::Ignored("sources.x.trust")),
        ("trust: full", "trust: claims", Word::Counts),
        ("", "concurrency: 1", Word::Counts),
        (
            "concurrency: 2",
            "concurrency: 3",
            Word::Ignored("sources.x.concurrency"),
        ),
        ("", "profile: mcp-git", Word::Ignored("sources.x.profile")),
    ] {
        let section = |text: &str| format!("sources: {{ x: {{ {text} }} }}");
        check(&section(host), &section(project), expected);
    }
}

#[test]
fn a_restriction_bounds_whatever_entry_is_the_more_exact() {
    let host = trusted(
        "tools: { a.b: { timeout: 20s, ceiling: 2m, enabled: true, sandbox: network }, c: { timeout: 20s } }",
    );
    let project = untrusted(
        "tools: { '*': { timeout: 40s, approval_required: true, sandbox: read-only }, 'a*': { enabled: false } }",
    );
    let (config, _) = resolve(&[host, project]);
    let of = |id: &str| config.settings_for(&native(id), "");
    let seconds = |time| Some(Duration::from_secs(time));
    let ab = of("a.b");
    let xc = of("x.c");
    assert_eq!(ab.surface.enabled, Some(false));
    assert_eq!(ab.execution.timeout, seconds(20));
    assert_eq!(ab.execution.ceiling, seconds(40));
    assert_eq!(
        (ab.permission.approval_required, ab.execution.sandbox),
        (Some(true), Some(SandboxProfile::ReadOnly))
    );
    // A bound is not a deadline: the tool's own may be shorter, and what the operator set stays.
    assert_eq!(
        (xc.execution.timeout, xc.execution.ceiling),
        (seconds(20), seconds(20))
    );
    assert_eq!(
        (of("x.y").execution.timeout, of("x.y").execution.ceiling),
        (None, seconds(40))
    );
}

fn layer_of(origin: RuleOrigin, text: &str) -> ConfigLayer {
    ConfigLayer::new(
        ConfigFile::parse(text, origin.as_str()).unwrap(),
        LayerTrust::Trusted,
        origin,
    )
}

#[test]
fn the_highest_standing_that_says_a_thing_wins() {
    let user = layer_of(
        RuleOrigin::User,
        "mode: bypass\nlimits: { queue: 1, sessions: 1 }\nrules: [allow a]\n",
    );
    let project = layer_of(RuleOrigin::Project, "mode: edits\nrules: [allow b]\n");
    let flags = layer_of(RuleOrigin::Cli, "mode: default\nlimits: { queue: 2 }\n");
    let policy = layer_of(
        RuleOrigin::Policy,
        "mode: plan\nlimits: { queue: 3 }\nrules: [deny c]\n",
    );
    let (config, notices) = resolve(&[policy, flags.clone(), project.clone(), user.clone()]);
    assert_eq!(
        (config.mode, config.limits.queue, config.limits.sessions),
        (PermissionMode::Plan, 3, 1)
    );
    let mut rules: Vec<_> = config
        .rules
        .iter()
        .map(|rule| (rule.origin, rule.to_string()))
        .collect();
    rules.sort();
    assert_eq!(
        rules,
        [
            (RuleOrigin::Policy, "deny c"),
            (RuleOrigin::Project, "allow b"),
            (RuleOrigin::User, "allow a")
        ]
        .map(|(origin, rule)| (origin, rule.to_owned()))
    );
    assert!(notices.is_empty());
    assert_eq!(
        resolve(&[flags, project.clone(), user.clone()]).0.mode,
        PermissionMode::Default
    );
    assert_eq!(resolve(&[project, user]).0.mode, PermissionMode::Edits);
}

#[test]
fn what_the_policy_sets_for_tools_no_other_file_passes_by_being_more_exact() {
    let policy = layer_of(
        RuleOrigin::Policy,
        "tools: { 'mcp.*': { enabled: false, timeout: 10s } }",
    );
    let user = layer_of(
        RuleOrigin::User,
        "tools: { mcp.a.b: { enabled: true, deferred: true }, x: { enabled: true } }",
    );
    let (config, _) = resolve(&[user, policy]);
    let found = config.settings_for(&native("mcp.a.b"), "");
    assert_eq!(
        (found.surface.enabled, found.surface.deferred),
        (Some(false), Some(true))
    );
    assert_eq!(
        config.settings_for(&native("a.x"), "").surface.enabled,
        Some(true)
    );
}

#[test]
fn a_forbidden_bypass_is_forbidden_to_everybody() {
    for origin in [RuleOrigin::Policy, RuleOrigin::User] {
        let forbids = layer_of(origin, "forbid_bypass: true");
        let (config, notices) = resolve(&[
            forbids,
            layer_of(RuleOrigin::Cli, "mode: bypass\nforbid_bypass: false"),
        ]);
        assert_eq!(config.mode, PermissionMode::Default);
        assert!(notices[0].message.contains("forbidden"), "{}", notices[0]);
    }
    let (config, notices) = resolve(&[
        layer_of(RuleOrigin::Policy, "forbid_bypass: true"),
        trusted("mode: edits"),
    ]);
    assert_eq!((config.mode, notices.len()), (PermissionMode::Edits, 0));
    let (config, _) = resolve(&[untrusted("forbid_bypass: true"), trusted("mode: bypass")]);
    assert_eq!(
        config.mode,
        PermissionMode::Default,
        "anybody may forbid it"
    );
}

#[test]
fn only_a_file_given_by_name_says_where_to_work() {
    for origin in [RuleOrigin::Policy, RuleOrigin::User, RuleOrigin::Project] {
        let (config, notices) = resolve(&[layer_of(origin, "workspace: /w\ndata_dir: /d\n")]);
        assert_eq!((config.workspace, config.data_dir), (None, None));
        assert_eq!(
            notices
                .iter()
                .map(|notice| notice.key.as_str())
                .collect::<Vec<_>>(),
            ["workspace", "data_dir"]
        );
        assert!(notices[0].message.contains("--config"), "{}", notices[0]);
    }
}

#[test]
fn of_a_file_that_can_no_longer_be_read_what_restricts_stays() {
    let last = "mode: plan\nrules: [deny x, ask y, allow z]\ntools: { t: { enabled: false, timeout: 1h } }\n\
                protect: { paths: [deploy] }\nlimits: { deadline_ceiling: 2h }\n";
    let parsed = ConfigFile::parse(last, "user.yaml").unwrap();
    let broken = ConfigLayer::last_good(parsed, RuleOrigin::User, "`user.yaml` cannot be read");
    let (config, notices) = resolve(&[broken, trusted("mode: edits")]);
    let rules: Vec<_> = config
        .rules
        .iter()
        .map(|rule| (rule.origin, rule.to_string()))
        .collect();
    assert_eq!(
        rules,
        [
            (RuleOrigin::User, "deny x".to_owned()),
            (RuleOrigin::User, "ask y".to_owned())
        ]
    );
    assert_eq!(
        (config.mode, config.protect.paths.len()),
        (PermissionMode::Plan, 1)
    );
    assert_eq!(
        config.settings_for(&native("a.t"), "").surface.enabled,
        Some(false)
    );
    assert_eq!(config.limits.deadline_ceiling, Duration::from_secs(600));
    assert_eq!(config.notes, ["`user.yaml` cannot be read"]);
    assert!(notices.is_empty(), "its note says it all: {notices:?}");
}

#[expect(clippy::too_many_lines, reason = "a table of cases")]
#[test]
fn untrusted_files_say_nothing_of_the_outside() {
    check("", "workspace: /", Word::Ignored("workspace"));
    check("", "data_dir: .", Word::Ignored("data_dir"));
    check(
        "",
        "http: { listen: '0.0.0.0:80' }",
        Word::Ignored("http.listen"),
    );
    check(
        "",
        "http: { allowed_hosts: [evil.example] }",
        Word::Ignored("http.allowed_hosts"),
    );
    check(
        "",
        "http: { allowed_origins: ['https://evil.example'] }",
        Word::Ignored("http.allowed_origins"),
    );
    check(
        "",
        "http: { body_limit: 1MiB }",
        Word::Ignored("http.body_limit"),
    );
    let token = format!(
        "tokens: [{{ name: me, role: operator, sha256: '{}' }}]",
        "ab".repeat(32)
    );
    check("", &token, Word::Ignored("tokens"));
    check(
        "",
        "discovery: { require_shown: false }",
        Word::Ignored("discovery.require_shown"),
    );
    check(
        "discovery: { require_shown: false }",
        "discovery: { require_shown: true }",
        Word::Counts,
    );
    check("", "approvals: { timeout: 1m }", Word::Counts);
    check(
        "",
        "approvals: { timeout: 11m }",
        Word::Ignored("approvals.timeout"),
    );
    check("", "approvals: { grant_for: 1m }", Word::Counts);
    check(
        "",
        "approvals: { grant_for: 2h }",
        Word::Ignored("approvals.grant_for"),
    );
    check("", "approvals: { waiting: 5 }", Word::Counts);
    check(
        "",
        "approvals: { waiting: 257 }",
        Word::Ignored("approvals.waiting"),
    );
    check("", "mcp: { approval_wait: 10s }", Word::Counts);
    check("", "http: { patience: 10s }", Word::Counts);
    check(
        "",
        "http: { patience: 21s }",
        Word::Ignored("http.patience"),
    );
    check(
        "",
        "mcp: { approval_wait: 31s }",
        Word::Ignored("mcp.approval_wait"),
    );
    check(
        "",
        "approvals: { prompt: false }",
        Word::Ignored("approvals.prompt"),
    );
    check(
        "",
        "retention: { artifacts: 1h }",
        Word::Ignored("retention.artifacts"),
    );
    check(
        "",
        "retention: { artifacts: 60d }",
        Word::Ignored("retention.artifacts"),
    );
    check(
        "",
        "retention: { journal: { age: 1h } }",
        Word::Ignored("retention.journal.age"),
    );
    check(
        "",
        "retention: { journal: { size: 1MiB } }",
        Word::Ignored("retention.journal.size"),
    );
    check("", "a2e: { require_negotiated: true }", Word::Counts);
    check(
        "a2e: { require_negotiated: true }",
        "a2e: { require_negotiated: true }",
        Word::Same,
    );
    let loosened = Word::Ignored("a2e.require_negotiated");
    check(
        "a2e: { require_negotiated: true }",
        "a2e: { require_negotiated: false }",
        loosened,
    );
    check("", "a2e: { host_id: me }", Word::Ignored("a2e.host_id"));
    check(
        "",
        "a2e: { audit: { path: x } }",
        Word::Ignored("a2e.audit.path"),
    );
    check(
        "a2e: { audit: { path: y } }",
        "a2e: { audit: { path: x } }",
        Word::Ignored("a2e.audit.path"),
    );
    check(
        "",
        "a2e: { audit: { max_bytes: 1KiB } }",
        Word::Ignored("a2e.audit.max_bytes"),
    );
    check(
        "",
        "a2e: { audit: { backup_count: 0 } }",
        Word::Ignored("a2e.audit.backup_count"),
    );
    check("", "a2a: { enabled: false }", Word::Counts);
    check(
        "a2a: { enabled: false }",
        "a2a: { enabled: true }",
        Word::Ignored("a2a.enabled"),
    );
    check("", "a2a: { events: always }", Word::Ignored("a2a.events"));
    check("", "a2a: { url: 'https://x' }", Word::Ignored("a2a.url"));
    check("", "a2a: { name: x }", Word::Ignored("a2a.name"));
    check(
        "",
        "a2a: { description: x }",
        Word::Ignored("a2a.description"),
    );
}

#[test]
fn untrusted_files_add_no_folders_and_protect_more() {
    check("", "roots: [{ path: / }]", Word::Ignored("roots"));
    check(
        "",
        "roots: [{ path: /lib, access: write }]",
        Word::Ignored("roots"),
    );
    check(
        "roots: [{ path: /lib }]",
        "roots: [{ path: /lib }]",
        Word::Same,
    );
    check(
        "roots: [{ path: /lib }]",
        "roots: [{ path: /lib, access: write }]",
        Word::Ignored("roots"),
    );
    check(
        "",
        "protect: { defaults: false }",
        Word::Ignored("protect.defaults"),
    );
    check("", "protect: { git: false }", Word::Ignored("protect.git"));
    check(
        "protect: { defaults: false }",
        "protect: { defaults: true }",
        Word::Counts,
    );
    check(
        "protect: { git: false }",
        "protect: { git: true }",
        Word::Counts,
    );
    check("", "protect: { paths: ['deploy/**'] }", Word::Counts);
    check(
        "protect: { paths: [a] }",
        "protect: { paths: [a] }",
        Word::Same,
    );
}

#[test]
fn an_untrusted_sandbox_may_only_be_tighter() {
    let order = ["read-only", "workspace-write", "network", "none"];
    for (theirs, host) in order.iter().enumerate() {
        for (ours, project) in order.iter().enumerate() {
            let expected = match ours.cmp(&theirs) {
                std::cmp::Ordering::Less => Word::Counts,
                std::cmp::Ordering::Equal => Word::Same,
                std::cmp::Ordering::Greater => Word::Ignored("sandbox.profile"),
            };
            let profile = |word: &str| format!("sandbox: {{ profile: {word} }}");
            check(&profile(host), &profile(project), expected);
        }
    }
    check("", "sandbox: { require: true }", Word::Counts);
    check(
        "sandbox: { require: true }",
        "sandbox: { require: false }",
        Word::Ignored("sandbox.require"),
    );
    check(
        "",
        "sandbox: { readable: [/etc] }",
        Word::Ignored("sandbox.readable"),
    );
    check(
        "",
        "sandbox: { environment: [JAVA_HOME] }",
        Word::Ignored("sandbox.environment"),
    );
    check(
        "sandbox: { environment: [X] }",
        "sandbox: { environment: [X] }",
        Word::Same,
    );
    for (key, lower, higher) in [
        ("memory", "1GiB", "3GiB"),
        ("processes", "16", "257"),
        ("tmp", "1MiB", "1GiB"),
        ("file_size", "1MiB", "2GiB"),
        ("open_files", "64", "1025"),
    ] {
        check("", &format!("sandbox: {{ {key}: {lower} }}"), Word::Counts);
        let ignored: &'static str = format!("sandbox.{key}").leak();
        check(
            "",
            &format!("sandbox: {{ {key}: {higher} }}"),
            Word::Ignored(ignored),
        );
    }
}

#[test]
fn untrusted_files_open_no_way_out() {
    check(
        "",
        "network: { private: ['http://127.0.0.1/'] }",
        Word::Ignored("network.private"),
    );
    check("", "network: { max_body: 1MiB }", Word::Counts);
    check(
        "",
        "network: { max_body: 6MiB }",
        Word::Ignored("network.max_body"),
    );
    let credential = "network: { credentials: { x: { env: X, urls: ['https://evil.example/'] } } }";
    check("", credential, Word::Ignored("network.credentials"));
    let host = "network: { credentials: { x: { env: X, urls: ['https://good.example/'] } } }";
    check(host, credential, Word::Ignored("network.credentials"));
    check(
        "",
        "commands: { x: { description: d, argv: [sh] } }",
        Word::Ignored("commands"),
    );
    let host = "commands: { x: { description: d, argv: [ls] } }";
    check(
        host,
        "commands: { x: { description: d, argv: [sh] } }",
        Word::Ignored("commands"),
    );
}

#[test]
fn a_tightened_profile_and_ceiling_hold_for_commands() {
    let host = "commands:\n  a: { description: d, argv: [a], profile: none }\n  \
                b: { description: d, argv: [b], profile: read-only }\n  c: { description: d, argv: [c] }\n  \
                d: { description: d, argv: [d], class: network }\ntools: { a: { timeout: 5m } }\n";
    let read_only = Some(SandboxProfile::ReadOnly);
    let profiles =
        |config: &HostConfig| -> Vec<_> { config.commands.iter().map(|c| c.profile).collect() };
    let (config, _) = resolve(&[trusted(host), untrusted("mode: plan")]);
    assert_eq!(
        profiles(&config),
        [Some(SandboxProfile::None), read_only, None, None]
    );
    let project = "sandbox: { profile: read-only }\nlimits: { deadline_ceiling: 1m }\n";
    let (config, notices) = resolve(&[trusted(host), untrusted(project)]);
    assert_eq!(profiles(&config), [read_only, read_only, None, read_only]);
    let timeout = config.tools["a"].execution.timeout;
    assert_eq!(timeout, Some(Duration::from_secs(60)));
    assert!(notices.is_empty());
}

#[test]
fn an_untrusted_command_waits_for_trust() {
    let (_, notices) = resolve(&[untrusted(
        "commands:\n  x:\n    description: d\n    argv: [sh]\n",
    )]);
    let shown: Vec<String> = notices.iter().map(ToString::to_string).collect();
    let expected = "toolpost.yaml:3: `commands: x` is ignored: this file is not trusted and can only restrict; run `toolpost trust` to trust it";
    assert_eq!(shown, [expected]);
    let (_, notices) = resolve(&[untrusted("roots: [{ path: \"/\\e[31m\" }]")]);
    assert!(!notices[0].message.contains('\u{1b}'), "{}", notices[0]);
}

#[test]
fn grants_of_trusted_files_add_up_and_names_replace() {
    let first = "roots: [{ path: a }, { path: b }]\nprotect: { paths: [x] }\n\
                 sandbox: { readable: [/opt/a], environment: [A], memory: 1GiB }\n\
                 network:\n  private: ['http://10.0.0.1']\n  credentials:\n    \
                 k: { env: K, urls: ['https://k/'] }\n    l: { env: L, urls: ['https://l/'] }\n\
                 code: { tools: [a] }\n\
                 commands:\n  one: { description: first, argv: [a] }\n  two: { description: first, argv: [b] }\n";
    let second = "roots: [{ path: a, access: write }]\nprotect: { paths: [y, x] }\n\
                  sandbox: { readable: [/opt/b], environment: [B, A] }\n\
                  network:\n  private: ['http://10.0.0.2/']\n  credentials: { k: { file: k, urls: ['https://k/'] } }\n\
                  code: { tools: [b] }\n\
                  commands: { one: { description: second, argv: [c] } }\n";
    let (config, notices) = resolve(&[trusted(first), trusted(second)]);
    let roots: Vec<_> = config
        .roots
        .iter()
        .map(|root| (root.path.to_str().unwrap(), root.access))
        .collect();
    assert_eq!(
        roots,
        [("b", ResourceAccess::Read), ("a", ResourceAccess::Write)]
    );
    assert_eq!(config.protect.paths, ["x", "y"]);
    let readable: Vec<_> = config
        .sandbox
        .readable
        .iter()
        .map(|path| path.to_str().unwrap())
        .collect();
    assert_eq!(
        (readable, config.sandbox.memory),
        (vec!["/opt/a", "/opt/b"], 1 << 30)
    );
    assert_eq!(config.sandbox.environment, ["A", "B"]);
    assert_eq!(
        config.network.private,
        ["http://10.0.0.1/", "http://10.0.0.2/"]
    );
    let kept: Vec<_> = config
        .network
        .credentials
        .iter()
        .map(|known| (known.name.as_str(), &known.source))
        .collect();
    let variable = CredentialSource::Variable("L".to_owned());
    assert_eq!(
        kept,
        [("l", &variable), ("k", &CredentialSource::File("k".into()))]
    );
    assert_eq!(config.code.tools, ["b".parse().unwrap()]);
    let commands: Vec<_> = config
        .commands
        .iter()
        .map(|command| (command.name.as_str(), command.description.as_str()))
        .collect();
    assert_eq!(commands, [("two", "first"), ("one", "second")]);
    assert!(notices.is_empty());
}

#[test]
fn a_notice_says_where_and_what_would_change_it() {
    let (_, notices) = resolve(&[untrusted("mode: bypass\nrules:\n  - deny x\n  - allow y\n")]);
    let shown: Vec<String> = notices.iter().map(ToString::to_string).collect();
    let why = "is ignored: this file is not trusted and can only restrict; run `toolpost trust` to trust it";
    assert_eq!(
        shown,
        [
            format!("toolpost.yaml:1: `mode` {why}"),
            format!("toolpost.yaml:4: `allow y` {why}")
        ]
    );
}

#[test]
fn a_lowered_ceiling_holds_for_everything_below_it() {
    let host = trusted("tools: { x: { timeout: 5m } }\nlimits: { deadline: 2m }\n");
    let (config, notices) = resolve(&[
        host,
        untrusted("limits: { deadline_ceiling: 20s, deadline: 90s }"),
    ]);
    let limit = Duration::from_secs(20);
    assert_eq!(
        (config.limits.deadline, config.limits.deadline_ceiling),
        (limit, limit)
    );
    assert_eq!(config.tools["x"].execution.timeout, Some(limit));
    assert!(notices.is_empty());
    // Nobody wrote the default deadline, so a low ceiling alone is no contradiction.
    assert_eq!(
        resolve(&[trusted("limits: { deadline_ceiling: 20s }")])
            .0
            .limits
            .deadline,
        limit
    );
}
