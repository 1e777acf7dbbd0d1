//! `mcp.servers`: what can be meant, what is laid over what, and what references come to.

use std::{path::Path, time::Duration};

use toolpost_config::{
    ConfigFile, ConfigLayer, HostConfig, LayerTrust, McpEra, McpNaming, McpNewTools, McpReach,
    McpServerConfig, McpServersFile, McpShare, McpStart, McpText, McpUnresolved, McpValues,
};
use toolpost_model::{RuleOrigin, SandboxProfile, Secret};

fn layer(text: &str, standing: LayerTrust, origin: RuleOrigin) -> ConfigLayer {
    ConfigLayer::new(ConfigFile::parse(text, "t.yaml").unwrap(), standing, origin)
        .relative_to("/etc/x")
}

fn trusted(text: &str) -> ConfigLayer {
    layer(text, LayerTrust::Trusted, RuleOrigin::Cli)
}

fn listed(text: &str, json: &str) -> ConfigLayer {
    let file = McpServersFile::parse(json, "m.json", Path::new("/home/me")).unwrap();
    trusted(text).with_mcp_files(vec![file])
}

fn resolved(layers: &[ConfigLayer]) -> (HostConfig, Vec<String>) {
    let (config, notices) = HostConfig::resolve(layers).unwrap();
    (config, notices.iter().map(ToString::to_string).collect())
}

fn server(config: &HostConfig, name: &str) -> McpServerConfig {
    config
        .mcp
        .servers
        .iter()
        .find(|server| server.name == name)
        .unwrap()
        .clone()
}

/// Message and hint of the only error.
fn refused(text: &str) -> String {
    let errors = ConfigFile::parse(text, "t").unwrap_err();
    let all: Vec<_> = errors.iter().collect();
    assert_eq!(all.len(), 1, "{errors}");
    assert!(!errors.to_string().contains("hunter2"), "{errors}");
    format!(
        "{} {}",
        all[0].message,
        all[0].hint.as_deref().unwrap_or_default()
    )
}

#[test]
fn a_server_has_its_defaults() {
    let (config, notices) = resolved(&[trusted(
        "mcp: { servers: { x: { command: npx, args: [-y, some-server] } } }",
    )]);
    assert_eq!(notices, Vec::<String>::new());
    let found = server(&config, "x");
    let expected = McpServerConfig {
        name: "x".to_owned(),
        reach: McpReach::Program {
            command: McpText::plain("npx"),
            args: vec![McpText::plain("-y"), McpText::plain("some-server")],
            cwd: None,
            folder: "/etc/x/".into(),
            env: [].into(),
        },
        required: false,
        era: McpEra::Auto,
        naming: McpNaming::Namespaced,
        share: McpShare::Host,
        start: McpStart::Lazy,
        new_tools: McpNewTools::FirstUse,
        allow: None,
        deny: Vec::new(),
        timeout: None,
        connect_timeout: Duration::from_secs(30),
        idle_stop: None,
        max_message: 16 << 20,
        sandbox: None,
        pass: Vec::new(),
        readable: Vec::new(),
        writable: Vec::new(),
        reads: None,
        files: Vec::new(),
        place: "t.yaml:1".to_owned(),
    };
    assert_eq!(found, expected);
}

