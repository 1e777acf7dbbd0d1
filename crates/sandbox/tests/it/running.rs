//! Commands as such: exit codes, streams, working directories, and programs that must work.

use toolpost_model::SandboxTier;

use crate::bench_of_jobs::Bench;

#[tokio::test]
async fn a_command_runs() {
    let bench = Bench::new();
    println!("{:#?}", bench.launcher.self_test());
    let process = bench.start("echo hello").await;
    println!("{:#?}", process.applied());
    let ran = bench
        .run("echo hello; ls /; id; cat /proc/self/status | grep -E 'Cap|Sec|NoNew'; ls -la /dev /tmp; mount")
        .await;
    println!("{}", ran.stdout);
    println!("{}", ran.stderr);
    assert_eq!(bench.launcher.tier(), SandboxTier::A);
}
