//! The host dies while it asks, and around an answer: one execution or none, and the record is true.

use serde_json::json;

use super::{super::http::Http, Bench, ended};

/// Kills around the answer. Each is at another moment, by what happens between the answer and the kill.
const ROUNDS: usize = 12;

#[test]
fn a_question_outlives_a_kill_and_its_call_runs_once() {
    let bench = Bench::new("mode: default\n");
    let served = bench.serve();
    let mut http = served.connect(&bench.home);
    let path = "/tools/shell/call";
    let body = r#"{"command":"echo ran >> ran.txt"}"#;
    http.begin_with_key(path, "k1", body).unwrap();
    let id = bench.only();
    let before = bench.pending(1).remove(0);
    served.kill();

    let served = bench.serve();
    let after = bench.pending(1).remove(0);
    for part in [
        "ask_id",
        "call_hash",
        "arguments",
        "expires_at",
        "principal",
    ] {
        assert_eq!(before[part], after[part], "{part}");
    }
    assert_eq!(bench.home.try_read("ran.txt"), None, "nothing ran unasked");
    bench.run(&["approvals", "allow", &id]).expect(0);
    let mut http = served.connect(&bench.home);
    assert_eq!(ended(&mut http, &id)["outcome"], "succeeded");
    let repeat = http.post_with_key(path, "k1", body).unwrap().json();
    assert_eq!(
        repeat["invocation_id"],
        json!(id),
        "its caller finds the same call"
    );
    assert_eq!(bench.home.read("ran.txt"), "ran\n");
    served.stop();
    let again = bench.serve();
    bench.pending(0);
    again.stop();
    assert_eq!(bench.home.read("ran.txt"), "ran\n", "and it stays at once");
}

/// Whether the call waits for an answer again, or goes on without one.
fn is_asked_again(bench: &Bench, http: &mut Http, id: &str) -> bool {
    for _ in 0..2_000 {
        let asked = bench.run(&["approvals", "--json"]).expect(0).json();
        if asked["approvals"] != json!([]) {
            return true;
        }
        let told = http.get(&format!("/invocations/{id}")).unwrap().json();
        if told["status"] == "ended" || told["stage"] == "execute" {
            return false;
        }
    }
    panic!("{id} neither waits nor goes on");
}

#[test]
fn a_kill_around_the_answer_runs_the_call_once_or_not_at_all() {
    let bench = Bench::new("mode: default\n");
    let mut outcomes = Vec::new();
    for round in 0..ROUNDS {
        let served = bench.serve();
        let mut http = served.connect(&bench.home);
        let file = format!("ran-{round}.txt");
        let body = json!({ "command": format!("echo ran >> {file}") }).to_string();
        http.begin_with_key("/tools/shell/call", &format!("k{round}"), &body)
            .unwrap();
        let id = bench.only();
        let mut socket = served.socket(&bench.home);
        let path = format!("/approvals/{id}");
        let yes = r#"{"decision":"allow"}"#;
        if round % 3 == 0 {
            // The answer is on its way, and nobody knows how far it came.
            socket.begin(&path, yes).unwrap();
        } else {
            assert_eq!(socket.post(&path, yes).unwrap().status, 200);
            for _ in 0..round * round * 2_000 {
                std::hint::spin_loop();
            }
        }
        served.kill();

        let served = bench.serve();
        let mut http = served.connect(&bench.home);
        let still_asked = is_asked_again(&bench, &mut http, &id);
        if still_asked {
            assert_eq!(
                round % 3,
                0,
                "an answer that was confirmed is never asked for again"
            );
            bench.run(&["approvals", "allow", &id]).expect(0);
        }
        let result = ended(&mut http, &id);
        let ran = bench.home.try_read(&file).unwrap_or_default();
        match result["outcome"].as_str().unwrap() {
            "succeeded" => assert_eq!(ran, "ran\n", "{result}"),
            "unknown" => assert!(ran.is_empty() || ran == "ran\n", "{ran:?} {result}"),
            other => panic!("{other}: {result}"),
        }
        outcomes.push((still_asked, result["outcome"].clone()));
        bench.pending(0);
        served.stop();
    }
    let report = bench.run(&["journal", "verify", "--json"]).expect(0).json();
    assert_eq!(
        (&report["clean"], &report["open_invocations"]),
        (&json!(true), &json!([]))
    );
    eprintln!("asked again, outcome: {outcomes:?}");
}