#[test]
fn what_cannot_be_meant_is_refused_with_a_hint() {
    let rows = [
        (
            "x: { command: a, url: 'http://h/' }",
            "`mcp.servers.x.url` cannot be combined with `command`",
        ),
        ("x: { url: ftp://h/ }", "neither `http` nor `https`"),
        (
            "x: { url: 'http://me:hunter2@h/' }",
            "send it under `headers`",
        ),
        ("x: { url: 'h/mcp' }", "`mcp.servers.x.url` is not a URL"),
        (
            "x: { type: sse, url: 'https://h/sse' }",
            "is `sse`, which is not supported",
        ),
        (
            "x: { type: sse, url: 'https://h/sse' }",
            "write `type: http` and that `url`",
        ),
        (
            "x: { type: stdio, url: 'https://h/' }",
            "but the server has a `url`",
        ),
        (
            "x: { type: http, command: a }",
            "but the server has a `command`",
        ),
        ("x: { type: smoke, command: a }", "write `stdio` or `http`"),
        (
            "x: { args: [a] }",
            "`mcp.servers.x.args` requires a `command`",
        ),
        (
            "x: { command: 'npx -y server' }",
            "write the arguments under `args`",
        ),
        (
            "x: { command: bin/server }",
            "neither a name nor an unambiguous path",
        ),
        ("x: { command: '' }", "is not a program"),
        ("x: { command: a, cwd: ~/x }", "`~` is not expanded here"),
        (
            "x: { command: a, env: { 'A B': hunter2 } }",
            "not the name of a variable",
        ),
        (
            "x: { command: a, pass: [LD_PRELOAD] }",
            "changes which code is loaded",
        ),
        (
            "x: { command: a, pass: [A=B] }",
            "is not the name of a variable",
        ),
        (
            "x: { url: 'http://h/', headers: { Host: hunter2 } }",
            "a header that the protocol sets itself",
        ),
        (
            "x: { url: 'http://h/', headers: { 'A b': hunter2 } }",
            "not the name of a header",
        ),
        (
            "x: { url: 'http://h/', headers: { A: 'hunter2 ${input:x}' } }",
            "is a prompt of an editor",
        ),
        (
            "x: { command: a, env: { A: 'hunter2 ${no such}' } }",
            "is an unknown reference",
        ),
        ("x: { command: a, args: ['hunter2 ${X'] }", "is not closed"),
        (
            "x: { command: a, tools: { allow: ['[x'] } }",
            "is not a pattern",
        ),
        ("x: { command: a, timeout: 2d }", "must be between"),
        ("x: { command: a, connect_timeout: 1h }", "must be between"),
        ("x: { command: a, max_message: 10 }", "must be between"),
        ("'a b': { command: a }", "is not a name for a server"),
        ("a__b: { command: a }", "is not a name for a server"),
        (
            "files: { command: a }",
            "is reserved for the host's own tools",
        ),
    ];
    for (entry, expected) in rows {
        let found = refused(&format!("mcp: {{ servers: {{ {entry} }} }}"));
        assert!(found.contains(expected), "{entry}: {found}");
    }
}

#[test]
fn a_slip_in_the_section_shows_no_value() {
    let errors = ConfigFile::parse(
        "mcp:\n  servers:\n    x:\n      url: http://h/\n      headers: { Authorization: Bearer hunter2, B: [1] }\n",
        "t",
    )
    .unwrap_err();
    assert!(!errors.to_string().contains("hunter2"), "{errors}");
}

#[test]
fn files_beside_the_configuration_are_found_from_everywhere() {
    let text = "mcp: { servers: { x: { command: ./bin/s, args: [../a.py, --at=./b, ./c], env: { K: { file: k } }, \
                readable: [r], writable: [/w] }, y: { command: python3, args: [./s.py], cwd: ./d } } }";
    let (config, _) = resolved(&[trusted(text)]);
    let x = server(&config, "x");
    assert_eq!(
        x.files,
        ["/etc/x/bin/s", "/etc/x/../a.py", "/etc/x/c"].map(Into::<std::path::PathBuf>::into)
    );
    assert!(x.readable.contains(&"/etc/x/r".into()) && x.files.contains(&"/etc/x/bin/s".into()));
    assert_eq!(x.writable, [Path::new("/w")]);
    let y = server(&config, "y");
    assert_eq!(y.files, [] as [&Path; 0], "they begin in its own folder");
    let McpReach::Program { env, .. } = &x.reach else {
        panic!()
    };
    assert_eq!(format!("{:?}", env["K"]), "${file:/etc/x/k}");
}

