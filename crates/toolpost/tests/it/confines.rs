//! Flags and credentials that decide how far tools may reach.

use std::{fs, os::unix::fs::PermissionsExt, process::Stdio};

use serde_json::Value;

use super::home::Home;

const SECRET: &str = "tp_a-credential-of-the-test";

#[test]
fn the_flags_are_where_rules_are() {
    let home = Home::new();
    // The folder above holds the record, which no tool may reach.
    home.run(&["call", "echo", "message=x", "--read-root", ".."])
        .expect(1);
    let beside = home.workspace().join("../beside");
    fs::create_dir(&beside).unwrap();
    let flags = [
        "--read-root",
        "../beside",
        "--sandbox",
        "read-only",
        "--allow-private",
        "http://127.0.0.1:1/",
    ];
    home.run(&[&["call", "echo", "message=x"][..], &flags].concat())
        .expect(0);
    home.run(&[&["tools"][..], &flags].concat()).expect(0);
    home.run(&[&["explain", "echo", "message=x"][..], &flags].concat())
        .expect(0);
    for command in ["doctor", "trust", "journal"] {
        home.run(&[&[command][..], &flags].concat()).expect(2);
    }
    home.check("usage_bad_profile", &["tools", "--sandbox", "free"])
        .expect(2);
    home.check(
        "usage_bad_private",
        &["tools", "--allow-private", "127.0.0.1:80"],
    )
    .expect(2);
}

/// A file with one credential, given as `source`.
fn configure(home: &Home, source: &str) {
    let text = format!(
        "network:\n  credentials:\n    github: {{ {source}, urls: [\"https://api.example.org/\"] }}\n"
    );
    home.write("mine.yaml", &text);
}

const CALL: [&str; 5] = [
    "call",
    "echo",
    "--config",
    "mine.yaml",
    "message=it is tp_a-credential-of-the-test",
];

#[test]
fn a_credential_is_read_and_never_shown() {
    let home = Home::new();
    configure(&home, "file: token");
    home.write("token", &format!("{SECRET}\n"));
    fs::set_permissions(
        home.workspace().join("token"),
        fs::Permissions::from_mode(0o600),
    )
    .unwrap();
    let ran = home.run(&CALL).expect(0);
    assert_eq!(ran.stdout, "it is [redacted:credential_github]\n");
    configure(&home, "env: MY_CREDENTIAL");
    let output = home
        .command(&CALL)
        .env("MY_CREDENTIAL", SECRET)
        .output()
        .unwrap();
    assert_eq!(
        String::from_utf8(output.stdout).unwrap(),
        "it is [redacted:credential_github]\n"
    );
}

#[test]
fn a_credential_that_cannot_be_used_ends_the_command() {
    let home = Home::new();
    let path = home.workspace().join("token");
    let write = |text: &str, mode: u32| {
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    };
    configure(&home, "env: MY_CREDENTIAL");
    home.check("credential_no_variable", &CALL).expect(2);
    configure(&home, "file: token");
    home.check("credential_no_file", &CALL).expect(1);
    for mode in [0o640, 0o604, 0o620] {
        write(SECRET, mode);
        let ran = home.check("credential_open_to_others", &CALL).expect(2);
        assert!(!ran.stderr.contains(SECRET), "{}", ran.stderr);
    }
    for text in [
        "tiny",
        "two\nlines and more",
        "not äscii at all",
        &"x".repeat(9000),
    ] {
        write(text, 0o600);
        let ran = home.run(&CALL).expect(2);
        assert!(
            ran.stderr
                .contains("the credential `github` (mine.yaml:3) is "),
            "{}",
            ran.stderr
        );
        assert!(!ran.stderr.contains(text), "{}", ran.stderr);
    }
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    let ran = home.run(&CALL);
    assert!(
        ran.code != 0 && ran.stderr.contains("/token`"),
        "{}",
        ran.stderr
    );
    // A host that only looks sends nothing.
    home.run(&["tools", "--config", "mine.yaml"]).expect(0);
}

#[test]
fn a_host_does_not_start_without_its_credentials() {
    let home = Home::new();
    configure(&home, "env: MY_CREDENTIAL");
    let ran = home
        .run(&["serve", "--http", "127.0.0.1:0", "--config", "mine.yaml"])
        .expect(2);
    assert!(
        ran.stderr.contains("the credential `github` (mine.yaml:3)"),
        "{}",
        ran.stderr
    );
}

/// Service managers, `make` and agents start programs with more descriptors open than the standard three.
#[test]
fn a_host_that_inherits_descriptors_confines_commands_and_passes_none_on() {
    let home = Home::new();
    let result = |descriptors: &str| {
        let script = format!("exec \"$0\" \"$@\" {descriptors}");
        let toolpost = home.command(&[]).get_program().to_owned();
        let call = [
            "call",
            "shell",
            "command=ls /proc/self/fd",
            "--allow",
            "shell",
            "--json",
        ];
        let mut command = home.command(&[]);
        let mut bash = std::process::Command::new("/bin/bash");
        bash.args(["-c", &script]).arg(toolpost).args(call);
        bash.env_clear().current_dir(home.workspace());
        for (name, value) in command.stdin(Stdio::null()).get_envs() {
            bash.env(name, value.unwrap());
        }
        let output = bash.stdin(Stdio::null()).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        serde_json::from_slice::<Value>(&output.stdout).unwrap_or_else(|_| panic!("{stderr}"))
    };
    let usual = result("");
    assert_eq!(usual["outcome"], "succeeded", "{usual}");
    for descriptors in [
        "3</dev/null",
        "3</dev/null 4</dev/null 9</dev/null",
        "7</dev/null",
    ] {
        let found = result(descriptors);
        assert_eq!(found["content"], usual["content"], "{descriptors}: {found}");
        assert_eq!(found["sandbox"], usual["sandbox"], "{descriptors}");
    }
}
