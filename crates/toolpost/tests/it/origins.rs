//! Files of every standing: who has the last word, and what is left of a file that is broken.

use std::{os::unix::fs::PermissionsExt, path::Path};

use super::home::{Home, Ran};

fn write(home: &Home, flags: &[&str]) -> Ran {
    home.run(&[&["call", "write_file", "path=x", "content=y"], flags].concat())
}

fn mode(path: &Path, bits: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(bits)).unwrap();
}

#[test]
fn the_users_file_counts_and_the_workspaces_and_the_flags_come_before_it() {
    let home = Home::new();
    home.write_user("mode: edits\nrules: [deny echo]\n");
    write(&home, &[]).expect(0);
    let denied = home.run(&["call", "echo", "message=x"]).expect(3);
    assert!(
        denied
            .stderr
            .contains("home/.config/toolpost/toolpost.yaml:2"),
        "{}",
        denied.stderr
    );
    write(&home, &["--mode", "default"]).expect(3);
    home.write("toolpost.yaml", "mode: plan\n");
    write(&home, &[]).expect(3);
    home.write("mine.yaml", "rules: [allow class:write]\n");
    write(&home, &["--config", "mine.yaml"]).expect(0);
    home.run(&["call", "echo", "message=x", "--config", "mine.yaml"])
        .expect(3);
}

#[test]
fn nobody_passes_the_policy() {
    let home = Home::new();
    home.write(
        "policy.yaml",
        "forbid_bypass: true\nrules:\n  - { rule: deny write_file, reason: 'not on this machine' }\n",
    );
    mode(&home.workspace().join("policy.yaml"), 0o600);
    let policy = &[
        "--policy",
        "policy.yaml",
        "--allow",
        "write_file",
        "--mode",
        "bypass",
    ];
    let denied = write(&home, policy).expect(3);
    assert!(
        denied.stderr.contains("not on this machine"),
        "{}",
        denied.stderr
    );
    assert!(
        denied.stderr.contains("`forbid_bypass`"),
        "{}",
        denied.stderr
    );
    home.run(&[
        "call",
        "delete_file",
        "path=x",
        "--policy",
        "policy.yaml",
        "--mode",
        "bypass",
    ])
    .expect(3);
}

#[test]
fn a_policy_that_others_could_have_written_or_that_is_broken_stops_everything() {
    let home = Home::new();
    let path = home.workspace().join("policy.yaml");
    home.write("policy.yaml", "rules: [deny echo]\n");
    for (bits, said) in [
        (0o666, "is writable for other users"),
        (0o620, "is writable for other users"),
    ] {
        mode(&path, bits);
        let refused = home
            .run(&["call", "echo", "message=x", "--policy", "policy.yaml"])
            .expect(2);
        assert!(refused.stderr.contains(said), "{}", refused.stderr);
    }
    mode(&path, 0o600);
    home.run(&["call", "echo", "message=x", "--policy", "policy.yaml"])
        .expect(3);
    home.write("policy.yaml", "rules: [dney echo]\n");
    let refused = home
        .run(&["serve", "--http", "127.0.0.1:0", "--policy", "policy.yaml"])
        .expect(2);
    assert!(
        refused.stderr.contains("--> policy.yaml:1:9"),
        "{}",
        refused.stderr
    );
    let missing = home
        .run(&["call", "echo", "message=x", "--policy", "nowhere.yaml"])
        .expect(2);
    assert!(
        missing
            .stderr
            .contains("the policy `nowhere.yaml` cannot be read"),
        "{}",
        missing.stderr
    );
}

#[test]
fn a_users_file_that_anybody_can_write_is_refused() {
    let home = Home::new();
    home.write_user("mode: edits\n");
    mode(&home.user_file(), 0o666);
    let refused = write(&home, &[]).expect(2);
    assert!(refused.stderr.contains("chmod go-w"), "{}", refused.stderr);
}

#[test]
fn a_broken_file_keeps_its_denies_and_loses_its_allows() {
    for user in [true, false] {
        let home = Home::new();
        let put = |text: &str| {
            if user {
                home.write_user(text);
            } else {
                home.write("toolpost.yaml", text);
            }
        };
        put("rules: [deny echo, allow write_file]\n");
        if !user {
            home.run(&["trust"]).expect(0);
        }
        write(&home, &[]).expect(0);
        put("rules: [deny echo, allow write_file\n");
        let denied = home.run(&["call", "echo", "message=x"]).expect(3);
        assert!(
            denied
                .stderr
                .contains("its last good denials and restrictions still apply"),
            "{}",
            denied.stderr
        );
        write(&home, &[]).expect(3);
        let told = home.run(&["explain", "echo", "message=x", "--json"]).json();
        let notes = told["decision"]["notes"].to_string();
        assert!(
            notes.contains("cannot be read"),
            "every decision says so: {told:#}"
        );
        let doctor = home.run(&["doctor"]).expect(1);
        assert!(
            doctor.stdout.contains("cannot be read"),
            "{}",
            doctor.stdout
        );
        put("rules: [deny echo, allow write_file]\n");
        write(&home, &[]).expect(0);
    }
}

#[test]
fn a_file_that_was_never_good_stops_everything() {
    let home = Home::new();
    home.run(&["call", "file_info", "path=."]).expect(0);
    home.write_user("rules: [dney echo]\n");
    let refused = home.run(&["call", "echo", "message=x"]).expect(2);
    assert!(
        refused.stderr.contains("did you mean `deny`?"),
        "{}",
        refused.stderr
    );
}

#[test]
fn rules_that_mean_nothing_or_fail_their_own_tests_are_shown_where_they_stand() {
    let home = Home::new();
    home.write(
        "mine.yaml",
        "rules:\n  - rule: ask shell(git push *)\n    tests: { match: [git pull] }\n  - deny fs.read(a[)\n",
    );
    let refused = home
        .run(&["call", "echo", "message=x", "--config", "mine.yaml"])
        .expect(2);
    for place in ["--> mine.yaml:2:5", "--> mine.yaml:4:5"] {
        assert!(refused.stderr.contains(place), "{}", refused.stderr);
    }
    let flag = home
        .run(&["call", "echo", "message=x", "--deny", "fs.read(a[)"])
        .expect(2);
    assert!(flag.stderr.contains("--> command line"), "{}", flag.stderr);
}

#[test]
fn the_workspaces_file_may_be_named_on_the_command_line() {
    let home = Home::new();
    home.write("toolpost.yaml", "rules: [allow write_file]\n");
    write(&home, &[]).expect(3);
    let written = write(&home, &["--config", "toolpost.yaml"]).expect(0);
    assert_eq!(written.stderr, "", "it is not read twice");
}

#[test]
fn tools_can_be_renamed_and_given_defaults() {
    let home = Home::new();
    home.write(
        "mine.yaml",
        "tools:\n  echo: { name: say, defaults: { message: hello } }\n  'files.*': { hidden: true }\n",
    );
    let said = home
        .run(&["call", "say", "--config", "mine.yaml"])
        .expect(0);
    assert_eq!(
        (said.stdout.as_str(), said.stderr.as_str()),
        ("hello\n", "")
    );
    home.run(&["call", "echo", "message=x", "--config", "mine.yaml"])
        .expect(1);
}