#[test]
fn a_section_says_more_of_a_server_that_a_list_names() {
    let json = r#"{"mcpServers": {"x": {"url": "https://h/mcp", "headers": {"A": "1"}}, "y": {"command": "y"}}}"#;
    let text = "mcp: { servers: { x: { naming: bare, headers: { B: '2' } }, y: { disabled: true }, z: { naming: bare } } }";
    let flags = listed("", json);
    // Whichever of one standing comes first.
    for layers in [[trusted(text), flags.clone()], [flags, trusted(text)]] {
        let (config, notices) = resolved(&layers);
        assert_eq!(notices, Vec::<String>::new());
        let x = server(&config, "x");
        assert_eq!((x.naming, x.place.as_str()), (McpNaming::Bare, "m.json:1"));
        let McpReach::Http { headers, .. } = &x.reach else {
            panic!()
        };
        assert_eq!(headers.keys().collect::<Vec<_>>(), ["A", "B"]);
        assert_eq!(config.mcp.servers.len(), 1);
        assert_eq!(config.mcp.unusable[0].name, "z");
        assert!(
            config.mcp.unusable[0]
                .reason
                .starts_with("`command` or `url` is missing")
        );
    }
}

#[test]
fn a_header_is_not_sent_to_an_endpoint_it_was_not_said_of() {
    let user =
        "mcp: { servers: { x: { url: 'https://a/', headers: { A: '${env:T}' }, naming: bare } } }";
    let given = "mcp: { servers: { x: { url: 'https://b/' } } }";
    let (config, _) = resolved(&[
        trusted(given),
        layer(user, LayerTrust::Trusted, RuleOrigin::User),
    ]);
    let x = server(&config, "x");
    let McpReach::Http { url, headers } = &x.reach else {
        panic!()
    };
    assert_eq!(
        (url.as_plain(), headers.len(), x.naming),
        (Some("https://b/"), 0, McpNaming::Bare)
    );
}

#[test]
fn an_untrusted_file_adds_no_server_and_may_leave_one_out() {
    let own =
        trusted("mcp: { servers: { x: { command: a, sandbox: network }, y: { command: b } } }");
    let theirs = "include: [{ mcp: evil.json }]\nsandbox: { profile: read-only }\nmcp:\n  servers:\n    evil: { command: sh }\n    x: { env: { A: b } }\n    y: { disabled: true }\n    new: { disabled: true, command: x }\n";
    let (config, notices) = resolved(&[
        own,
        layer(theirs, LayerTrust::Untrusted, RuleOrigin::Project),
    ]);
    let names: Vec<&str> = config
        .mcp
        .servers
        .iter()
        .map(|server| server.name.as_str())
        .collect();
    assert_eq!((names, config.mcp.unusable.len()), (vec!["x"], 0));
    assert_eq!(
        server(&config, "x").sandbox,
        Some(SandboxProfile::ReadOnly),
        "a stricter profile holds for servers too"
    );
    let McpReach::Program { env, .. } = &server(&config, "x").reach else {
        panic!()
    };
    assert!(env.is_empty());
    let ignored: Vec<&str> = notices
        .iter()
        .map(|notice| notice.split(" is ignored").next().unwrap())
        .collect();
    assert_eq!(
        ignored,
        [
            "t.yaml:1: `include: evil.json`",
            "t.yaml:5: `mcp.servers: evil`",
            "t.yaml:6: `mcp.servers: x`"
        ]
    );
}

