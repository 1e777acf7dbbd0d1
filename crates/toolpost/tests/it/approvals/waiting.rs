//! How long a call waits for a person: `toolpost call` beside a host, and callers over HTTP.

use std::process::{Child, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use super::{super::home::Ran, Bench, ended};

const WRITE: [&str; 4] = ["call", "write_file", "path=a", "content=b"];

fn begin(bench: &Bench, words: &[&str]) -> Child {
    let mut command = bench.command(&[&WRITE, words].concat());
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

#[test]
fn a_command_that_waits_no_longer_says_how_to_answer_and_runs_after_the_yes() {
    let bench = Bench::new("mode: default\n");
    let served = bench.serve();
    for words in [
        &["--no-prompt"][..],
        &["--patience", "0.05"],
        &["--timeout", "0.05"],
    ] {
        let words = [&WRITE, words].concat();
        let pending = bench.run(&words).expect(3);
        let id = bench.only();
        let short = &id[id.len() - 8..];
        assert!(
            pending.stderr.contains("approval_pending"),
            "{}",
            pending.stderr
        );
        assert!(
            pending
                .stderr
                .contains(&format!("`toolpost approvals allow {short}`")),
            "{}",
            pending.stderr
        );
        let json = bench.run(&[&words[..], &["--json"]].concat()).expect(3);
        assert_eq!(
            json.json()["error"]["details"]["ask_id"],
            json!(id),
            "the same question is asked once"
        );
        assert_eq!(bench.home.try_read("a"), None);
        bench.run(&["approvals", "allow", short]).expect(0);
        // The work takes longer than so short a timeout on a busy machine, so the limits are left out here.
        bench
            .run(&[&WRITE[..], &["--no-prompt"]].concat())
            .expect(0);
        assert_eq!(bench.home.read("a"), "b");
        std::fs::remove_file(bench.home.workspace().join("a")).unwrap();
        bench.pending(0);
    }
    served.stop();
    let alone = bench
        .run(&[&WRITE[..], &["--no-prompt"]].concat())
        .expect(3);
    assert!(
        alone.stderr.contains("permission_denied"),
        "{}",
        alone.stderr
    );
}

#[test]
fn a_command_that_waits_reports_it_at_once_and_an_interrupt_withdraws_the_question() {
    use std::io::{BufRead as _, BufReader};
    let bench = Bench::new("mode: default\n");
    let served = bench.serve();
    let mut call = begin(&bench, &["--patience", "600"]);
    let mut stderr = BufReader::new(call.stderr.take().unwrap());
    let mut said = String::new();
    stderr.read_line(&mut said).unwrap();
    let id = bench.only();
    let short = &id[id.len() - 8..];
    for part in [
        "waiting 600 s for an operator's approval",
        "open until",
        short,
        &format!("`toolpost approvals allow {short}`"),
    ] {
        assert!(said.contains(part), "`{part}` is missing in {said}");
    }
    kill_process(Pid::from_child(&call), Signal::INT).unwrap();
    let ran = Ran::from(call.wait_with_output().unwrap()).expect(4);
    assert_eq!(ran.stdout, "");
    bench.pending(0);
    served.stop();
}

#[test]
fn limits_that_mean_nothing_are_refused() {
    let bench = Bench::new("mode: default\n");
    for words in [
        &["--patience", "0"][..],
        &["--patience", "86401"],
        &["--patience", "1", "--no-prompt"],
        &["--patience", "1", "--connect", "http://127.0.0.1:1"],
    ] {
        bench.run(&[&WRITE, words].concat()).expect(2);
    }
}

#[test]
fn a_timeout_still_covers_the_work() {
    let bench = Bench::new("mode: bypass\n");
    let served = bench.serve();
    bench
        .run(&[
            "call",
            "shell",
            "command=sleep 60",
            "--timeout",
            "0.5",
            "--patience",
            "30",
        ])
        .expect(4);
    bench
        .run(&["call", "shell", "command=sleep 1", "--patience", "0.9"])
        .expect(0);
    served.stop();
}

#[test]
fn a_parked_call_outlives_a_kill_and_its_caller_gets_the_result() {
    let bench = Bench::new("mode: default\nhttp: { patience: 50ms }\n");
    let served = bench.serve();
    let path = "/tools/shell/call";
    let body = r#"{"command":"echo ran >> ran.txt"}"#;
    let mut http = served.connect(&bench.home);
    let parked = http.post_with_key(path, "k", body).unwrap();
    let told = parked.json();
    assert_eq!(
        (parked.status, &told["status"]),
        (202, &json!("approval_pending")),
        "{told}"
    );
    let id = told["invocation_id"].as_str().unwrap().to_owned();
    served.kill();

    let served = bench.serve();
    let mut http = served.connect(&bench.home);
    bench.pending(1);
    assert_eq!(
        http.post_with_key(path, "k", body).unwrap().json(),
        told,
        "it is still the same call"
    );
    let mut waiting = served.connect(&bench.home);
    waiting
        .begin_get(&format!("/invocations/{id}?wait=50"))
        .unwrap();
    bench
        .run(&["approvals", "allow", told["ask_id"].as_str().unwrap()])
        .expect(0);
    let shown = waiting.receive().unwrap().json();
    assert_eq!(shown["result"]["outcome"], "succeeded", "{shown}");
    assert_eq!(ended(&mut http, &id), shown["result"]);
    let repeat = http.post_with_key(path, "k", body).unwrap();
    assert_eq!(
        (repeat.status, repeat.json()),
        (200, shown["result"].clone())
    );
    assert_eq!(bench.home.read("ran.txt"), "ran\n", "it ran once");
    served.stop();
}
