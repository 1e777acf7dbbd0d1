//! Files of A2E hosts as people have them, in this host's terms.

use insta::assert_snapshot;
use toolpost_config::{
    A2eFace, A2eHostFile, A2ePlugin, A2ePluginClass, AuditConfig, ConfigFile, ConfigLayer,
    HostConfig, LayerTrust, NativeToolsChoice,
};
use toolpost_model::RuleOrigin;

fn parsed(text: &str) -> A2eHostFile {
    A2eHostFile::parse(text, "host.yaml").unwrap()
}

/// The settings of the file as a trusted layer of its own.
fn config(file: &A2eHostFile) -> HostConfig {
    let layer = ConfigLayer::new(file.parsed.clone(), LayerTrust::Trusted, RuleOrigin::Cli)
        .relative_to("/etc");
    let (config, notices) = HostConfig::resolve(&[layer]).unwrap();
    assert!(notices.is_empty(), "{notices:?}");
    config
}

fn notices(file: &A2eHostFile) -> Vec<String> {
    file.notices.iter().map(ToString::to_string).collect()
}

/// A file that is good, and what is said about it.
fn check_notices(text: &str, expected: &[&str]) {
    let found: Vec<String> = notices(&parsed(text))
        .iter()
        .map(|notice| notice.replace("host.yaml:", ""))
        .collect();
    assert_eq!(found, expected, "{text}");
}

/// Place, message and hint of the first error.
fn check_error(text: &str, place: &str, message: &str, hint: Option<&str>) {
    let errors = A2eHostFile::parse(text, "t").unwrap_err();
    let error = errors.iter().next().unwrap();
    let found = (
        format!("{}:{}", error.line, error.column),
        error.message.as_str(),
        error.hint.as_deref(),
    );
    assert_eq!(found, (place.to_owned(), message, hint), "{text}");
}

/// Every key that a file of this kind can have, used as it is in the wild.
const WHOLE: &str = r#"host_id: "bench-7"
server:
  host: "0.0.0.0"
  port: 9100
auth_token: "open sesame"
transport:
  type: http
  config:
    base_url: "http://localhost:9100"
    send_path: /send
    stream_path: /stream
audit:
  enabled: true
  path: logs/audit.jsonl
  rotate:
    max_bytes: 1048576
    backup_count: 3
  session_id_source: host_id
global_limits:
  max_workers: 4
  max_memory_mb: 512
snapshot_store:
  type: file
  config: { root: /tmp/bench }
snapshot_mode: hybrid
audit_log_path: old.log
plugins:
  - name: files
    type: tools
    cls: toolpost.native
    metadata: { priority: 10, exclusive: true, tool_modules: [a.b, c.d] }
  - name: notes
    type: memory
    cls: store.notes.Notes
  - name: old
    type: tools
    cls: gone.Gone
    metadata: { enabled: false }
"#;