#[test]
fn an_untrusted_file_may_only_take_paths_away_from_what_a_server_reads() {
    let own = "mcp: { servers: { all: { command: a }, some: { command: a, reads: [docs, src/api] }, \
               none: { command: a, reads: [] } } }";
    let theirs = "mcp:\n  servers:\n    all: { reads: [docs] }\n    some: { reads: [docs/public, src, other], sandbox: none }\n    none: { reads: [docs] }\n    new: { reads: [docs] }\n";
    let (config, notices) = resolved(&[
        trusted(own),
        layer(theirs, LayerTrust::Untrusted, RuleOrigin::Project),
    ]);
    let reads = |name: &str| server(&config, name).reads.unwrap();
    let paths = |list: &[&str]| {
        list.iter()
            .map(|path| Path::new("/etc/x").join(path))
            .collect::<Vec<_>>()
    };
    assert_eq!(reads("all"), paths(&["docs"]));
    assert_eq!(reads("some"), paths(&["docs/public", "src/api"]));
    assert_eq!(reads("none"), paths(&[]));
    assert_eq!(server(&config, "some").sandbox, None);
    assert_eq!(config.mcp.servers.len(), 3);
    let ignored: Vec<&str> = notices
        .iter()
        .map(|notice| notice.split(" is ignored").next().unwrap())
        .collect();
    assert_eq!(ignored, ["t.yaml:4: `mcp.servers: some`"]);
    // Of trusted files, the one that counts more says it alone.
    let over = layer(
        "mcp: { servers: { some: { reads: [/srv] } } }",
        LayerTrust::Trusted,
        RuleOrigin::Policy,
    );
    let (config, _) = resolved(&[trusted(own), over]);
    assert_eq!(
        server(&config, "some").reads.as_deref(),
        Some(&[Path::new("/srv").to_owned()][..])
    );
}

#[test]
fn a_secret_in_the_file_is_warned_of_and_never_printed() {
    let text = "mcp:\n  servers:\n    x:\n      url: https://h/\n      headers: { Authorization: Bearer hunter2hunter2, X-Api-Key: '${K}', X-Region: northwest }\n";
    let (config, notices) = resolved(&[trusted(text)]);
    assert_eq!(notices.len(), 1, "{notices:?}");
    assert!(
        notices[0]
            .starts_with("t.yaml:4: `mcp.servers.x.headers.Authorization` looks like a secret"),
        "{notices:?}"
    );
    assert!(
        !format!("{config:?} {notices:?} {text:?}")
            .replace(&format!("{text:?}"), "")
            .contains("hunter2")
    );
}

#[test]
fn references_are_put_together_or_told_by_name() {
    let values = McpValues {
        variables: [
            ("A".to_owned(), Secret::new("one")),
            ("EMPTY".to_owned(), Secret::new("")),
        ]
        .into(),
        files: [
            ("/k".into(), Ok(Secret::new("key"))),
            ("/bad".into(), Err("cannot be read".to_owned())),
        ]
        .into(),
        workspace: Some("/w".into()),
        home: None,
    };
    let check = |text: &str, expected: Result<(&str, &[&str]), McpUnresolved>| {
        let found = McpText::parse(text, Path::new("/"))
            .unwrap()
            .resolve(&values);
        let found = found.map(|found| {
            let secrets: Vec<String> = found
                .secrets
                .iter()
                .map(|secret| secret.reveal().to_owned())
                .collect();
            (found.text.reveal().to_owned(), secrets)
        });
        let expected = expected.map(|(text, secrets)| {
            (
                text.to_owned(),
                secrets.iter().map(ToString::to_string).collect(),
            )
        });
        assert_eq!(found, expected, "{text}");
    };
    check("plain $HOME {x}", Ok(("plain $HOME {x}", &[])));
    check("", Ok(("", &[])));
    check("Bearer ${A}!", Ok(("Bearer one!", &["one"])));
    check("${env:A}${A:-x}", Ok(("oneone", &["one", "one"])));
    check("${B:-else}", Ok(("else", &[])));
    check("${EMPTY:-}", Ok(("", &[])));
    check("${env:B:-http://x/}", Ok(("http://x/", &[])));
    check("$${A} ${file:k}", Ok(("${A} key", &["key"])));
    check("${workspaceFolder}/x", Ok(("/w/x", &[])));
    check("${B}", Err(McpUnresolved::Variable("B".to_owned())));
    check("${EMPTY}", Err(McpUnresolved::Variable("EMPTY".to_owned())));
    check("${userHome}", Err(McpUnresolved::Folder("home directory")));
    let why = "cannot be read".to_owned();
    check(
        "${file:/bad}",
        Err(McpUnresolved::File {
            path: "/bad".into(),
            why,
        }),
    );
}
