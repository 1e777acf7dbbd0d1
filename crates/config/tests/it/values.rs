//! Durations, sizes, defaults, and that what is written is what is used.

use std::{
    collections::BTreeMap,
    fmt::Display,
    net::SocketAddr,
    path::{Path, PathBuf},
    str::FromStr,
    time::Duration,
};

use toolpost_config::{
    A2aConfig, A2aEvents, A2eConfig, AmplifierConfig, AmplifierCore, ApprovalsConfig, AuditConfig,
    ByteSize, ChildVariables, CodeConfig, ConfigDuration, ConfigFile, ConfigLayer, DiscoveryConfig,
    HostConfig, HttpConfig, JournalRetention, LayerTrust, LimitsConfig, LocatedValue, McpConfig,
    ModuleInstall, ModuleIsolation, NativeReplacement, NativeToolsChoice, NetworkConfig,
    ProtectConfig, RetentionConfig, SandboxConfig, SourceConfig, SourceTrustLevel, TokenConfig,
    config_example,
};
use toolpost_model::{
    ArgumentKind, ArgumentMeaning, Behavior, EffectClass, Interrupt, PermissionMode,
    PersistStrategy, PrincipalRole, Provenance, RememberOffer, Requirements, RuleOrigin,
    SandboxProfile, Selector, ShareRules, ToolExecutionSettings, ToolInputSettings, ToolPattern,
    ToolPermissionSettings, ToolPersistenceSettings, ToolSettings, ToolSurfaceSettings,
};

use crate::{native, tool};

fn resolved(text: &str) -> HostConfig {
    let parsed = ConfigFile::parse(text, "toolpost.yaml").unwrap();
    let layer =
        ConfigLayer::new(parsed, LayerTrust::Trusted, RuleOrigin::Cli).relative_to("/etc/toolpost");
    HostConfig::resolve(&[layer]).unwrap().0
}

/// Parses to the value, and prints as a text that parses to it again.
fn check<T: FromStr<Err: Display> + Display, V: From<T> + PartialEq + std::fmt::Debug>(
    text: &str,
    expected: Result<V, &str>,
) {
    match (text.parse::<T>(), expected) {
        (Ok(found), Ok(expected)) => {
            let again = found.to_string().parse::<T>().ok().map(V::from);
            assert_eq!(again.as_ref(), Some(&expected), "{text} prints as {found}");
            assert_eq!(V::from(found), expected, "{text}");
        }
        (Err(error), Err(part)) => assert!(error.to_string().contains(part), "{text}: {error}"),
        (Ok(found), Err(part)) => panic!("{text} is {found}, not an error with {part}"),
        (Err(error), Ok(_)) => panic!("{text}: {error}"),
    }
}

#[test]
fn durations() {
    let check = check::<ConfigDuration, Duration>;
    check("250ms", Ok(Duration::from_millis(250)));
    check("30s", Ok(Duration::from_secs(30)));
    check("90s", Ok(Duration::from_secs(90)));
    check("5m", Ok(Duration::from_secs(300)));
    check("24h", Ok(Duration::from_secs(86_400)));
    check("1d", Ok(Duration::from_secs(86_400)));
    check("30d", Ok(Duration::from_secs(2_592_000)));
    check("49h", Ok(Duration::from_secs(176_400)));
    check("0s", Ok(Duration::ZERO));
    check("30", Err("`30` has no unit"));
    for text in ["", "s", "1.5s", "-1s", "30 s", "30S", "7w", "1h30m", "٣s"] {
        check(text, Err("is not a duration"));
    }
    check("99999999999999999h", Err("too long for a duration"));
}

#[test]
fn sizes() {
    let check = check::<ByteSize, u64>;
    check("512", Ok(512));
    check("0", Ok(0));
    check("64KiB", Ok(65_536));
    check("4MiB", Ok(4 << 20));
    check("1GiB", Ok(1 << 30));
    check("1025", Ok(1025));
    for text in ["", "MiB", "4MB", "4M", "4 MiB", "1.5GiB", "-1", "0x10"] {
        check(text, Err("is not a size"));
    }
    check("99999999999999999999", Err("too large for a size"));
}