#[test]
fn a_whole_file_is_translated() {
    let file = parsed(WHOLE);
    let config = config(&file);
    assert_eq!(config.a2e.host_id.as_deref(), Some("bench-7"));
    assert_eq!(config.http.listen, "0.0.0.0:9100".parse().unwrap());
    let audit = AuditConfig {
        path: Some("/etc/logs/audit.jsonl".into()),
        max_bytes: 1_048_576,
        backup_count: 3,
    };
    assert_eq!(config.a2e.audit, audit);
    assert_eq!(config.limits.session_concurrency, 4);
    assert_eq!(file.face, A2eFace::Http);
    assert_eq!(file.token.as_ref().unwrap().reveal(), "open sesame");
    let native = A2ePlugin {
        name: "files".to_owned(),
        capability: "tools".to_owned(),
        priority: 10,
        exclusive: true,
        class: A2ePluginClass::Native,
    };
    assert_eq!(file.plugins[0], native);
    assert_eq!(file.plugins[1].capability, "memory");
    let entry = NativeToolsChoice::Entry {
        name: "files".to_owned(),
        priority: 10,
        exclusive: true,
    };
    assert_eq!(file.native_tools, entry);
    assert_eq!(
        (
            file.parsed.name(),
            file.parsed.file().a2e.host_id.as_ref().unwrap().at.line
        ),
        ("host.yaml", 1)
    );
    assert_snapshot!(notices(&file).join("\n"), @"
    host.yaml:21: `global_limits.max_memory_mb` is ignored: this host has no such limit; its limits are under `limits` in `toolpost.yaml`
    host.yaml:26: `audit_log_path` is ignored: `audit.path` overrides it
    host.yaml:31: `plugins.files.metadata.tool_modules` is ignored: the built-in tools have no such setting
    ");
}

#[test]
fn the_least_files_leave_the_defaults() {
    for text in [
        "",
        "# nothing\n",
        "{}",
        "server:\nplugins:\naudit:\ntransport:\nauth_token: null\nhost_id: ~\n",
        "plugins: []\ntransport: { type: http, config: {} }\n",
    ] {
        let file = parsed(text);
        assert_eq!(config(&file), HostConfig::default(), "{text}");
        assert_eq!(
            (file.face, file.plugins.len(), file.token.is_none()),
            (A2eFace::Http, 0, true),
            "{text}"
        );
        assert!(file.notices.is_empty(), "{text}: {:?}", file.notices);
    }
}

#[test]
fn where_to_listen() {
    let check = |server: &str, expected: &str| {
        let file = parsed(&format!("server: {{ {server} }}"));
        assert_eq!(config(&file).http.listen.to_string(), expected, "{server}");
        let said = file
            .notices
            .iter()
            .filter(|notice| notice.key == "server.host")
            .count();
        assert_eq!(said, usize::from(!server.contains("host")), "{server}");
    };
    check("host: 0.0.0.0, port: 80", "0.0.0.0:80");
    check("host: 10.1.2.3", "10.1.2.3:8765");
    check("port: 9000", "127.0.0.1:9000");
    check("port: \"9000\"", "127.0.0.1:9000");
    check("port: 0", "127.0.0.1:0");
    check("", "127.0.0.1:8765");
    check("host: localhost, port: 1", "127.0.0.1:1");
    check("host: LocalHost, port: 1", "127.0.0.1:1");
    check("host: '::1', port: 1", "[::1]:1");
    check("host: '[::]', port: 1", "[::]:1");
    let hint =
        Some("write an address such as `127.0.0.1`, `localhost`, or `0.0.0.0` for every address");
    for host in [
        "tools.example.org",
        "",
        "127.0.0.1:80",
        "http://localhost",
        "*",
        "1.2.3",
    ] {
        let message = format!("`server.host` is `{host}`, which is not an address");
        check_error(
            &format!("server: {{ host: '{host}' }}"),
            "1:17",
            &message,
            hint,
        );
    }
    check_error(
        "server: { port: 65536 }",
        "1:17",
        "`server.port` is 65536, which is too large",
        None,
    );
    check_error(
        "server: { port: -1 }",
        "1:17",
        "`server.port` is -1, which is too small",
        None,
    );
}

#[test]
fn tokens() {
    let check = |text: &str, expected: Option<&str>, said: &[&str]| {
        let file = parsed(text);
        assert_eq!(
            file.token.as_ref().map(|token| token.reveal()),
            expected,
            "{text}"
        );
        assert!(!format!("{file:?}").contains("hunter2"), "{file:?}");
        assert_eq!(notices(&file), said, "{text}");
        assert!(file.parsed.file().tokens.is_empty());
    };
    check("auth_token: hunter2", Some("hunter2"), &[]);
    let misplaced =
        "host.yaml:1: `server.auth_token` is used as `auth_token`, which belongs at the top level";
    check(
        "server: { host: localhost, auth_token: hunter2 }",
        Some("hunter2"),
        &[misplaced],
    );
    check(
        "auth_token: hunter2\nserver: { host: localhost, auth_token: other }",
        Some("hunter2"),
        &[
            "host.yaml:2: `server.auth_token` is ignored: the `auth_token` at the top level overrides it",
        ],
    );
    check(
        "auth_token: ''",
        None,
        &["host.yaml:1: `auth_token` is empty and is ignored"],
    );
    let hint = Some("fill it in before the host reads the file");
    let message = "`auth_token` is a placeholder, which the host does not fill in";
    check_error("auth_token: ${A2E_TOKEN}", "1:13", message, hint);
    let number = "expected a text under `auth_token`, found a number";
    check_error(
        "auth_token: 12345",
        "1:13",
        number,
        Some("put it in quotes"),
    );
}

#[test]
fn no_error_shows_a_token() {
    for text in [
        "auth_token: [hunter2]\n",
        "auth_token: { a: hunter2 }\n",
        "server:\n  auth_token:\n    - hunter2\n",
        "server:\n  auth_token:\n    [\n    hunter2\n",
        "auth_token: hunter2 : x\n",
        "auth_token: hunter2\nauth_token: hunter2\n",
        "auth_token: \"hunter2\nserver: x\n",
        "auth_token:\nhunter2\n",
        "auth_token: |\n  hunter2\n bad\n",
        "{\"auth_token\": \"hunter2\", \"server\": {\"port\": \"x\"}}\n",
        "{\"auth_token\":\n  \"hunter2\", \"server\": 1}\n",
        "{\n\"server\": {\n\"auth_token\":\n\"hunter2\", \"port\": x\n}}\n",
        "auth_token: *hunter2\n",
        "auth_token: !hunter2 x\nserver: 3\n",
        "auth_token: !hunter2\n",
        "auth_token: !!hunter2\nserver: 3\n",
        "auth_token: @hunter2\n",
        "auth_token: `hunter2\n",
        "auth_token: %hunter2\n",
        "auth_token: {hunter2\n",
        "auth_token: \"\\hunter2\"\n",
        "auth_token: 'a'hunter2\n",
        "auth_token: &hunter2 [x]\n",
        "auth_token: |hunter2\n",
    ] {
        let error = A2eHostFile::parse(text, "t.yaml").unwrap_err();
        assert!(
            !format!("{error} {error:?}").contains("hunter2"),
            "{text}\n{error}"
        );
    }
}

#[test]
fn transports() {
    let check = |transport: &str, face: A2eFace, said: &[&str]| {
        let file = parsed(&format!("transport: {{ {transport} }}"));
        assert_eq!(file.face, face, "{transport}");
        let keys: Vec<&str> = file
            .notices
            .iter()
            .map(|notice| notice.key.as_str())
            .collect();
        assert_eq!(keys, said, "{transport}");
    };
    check("type: http", A2eFace::Http, &[]);
    check("type: stdio", A2eFace::Stdio, &[]);
    check("config: {}", A2eFace::Http, &[]);
    check(
        "type: subprocess, config: { command: x -y, env: { A: b }, cwd: /x }",
        A2eFace::Stdio,
        &[],
    );
    check(
        "type: direct, config: {}",
        A2eFace::Http,
        &["transport.type"],
    );
    check(
        "type: http, config: { retries: 3 }, kind: x",
        A2eFace::Http,
        &["transport.config.retries", "transport.kind"],
    );
    let message =
        |word: &str| format!("`transport.type` is `{word}`, which is not a transport of A2E");
    check_error(
        "transport: { type: htpp }",
        "1:20",
        &message("htpp"),
        Some("did you mean `http`?"),
    );
    let list = Some("the transports are: http, subprocess, stdio, direct");
    check_error(
        "transport: { type: carrier-pigeon }",
        "1:20",
        &message("carrier-pigeon"),
        list,
    );
    let kind = "expected a table of keys and values under `transport`, found a text";
    check_error("transport: http", "1:12", kind, None);
}

#[test]
fn audits() {
    let check = |text: &str, path: Option<&str>, said: &[&str]| {
        let file = parsed(text);
        let found = config(&file).a2e.audit.path;
        assert_eq!(
            found,
            path.map(|path| format!("/etc/{path}").into()),
            "{text}"
        );
        let keys: Vec<&str> = file
            .notices
            .iter()
            .map(|notice| notice.key.as_str())
            .collect();
        assert_eq!(keys, said, "{text}");
    };
    check("audit: { enabled: true, path: a }", Some("a"), &[]);
    check("audit: { enabled: yes, path: a }", Some("a"), &[]);
    check("audit: { enabled: 'On', path: a }", Some("a"), &[]);
    check("audit: { enabled: false, path: a }", None, &["audit.path"]);
    check("audit: { path: a }", None, &["audit.path"]);
    check("audit: { enabled: true }", None, &["audit.enabled"]);
    check(
        "audit: { enabled: true, path: null }",
        None,
        &["audit.enabled"],
    );
    check("audit_log_path: b", Some("b"), &["audit_log_path"]);
    check(
        "audit: { enabled: true }\naudit_log_path: b",
        Some("b"),
        &["audit_log_path"],
    );
    check(
        "audit: { rotate: {} }\naudit_log_path: b",
        Some("b"),
        &["audit_log_path"],
    );
    check(
        "audit: { enabled: false }\naudit_log_path: b",
        None,
        &["audit_log_path"],
    );
    check(
        "audit: { enabled: true, path: a }\naudit_log_path: b",
        Some("a"),
        &["audit_log_path"],
    );
    let whole = "audit: { enabled: true, path: a, rotate: { backup_count: 0, when: d }, level: x }";
    check(
        whole,
        Some("a"),
        &[
            "audit.rotate.backup_count",
            "audit.rotate.when",
            "audit.level",
        ],
    );
    check_error(
        "audit: { rotate: { max_bytes: 0 } }",
        "1:31",
        "`audit.rotate.max_bytes` is 0; it must be between 1KiB and 1024GiB",
        None,
    );
    let home = "`audit.path` is `~/a`, and `~` is not expanded here";
    check_error(
        "audit: { enabled: true, path: ~/a }",
        "1:31",
        home,
        Some("write the whole path"),
    );
    let kind = "expected true or false under `audit.enabled`, found a text";
    check_error("audit: { enabled: maybe }", "1:19", kind, None);
    let kind = "expected a whole number under `audit.rotate.max_bytes`, found a text";
    check_error(
        "audit: { rotate: { max_bytes: 10MiB } }",
        "1:31",
        kind,
        None,
    );
    let kind = "expected a whole number under `audit.rotate.max_bytes`, found a number";
    check_error("audit: { rotate: { max_bytes: 1.5 } }", "1:31", kind, None);
    assert_eq!(
        config(&parsed("audit: { rotate: { max_bytes: 2048.0 } }"))
            .a2e
            .audit
            .max_bytes,
        2048
    );
}

#[test]
fn plugins_that_are_served() {
    let check = |plugin: &str, priority: i64, exclusive: bool, said: &[&str]| {
        let file = parsed(&format!(
            "plugins:\n  - {{ name: t, type: tools, {plugin} }}\n"
        ));
        let plugin = A2ePlugin {
            name: "t".to_owned(),
            capability: "tools".to_owned(),
            priority,
            exclusive,
            class: A2ePluginClass::Native,
        };
        assert_eq!(file.plugins, [plugin]);
        let keys: Vec<&str> = file
            .notices
            .iter()
            .map(|notice| notice.key.as_str())
            .collect();
        assert_eq!(keys, said);
    };
    check("cls: toolpost.native", 0, false, &[]);
    check("cls: native", 0, false, &[]);
    check(
        "cls: native, metadata: { priority: -3, exclusive: yes, enabled: true }",
        -3,
        true,
        &[],
    );
    check(
        "cls: native, metadata: { root: x }",
        0,
        false,
        &["plugins.t.metadata.root"],
    );
    check(
        "cls: native, config: { priority: 7 }",
        0,
        false,
        &["plugins.t.config"],
    );
    check("cls: native, prio: 1", 0, false, &["plugins.t.prio"]);
}

#[test]
fn plugins_of_every_capability_are_taken_under_the_words_of_their_file() {
    for word in [
        "memory",
        "env",
        "procs",
        "learn",
        "skills",
        "mcp",
        "multi_agent",
        "weather",
    ] {
        let file = parsed(&format!(
            "plugins:\n  - name: mine\n    type: {word}\n    cls: a.b.C\n"
        ));
        assert_eq!(file.plugins[0].capability, word);
        assert!(file.notices.is_empty());
        // Whatever else a file brings, only one that names tools leaves the host's own out.
        assert_eq!(file.native_tools, NativeToolsChoice::Served);
    }
    let off = parsed("plugins: [{ name: x, type: nonsense, cls: a.B, metadata: { enabled: no } }]");
    assert!(off.plugins.is_empty() && off.notices.is_empty());
}

#[test]
fn a_file_that_names_tools_leaves_the_hosts_own_out() {
    let check = |plugins: &str, expected: NativeToolsChoice| {
        assert_eq!(
            parsed(&format!("plugins: [{plugins}]")).native_tools,
            expected,
            "{plugins}"
        );
    };
    let entry = |priority| NativeToolsChoice::Entry {
        name: "own".to_owned(),
        priority,
        exclusive: false,
    };
    check("", NativeToolsChoice::Served);
    check(
        "{ name: t, type: tools, cls: a.B }",
        NativeToolsChoice::LeftOut,
    );
    let disabled = "{ name: t, type: tools, cls: a.B, metadata: { enabled: no } }";
    check(disabled, NativeToolsChoice::LeftOut);
    check(
        "{ name: own, type: tools, cls: native }, { name: t, type: tools, cls: a.B }",
        entry(0),
    );
    check(
        "{ name: own, type: tools, cls: native, metadata: { priority: 3 } }",
        entry(3),
    );
    check(
        "{ name: m, type: memory, cls: a.B }",
        NativeToolsChoice::Served,
    );
}

#[test]
fn a_plugin_may_be_a_python_class_with_settings_of_its_own() {
    let text = "plugins:\n  - name: mytools\n    type: tools\n    cls: tools.registry.RegistryPlugin\n    metadata:\n      \
                priority: 5\n      folder: data\n      sizes: [1, 2.5]\n";
    let file = parsed(text);
    let settings = serde_json::json!({ "priority": 5, "folder": "data", "sizes": [1, 2.5] });
    let path = "tools.registry.RegistryPlugin".to_owned();
    let class = A2ePluginClass::Python {
        path,
        settings: settings.as_object().unwrap().clone(),
    };
    let name = "mytools".to_owned();
    let capability = "tools".to_owned();
    assert_eq!(
        file.plugins,
        [A2ePlugin {
            name,
            capability,
            priority: 5,
            exclusive: false,
            class
        }]
    );
    assert_eq!(file.native_tools, NativeToolsChoice::LeftOut);
    assert!(file.notices.is_empty(), "the class is given all of it");
    let twice = "plugins:\n  - { name: x, type: tools, cls: a.B }\n  - { name: x, type: tools, cls: a.C }\n";
    let hint = Some("give each plugin a name of its own");
    check_error(twice, "3:5", "an earlier plugin has the name `x`", hint);
}

#[test]
fn plugins_that_are_wrong() {
    let check = |plugin: &str, message: &str, hint: Option<&str>| {
        let errors = A2eHostFile::parse(&format!("plugins: [{{ {plugin} }}]"), "t").unwrap_err();
        let found: Vec<_> = errors
            .iter()
            .map(|e| (e.message.as_str(), e.hint.as_deref()))
            .collect();
        assert_eq!(found, [(message, hint)], "{plugin}");
    };
    let near = Some("did you mean `toolpost.native`?");
    check(
        "name: x, type: tools, cls: toolpost.nativ",
        "`toolpost.nativ` is not a class of this host",
        near,
    );
    check(
        "name: x, type: tools, cls: toolpost.shell",
        "`toolpost.shell` is not a class of this host",
        near,
    );
    let write =
        Some("write `cls: toolpost.native` for the built-in tools, or `cls: package.module.Class`");
    check(
        "name: x, type: tools, cls: Plugin",
        "`Plugin` is not a class",
        write,
    );
    check(
        "name: x, type: tools, cls: 'pkg..Plugin'",
        "`pkg..Plugin` is not a class",
        write,
    );
    check(
        "name: x, type: tools, cls: '../pkg.Plugin'",
        "`../pkg.Plugin` is not a class",
        write,
    );
    let tools = Some("write `type: tools`");
    check(
        "name: x, type: tool, cls: native",
        "the host's own tools require `type: tools`, not `tool`",
        tools,
    );
    check(
        "name: x, cls: native",
        "the key `type` is missing in `plugins.x`",
        None,
    );
    let number = "expected a text under `plugins.x.type`, found a number";
    check(
        "name: x, type: 7, cls: native",
        number,
        Some("put it in quotes"),
    );
    check(
        "name: x, type: tools",
        "the key `cls` is missing in `plugins.x`",
        None,
    );
    check(
        "type: tools, cls: native",
        "the key `name` is missing in `plugins[0]`",
        None,
    );
    check(
        "name: 7, type: tools, cls: native",
        "expected a text under `plugins[0].name`, found a number",
        Some("put it in quotes"),
    );
    check(
        "name: x, type: tools, cls: native, metadata: 1",
        "expected a table of keys and values under `plugins.x.metadata`, found a number",
        None,
    );
    check(
        "name: x, type: tools, cls: native, metadata: { priority: high }",
        "expected a whole number under `plugins.x.metadata.priority`, found a text",
        None,
    );
    check_error(
        "plugins: { name: x }",
        "1:10",
        "expected a list under `plugins`, found a table",
        None,
    );
    let kind = "expected a table of keys and values under `plugins[1]`, found a text";
    check_error(
        "plugins: [{ name: x, type: tools, cls: native }, y]",
        "1:50",
        kind,
        None,
    );
}

#[test]
fn keys_that_nobody_knows_are_named() {
    check_notices(
        "plugin: []\nx: 1\n",
        &[
            "1: `plugin` is ignored: A2E has no such key; did you mean `plugins`?",
            "2: `x` is ignored: A2E has no such key",
        ],
    );
    check_notices(
        "server:\n  host: localhost\n  prot: 1\n",
        &["3: `server.prot` is ignored: A2E has no such key; did you mean `port`?"],
    );
    check_notices(
        "\"\\e[31mx\": 1\n",
        &["1: `\\u{1b}[31mx` is ignored: A2E has no such key"],
    );
    check_notices(
        "global_limits: { max_ram: 1 }",
        &[
            "1: `global_limits.max_ram` is ignored: this host has no such limit; its limits are under `limits` in `toolpost.yaml`",
        ],
    );
}

#[test]
fn everything_wrong_is_told_at_once() {
    let text = "host_id: 7\nserver: { host: nowhere, port: x }\ntransport: { type: tcp }\n\
                global_limits: { max_workers: 0 }\nplugins:\n  - { name: a, type: tools, cls: C }\n";
    let errors = A2eHostFile::parse(text, "t").unwrap_err();
    let lines: Vec<u32> = errors.iter().map(|error| error.line).collect();
    assert_eq!(lines, [1, 2, 2, 3, 4, 6], "{errors}");
    check_error(
        "global_limits: { max_workers: 0 }",
        "1:31",
        "`global_limits.max_workers` is 0; it must be between 1 and 1000000",
        None,
    );
    check_error("host_id: ''", "1:10", "`host_id` is empty", None);
}

#[test]
fn hostile_files() {
    let check = |text: &str, expected: &str| {
        let error = A2eHostFile::parse(text, "t.yaml").unwrap_err().to_string();
        assert!(error.contains(expected), "{error:.400}");
        assert!(error.len() < 10_000, "an error of {} bytes", error.len());
    };
    check("- a\n", "the file must hold keys and values");
    check("hello", "the file must hold keys and values");
    check(
        "host_id: a\nhost_id: b\n",
        "the key `host_id` is given twice",
    );
    check("a: 1\n---\nb: 2\n", "more than one YAML document");
    check("server: &s { port: 1 }\nx: { <<: *s }\n", "merge keys");
    check(
        &format!("x: {}", "[".repeat(100_000)),
        "recursion limit exceeded",
    );
    check(
        &format!("x: {}", "{a: ".repeat(100_000)),
        "nested too deeply",
    );
    check(&format!("x: [{}]", "a, ".repeat(99_000)), "too many values");
    check(&"#".repeat((1 << 20) + 1), "larger than the limit of 1MiB");
    check(&format!("x: &x 1\ny: [{}]", "*x, ".repeat(300)), "aliases");
    let mut laughs = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..9 {
        let before = format!("*a{}, ", level - 1).repeat(10);
        laughs.push_str(&format!(
            "a{level}: &a{level} [{}]\n",
            before.trim_end_matches(", ")
        ));
    }
    check(&laughs, "the file has too many anchors");
    let many = format!(
        "plugins:\n{}",
        "  - { name: x, type: tools, cls: p.C }\n".repeat(5000)
    );
    check(&many, "and 4979 more");
}

/// The translation lies under `toolpost.yaml` like any other file.
#[test]
fn other_files_go_over_it() {
    let under = ConfigLayer::new(parsed(WHOLE).parsed, LayerTrust::Trusted, RuleOrigin::Cli);
    let over = ConfigFile::parse(
        "http: { listen: '127.0.0.1:1' }\na2e: { host_id: mine }\n",
        "t",
    )
    .unwrap();
    let over = ConfigLayer::new(over, LayerTrust::Trusted, RuleOrigin::Cli);
    let (config, _) = HostConfig::resolve(&[under, over]).unwrap();
    assert_eq!(config.http.listen.to_string(), "127.0.0.1:1");
    assert_eq!(config.a2e.host_id.as_deref(), Some("mine"));
    assert_eq!(config.limits.session_concurrency, 4);
}
