//! A yes that reaches further: for the session, and remembered over a restart.

use serde_json::json;

use super::{Bench, ask};

#[test]
fn a_yes_for_the_session_covers_the_like_of_the_call() {
    let bench = Bench::new("rules: [{ rule: ask shell, remember: never }]\n");
    let served = bench.serve();
    let call = ask(&served, &bench.home, "mkdir a");
    let question = bench.pending(1).remove(0);
    let id = question["ask_id"].as_str().unwrap();
    assert_eq!(
        question.get("suggestions"),
        None,
        "a rule may want to be asked about every time"
    );
    bench
        .run(&["approvals", "allow", id, "--session"])
        .expect(1);
    bench.run(&["approvals", "deny", id]).expect(0);
    call.join().unwrap();
    served.stop();

    let bench = Bench::new("mode: default\n");
    let served = bench.serve();
    let call = ask(&served, &bench.home, "mkdir a");
    let question = bench.pending(1).remove(0);
    let id = question["ask_id"].as_str().unwrap();
    assert_eq!(question["suggestions"][0], "allow shell.shell(mkdir a)");
    let told = bench
        .run(&["approvals", "allow", id, "--session", "--rule", "2"])
        .expect(0)
        .stdout;
    assert!(
        told.contains("for the session by `allow shell.shell(mkdir *)`"),
        "{told}"
    );
    assert_eq!(call.join().unwrap()["outcome"], "succeeded");
    assert_eq!(
        ask(&served, &bench.home, "mkdir b").join().unwrap()["outcome"],
        "succeeded",
        "unasked"
    );
    let other = ask(&served, &bench.home, "mkdir c && rmdir a");
    bench.run(&["approvals", "deny", &bench.only()]).expect(0);
    assert_eq!(other.join().unwrap()["outcome"], "denied");
    assert_eq!(
        bench
            .run(&["approvals", "rules", "--json"])
            .expect(0)
            .json(),
        json!({ "rules": [] })
    );
    served.stop();
    let served = bench.serve();
    let again = ask(&served, &bench.home, "mkdir d");
    bench.run(&["approvals", "deny", &bench.only()]).expect(0);
    assert_eq!(
        again.join().unwrap()["outcome"],
        "denied",
        "the session's rule ended with the host"
    );
}

#[test]
fn a_remembered_yes_survives_a_restart_until_it_is_forgotten() {
    let bench = Bench::new("mode: default\n");
    let served = bench.serve();
    let call = ask(&served, &bench.home, "mkdir -p a");
    let id = bench.only();
    let told = bench
        .run(&["approvals", "allow", &id, "--remember", "--for", "2d"])
        .expect(0)
        .stdout;
    assert!(
        told.contains("remembered as `allow shell.shell(mkdir -p a)` until 20"),
        "{told}"
    );
    assert_eq!(call.join().unwrap()["outcome"], "succeeded");
    served.kill();

    let served = bench.serve();
    assert_eq!(
        ask(&served, &bench.home, "mkdir -p a").join().unwrap()["outcome"],
        "succeeded",
        "unasked"
    );
    let rules = bench.run(&["approvals", "rules"]).expect(0).stdout;
    assert!(
        rules.contains("allow shell.shell(mkdir -p a)") && rules.contains("by local"),
        "{rules}"
    );
    let explained = bench
        .run(&["explain", "shell", "command=mkdir -p a"])
        .expect(0)
        .stdout;
    assert!(
        explained.contains("allow shell.shell(mkdir -p a)") && explained.contains("by local"),
        "{explained}"
    );
    bench.run(&["approvals", "forget", "00000000"]).expect(1);
    let forgot = bench
        .run(&["approvals", "forget", &id[id.len() - 8..]])
        .expect(0)
        .stdout;
    assert!(
        forgot.contains("forgot `allow shell.shell(mkdir -p a)`"),
        "{forgot}"
    );
    let call = ask(&served, &bench.home, "mkdir -p a");
    bench.run(&["approvals", "deny", &bench.only()]).expect(0);
    assert_eq!(call.join().unwrap()["outcome"], "denied");
    served.stop();
}