fn modules_by_default() -> AmplifierConfig {
    AmplifierConfig {
        isolation: ModuleIsolation::Shared,
        core: AmplifierCore::Auto,
        python: None,
        install: ModuleInstall::Auto,
        sandbox: None,
        pass: Vec::new(),
        fetch_pass: Vec::new(),
        environment: BTreeMap::new(),
        readable: Vec::new(),
        writable: Vec::new(),
        hooks: BTreeMap::new(),
        post_on_failure: false,
        mount_timeout: None,
        max_result: None,
        replace_native: NativeReplacement::Names(Vec::new()),
        wasm: BTreeMap::new(),
    }
}

fn http_by_default() -> HttpConfig {
    HttpConfig {
        listen: "127.0.0.1:8765".parse().unwrap(),
        allowed_hosts: Vec::new(),
        allowed_origins: Vec::new(),
        body_limit: 4_194_304,
        patience: Duration::from_secs(20),
    }
}

fn approvals_by_default() -> ApprovalsConfig {
    let seconds = Duration::from_secs;
    ApprovalsConfig {
        timeout: seconds(600),
        grant_for: seconds(3_600),
        waiting: 256,
        prompt: true,
    }
}

fn agent_by_default() -> A2aConfig {
    A2aConfig {
        enabled: true,
        events: A2aEvents::Auto,
        url: None,
        name: "Toolpost".to_owned(),
        description: "Runs the tools of this host: send a message with a `tool-call` data part."
            .to_owned(),
    }
}

fn a2e_by_default() -> A2eConfig {
    A2eConfig {
        host_id: None,
        require_negotiated: false,
        import_paths: Vec::new(),
        audit: AuditConfig {
            path: None,
            max_bytes: 10_485_760,
            backup_count: 5,
        },
    }
}

#[test]
fn defaults_are_the_documented_ones() {
    let seconds = Duration::from_secs;
    let expected = HostConfig {
        mode: PermissionMode::Default,
        forbid_bypass: false,
        rules: Vec::new(),
        notes: Vec::new(),
        workspace: None,
        data_dir: None,
        roots: Vec::new(),
        protect: ProtectConfig {
            defaults: true,
            git: true,
            paths: Vec::new(),
        },
        sandbox: SandboxConfig {
            profile: SandboxProfile::WorkspaceWrite,
            require: false,
            readable: Vec::new(),
            environment: Vec::new(),
            memory: 2_147_483_648,
            processes: 256,
            tmp: 536_870_912,
            file_size: 1_073_741_824,
            open_files: 1024,
            lifetime: Duration::from_secs(24 * 3600),
        },
        network: NetworkConfig {
            private: Vec::new(),
            max_body: 5_242_880,
            credentials: Vec::new(),
        },
        code: CodeConfig {
            tools: vec![ToolPattern::every_id()],
            memory: 268_435_456,
            calls: 200,
            python3: true,
        },
        commands: Vec::new(),
        hooks: Vec::new(),
        authorities: Vec::new(),
        environment: ChildVariables {
            home: None,
            variables: [].into(),
        },
        tools: [].into(),
        policy_tools: [].into(),
        restricted_tools: [].into(),
        sources: [].into(),
        http: http_by_default(),
        tokens: Vec::new(),
        approvals: approvals_by_default(),
        limits: LimitsConfig {
            concurrency: 64,
            session_concurrency: 16,
            queue: 1024,
            shares: ShareRules {
                share: 25,
                operator_reserve: 10,
            },
            streams: 1024,
            processes: 64,
            deadline: seconds(60),
            deadline_ceiling: seconds(600),
            inline_chars: 50_000,
            sessions: 1024,
            session_idle: seconds(86_400),
            journal: 10_737_418_240,
            artifacts: 4_294_967_296,
            artifact: 2_147_483_648,
            argument_bytes: 4_194_304,
        },
        retention: RetentionConfig {
            artifacts: seconds(30 * 86_400),
            journal: JournalRetention {
                age: None,
                size: None,
            },
        },
        discovery: DiscoveryConfig {
            require_shown: true,
        },
        a2e: a2e_by_default(),
        a2a: agent_by_default(),
        mcp: McpConfig {
            approval_wait: seconds(30),
            servers: Vec::new(),
            unusable: Vec::new(),
        },
        cache_dir: None,
        modules: Vec::new(),
        missing_bundles: Vec::new(),
        plugins: Vec::new(),
        native_tools: NativeToolsChoice::Served,
        amplifier: modules_by_default(),
    };
    assert_eq!(HostConfig::default(), expected);
    for empty in ["", "# nothing\n", "---\n", "{}", "mode:\nrules:\nlimits:\n"] {
        assert_eq!(resolved(empty), expected, "{empty:?}");
    }
    assert_eq!(HostConfig::resolve(&[]).unwrap().0, expected);
}

