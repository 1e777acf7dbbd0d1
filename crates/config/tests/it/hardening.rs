//! Files that are meant to hurt.

use std::fmt::Write;

use toolpost_config::ConfigFile;

fn check(text: &str, expected: &str) {
    let error = ConfigFile::parse(text, "t.yaml").unwrap_err().to_string();
    assert!(error.contains(expected), "{error:.400}");
    assert!(error.len() < 10_000, "an error of {} bytes", error.len());
}

#[test]
fn depth_nodes_aliases_and_size_are_bounded() {
    check(
        &format!("rules: {}", "[".repeat(100_000)),
        "recursion limit exceeded",
    );
    check(
        &format!("tools: {}", "{a: ".repeat(100_000)),
        "unknown key `a`",
    );
    check(&"- ".repeat(100_000), "the file must hold keys and values");
    check(
        &format!("rules: [{}]", "allow x, ".repeat(99_000)),
        "the file has too many values",
    );
    check(&"#".repeat((1 << 20) + 1), "larger than the limit of 1MiB");
    let mut bomb = "tools:\n  a: &a0 {requires: {tasks: [x, x, x, x, x, x, x, x, x]}}\n".to_owned();
    for _ in 0..300 {
        bomb.push_str("  b: *a0\n");
    }
    check(&bomb, "the key `b` is given twice");
    let mut aliases = "rules:\n  - &r allow x\n".to_owned();
    aliases.push_str(&"  - *r\n".repeat(300));
    check(&aliases, "the file uses too many aliases");
}

#[test]
fn patterns_are_bounded() {
    let paths = |count: usize| format!("protect: {{ paths: [{}] }}", "a, ".repeat(count));
    ConfigFile::parse(&paths(200), "t.yaml").unwrap();
    check(
        &paths(201),
        "`protect.paths` has 201 patterns; it can have up to 200",
    );
    let long = format!("protect: {{ paths: [{}] }}", "a".repeat(5000));
    check(
        &long,
        "a pattern in `protect.paths` is longer than 4096 bytes",
    );
    let command = |pattern: &str| {
        let parameters = format!("parameters: {{ p: {{ pattern: '{pattern}' }} }}");
        format!("commands: {{ x: {{ description: d, argv: [a, '{{p}}'], {parameters} }} }}")
    };
    ConfigFile::parse(&command("(\\w{1000}){1000}"), "t.yaml").unwrap();
    check(
        &command(&"a".repeat(1001)),
        "`commands.x.parameters.p.pattern` is longer than 1000 bytes",
    );
    check(&command(&"(".repeat(1000)), "is not a regular expression");
}

#[test]
fn nested_aliases_do_not_grow() {
    let mut laughs = "rules:\n  - &l0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..9 {
        let before = format!("*l{}, ", level - 1);
        writeln!(
            laughs,
            "  - &l{level} [{}]",
            before.repeat(10).trim_end_matches(", ")
        )
        .unwrap();
    }
    check(
        &laughs,
        "expected a rule such as `allow read_file`, found a list",
    );
}

#[test]
fn aliases_within_the_budget_still_work() {
    let parsed = ConfigFile::parse("rules:\n  - &r allow x\n  - *r\n", "t.yaml").unwrap();
    assert_eq!(parsed.file().rules[1].at.line, 3);
}

#[test]
fn terminals_and_logs_are_left_alone() {
    let error = ConfigFile::parse(
        "\"\\e[31mmode\": plan\nrules:\n  - \"a\\u202ey z\"\n",
        "t.yaml",
    )
    .unwrap_err();
    let shown = error.to_string();
    assert!(
        shown.contains("unknown key `\\u{1b}[31mmode`") && shown.contains("`a\\u{202e}y z`"),
        "{shown}"
    );
    assert!(!shown.contains(['\u{1b}', '\u{202e}']));
}

#[test]
fn no_error_shows_a_token() {
    let texts = [
        "tokens:\n  - { name: ci, token: hunter2 }\n",
        "tokens:\n  - name: ci\n    sha256: hunter2\n",
        "tokens:\n  - name: ci\n    sha265: hunter2\n",
        "tokens:\n  - name: ci\n    sha256: \"hunter2, hunter2: hunter2 hunter2\"\n",
        "tokens:\n  - hunter2\n",
        "tokens: hunter2\n",
        "tokens: { ci: hunter2 }\n",
        "{ tokens: [ { name: ci, rol: agent, sha256: hunter2 } ] }\n",
        "tokens:\n  - name: ci\n    sha256: [ hunter2\nmode: plan\n",
        "tokens:\n  - { name: a b, sha256: hunter2 }\n",
    ];
    for text in texts {
        let error = ConfigFile::parse(text, "t.yaml").unwrap_err();
        assert!(!format!("{error} {error:?}").contains("hunter2"), "{error}");
    }
}

#[test]
fn thousands_of_errors_are_cut_short() {
    let error = ConfigFile::parse(
        &format!("rules:\n{}", "  - permit x\n".repeat(20_000)),
        "t.yaml",
    )
    .unwrap_err();
    assert_eq!(error.iter().count(), 20);
    assert!(error.to_string().ends_with("\n\nand 19980 more"));
}
