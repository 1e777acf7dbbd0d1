//! What people see when a file is wrong.

mod protocols;

use insta::assert_snapshot;
use toolpost_config::{ConfigFile, ConfigLayer, HostConfig, LayerTrust};
use toolpost_model::RuleOrigin;

fn error_of(text: &str) -> String {
    ConfigFile::parse(text, "toolpost.yaml")
        .unwrap_err()
        .to_string()
}

/// The first line and the hint are what matters; the rest is the same for all.
fn check(text: &str, place: &str, message: &str, hint: Option<&str>) {
    let errors = ConfigFile::parse(text, "t").unwrap_err();
    let error = errors.iter().next().unwrap();
    let found = (
        format!("{}:{}", error.line, error.column),
        error.message.as_str(),
        error.hint.as_deref(),
    );
    assert_eq!(found, (place.to_owned(), message, hint), "{text}");
}

#[test]
fn unknown_keys_at_every_level() {
    assert_snapshot!(error_of("mode: plan\nlimts:\n  queue: 3\n"), @"
    unknown key `limts`
     --> toolpost.yaml:2:1
      |
    2 | limts:
      | ^
    hint: did you mean `limits`?
    ");
    assert_snapshot!(error_of("tools:\n  write_file:\n    requires: { role: [operator] }\n"), @"
    unknown key `role`
     --> toolpost.yaml:3:17
      |
    3 |     requires: { role: [operator] }
      |                 ^
    hint: did you mean `roles`?
    ");
    check(
        "http: { lisen: x }",
        "1:9",
        "unknown key `lisen`",
        Some("did you mean `listen`?"),
    );
    check(
        "tools: { x: { timout: 3s } }",
        "1:15",
        "unknown key `timout`",
        Some("did you mean `timeout`?"),
    );
    check(
        "rules: [{ resaon: x }]",
        "1:11",
        "unknown key `resaon`",
        Some("did you mean `reason`?"),
    );
    check(
        "sources: { x: { truts: none } }",
        "1:17",
        "unknown key `truts`",
        Some("did you mean `trust`?"),
    );
    check(
        "tokens: [{ nmae: ci }]",
        "1:12",
        "unknown key `nmae`",
        Some("did you mean `name`?"),
    );
    check(
        "discovery: { shown: true }",
        "1:14",
        "unknown key `shown`",
        Some("did you mean `require_shown`?"),
    );
    check(
        "discovery: { x: true }",
        "1:14",
        "unknown key `x`",
        Some("the keys here are: require_shown"),
    );
}

#[test]
fn removed_keys_say_what_to_do_instead() {
    check(
        "tools: { x: { retries: 2 } }",
        "1:15",
        "`retries` was removed",
        Some(
            "remove it: the host runs a call once, and a failed result reports whether a retry is safe",
        ),
    );
    check(
        "sources: { crm: { hidden: true } }",
        "1:19",
        "`hidden` was removed",
        Some(
            "write it under `tools`, with a pattern of ids: `tools: { \"NAME.*\": { hidden: true } }`",
        ),
    );
    for (key, value) in [
        ("timeout", "9s"),
        ("idempotent", "true"),
        ("deferred", "true"),
    ] {
        let text = format!("commands: {{ x: {{ description: d, argv: [x], {key}: {value} }} }}");
        let message = format!("`{key}` was removed");
        let errors = ConfigFile::parse(&text, "t").unwrap_err();
        let error = errors.iter().next().unwrap();
        let hint = error.hint.as_deref().unwrap_or_default();
        assert_eq!(error.message, message);
        assert!(
            hint.contains(&format!("`tools: {{ NAME: {{ {key}: ")),
            "{hint}"
        );
    }
    // Elsewhere the word never meant anything.
    check(
        "discovery: { retries: 2 }",
        "1:14",
        "unknown key `retries`",
        Some("the keys here are: require_shown"),
    );
}

#[test]
fn words_that_are_nearly_right() {
    let modes = "is not one of default, plan, edits, sandboxed, never-ask, bypass";
    check(
        "mode: pln",
        "1:7",
        &format!("`pln` {modes}"),
        Some("did you mean `plan`?"),
    );
    check("mode: yolo", "1:7", &format!("`yolo` {modes}"), None);
    let classes = "is not one of read, write, network, execute, unknown";
    check(
        "tools: { x: { class: wirte } }",
        "1:22",
        &format!("`wirte` {classes}"),
        Some("did you mean `write`?"),
    );
    let role = "`operater` is not one of agent, operator";
    check(
        "tokens: [{ name: x, role: operater }]",
        "1:27",
        role,
        Some("did you mean `operator`?"),
    );
    let remember = "`nevr` is not one of offer, never";
    check(
        "rules: [{ rule: ask x, remember: nevr }]",
        "1:34",
        remember,
        Some("did you mean `never`?"),
    );
    let trust = "`ful` is not one of none, claims, full";
    check(
        "sources: { x: { trust: ful } }",
        "1:24",
        trust,
        Some("did you mean `full`?"),
    );
    let kinds = "`path` is not one of command, words, directory, environment, read_path, write_path, url, method";
    check(
        "tools: { x: { arguments: { /a: path } } }",
        "1:28",
        kinds,
        Some("did you mean `read_path`?"),
    );
}

#[test]
fn wrong_kinds_of_value() {
    assert_snapshot!(error_of("limits:\n  queue: many\n"), @"
    expected a whole number from 0 on
     --> toolpost.yaml:2:10
      |
    2 |   queue: many
      |          ^
    ");
    check(
        "limits: 4",
        "1:9",
        "expected a table of keys and values",
        None,
    );
    check("rules: allow x", "1:8", "expected a list", None);
    check(
        "rules: [12]",
        "1:9",
        "expected a rule such as `allow read_file`, found a number",
        None,
    );
    check(
        "limits: { queue: -1 }",
        "1:18",
        "expected a whole number from 0 on",
        None,
    );
    check(
        "limits: { queue: [1] }",
        "1:18",
        "expected a single value, not a list or a table",
        None,
    );
    check(
        "tools: { x: { enabled: yes } }",
        "1:24",
        "expected true or false",
        None,
    );
    check("mode: [plan]", "1:7", "expected a single word", None);
    check(
        "rules: [{ reason: x }]",
        "1:11",
        "the key `rule` is missing",
        None,
    );
}

#[test]
fn what_is_not_a_mapping() {
    assert_snapshot!(error_of("# a comment\n- allow read_file\n"), @"
    the file must hold keys and values
     --> toolpost.yaml:2:1
      |
    2 | - allow read_file
      | ^
    hint: begin with a line such as `mode: plan`
    ");
    let hint = Some("begin with a line such as `mode: plan`");
    check("hello", "1:1", "the file must hold keys and values", hint);
}

#[test]
fn what_is_not_the_yaml_that_is_read() {
    assert_snapshot!(error_of("rules:\n  - allow [x\nmode: plan\n"), @"
    `[x` is not a condition; write `/pointer = value` with =, !=, <, <=, > or >=, or a pointer alone
     --> toolpost.yaml:2:5
      |
    2 |   - allow [x
      |     ^
    ");
    check(
        "mode: plan\nmode: edits\n",
        "2:1",
        "the key `mode` is given twice",
        Some("keep one of the two"),
    );
    check(
        "tools:\n  x: { enabled: true }\n  x: { enabled: false }\n",
        "3:3",
        "the key `x` is given twice",
        Some("keep one of the two"),
    );
    let several = "the file holds more than one YAML document";
    check(
        "mode: plan\n---\nmode: plan\n",
        "3:1",
        several,
        Some("remove the `---` line"),
    );
    check(
        "rules: [*x]",
        "1:9",
        "the alias after `*` is not defined",
        Some("put a text that begins with `*` in quotes"),
    );
    let merge = "merge keys (`<<`) are not supported";
    check(
        "tools:\n  x: &x { enabled: true }\n  y: { <<: *x }\n",
        "3:8",
        merge,
        Some("write the keys out"),
    );
}

#[test]
fn rules() {
    assert_snapshot!(error_of("rules:\n  - allow read_file\n  - alow write_file\n"), @"
    `alow write_file` is not a rule; write `allow`, `ask`, `deny` or `delegate AUTHORITY` and then a tool, `tool(matcher)`, `fs.read(path)`, `fs.write(path)`, `net(url)` or `class:NAME`
     --> toolpost.yaml:3:5
      |
    3 |   - alow write_file
      |     ^
    hint: did you mean `allow`?
    ");
    assert_snapshot!(error_of("rules:\n  - ask class: write\n"), @"
    unknown key `ask class`
     --> toolpost.yaml:2:5
      |
    2 |   - ask class: write
      |     ^
    hint: a rule of one line has no space after its colon: `ask class:write`
    ");
    check(
        "rules: ['allow class:wirte']",
        "1:9",
        "`wirte` is not a class; the classes are read, write, network, execute, unknown",
        Some("did you mean `write`?"),
    );
    let line = "write effect and tool in one line: `rule: \"ask shell(git push *)\"`";
    check(
        "rules: [{ effect: ask, tool: x }]",
        "1:11",
        "unknown key `effect`",
        Some(line),
    );
    check(
        "rules: ['deny shell(rm']",
        "1:9",
        "`shell(rm` has a matcher that is empty or not closed",
        None,
    );
    check(
        "rules: [{ id: x, rule: permit y }]",
        "1:24",
        &format!("`permit y` {FORM}"),
        None,
    );
    check(
        "rules: [{ rule: 'ask x', id: 'a b' }]",
        "1:30",
        "`a b` is not a name for a rule",
        Some(NAMES),
    );
    let twice = "rules:\n  - { rule: ask x, id: a }\n  - { rule: ask y, id: a }\n";
    check(twice, "3:24", "there are two rules named `a`", None);
    check(
        "rules: [{ rule: ask x, expires: soon }]",
        "1:33",
        "`soon` is not a day or a time",
        Some("write a day such as 2026-12-31, or a time such as 2026-12-31T18:00:00Z"),
    );
    check(
        "rules: [{ rule: ask x, principal: '' }]",
        "1:35",
        "`principal` is not the name of a caller",
        Some("leave it out for every caller"),
    );
    check(
        "rules: [{ rule: ask x, tests: { mach: [] } }]",
        "1:33",
        "unknown key `mach`",
        Some("did you mean `match`?"),
    );
}

const FORM: &str = "is not a rule; write `allow`, `ask`, `deny` or `delegate AUTHORITY` and then a tool, `tool(matcher)`, `fs.read(path)`, \
                    `fs.write(path)`, `net(url)` or `class:NAME`";
const NAMES: &str = "use up to 64 letters, digits, `_`, `-` and `.`";

#[test]
fn what_somebody_else_finds_wrong_with_a_rule_is_shown_at_its_line() {
    let parsed = ConfigFile::parse(
        "mode: plan\nrules:\n  - deny fs.read([)\n  - ask x\n",
        "t.yaml",
    )
    .unwrap();
    let place = parsed.rules().next().unwrap().place.clone();
    let errors = parsed
        .rule_errors([(place.as_str(), "`[` is not a pattern".to_owned())])
        .unwrap();
    assert_snapshot!(errors, @"
    `[` is not a pattern
     --> t.yaml:3:5
      |
    3 |   - deny fs.read([)
      |     ^
    ");
    assert!(parsed.rule_errors([]).is_none());
}

#[test]
fn settings_of_tools_and_sources() {
    let pointer = Some("begin with a slash, such as `/path` or `/login/pin`");
    check(
        "tools: { x: { sensitive: [pin] } }",
        "1:27",
        "`pin` is not a JSON pointer",
        pointer,
    );
    check(
        "tools: { x: { sensitive: ['/a~2'] } }",
        "1:27",
        "`/a~2` is not a JSON pointer",
        pointer,
    );
    check(
        "tools: { x: { arguments: { path: url } } }",
        "1:34",
        "`path` is not a JSON pointer",
        pointer,
    );
    let empty = "the list of meanings is empty";
    check(
        "tools: { x: { arguments: { /a: [] } } }",
        "1:32",
        empty,
        None,
    );
    let kind = "expected a word such as `read_path`, or a list of them, found a number";
    check("tools: { x: { arguments: { /a: 1 } } }", "1:28", kind, None);
    let name = "`a b` is not a name for a tool";
    check(
        "tools: { x: { name: a b } }",
        "1:21",
        name,
        Some("use up to 64 letters, digits, `_` and `-`"),
    );
    let several = "`tools.x*.name` would give one name to several tools";
    check(
        "tools: { 'x*': { name: y } }",
        "1:24",
        several,
        Some("name one tool"),
    );
    let longer = "`tools.x.timeout` is 5m, longer than its `ceiling`, which is 1m";
    check(
        "tools: { x: { timeout: 5m, ceiling: 1m } }",
        "1:24",
        longer,
        None,
    );
    let no_name = "`a b` is not the name or id of a tool, nor a pattern of them";
    check("tools: { a b: { enabled: true } }", "1:15", no_name, None);
    check(
        "sources: { x: { profile: mcp-gti } }",
        "1:26",
        "there is no profile `mcp-gti`",
        Some("did you mean `mcp-git`?"),
    );
}

#[test]
fn durations_and_sizes() {
    assert_snapshot!(error_of("limits:\n  deadline: 30\n"), @"
    `30` has no unit; write a duration such as 30s or 30ms
     --> toolpost.yaml:2:13
      |
    2 |   deadline: 30
      |             ^
    ");
    assert_snapshot!(error_of("http:\n  body_limit: 4MB\n"), @"
    `4MB` is not a size; write a whole number of bytes, or one with KiB, MiB or GiB, such as 4MiB
     --> toolpost.yaml:2:15
      |
    2 |   body_limit: 4MB
      |               ^
    ");
}

#[test]
fn tokens_in_plain() {
    assert_snapshot!(error_of("tokens:\n  - name: ci\n    token: hunter2\n"), @r#"
    `token` is refused: a token itself must not be in the file
     --> toolpost.yaml:3:5
      |
    3 |     token: *******
      |     ^
    hint: give the hash as `sha256`; `printf %s "$TOKEN" | sha256sum` makes it
    "#);
    assert_snapshot!(error_of("tokens:\n  - { name: ci, sha256: hunter2 }\n"), @r#"
    `sha256` is not a hash of 64 hex digits
     --> toolpost.yaml:2:25
      |
    2 |   - { name: **, sha256: ******* }
      |                         ^
    hint: never write the token itself; `printf %s "$TOKEN" | sha256sum` makes its hash
    "#);
    assert_snapshot!(error_of("tokens:\n  - hunter2\n"), @r#"
    expected a list of tables with a name and a hash
     --> toolpost.yaml:2:5
      |
    2 |   - *******
      |     ^
    hint: write `name` and `sha256`; `printf %s "$TOKEN" | sha256sum` makes the hash
    "#);
}

/// One slip in every section, of shape and of meaning.
const MANY_SLIPS: &str = "\
mode: pln
rules:
  - allow read_file
  - permit x
workspace: ~/work
limits:
  concurrency: 0
  session_idle: 10000h
  journal: 5
http:
  listen: localhost:8765
  allowed_hosts: [good.example, \"http://bad.example\"]
  allowed_origins: [\"*\"]
tools:
  \"files.*\": { timeout: 0s }
discovery:
  require: true
";

#[test]
fn everything_wrong_is_told_at_once() {
    assert_snapshot!(error_of(MANY_SLIPS), @r#"
    `pln` is not one of default, plan, edits, sandboxed, never-ask, bypass
     --> toolpost.yaml:1:7
      |
    1 | mode: pln
      |       ^
    hint: did you mean `plan`?

    `permit x` is not a rule; write `allow`, `ask`, `deny` or `delegate AUTHORITY` and then a tool, `tool(matcher)`, `fs.read(path)`, `fs.write(path)`, `net(url)` or `class:NAME`
     --> toolpost.yaml:4:5
      |
    4 |   - permit x
      |     ^

    `workspace` is `~/work`, and `~` is not expanded here
     --> toolpost.yaml:5:12
      |
    5 | workspace: ~/work
      |            ^
    hint: write the whole path

    `limits.concurrency` is 0; it must be between 1 and 1000000
     --> toolpost.yaml:7:16
      |
    7 |   concurrency: 0
      |                ^

    `limits.session_idle` is 10000h; it must be between 1s and 365d
     --> toolpost.yaml:8:17
      |
    8 |   session_idle: 10000h
      |                 ^

    `limits.journal` is 5; it must be between 1MiB and 1048576GiB
     --> toolpost.yaml:9:12
      |
    9 |   journal: 5
      |            ^

    `http.listen` is `localhost:8765`, which is not an address and a port
      --> toolpost.yaml:11:11
       |
    11 |   listen: localhost:8765
       |           ^
    hint: write it with numbers, such as `127.0.0.1:8765`

    `http://bad.example` in `http.allowed_hosts` is not a host
      --> toolpost.yaml:12:33
       |
    12 |   allowed_hosts: [good.example, "http://bad.example"]
       |                                 ^
    hint: write a name or an address, with or without a port, such as `tools.example.org:8765`

    `*` in `http.allowed_origins` is not an origin
      --> toolpost.yaml:13:21
       |
    13 |   allowed_origins: ["*"]
       |                     ^
    hint: write scheme and host without a path, such as `https://app.example.org`

    `tools.files.*.timeout` is 0ms; it must be between 1ms and 24h
      --> toolpost.yaml:15:25
       |
    15 |   "files.*": { timeout: 0s }
       |                         ^

    unknown key `require`
      --> toolpost.yaml:17:3
       |
    17 |   require: true
       |   ^
    hint: did you mean `require_shown`?
    "#);
}

#[test]
fn a_section_left_out_causes_no_errors_of_its_own() {
    let errors = ConfigFile::parse("mode: &m pln\nrules: [*m]\n", "t").unwrap_err();
    assert_eq!(errors.iter().count(), 1, "{errors}");
}

#[test]
fn token_names_and_hashes_are_unique() {
    let hash = "ab".repeat(32);
    let text =
        format!("tokens:\n  - {{ name: a, sha256: {hash} }}\n  - {{ name: a, sha256: {hash} }}\n");
    let errors = ConfigFile::parse(&text, "t").unwrap_err();
    let messages: Vec<&str> = errors.iter().map(|error| error.message.as_str()).collect();
    assert_eq!(
        messages,
        [
            "there are two tokens named `a`",
            "two tokens have the same hash"
        ]
    );
}

#[test]
fn hosts_and_origins() {
    let good = "http: { allowed_hosts: [a, a.b-c.example, '1.2.3.4:80', '[::1]', '[::1]:80', 'a:8765'], \
                allowed_origins: ['https://a.example:8443', 'vscode-webview://abc', 'http://[::1]:3000'] }";
    ConfigFile::parse(good, "t").unwrap();
    for host in [
        "", "*", "a/b", "a b", "a:0", "a:x", "a:99999", "[::1", "[x]", "-a", "a..b", "a:80:80",
        "a:+8",
    ] {
        let text = format!("http: {{ allowed_hosts: ['{host}'] }}");
        assert!(
            ConfigFile::parse(&text, "t").is_err(),
            "{host} is taken for a host"
        );
    }
    for origin in [
        "",
        "*",
        "null",
        "a.example",
        "https://",
        "https://a/",
        "HTTPS://a",
        "https://u@a",
        "://a",
    ] {
        let text = format!("http: {{ allowed_origins: ['{origin}'] }}");
        assert!(
            ConfigFile::parse(&text, "t").is_err(),
            "{origin} is taken for an origin"
        );
    }
}

#[test]
fn files_that_contradict_each_other() {
    let layer = |text: &str, name: &str| {
        ConfigLayer::new(
            ConfigFile::parse(text, name).unwrap(),
            LayerTrust::Trusted,
            RuleOrigin::Cli,
        )
    };
    let hash = "ab".repeat(32);
    let first =
        format!("tokens:\n  - {{ name: a, sha256: {hash} }}\ntools:\n  x: {{ timeout: 15m }}\n");
    let second = format!("limits:\n  deadline: 700s\ntokens:\n  - {{ name: b, sha256: {hash} }}\n");
    let errors =
        HostConfig::resolve(&[layer(&first, "one.yaml"), layer(&second, "two.yaml")]).unwrap_err();
    assert_snapshot!(errors, @"
    `tools.x.timeout` is 15m, longer than `limits.deadline_ceiling`, which is 10m
     --> one.yaml:4:17
      |
    4 |   x: { timeout: 15m }
      |                 ^
    hint: raise the ceiling or shorten this

    `limits.deadline` is 700s, longer than `limits.deadline_ceiling`, which is 10m
     --> two.yaml:2:13
      |
    2 |   deadline: 700s
      |             ^
    hint: raise the ceiling or shorten this

    the token `b` has the hash of another file's token
     --> two.yaml:4:5
      |
    4 |   - { name: *, sha256: **************************************************************** }
      |     ^
    ");
}

#[test]
fn a_journal_must_be_too_large_before_it_is_full() {
    let layer = |text: &str, name: &str| {
        ConfigLayer::new(
            ConfigFile::parse(text, name).unwrap(),
            LayerTrust::Trusted,
            RuleOrigin::Cli,
        )
    };
    let kept = layer("retention:\n  journal: { size: 10GiB }\n", "kept.yaml");
    let errors = HostConfig::resolve(std::slice::from_ref(&kept)).unwrap_err();
    assert_snapshot!(errors, @"
    `retention.journal.size` is 10GiB, not less than `limits.journal`, which is 10GiB
     --> kept.yaml:2:20
      |
    2 |   journal: { size: 10GiB }
      |                    ^
    hint: the journal would be full before anything is removed; lower this or raise the limit
    ");
    let more = layer("limits: { journal: 11GiB }", "more.yaml");
    assert!(HostConfig::resolve(&[kept, more]).is_ok());
}
