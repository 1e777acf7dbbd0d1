//! How much a command can use up.

use std::time::Duration;

use toolpost_model::SandboxTier;
use toolpost_sandbox::ProcessLimits;

use crate::bench_of_jobs::{Bench, PATIENCE, finish};

#[tokio::test]
async fn a_fork_bomb_stays_small() {
    for tier in [SandboxTier::A, SandboxTier::B] {
        let bench = Bench::at_most(tier).limits(ProcessLimits {
            processes: 24,
            ..ProcessLimits::default()
        });
        let applied = bench.start("true").await.applied().clone();
        assert_eq!(
            applied.pids.as_ref().map(|limit| limit.limit),
            Some(24),
            "{applied:?}"
        );
        let script =
            "n=0; while [ $n -lt 200 ]; do sleep 1000 & n=$((n + 1)); done; echo unbounded";
        // Not bash, which tries again for half a minute.
        let ran = bench
            .run_job(bench.job(&["sh", "-c", script]))
            .await
            .unwrap();
        assert!(
            !ran.stdout.contains("unbounded") && ran.stderr.contains("fork"),
            "{tier:?} {ran:?}"
        );
        let mut process = bench
            .start("bomb() { bomb | bomb & }; bomb; sleep 1000")
            .await;
        // It is still being looked after while it rages.
        let ended = tokio::time::timeout(PATIENCE, process.kill())
            .await
            .expect("kill hangs");
        assert_eq!(ended.signal, Some(9));
        assert_eq!(bench.run("echo fine").await.ok(), "fine");
    }
}

#[tokio::test]
async fn memory_is_bounded_for_all_processes_together() {
    for tier in [SandboxTier::A, SandboxTier::B] {
        let bench = Bench::at_most(tier).limits(ProcessLimits {
            memory_bytes: 96 << 20,
            ..ProcessLimits::default()
        });
        assert_eq!(
            bench
                .run("python3 -c 'x = bytearray(20 << 20); print(len(x))'")
                .await
                .ok(),
            "20971520"
        );
        let ran = bench
            .run("python3 -c 'x = bytearray(300 << 20); print(len(x))'")
            .await;
        assert_ne!(ran.ended.code, Some(0), "{tier:?} {ran:?}");
        assert!(ran.ended.out_of_memory, "{tier:?} {ran:?}");
        let hog = "python3 -c 'import time; x = bytearray(40 << 20); time.sleep(1000)' & ";
        let ran = bench
            .run(&format!("{}wait -n; echo one is gone", hog.repeat(6)))
            .await;
        assert!(ran.ended.out_of_memory, "{tier:?} {ran:?}");
    }
}

#[tokio::test]
async fn files_and_the_temporary_directory_are_bounded() {
    let limits = ProcessLimits {
        tmp_bytes: 8 << 20,
        file_bytes: 4 << 20,
        open_files: 64,
        ..ProcessLimits::default()
    };
    let bench = Bench::new().limits(limits);
    let filler = "for i in 1 2 3 4 5 6; do head -c 2000000 /dev/zero > /tmp/f$i || exit 1; done";
    bench.run(filler).await.refused("No space left");
    let many = "import os\nfor i in range(200000): open(f'/tmp/{i}', 'w').close()";
    bench
        .run_job(bench.job(&["python3", "-c", many]))
        .await
        .unwrap()
        .refused("No space left");
    let ran = bench
        .run("head -c 5000000 /dev/zero > big; wc -c < big")
        .await;
    assert_eq!(ran.stdout.trim(), "4194304", "{ran:?}");
    assert_eq!(bench.run("ulimit -n").await.ok(), "64");
    bench
        .run("head -c 1000000 /dev/zero > /dev/shm/f && head -c 9000000 /dev/zero > /dev/shm/g")
        .await
        .refused("");
}

#[tokio::test]
async fn processor_time_is_bounded() {
    let bench = Bench::new().limits(ProcessLimits {
        cpu: Some(Duration::from_secs(1)),
        ..ProcessLimits::default()
    });
    let process = bench.start("while :; do :; done").await;
    let ended = finish(process).await.ended;
    assert!(matches!(ended.signal, Some(9 | 24)), "{ended:?}");
}
