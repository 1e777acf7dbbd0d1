//! A running host takes up its files when they change, and keeps what it has when they are bad.

use rustix::process::Signal;
use serde_json::{Value, json};

use super::{home::Home, http::Http, served::Served};

/// The host's own word about its configuration, as an operator hears it.
fn told(operator: &mut Http) -> Value {
    operator.get("/host").unwrap().json()
}

/// Asks until the host has looked at its files once more than before.
fn until_reloaded(operator: &mut Http, before: u64) -> Value {
    for _ in 0..20_000 {
        let told = told(operator);
        if told["configuration"]["reloads"].as_u64().unwrap() > before {
            return told;
        }
        std::thread::yield_now();
    }
    panic!("the host never took the change up: {:#}", told(operator));
}

const OPERATOR: &str = "operator-with-a-long-token";

/// A host with an operator who may look at it, and a file given by name that the test changes.
fn serve(home: &Home, text: &str) -> (Served, Http) {
    use sha2::{Digest as _, Sha256};
    let hash: String = Sha256::digest(OPERATOR)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    home.write(
        "token.yaml",
        &format!("tokens: [{{ name: me, role: operator, sha256: {hash} }}]\n"),
    );
    home.write("toolpost.yaml", text);
    let served = Served::start(home, &["--config", "token.yaml"]);
    let operator = Http::connect(served.address, OPERATOR).unwrap();
    (served, operator)
}

fn outcome(http: &mut Http, tool: &str, arguments: &Value) -> String {
    let answer = http
        .post(
            &format!("/tools/{tool}/call?timeout=1"),
            &arguments.to_string(),
        )
        .unwrap()
        .json();
    answer["outcome"]
        .as_str()
        .unwrap_or_else(|| panic!("{answer:#}"))
        .to_owned()
}

#[test]
fn a_changed_file_is_in_force_without_a_restart() {
    let home = Home::new();
    let (served, mut operator) = serve(&home, "");
    let mut agent = served.connect(&home);
    let hello = json!({ "message": "hi" });
    assert_eq!(outcome(&mut agent, "echo", &hello), "succeeded");
    home.write(
        "toolpost.yaml",
        "rules: [deny echo]\ntools: { file_info: { enabled: false } }\n",
    );
    let after = until_reloaded(&mut operator, 0);
    assert_eq!(after["configuration"]["problem"], Value::Null);
    assert_ne!(outcome(&mut agent, "echo", &hello), "succeeded");
    let tools = agent.get("/tools").unwrap().json().to_string();
    assert!(!tools.contains("\"file_info\""), "{tools}");
    // A file that goes away takes its rules with it.
    let reloads = after["configuration"]["reloads"].as_u64().unwrap();
    std::fs::remove_file(home.workspace().join("toolpost.yaml")).unwrap();
    until_reloaded(&mut operator, reloads);
    assert_eq!(outcome(&mut agent, "echo", &hello), "succeeded");
    let (_, said) = served.stop();
    assert!(
        said.contains("now in effect: rules, tools; `toolpost.yaml` is not trusted"),
        "{said}"
    );
}

#[test]
fn a_bad_file_keeps_what_was_in_force_and_is_told_of() {
    let home = Home::new();
    let (served, mut operator) = serve(&home, "rules: [deny echo]\n");
    let mut agent = served.connect(&home);
    let hello = json!({ "message": "hi" });
    assert_ne!(outcome(&mut agent, "echo", &hello), "succeeded");
    home.write("toolpost.yaml", "rules: [dney echo]\n");
    let after = until_reloaded(&mut operator, 0);
    let problem = after["configuration"]["problem"].as_str().unwrap();
    assert!(problem.contains("--> toolpost.yaml:1:9"), "{problem}");
    assert_ne!(
        outcome(&mut agent, "echo", &hello),
        "succeeded",
        "the old rule still denies"
    );
    let doctor = home.run(&["doctor", "--config", "token.yaml"]).expect(1);
    assert!(
        doctor.stdout.contains("keeps the previous one"),
        "{}",
        doctor.stdout
    );
    // So does a rule that fails its own test, and a file given by name that is broken.
    home.write(
        "toolpost.yaml",
        "rules:\n  - { rule: deny shell(rm *), tests: { match: [ls] } }\n",
    );
    let after = until_reloaded(
        &mut operator,
        after["configuration"]["reloads"].as_u64().unwrap(),
    );
    assert!(
        after["configuration"]["problem"]
            .as_str()
            .unwrap()
            .contains("toolpost.yaml:2"),
        "{after:#}"
    );
    home.write("toolpost.yaml", "");
    let after = until_reloaded(
        &mut operator,
        after["configuration"]["reloads"].as_u64().unwrap(),
    );
    assert_eq!(after["configuration"]["problem"], Value::Null);
    assert_eq!(outcome(&mut agent, "echo", &hello), "succeeded");
    let (_, said) = served.stop();
    assert!(said.contains("the previous one stays in effect"), "{said}");
}

