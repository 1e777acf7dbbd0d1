//! The workspace's own `toolpost.yaml`: it may restrict at once, and loosen once its very bytes are trusted.

use super::home::{Home, Ran};

fn write(home: &Home) -> Ran {
    home.run(&["call", "write_file", "path=x", "content=y"])
}

#[test]
fn a_file_found_in_the_workspace_may_only_restrict_until_it_is_trusted() {
    let home = Home::new();
    home.write("toolpost.yaml", "rules:\n  - allow write_file\n");
    home.check(
        "untrusted_allow",
        &["call", "write_file", "path=x", "content=y"],
    )
    .expect(3);
    assert!(!home.workspace().join("x").exists());
    home.check("trust", &["trust"]).expect(0);
    home.check("trust_again", &["trust"]).expect(0);
    home.check("trust_list", &["trust", "--list"]).expect(0);
    let listed = home.run(&["trust", "--list", "--json"]).expect(0).json();
    assert_eq!(listed[0]["sha256"].as_str().unwrap().len(), 64);
    let allowed = write(&home).expect(0);
    assert_eq!(
        (home.read("x").as_str(), allowed.stderr.as_str()),
        ("y", ""),
        "no warning any more"
    );

    home.write(
        "toolpost.yaml",
        "rules:\n  - allow write_file\n  - allow echo\n",
    );
    let changed = write(&home).expect(3);
    assert!(
        changed.stderr.contains("not trusted"),
        "a changed file needs trust again: {}",
        changed.stderr
    );
    home.run(&["trust"]).expect(0);
    write(&home).expect(0);
    home.check("trust_forget", &["trust", "--forget"]).expect(0);
    write(&home).expect(3);
    assert_eq!(home.run(&["trust", "--list"]).expect(0).stdout, "");
}

#[test]
fn what_restricts_counts_at_once() {
    let home = Home::new();
    home.write("toolpost.yaml", "mode: plan\n");
    home.check(
        "untrusted_plan",
        &["call", "write_file", "path=x", "content=y"],
    )
    .expect(3);
    home.write("toolpost.yaml", "rules: [deny echo]\n");
    home.run(&["call", "echo", "message=x"]).expect(3);
    home.write(
        "toolpost.yaml",
        "tools: { echo: { enabled: false } }\nlimits: { argument_bytes: 1KiB }\n",
    );
    let off = home.run(&["call", "echo", "message=x"]).expect(3);
    assert!(
        off.stderr.contains("the operator switched it off"),
        "{}",
        off.stderr
    );
    let large = home
        .run(&["call", "read_file", &format!("path={}", "x".repeat(2_000))])
        .expect(1);
    assert!(
        large.stderr.contains("limits.argument_bytes"),
        "{}",
        large.stderr
    );
}

#[test]
fn what_loosens_is_named_and_ignored() {
    let home = Home::new();
    home.write(
        "toolpost.yaml",
        "mode: bypass\n\
         rules: [allow write_file, ask echo]\n\
         http: { listen: '0.0.0.0:1', allowed_origins: ['https://evil.example'] }\n\
         limits: { deadline: 1h }\n\
         tools: { write_file: { class: read } }\n",
    );
    home.check(
        "untrusted_loosening",
        &["call", "write_file", "path=x", "content=y"],
    )
    .expect(3);
    home.run(&["call", "echo", "message=x"]).expect(3);
}

#[test]
fn trust_names_the_settings_that_need_a_restart() {
    let home = Home::new();
    let hash = "a".repeat(64);
    home.write(
        "toolpost.yaml",
        &format!("mode: edits\ntokens: [{{ name: me, role: operator, sha256: {hash} }}]\n"),
    );
    let trusted = home.run(&["trust"]).expect(0);
    let expected = "now in effect: mode (toolpost.yaml:1)\n\
         a running host applies this automatically\n\
         in effect after a restart of a running host: tokens (toolpost.yaml:2)\n";
    assert!(trusted.stdout.ends_with(expected), "{}", trusted.stdout);
}

#[test]
fn a_file_that_a_host_would_reject_is_not_trusted() {
    let home = Home::new();
    home.write("toolpost.yaml", "limits: { deadline: 1d }\n");
    let refused = home.run(&["trust"]).expect(2);
    for part in ["was not trusted", "`limits.deadline_ceiling`"] {
        assert!(refused.stderr.contains(part), "{}", refused.stderr);
    }
    assert_eq!(home.run(&["trust", "--list"]).expect(0).stdout, "");
}

#[test]
fn a_file_given_by_name_is_trusted() {
    let home = Home::new();
    home.write("mine.yaml", "rules:\n  - allow write_file\n");
    let written = home
        .run(&[
            "call",
            "write_file",
            "path=x",
            "content=y",
            "--config",
            "mine.yaml",
        ])
        .expect(0);
    assert_eq!(written.stderr, "");
    home.check("trust_nothing", &["trust"]).expect(1);
}