#[test]
fn what_is_written_is_what_is_used() {
    let config = resolved(config_example());
    let rules: Vec<_> = config
        .rules
        .iter()
        .map(|rule| (rule.to_string(), rule.place.as_str()))
        .collect();
    let expected = [
        ("allow read_file", "toolpost.yaml:8"),
        ("ask class:write", "toolpost.yaml:9"),
        (
            "allow shell(cargo {build,test,check} *)",
            "toolpost.yaml:10",
        ),
        ("deny fs.read(**/.env*)", "toolpost.yaml:11"),
        ("delegate opa shell(git push *)", "toolpost.yaml:12"),
        ("delegate office-hours class:network", "toolpost.yaml:13"),
        ("deny github.*", "toolpost.yaml:14"),
        ("ask shell(git push --force *)", "toolpost.yaml:15"),
    ];
    assert_eq!(
        rules,
        expected.map(|(rule, place)| (rule.to_owned(), place))
    );
    assert_eq!(config.rules[6].reason.as_deref(), Some("not this quarter"));
    assert_eq!(
        config.rules[6].expires,
        Some("2027-01-01T00:00:00Z".parse().unwrap()),
        "the day counts whole"
    );
    let table = &config.rules[7];
    assert_eq!(
        (table.id.as_deref(), table.principal.as_deref()),
        (Some("no-force-push"), Some("ci-*"))
    );
    assert_eq!(
        (table.remember, table.tests.matching.len()),
        (RememberOffer::Never, 2)
    );
    assert_eq!(table.tests.not_match, ["echo git push --force"]);
    assert!(
        config
            .rules
            .iter()
            .all(|rule| rule.origin == RuleOrigin::Cli)
    );
    assert_eq!(
        config.workspace.as_deref(),
        Some(Path::new("/etc/toolpost/./work"))
    );
    assert_eq!(
        config.data_dir.as_deref(),
        Some(Path::new("/var/lib/toolpost"))
    );
    assert_eq!(
        config.tokens,
        [TokenConfig {
            name: "ci".to_owned(),
            role: PrincipalRole::Agent,
            tenant: Some("acme".to_owned()),
            sha256: [0; 32]
        }]
    );
    assert_eq!(config.http.allowed_hosts, ["tools.example.org"]);
    assert_eq!(config.http.allowed_origins, ["https://app.example.org"]);
    assert_eq!(config.limits, LimitsConfig::default());
    let journal = JournalRetention {
        age: Some(Duration::from_secs(365 * 86_400)),
        size: Some(8 << 30),
    };
    assert_eq!(
        config.retention,
        RetentionConfig {
            journal,
            ..RetentionConfig::default()
        }
    );
    let audit = AuditConfig {
        path: Some("/etc/toolpost/./audit.jsonl".into()),
        ..AuditConfig::default()
    };
    let host_id = Some("workshop".to_owned());
    let import_paths = vec!["/etc/toolpost/../python-sdk".into()];
    assert_eq!(
        config.a2e,
        A2eConfig {
            host_id,
            require_negotiated: false,
            import_paths,
            audit
        }
    );
    let a2a = A2aConfig {
        url: Some("https://tools.example.org/a2a".to_owned()),
        name: "Workshop".to_owned(),
        description: "Runs the tools of the workshop.".to_owned(),
        ..A2aConfig::default()
    };
    assert_eq!(config.a2a, a2a);
}

