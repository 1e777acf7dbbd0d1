//! Lists of MCP servers as other programs keep them.

use std::path::Path;

use toolpost_config::{ConfigFile, ConfigLayer, HostConfig, LayerTrust, McpReach, McpServersFile};
use toolpost_model::RuleOrigin;

fn parsed(text: &str) -> McpServersFile {
    McpServersFile::parse(text, "m.json", Path::new("/home/me"))
        .unwrap_or_else(|error| panic!("{error}"))
}

fn config(file: McpServersFile) -> HostConfig {
    let empty = ConfigFile::parse("", "t").unwrap();
    let layer =
        ConfigLayer::new(empty, LayerTrust::Trusted, RuleOrigin::Cli).with_mcp_files(vec![file]);
    HostConfig::resolve(&[layer]).unwrap().0
}

/// Each server in one line, then each that cannot be had.
fn told(text: &str) -> Vec<String> {
    let config = config(parsed(text));
    let show = |text: &toolpost_config::McpText| {
        text.as_plain()
            .map_or_else(|| format!("{text:?}"), ToOwned::to_owned)
    };
    let servers = config.mcp.servers.iter().map(|server| match &server.reach {
        McpReach::Program {
            command,
            args,
            cwd,
            env,
            ..
        } => {
            let args: Vec<String> = args.iter().map(show).collect();
            let env: Vec<String> = env
                .iter()
                .map(|(name, value)| format!("{name}={}", show(value)))
                .collect();
            let cwd = cwd
                .as_ref()
                .map(|cwd| format!(" in {}", show(cwd)))
                .unwrap_or_default();
            format!("{}: {} {args:?} {env:?}{cwd}", server.name, show(command))
        }
        McpReach::Http { url, headers } => {
            let headers: Vec<String> = headers
                .iter()
                .map(|(name, value)| format!("{name}={}", show(value)))
                .collect();
            format!("{}: {} {headers:?}", server.name, show(url))
        }
    });
    let unusable = config
        .mcp
        .unusable
        .iter()
        .map(|server| format!("{} ({}) {}", server.name, server.place, server.reason));
    servers.chain(unusable).collect()
}

/// What is said of a file that is good.
fn check_notices(text: &str, expected: &[&str]) {
    let found: Vec<String> = parsed(text)
        .notices
        .iter()
        .map(|notice| notice.to_string().replace("m.json:", ""))
        .collect();
    assert_eq!(found, expected, "{text}");
}

#[test]
fn files_of_desktop_programs_and_editors_are_taken_as_they_are() {
    let desktop = r#"{
      // comments and trailing commas are common
      "mcpServers": {
        "fs": {"command": "npx", "args": ["-y", "server-filesystem", "./data", 7], "env": {"A": "${A:-b}", "N": 1, "Z": null}},
        "remote": {"type": "streamable-http", "url": "https://h/mcp", "headers": {"Authorization": "Bearer ${TOKEN}"}, },
        "surf": {"serverUrl": "https://s/mcp", "disabled": true}, /* another program's key */
        "gem": {"httpUrl": "https://g/mcp"},
      },
    }"#;
    assert_eq!(
        told(desktop),
        [
            r#"fs: npx ["-y", "server-filesystem", "/home/me/data", "7"] ["A=${A}", "N=1"]"#,
            "gem: https://g/mcp []",
            r#"remote: https://h/mcp ["Authorization=…${TOKEN}"]"#,
        ]
    );
    check_notices(desktop, &[]);
    let editor = r#"{"inputs": [{"id": "k"}], "servers": {"x": {"type": "stdio", "command": "${workspaceFolder}/s", "cwd": "${workspaceFolder}"}}}"#;
    assert_eq!(
        told(editor),
        ["x: ${workspaceFolder}… [] [] in ${workspaceFolder}"]
    );
    check_notices(
        editor,
        &[
            "1: `inputs` is ignored: the host does not prompt for inputs; keep the values in variables and write `${env:NAME}`",
        ],
    );
    assert_eq!(
        told(r#"{"mcp": {"servers": {"x": {"command": "a"}}}}"#),
        ["x: a [] []"]
    );
    assert_eq!(told("\u{feff}{\"mcpServers\": {}}"), Vec::<String>::new());
}

#[test]
fn what_means_nothing_here_is_named() {
    let text = r#"{
"mcpServers": {
"gh": {"command": "a", "alwaysAllow": ["read", "search"],
"timeout": 30000, "frobnicate": {"a": 1}, "oauth": {}},
"b": {"command": "a", "timeout": 30, "disabledTools": [], "disabled": "no"}
}, "globalShortcut": "x"}"#;
    check_notices(
        text,
        &[
            "3: `mcpServers.gh.alwaysAllow` is ignored: use rules to allow calls: `allow gh.read`, `allow gh.search`",
            "4: `mcpServers.gh.timeout` is read as milliseconds",
            "4: `mcpServers.gh.frobnicate` is ignored: this host has no such key",
            "4: `mcpServers.gh.oauth` is ignored: a token is sent with `headers`, as `Bearer ${env:NAME}`",
            "5: `mcpServers.b.timeout` is read as seconds",
            "5: `mcpServers.b.disabledTools` is ignored: `mcp.servers.NAME.tools.deny` in `toolpost.yaml` leaves tools out",
            "5: `mcpServers.b.disabled` is ignored: it is neither true nor false",
            "6: `globalShortcut` is ignored: it is not a list of MCP servers",
        ],
    );
    let servers = config(parsed(text)).mcp.servers;
    let times: Vec<u64> = servers
        .iter()
        .map(|server| server.timeout.unwrap().as_secs())
        .collect();
    assert_eq!(times, [30, 30]);
}

