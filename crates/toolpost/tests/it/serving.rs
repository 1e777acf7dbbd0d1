//! `toolpost serve`: the banner, the socket, signals, and life after a kill.

use rustix::process::Signal;
use serde_json::{Value, json};

use super::{
    home::{Home, Ran},
    http::Http,
    served::Served,
};

fn records(home: &Home) -> Vec<Value> {
    let lines = home
        .run(&["journal", "tail", "--json", "-n", "1000"])
        .expect(0)
        .stdout;
    lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn a_host_says_where_it_listens_and_answers_there() {
    let home = Home::new();
    let served = Served::start(&home, &["--mode", "edits", "--deny", "class:network"]);
    let said = Ran {
        code: 0,
        stdout: String::new(),
        stderr: served.banner.clone(),
    };
    home.compare(
        "serve_banner",
        &["serve", "--mode", "edits", "--deny", "class:network"],
        &said,
    );
    let mut http = served.connect(&home);
    assert_eq!(http.get("/health").unwrap().json()["status"], "ok");
    let answer = http
        .post("/tools/echo/call", r#"{"message":"hi"}"#)
        .unwrap();
    assert_eq!(
        (answer.status, &answer.json()["content"][0]["text"]),
        (200, &json!("hi"))
    );
    let mut stranger = Http::connect(served.address, "tp_not-the-token").unwrap();
    assert_eq!(stranger.get("/tools").unwrap().status, 401);
    let (status, rest) = served.stop();
    assert_eq!(status.code(), Some(0), "{rest}");
    assert!(rest.contains("stopping"), "{rest}");
}

#[test]
fn a_call_beside_a_running_host_goes_through_it() {
    let home = Home::new();
    let served = Served::start(&home, &["--mode", "never-ask"]);
    home.check(
        "call_beside_host",
        &["call", "echo", "message=through the host"],
    )
    .expect(0);
    home.check(
        "call_beside_host_with_flags",
        &[
            "call",
            "write_file",
            "path=x",
            "content=y",
            "--mode",
            "bypass",
        ],
    )
    .expect(3);
    home.check("tools_beside_host", &["tools", "digest", "--deferred"])
        .expect(0);
    home.run(&["call", "file_info", "path=."]).expect(0);
    home.check("explain_beside_host", &["explain", "read_file", "path=a"])
        .expect(0);
    home.check("call_unknown_beside_host", &["call", "raed_file"])
        .expect(1);
    home.check("doctor_beside_host", &["doctor"]).expect(0);
    let ended: Vec<Value> = records(&home)
        .into_iter()
        .filter(|record| record["kind"] != "host_started")
        .collect();
    assert_eq!(records(&home).len() - ended.len(), 1, "one host only");
    assert!(!ended.is_empty());
    for record in ended
        .iter()
        .filter(|record| record["body"].get("call").is_some())
    {
        let call = &record["body"]["call"];
        assert_eq!(
            (&call["face"], &call["principal"], &call["role"]),
            (&json!("socket"), &json!("local"), &json!("operator"))
        );
    }
    let json = home
        .run(&["call", "echo", "--json", "message=x"])
        .expect(0)
        .stdout;
    let id = serde_json::from_str::<Value>(&json).unwrap()["invocation_id"]
        .as_str()
        .unwrap()
        .to_owned();
    let shown = home
        .run(&["journal", "show", &id, "--json"])
        .expect(0)
        .json();
    let result = shown.as_array().unwrap().last().unwrap()["body"]["result"].clone();
    assert_eq!(
        result,
        serde_json::from_str::<Value>(&json).unwrap(),
        "the answer is what is on record"
    );
    served.stop();
    let alone = home.run(&["call", "echo", "message=alone"]).expect(0);
    assert_eq!(alone.stdout, "alone\n");
    let last = records(&home).pop().unwrap();
    assert_eq!(last["body"]["call"]["face"], "cli");
}

#[test]
fn a_second_host_on_the_same_record_is_refused_by_name() {
    let home = Home::new();
    let served = Served::start(&home, &[]);
    let refused = home.run(&["serve", "--http", "127.0.0.1:0"]).expect(1);
    home.compare("serve_twice", &["serve"], &refused);
    assert!(
        refused
            .stderr
            .contains(&format!("process {}", served.pid())),
        "{}",
        refused.stderr
    );
    assert_eq!(served.connect(&home).get("/health").unwrap().status, 200);
    served.stop();
    Served::start(&home, &[]).stop();
}

#[test]
fn a_signal_ends_a_host_in_order() {
    for signal in [Signal::TERM, Signal::INT] {
        let home = Home::new();
        let served = Served::start(&home, &[]);
        let socket = home.data_dir().join("socket");
        assert!(socket.exists());
        served
            .connect(&home)
            .post("/tools/echo/call", r#"{"message":"hi"}"#)
            .unwrap();
        served.signal(signal);
        let (status, _) = served.wait();
        assert_eq!(status.code(), Some(0));
        assert!(!socket.exists(), "the socket is gone");
        let report = home.run(&["journal", "verify", "--json"]).expect(0).json();
        assert_eq!(
            (&report["clean"], &report["open_invocations"]),
            (&json!(true), &json!([]))
        );
    }
}

#[test]
fn a_second_signal_ends_a_host_at_once() {
    let home = Home::new();
    std::fs::File::create(home.workspace().join("huge"))
        .unwrap()
        .set_len(1 << 40)
        .unwrap();
    let served = Served::start(&home, &[]);
    let mut http = served.connect(&home);
    let mut other = served.connect(&home);
    http.get("/tools/file_info").unwrap();
    // A terabyte is hashed for far longer than a host waits for its calls.
    let caller =
        std::thread::spawn(move || http.post("/tools/file_info/call", r#"{"path":"huge"}"#));
    until(|| other.get("/health").unwrap().json()["running"] == 1);
    served.signal(Signal::TERM);
    until(|| other.get("/health").unwrap().json()["status"] == "shutting_down");
    served.signal(Signal::TERM);
    let (status, _) = served.wait();
    assert_eq!(status.code(), Some(4));
    assert!(
        caller.join().unwrap().is_err(),
        "its caller hears that the connection broke"
    );
}

/// Asks until it is so.
fn until(mut is_so: impl FnMut() -> bool) {
    assert!((0..100_000).any(|_| is_so()), "it never was");
}

#[test]
fn a_killed_host_can_be_started_again() {
    let home = Home::new();
    let served = Served::start(&home, &["--mode", "edits"]);
    let token = Served::token(&home);
    let write = r#"{"path":"a","content":"x"}"#;
    let first = served
        .connect(&home)
        .post_with_key("/tools/write_file/call", "k", write)
        .unwrap();
    served.kill();
    assert!(
        home.data_dir().join("socket").exists(),
        "a killed host leaves its socket behind"
    );
    let doctor = home.run(&["doctor"]).expect(0).stdout;
    assert!(doctor.contains("not running"), "{doctor}");
    home.run(&["journal", "verify"]).expect(0);
    // A command finds nobody at the socket and works on its own.
    home.run(&["call", "echo", "message=meanwhile"]).expect(0);

    let served = Served::start(&home, &["--mode", "edits"]);
    assert_eq!(Served::token(&home), token);
    std::fs::remove_file(home.workspace().join("a")).unwrap();
    let repeat = served
        .connect(&home)
        .post_with_key("/tools/write_file/call", "k", write)
        .unwrap();
    assert_eq!(repeat, first);
    assert!(!home.workspace().join("a").exists(), "it was not run again");
    assert_eq!(
        home.run(&["call", "echo", "message=hi"]).expect(0).stdout,
        "hi\n"
    );
    served.stop();
}

#[test]
fn a_host_can_be_given_its_token_or_none() {
    let home = Home::new();
    home.write("token.txt", "a-token-from-a-file\n");
    let served = Served::start(&home, &["--token-file", "token.txt"]);
    let ok = Http::connect(served.address, "a-token-from-a-file")
        .unwrap()
        .get("/tools")
        .unwrap();
    assert_eq!(ok.status, 200);
    assert!(
        !served.banner.contains("a-token-from-a-file"),
        "{}",
        served.banner
    );
    served.stop();
    let served = Served::start(&home, &["--no-token"]);
    assert_eq!(
        Http::connect(served.address, "anything")
            .unwrap()
            .get("/tools")
            .unwrap()
            .status,
        200
    );
    assert!(
        served
            .banner
            .contains("none: every program on this machine may call"),
        "{}",
        served.banner
    );
    served.stop();
    let refused = home.run(&["serve", "--no-token", "--http", "0.0.0.0:0"]);
    assert!(
        refused.stderr.contains("a token is required there"),
        "{}",
        refused.stderr
    );
    assert_ne!(refused.code, 0);
    home.write("short.txt", "short");
    home.write("blanks.txt", "with a blank in it");
    for arguments in [
        &["--token-file", "short.txt"][..],
        &["--token-file", "blanks.txt"],
        &["--no-token", "--token-file", "token.txt"],
    ] {
        home.run(&[&["serve", "--http", "127.0.0.1:0"], arguments].concat())
            .expect(2);
    }
}

#[test]
fn a_configured_token_comes_in_under_its_name() {
    let home = Home::new();
    // printf %s "ci-has-a-long-token" | sha256sum
    let hash = sha256("ci-has-a-long-token");
    home.write(
        "mine.yaml",
        &format!("tokens:\n  - {{ name: ci, role: operator, sha256: {hash} }}\n"),
    );
    let served = Served::start(&home, &["--config", "mine.yaml"]);
    let mut http = Http::connect(served.address, "ci-has-a-long-token").unwrap();
    let opened = http.post("/sessions", "").unwrap().json();
    assert_eq!(
        (&opened["principal"], &opened["role"]),
        (&json!("ci"), &json!("operator"))
    );
    served.stop();
}

fn sha256(text: &str) -> String {
    use sha2::{Digest as _, Sha256};
    Sha256::digest(text.as_bytes())
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}