#[test]
fn what_is_written_of_tools_and_sources_is_what_is_used() {
    let config = resolved(config_example());
    let write_file = ToolSettings {
        surface: ToolSurfaceSettings {
            requires: Some(Requirements {
                model_capabilities: vec!["vision".to_owned()],
                roles: vec![PrincipalRole::Operator],
                tasks: vec!["release".to_owned()],
            }),
            ..ToolSurfaceSettings::default()
        },
        permission: ToolPermissionSettings {
            class: Some(EffectClass::Write),
            approval_required: Some(true),
            ..ToolPermissionSettings::default()
        },
        execution: ToolExecutionSettings {
            timeout: Some(Duration::from_secs(30)),
            ..ToolExecutionSettings::default()
        },
        persistence: ToolPersistenceSettings {
            max_inline_chars: Some(20_000),
            keep: Some(PersistStrategy::PreviewAndPersist),
        },
        ..ToolSettings::default()
    };
    let of = |id: &str| config.settings_for(&native(id), "");
    assert_eq!(of("files.write_file"), write_file);
    assert_eq!(of("http.fetch").surface.enabled, Some(false));
    assert_eq!(of("files.grep").surface.deferred, Some(true));
    assert_eq!(of("files.other"), ToolSettings::default());
    let crm = ToolSettings {
        surface: ToolSurfaceSettings {
            hidden: Some(true),
            ..ToolSurfaceSettings::default()
        },
        execution: ToolExecutionSettings {
            ceiling: Some(Duration::from_secs(300)),
            idempotent: Some(false),
            concurrency: Some(2),
            exclusive: Some(false),
            interrupt: Some(Interrupt::Cancel),
            sandbox: Some(SandboxProfile::ReadOnly),
            ..ToolExecutionSettings::default()
        },
        input: ToolInputSettings {
            argument_bytes: Some(65_536),
            sensitive: vec!["/customer/mail".to_owned()],
            ..ToolInputSettings::default()
        },
        ..ToolSettings::default()
    };
    assert_eq!(of("crm.drop"), crm);
    let meaning = ArgumentMeaning::of;
    let find = ToolSettings {
        surface: ToolSurfaceSettings {
            name: Some("find_customer".to_owned()),
            ..crm.surface
        },
        permission: ToolPermissionSettings {
            arguments: vec![
                meaning("export_to", ArgumentKind::WritePath),
                meaning("page", ArgumentKind::Url),
            ],
            ..crm.permission
        },
        input: ToolInputSettings {
            defaults: [("region".to_owned(), "eu".into())].into_iter().collect(),
            ..crm.input
        },
        ..crm
    };
    assert_eq!(
        of("crm.find_customer"),
        find,
        "what one entry leaves open, the wider one fills"
    );
    let expected = SourceConfig {
        trust: Some(SourceTrustLevel::Claims),
        concurrency: Some(4),
        profile: None,
    };
    assert_eq!(config.sources["crm"], expected);
    let read = config.settings_for(
        &tool("fs.read_text_file", Provenance::Outside),
        "files-server",
    );
    assert_eq!(
        (read.permission.class, &read.permission.arguments[..]),
        (
            Some(EffectClass::Read),
            &[meaning("path", ArgumentKind::ReadPath)][..]
        )
    );
}

#[test]
fn each_limit_reaches_its_own_setting() {
    let text = "limits: { concurrency: 1, session_concurrency: 2, queue: 3, share: 13%, operator_reserve: 14%, \
                streams: 15, processes: 16, deadline: 4s, deadline_ceiling: 5s, inline_chars: 6, sessions: 7, \
                session_idle: 8s, journal: 9MiB, artifacts: 11MiB, artifact: 12KiB, argument_bytes: 10KiB }";
    let seconds = Duration::from_secs;
    let expected = LimitsConfig {
        concurrency: 1,
        session_concurrency: 2,
        queue: 3,
        shares: ShareRules {
            share: 13,
            operator_reserve: 14,
        },
        streams: 15,
        processes: 16,
        deadline: seconds(4),
        deadline_ceiling: seconds(5),
        inline_chars: 6,
        sessions: 7,
        session_idle: seconds(8),
        journal: 9 << 20,
        artifacts: 11 << 20,
        artifact: 12 << 10,
        argument_bytes: 10 << 10,
    };
    assert_eq!(resolved(text).limits, expected);
}

