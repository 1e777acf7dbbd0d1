//! `toolpost explain`: what would happen, and what did.

use std::path::Path;

use serde_json::Value;

use super::{home::Home, served::Served};

#[test]
fn a_call_is_explained_before_it_is_made() {
    let home = Home::new();
    home.write("a.txt", "");
    home.check("explain_read", &["explain", "read_file", "path=a.txt"])
        .expect(0);
    home.check(
        "explain_write",
        &["explain", "write_file", "path=x", "content=y"],
    )
    .expect(3);
    let denies = [
        "explain",
        "write_file",
        "path=x",
        "content=y",
        "--mode",
        "bypass",
        "--deny",
        "class:write",
    ];
    home.check("explain_denied", &denies).expect(3);
    let asks = [
        "explain",
        "write_file",
        "path=x",
        "content=y",
        "--ask",
        "write_file",
        "--allow",
        "files.*",
    ];
    home.check("explain_rules", &asks).expect(3);
    home.check("explain_unknown", &["explain", "write_fil"])
        .expect(3);
    home.check(
        "explain_outside",
        &["explain", "read_file", "path=/etc/passwd"],
    )
    .expect(3);
    home.check(
        "explain_json",
        &["explain", "--json", "read_file", "path=a.txt"],
    )
    .expect(0);
    assert!(!home.workspace().join("x").exists());
    home.run(&["tools"]).expect(0);
    let nothing = home.run(&["journal", "tail"]).expect(1);
    assert!(
        nothing.stderr.contains("nothing was recorded"),
        "looking leaves no record: {}",
        nothing.stderr
    );
}

#[test]
fn a_call_is_explained_after_it_was_made() {
    let home = Home::new();
    let denied = home
        .run(&["call", "write_file", "path=x", "content=y", "--json"])
        .expect(3)
        .json();
    let id = denied["invocation_id"].as_str().unwrap();
    let explained = home.run(&["explain", id]).expect(0);
    home.compare("explain_made", &["explain", "[ID]"], &explained);
    assert_eq!(
        home.run(&["journal", "show", id]).expect(0).stdout,
        explained.stdout,
        "the same story"
    );
    let unknown = "01900000-0000-7000-8000-000000000000";
    home.check("explain_not_made", &["explain", unknown])
        .expect(1);
}

/// The behaviour that `explain` foretells, and whether `call --no-prompt` then runs.
fn decided(home: &Home, words: &[&str]) -> (String, bool) {
    let explain: Vec<&str> = ["explain", "--json"].iter().chain(words).copied().collect();
    let explained = home.run(&explain).json();
    let call: Vec<&str> = ["call", "--no-prompt"]
        .iter()
        .chain(words)
        .copied()
        .collect();
    let ran = home.run(&call);
    (
        explained["decision"]["behavior"]
            .as_str()
            .unwrap_or("none")
            .to_owned(),
        ran.code == 0,
    )
}

#[test]
fn explain_and_call_agree_with_and_without_a_running_host() {
    let home = Home::new();
    home.write("a.txt", "");
    let table: [(&[&str], &str, bool); 6] = [
        (&["shell", "command=touch remembered.txt"], "allow", true),
        (&["write_file", "path=other.txt", "content=x"], "ask", false),
        (&["write_file", "path=kept/a", "content=x"], "deny", false),
        (&["shell", "command=true"], "allow", true),
        (&["shell", "command=mkdir other"], "ask", false),
        (&["read_file", "path=a.txt"], "allow", true),
    ];
    // The answer that is remembered: exactly one command.
    home.write_user(
        "rules: ['deny write_file(kept/**)', 'allow shell(true)', 'ask read_file(secret*)']\n",
    );
    let host = Served::start(&home, &[]);
    let mut operator = host.socket(&home);
    let mut agent = host.connect(&home);
    let body = r#"{"command":"touch remembered.txt"}"#;
    let begun = agent
        .post("/tools/shell/call?background=true", body)
        .unwrap()
        .json();
    let id = begun["invocation_id"].as_str().unwrap();
    let answer = r#"{"decision":"allow","scope":"remember"}"#;
    let decision = operator
        .post(&format!("/approvals/{id}"), answer)
        .unwrap()
        .json();
    assert_eq!(
        decision["decided"]["rule"], "allow shell.shell(touch remembered.txt)",
        "{decision}"
    );
    for (words, behavior, runs) in table {
        assert_eq!(
            decided(&home, words),
            (behavior.to_owned(), runs),
            "with a host: {words:?}"
        );
    }
    drop((operator, agent));
    host.stop();
    for (words, behavior, runs) in table {
        assert_eq!(
            decided(&home, words),
            (behavior.to_owned(), runs),
            "without a host: {words:?}"
        );
    }
    with_the_bare_name_of_its_tool(&home.data_dir().join("rules.json"));
    for (words, behavior, runs) in table {
        assert_eq!(
            decided(&home, words),
            (behavior.to_owned(), runs),
            "a rule of the older form: {words:?}"
        );
    }
}

/// Writes the one remembered rule as an older host stored it.
fn with_the_bare_name_of_its_tool(file: &Path) {
    let mut stored: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    let rule = stored["rules"][0].as_object_mut().unwrap();
    assert!(rule.remove("tool_id").is_some(), "{rule:?}");
    rule.insert(
        "rule".to_owned(),
        "allow shell(touch remembered.txt)".into(),
    );
    std::fs::write(file, stored.to_string()).unwrap();
}
