//! Ends: whatever a command starts and however it hides, nothing of it outlives its end, a kill, a drop, or the host.

use std::process::Stdio;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use toolpost_model::{SandboxProfile, SandboxTier};
use toolpost_sandbox::{SandboxedProcess, Stdin};

use crate::bench_of_jobs::{Bench, PATIENCE, eventually};
use crate::roles;

/// A number of seconds nobody else sleeps for, by which processes are found again.
fn token() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!(
        "9{}.{:04}",
        std::process::id(),
        NEXT.fetch_add(1, Ordering::Relaxed)
    )
}

/// The command lines of the machine's processes that hold the token.
fn alive(token: &str) -> Vec<String> {
    let line = |entry: std::fs::DirEntry| {
        let command = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&command).replace('\0', " ")
    };
    std::fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .map(line)
        .filter(|line| line.contains(token))
        .collect()
}

/// Ways to outlive one's parent; each leaves a sleeper with the token and a command that waits.
const HIDING: &[(&str, &str)] = &[
    ("a child", "sleep @ & wait"),
    ("a session of its own", "setsid sleep @ & wait"),
    ("a daemon", "(setsid sh -c 'sleep @ &' &) ; sleep @"),
    (
        "deaf to being asked",
        "trap '' TERM HUP INT; sleep @ & wait; wait",
    ),
    ("stopped", "sleep @ & kill -STOP $!; wait"),
    ("stopped itself", "sleep @ & kill -STOP $$"),
    (
        "without streams",
        "nohup setsid sleep @ </dev/null >/dev/null 2>&1 & sleep @",
    ),
];

fn kinds() -> Vec<Bench> {
    let tiers = [
        SandboxTier::A,
        SandboxTier::B,
        SandboxTier::C,
        SandboxTier::N,
    ];
    let mut benches: Vec<Bench> = tiers.into_iter().map(Bench::at_most).collect();
    benches.push(Bench::new().profile(SandboxProfile::None));
    benches
}

async fn hide(bench: &Bench, way: &str) -> (SandboxedProcess, String) {
    let token = token();
    let process = bench.start(&way.replace('@', &token)).await;
    eventually("it sleeps", || alive(&token).len() > 1).await;
    (process, token)
}

#[tokio::test]
async fn a_kill_leaves_nothing() {
    for bench in kinds() {
        for (name, way) in HIDING {
            let (mut process, token) = hide(&bench, way).await;
            let ended = tokio::time::timeout(PATIENCE, process.kill())
                .await
                .expect("kill hangs");
            assert_eq!(
                alive(&token),
                Vec::<String>::new(),
                "{name} {:?}",
                process.applied()
            );
            assert_eq!((ended.code, ended.signal), (None, Some(9)), "{name}");
        }
    }
}

#[tokio::test]
async fn a_drop_leaves_nothing() {
    for bench in kinds() {
        for (name, way) in HIDING {
            let (process, token) = hide(&bench, way).await;
            drop(process);
            eventually(name, || alive(&token).is_empty()).await;
        }
    }
}

#[tokio::test]
async fn the_commands_end_is_the_end_of_what_it_started() {
    for bench in kinds() {
        let token = token();
        // The sleepers hold the pipes open, and must not be waited for.
        let script = format!(
            "sleep {token} & setsid sleep {token} & (setsid sleep {token} &); echo done; exit 5"
        );
        let ran = bench.run(&script).await;
        assert_eq!((ran.ended.code, ran.stdout.as_str()), (Some(5), "done\n"));
        eventually("the sleepers are gone", || alive(&token).is_empty()).await;
    }
}

#[tokio::test]
async fn being_asked_to_end_reaches_the_command() {
    for bench in kinds() {
        let mut process = bench
            .start("trap 'echo bye; exit 7' TERM; echo ready; while :; do sleep 0.05; done")
            .await;
        let mut lines = BufReader::new(process.take_stdout().unwrap()).lines();
        assert_eq!(lines.next_line().await.unwrap().as_deref(), Some("ready"));
        process.terminate();
        let ended = tokio::time::timeout(PATIENCE, process.wait())
            .await
            .expect("it does not hear");
        assert_eq!(ended.code, Some(7));
        assert_eq!(lines.next_line().await.unwrap().as_deref(), Some("bye"));
        assert_eq!(process.wait().await, ended, "asked again");
        assert_eq!(process.kill().await, ended, "too late");
    }
}

#[tokio::test]
async fn a_wait_can_be_given_up() {
    let bench = Bench::new();
    let mut job = bench.shell_job("read line; exit 4");
    job.stdin = Stdin::Piped;
    let mut process = bench.launcher.start(job).await.unwrap();
    for _ in 0..3 {
        let waiting = tokio::time::timeout(Duration::from_millis(5), process.wait());
        assert!(waiting.await.is_err(), "it waits for a line");
    }
    process
        .take_stdin()
        .unwrap()
        .write_all(b"line\n")
        .await
        .unwrap();
    assert_eq!(process.wait().await.code, Some(4));
}

#[tokio::test]
async fn a_start_can_be_given_up() {
    let bench = Bench::new();
    let token = token();
    for delay in 0..12 {
        let job = bench.shell_job(&format!("sleep {token}"));
        let _ = tokio::time::timeout(Duration::from_millis(delay), bench.launcher.start(job)).await;
    }
    eventually("nothing sleeps", || alive(&token).is_empty()).await;
}

#[tokio::test]
async fn a_hosts_death_is_the_end_of_everything() {
    const TEST: &str = "trees::a_hosts_death_is_the_end_of_everything";
    if let Some(token) = roles::role() {
        let (token, kind) = token.split_once('/').unwrap();
        let bench = kinds().remove(kind.parse().unwrap());
        let _process = bench
            .start(&format!(
                "trap '' TERM; setsid sleep {token} & (setsid sleep {token} &); wait"
            ))
            .await;
        println!("started");
        return std::future::pending().await;
    }
    for kind in 0..kinds().len() {
        let token = token();
        let mut host = roles::again(TEST, &format!("{token}/{kind}"))
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let sleepers = || {
            alive(&token)
                .iter()
                .filter(|line| line.starts_with("sleep "))
                .count()
        };
        eventually("they sleep", || sleepers() == 2).await;
        host.kill().unwrap();
        host.wait().unwrap();
        eventually("nothing is left", || alive(&token).is_empty()).await;
    }
    // What dead hosts left in the file systems is cleared up by the next one.
    eventually("groups of dead hosts are removed", || {
        drop(toolpost_sandbox::Launcher::new(
            crate::bench_of_jobs::launcher_program(),
        ));
        crate::leaks::groups_of_the_dead() == 0
    })
    .await;
}