#[test]
fn each_a2e_key_reaches_its_own_setting() {
    let config = resolved(
        "a2e: { host_id: h, require_negotiated: true, audit: { path: /a, max_bytes: 2KiB, backup_count: 0 } }",
    );
    let audit = AuditConfig {
        path: Some("/a".into()),
        max_bytes: 2048,
        backup_count: 0,
    };
    assert_eq!(
        config.a2e,
        A2eConfig {
            host_id: Some("h".to_owned()),
            require_negotiated: true,
            import_paths: Vec::new(),
            audit,
        }
    );
}

#[test]
fn each_a2a_key_reaches_its_own_setting() {
    let config = resolved(
        "a2a: { enabled: false, events: always, url: 'http://h:1', name: n, description: d }",
    );
    let expected = A2aConfig {
        enabled: false,
        events: A2aEvents::Always,
        url: Some("http://h:1".to_owned()),
        name: "n".to_owned(),
        description: "d".to_owned(),
    };
    assert_eq!(config.a2a, expected);
}

#[test]
fn of_several_entries_the_most_exact_one_that_says_a_thing_counts() {
    let config = resolved(
        "tools:\n  files.grep: { timeout: 9s, approval_required: false }\n  \
         grep: { timeout: 5s, deferred: true, class: read }\n  \
         'files.gr*': { deferred: false, max_inline_chars: 7, defaults: { a: 1, b: 1 } }\n  \
         'files.*': { max_inline_chars: 8, sensitive: [/x], defaults: { b: 2, c: 2 } }\n  \
         '*': { enabled: false, sensitive: [/y] }\n",
    );
    let found = config.settings_for(&native("files.grep"), "");
    let expected = ToolSettings {
        surface: ToolSurfaceSettings {
            enabled: Some(false),
            deferred: Some(true),
            ..ToolSurfaceSettings::default()
        },
        permission: ToolPermissionSettings {
            class: Some(EffectClass::Read),
            approval_required: Some(false),
            ..ToolPermissionSettings::default()
        },
        execution: ToolExecutionSettings {
            timeout: Some(Duration::from_secs(9)),
            ..ToolExecutionSettings::default()
        },
        input: ToolInputSettings {
            // Sensitive arguments of all entries add up; defaults are merged key by key.
            sensitive: vec!["/x".to_owned(), "/y".to_owned()],
            defaults: serde_json::json!({ "a": 1, "b": 1, "c": 2 })
                .as_object()
                .unwrap()
                .clone(),
            ..ToolInputSettings::default()
        },
        persistence: ToolPersistenceSettings {
            max_inline_chars: Some(7),
            ..ToolPersistenceSettings::default()
        },
    };
    assert_eq!(found, expected);
}

#[test]
fn a_profile_counts_for_its_source_only_and_after_everything_else() {
    let config = resolved(
        "sources: { fs: { profile: mcp-filesystem }, hub: { profile: mcp-github } }\ntools: { 'x.write*': { class: unknown }, h.merge_pull_request: { approval_required: false } }\n",
    );
    let class = |id: &str, source: &str| {
        config
            .settings_for(&tool(id, Provenance::Outside), source)
            .permission
            .class
    };
    assert_eq!(class("x.read_text_file", "fs"), Some(EffectClass::Read));
    assert_eq!(class("x.read_text_file", "other"), None);
    assert_eq!(class("x.write_file", "fs"), Some(EffectClass::Unknown));
    let of = |id: &str| config.settings_for(&tool(id, Provenance::Outside), "hub");
    assert_eq!(
        (
            of("h.get_issue").execution.idempotent,
            of("h.create_issue").execution.idempotent
        ),
        (Some(true), None)
    );
    assert_eq!(of("h.delete_file").permission.approval_required, Some(true));
    // An `allow` rule would not overrule the profile.
    let merge = of("h.merge_pull_request").permission;
    assert_eq!(merge.approval_required, Some(false));
    let edit = config
        .settings_for(&tool("x.edit_file", Provenance::Outside), "fs")
        .permission
        .arguments;
    assert_eq!(
        edit.iter().map(|meaning| meaning.kind).collect::<Vec<_>>(),
        [ArgumentKind::ReadPath, ArgumentKind::WritePath]
    );
}

