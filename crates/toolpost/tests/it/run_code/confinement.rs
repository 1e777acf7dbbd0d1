//! What the worker process is, seen from outside.

use std::{collections::BTreeMap, fs};

use super::Bench;

/// The workers of a host, by id, with their `status`.
fn workers(host: u32) -> BTreeMap<u32, String> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir("/proc").unwrap() {
        let Ok(pid) = entry.unwrap().file_name().to_string_lossy().parse::<u32>() else {
            continue;
        };
        let Ok(status) = fs::read_to_string(format!("/proc/{pid}/status")) else {
            continue;
        };
        let command = fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        if value(&status, "PPid") == host.to_string() && command.contains("__code-worker") {
            found.insert(pid, status);
        }
    }
    found
}

fn value<'a>(status: &'a str, name: &str) -> &'a str {
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.unwrap_or_default().trim()
}

#[test]
fn workers_that_wait_for_their_sessions_are_few() {
    let mut bench = Bench::new("default");
    for _ in 0..14 {
        let opened = bench.http.post("/sessions", "{}").unwrap().json();
        let session = opened["session_id"].as_str().unwrap();
        let ran = bench
            .http
            .post_in(session, "/tools/run_code/call", r#"{"code":"1"}"#)
            .unwrap()
            .json();
        assert_eq!(ran["structured_content"]["value"], 1, "{ran}");
    }
    // Eight that wait, and the next session's; one that was just told to end may still be there.
    let given_up = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while workers(bench.served.pid()).len() > 9 {
        assert!(
            std::time::Instant::now() < given_up,
            "{} workers",
            workers(bench.served.pid()).len()
        );
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

#[test]
fn a_worker_has_no_powers_no_threads_and_no_environment() {
    let mut bench = Bench::new("default");
    assert_eq!(bench.run("1")["structured_content"]["value"], 1);
    let workers = workers(bench.served.pid());
    assert!(!workers.is_empty());
    let ready = workers
        .iter()
        .filter(|(_, status)| value(status, "Seccomp") == "2");
    let mut checked = 0;
    for (pid, status) in ready {
        for (name, expected) in [
            ("NoNewPrivs", "1"),
            ("CapEff", "0000000000000000"),
            ("Threads", "1"),
        ] {
            assert_eq!(value(status, name), expected, "{name}");
        }
        if let Ok(environment) = fs::read_to_string(format!("/proc/{pid}/environ")) {
            assert_eq!(environment, "");
        }
        checked += 1;
    }
    assert!(checked > 0, "the one that ran code is locked down");
}

#[test]
fn workers_end_with_their_host() {
    let mut bench = Bench::new("default");
    assert_eq!(bench.run("1")["structured_content"]["value"], 1);
    let running = workers(bench.served.pid());
    assert!(!running.is_empty());
    let Bench { served, .. } = bench;
    // Nobody is told anything; the end of the wire is all that a worker learns.
    served.kill();
    for pid in running.keys() {
        let gone = (0..2000).any(|_| {
            std::thread::yield_now();
            let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
            status.is_empty() || value(&status, "State").starts_with('Z')
        });
        assert!(gone, "the worker {pid} outlived its host");
    }
}
