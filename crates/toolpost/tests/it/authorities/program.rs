//! An authority that is a program of the operator, in the confines of a hook.

use serde_json::json;

use super::Office;

fn office(script: &str, more: &str) -> Office {
    let command = json!(["bash", "-c", script]);
    Office::new(&format!(
        "rules: [delegate desk echo]\nauthorities:\n  desk: {{ command: {command}, timeout: 50s{more} }}\n"
    ))
}

fn check(script: &str, code: i32, behavior: &str, told: &str) {
    let office = office(script, "");
    let (ran, decision) = office.echo();
    let ran = ran.expect(code);
    let vote = &decision["delegated"][0];
    assert_eq!(
        (&vote["kind"], &vote["behavior"]),
        (&json!("program"), &json!(behavior)),
        "{decision:#}"
    );
    assert_eq!(decision["behavior"], behavior);
    let text = decision["reason"]["text"].as_str().unwrap();
    assert!(text.contains(told), "{text}");
    assert!(code == 0 || ran.stderr.contains(told), "{}", ran.stderr);
}

#[test]
fn a_program_allows_asks_and_denies() {
    check(
        r#"echo '{"decision":"allow"}'"#,
        0,
        "allow",
        "the authority `desk` allows it",
    );
    check(
        r#"echo '{"decision":"ask","reason":"who is it"}'"#,
        3,
        "ask",
        "requires a person's approval: who is it",
    );
    check(
        r#"echo '{"decision":"deny","reason":"closed"}'"#,
        3,
        "deny",
        "the authority `desk` denies it: closed",
    );
    check(
        "echo closed >&2; exit 2",
        3,
        "deny",
        "the authority `desk` denies it: closed",
    );
    let reads = r#"read -r line; case "$line" in *'"message":"hello"'*) echo '{"decision":"allow"}';; esac"#;
    check(reads, 0, "allow", "the authority `desk` allows it");
}

#[test]
fn a_program_that_crashes_is_silent_or_babbles_gives_no_decision() {
    check("kill -9 $$", 3, "deny", "it was ended by signal 9");
    check(
        "echo oops >&2; exit 1",
        3,
        "deny",
        "it ended with exit code 1: oops",
    );
    check("true", 3, "deny", "it ended without a decision");
    check("echo yes", 3, "deny", "its answer cannot be read");
    check(
        r#"echo '{"decision":"allow","also":1}'"#,
        3,
        "deny",
        "unknown field `also`",
    );
    check(
        "head -c 100000 /dev/zero | tr '\\0' x",
        3,
        "deny",
        "it wrote more than 64 KiB",
    );
}

#[test]
fn a_program_out_of_time_is_ended() {
    let office = Office::new(
        "rules: [delegate desk echo]\nauthorities: { desk: { command: [sleep, '600'], timeout: 500ms } }\n",
    );
    let (ran, decision) = office.echo();
    ran.expect(3);
    assert_eq!(
        decision["delegated"][0]["fault"],
        "it did not answer within 500 ms"
    );
}

#[test]
fn a_program_cannot_write_the_workspace_and_sees_no_secret_of_the_environment() {
    let script = r#"touch inside 2>/dev/null; echo "{\"decision\":\"deny\",\"reason\":\"token=$OPA_TOKEN\"}""#;
    let office = office(script, "");
    let mut command = office.command(&["call", "echo", "message=hello"]);
    let ran = crate::home::Ran::from(
        command
            .env("OPA_TOKEN", "s3cret-s3cret-s3cret")
            .output()
            .unwrap(),
    )
    .expect(3);
    assert!(ran.stderr.contains("denies it: token="), "{}", ran.stderr);
    assert!(!ran.stderr.contains("s3cret"), "{}", ran.stderr);
    assert_eq!(office.home.try_read("inside"), None);
}