#[test]
fn a_call_that_runs_survives_and_what_needs_a_restart_is_named() {
    let home = Home::new();
    let (served, mut operator) = serve(&home, "");
    std::fs::File::create(home.workspace().join("huge"))
        .unwrap()
        .set_len(1 << 40)
        .unwrap();
    let mut agent = served.connect(&home);
    agent.get("/tools/file_info").unwrap();
    // A terabyte is hashed until the call's own deadline, long after the reload.
    let caller = std::thread::spawn(move || {
        agent
            .post("/tools/file_info/call?timeout=20", r#"{"path":"huge"}"#)
            .unwrap()
    });
    assert!(
        (0..100_000).any(|_| operator.get("/health").unwrap().json()["running"] == 1),
        "it never ran"
    );
    home.write(
        "toolpost.yaml",
        "rules: [deny file_info]\nlimits: { queue: 7 }\n",
    );
    let after = until_reloaded(&mut operator, 0);
    assert_eq!(after["configuration"]["after_restart"], json!(["limits"]));
    assert_eq!(
        operator.get("/health").unwrap().json()["running"],
        1,
        "the call goes on"
    );
    let answer = caller.join().unwrap().json();
    assert_eq!(answer["outcome"], "timed_out", "{answer:#}");
    assert_ne!(
        outcome(
            &mut served.connect(&home),
            "file_info",
            &json!({ "path": "." })
        ),
        "succeeded"
    );
    served.stop();
}

#[test]
fn trust_and_a_signal_are_taken_up_too() {
    let home = Home::new();
    let (served, mut operator) = serve(&home, "rules: [allow write_file]\n");
    let mut agent = served.connect(&home);
    let mut would_run = || {
        let told = agent
            .post("/tools/write_file/explain", r#"{"path":"x","content":"y"}"#)
            .unwrap()
            .json();
        told["decision"]["behavior"]
            .as_str()
            .unwrap_or_else(|| panic!("{told:#}"))
            .to_owned()
    };
    assert_eq!(would_run(), "ask");
    home.run(&["trust", "--config", "token.yaml"]).expect(0);
    let after = until_reloaded(&mut operator, 0);
    assert_eq!(would_run(), "allow");
    served.signal(Signal::HUP);
    until_reloaded(
        &mut operator,
        after["configuration"]["reloads"].as_u64().unwrap(),
    );
    assert_eq!(served.stop().0.code(), Some(0), "the signal did not end it");
}

#[test]
fn a_server_that_is_added_waits_for_a_restart_and_is_named() {
    let home = Home::new();
    let (served, mut operator) = serve(&home, "");
    home.write_user("mcp: { servers: { late: { command: python3 } } }\n");
    let after = until_reloaded(&mut operator, 0);
    assert_eq!(after["configuration"]["after_restart"], json!(["mcp"]));
    let doctor = home.run(&["doctor"]);
    assert!(
        doctor
            .stdout
            .contains("in effect only after a restart: mcp"),
        "{}",
        doctor.stdout
    );
    assert!(
        doctor
            .stdout
            .contains("late (program): missing in the running host"),
        "{}",
        doctor.stdout
    );
    served.stop();
}