#[test]
fn one_bad_server_is_told_and_the_others_serve() {
    let text = r#"{"mcpServers": {
"good": {"command": "a"},
"old": {"type": "sse", "url": "https://h/sse"},
"none": {},
"both": {"command": "a", "url": "https://h/"},
"list": [],
"num": {"command": 7},
"asks": {"command": "a", "env": {"K": "${input:key}"}},
"files": {"command": "a"},
"far": {"url": "https://me:hunter2@h/"},
"head": {"url": "https://h/", "headers": {"Content-Length": "1"}}
}}"#;
    let found = told(text);
    assert_eq!(found[0], "good: a [] []");
    let starts = [
        "asks (m.json:8) in its `env.K`, `${input:key}` is a prompt of an editor",
        "both (m.json:5) it has a `command` and a `url`",
        "far (m.json:10) its `url` contains a user or password",
        "files (m.json:9) `files` is reserved for the host's own tools",
        "head (m.json:11) `Content-Length` in its `headers` is a header that the protocol sets itself",
        "list (m.json:6) expected a table, found a list",
        "none (m.json:4) it has neither a `command` nor a `url`",
        "num (m.json:7) its `command` is a number",
        "old (m.json:3) its type is `sse`, which is not supported\nhint:",
    ];
    for (found, expected) in found[1..].iter().zip(starts) {
        assert!(found.starts_with(expected), "{found}");
        assert!(!found.contains("hunter2"), "{found}");
    }
    assert_eq!(found.len(), 1 + starts.len());
}

#[test]
fn names_are_made_legal_and_said_so() {
    let text = r#"{"mcpServers": {"My Server": {"command": "a"}, "@scope/x": {"command": "a"}, "my_server": {"command": "a"}, "My-Server": {"command": "b"}, "日本": {"command": "a"}}}"#;
    let names: Vec<String> = config(parsed(text))
        .mcp
        .servers
        .into_iter()
        .map(|server| server.name)
        .collect();
    assert_eq!(names, ["My-Server", "my_server", "scope-x"]);
    check_notices(
        text,
        &[
            "1: the server `My Server` is renamed to `My-Server`, also in its tools' ids",
            "1: the server `@scope/x` is renamed to `scope-x`, also in its tools' ids",
            "1: `My-Server` is left out: its name becomes `My-Server`, and another server already has that name",
            "1: `日本` is left out: a server's name requires an ASCII letter or digit",
        ],
    );
}

#[test]
fn bad_json_is_told_with_its_place_and_without_its_text() {
    let rows = [
        ("", "1:1", "it ends where a value is expected"),
        ("[]", "1:1", "expected a table with `mcpServers`"),
        ("{}", "1:1", "the file lists no MCP servers"),
        (
            "{\"mcpServers\": 3}",
            "1:16",
            "expected a table of keys and values",
        ),
        (
            "{\n  \"mcpServers\": {\"x\": {\"env\": {\"K\": \"hunter2\"}}\n  \"y\": 1}",
            "3:3",
            "expected `,` or `}`",
        ),
        (
            "{\"mcpServers\": {\"x\": {\"command\": 'a'}}}",
            "1:34",
            "expected a value",
        ),
        (
            "{\"mcpServers\": {\"x\": {}, \"x\": {}}}",
            "1:26",
            "the key `x` is given twice",
        ),
        ("{\"a\": \"hunter2", "1:7", "no closing quote"),
        ("{\"a\": \"\\q\"}", "1:8", "an invalid escape"),
        ("{} x", "1:4", "unexpected text after the end"),
        ("{/* x", "1:2", "a comment is not closed"),
        ("{\"a\": \"x\ny\"}", "1:9", "a line break"),
        ("{\"a\": 1-2}", "1:7", "a number is invalid"),
        ("{a: 1}", "1:2", "expected a key in double quotes"),
    ];
    for (text, place, message) in rows {
        let errors = McpServersFile::parse(text, "m.json", Path::new("/")).unwrap_err();
        let error = errors.iter().next().unwrap();
        assert_eq!(
            format!("{}:{}", error.line, error.column),
            place,
            "{text}: {errors}"
        );
        assert!(error.message.contains(message), "{text}: {errors}");
        assert!(!errors.to_string().contains("hunter2"), "{errors}");
    }
    let deep = "[".repeat(100_000);
    assert!(
        McpServersFile::parse(&deep, "m.json", Path::new("/"))
            .unwrap_err()
            .to_string()
            .contains("too deeply")
    );
}

#[test]
fn escapes_are_read_as_json_has_them() {
    let text = r#"{"mcpServers": {"x": {"command": "a", "args": ["\ud83d\ude00 \u00e9 \/ \"q\" \\ \n"]}}}"#;
    assert_eq!(told(text), ["x: a [\"😀 é / \\\"q\\\" \\\\ \\n\"] []"]);
    let lone =
        McpServersFile::parse(r#"{"mcpServers": {"\ud83d": 1}}"#, "m", Path::new("/")).unwrap_err();
    assert!(lone.to_string().contains("an invalid escape"), "{lone}");
}