#[test]
fn rules_expire_at_a_time_or_after_a_day() {
    for (written, expected) in [
        ("2026-12-31", "2027-01-01T00:00:00Z"),
        ("2028-02-28", "2028-02-29T00:00:00Z"),
        ("2026-12-31T18:00:00Z", "2026-12-31T18:00:00Z"),
        ("2026-12-31T18:00:00+02:00", "2026-12-31T16:00:00Z"),
    ] {
        let config = resolved(&format!(
            "rules: [{{ rule: deny x, expires: '{written}' }}]"
        ));
        assert_eq!(
            config.rules[0].expires,
            Some(expected.parse().unwrap()),
            "{written}"
        );
    }
}

#[test]
fn settings_from_flags_are_a_layer_too() {
    let mut flags = ConfigFile {
        mode: Some(PermissionMode::Edits.into()),
        ..ConfigFile::default()
    };
    flags.http.listen = Some(LocatedValue::from("[::1]:0".to_owned()));
    flags
        .rules
        .push(LocatedValue::from(toolpost_config::RuleEntry::Line(
            "deny shell.*".to_owned(),
        )));
    let layer = ConfigLayer::new(
        flags.check("--flags").unwrap(),
        LayerTrust::Trusted,
        RuleOrigin::Cli,
    );
    let (config, notices) = HostConfig::resolve(&[layer]).unwrap();
    assert_eq!(
        (config.mode, config.http.listen),
        (
            PermissionMode::Edits,
            SocketAddr::from_str("[::1]:0").unwrap()
        )
    );
    let rule = &config.rules[0];
    assert_eq!(
        (rule.effect, &rule.selector),
        (Behavior::Deny, &Selector::tool("shell.*").unwrap())
    );
    assert_eq!(
        (rule.origin, rule.place.as_str()),
        (RuleOrigin::Cli, "--flags")
    );
    assert!(notices.is_empty());

    let zero = ConfigFile {
        workspace: Some(LocatedValue::from(PathBuf::from("~/w"))),
        ..ConfigFile::default()
    };
    let error = zero.check("--workspace").unwrap_err();
    assert!(
        error
            .to_string()
            .ends_with("\n --> --workspace\nhint: write the whole path"),
        "{error}"
    );
}

#[test]
fn what_git_is_passed_does_not_reach_modules() {
    let config = resolved("amplifier: { pass: [KEY], fetch_pass: [SSH_AUTH_SOCK] }\n");
    let named = [
        ("KEY", "k"),
        ("SSH_AUTH_SOCK", "/run/agent"),
        ("OTHER", "o"),
    ];
    let variables = named
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into();
    let host = ChildVariables {
        variables,
        ..ChildVariables::default()
    };
    let names = |variables: BTreeMap<String, String>| variables.into_keys().collect::<Vec<_>>();
    assert_eq!(names(config.amplifier.variables(&host)), ["KEY"]);
    assert_eq!(
        names(config.amplifier.fetch_variables(&host)),
        ["SSH_AUTH_SOCK"]
    );
}

#[test]
fn a_tenant_is_a_name_like_that_of_a_token() {
    let hash = "0".repeat(64);
    let tenant =
        |name: &str| format!("tokens:\n  - {{ name: ci, tenant: {name}, sha256: \"{hash}\" }}\n");
    assert_eq!(
        resolved(&tenant("acme-1")).tokens[0].tenant.as_deref(),
        Some("acme-1")
    );
    let refused = ConfigFile::parse(&tenant("\"two words\""), "toolpost.yaml")
        .unwrap_err()
        .to_string();
    assert!(
        refused.contains("`two words` is not a name for a tenant"),
        "{refused}"
    );
}
