//! What a command could learn of the host and of other processes.

use std::process::Stdio;

use toolpost_model::SandboxTier;

use crate::bench_of_jobs::Bench;
use crate::roles;

#[tokio::test]
async fn nothing_of_the_host_can_be_seen() {
    const TEST: &str = "secrets::nothing_of_the_host_can_be_seen";
    if roles::role().is_none() {
        let mut host = roles::again(TEST, "host");
        host.env("API_TOKEN", "very-secret-value")
            .stderr(Stdio::piped());
        return roles::must_succeed(host);
    }
    let host = std::process::id();
    for tier in [SandboxTier::A, SandboxTier::B] {
        let bench = Bench::at_most(tier);
        let everybody = bench
            .run("cat /proc/*/environ /proc/*/cmdline 2>/dev/null | tr '\\0' '\\n'; true")
            .await;
        assert!(!everybody.stdout.contains("very-secret-value"), "{tier:?}");
        for script in [
            format!("cat /proc/{host}/environ"),
            format!("cat /proc/{host}/maps"),
            format!("head -c 1 /proc/{host}/mem"),
            format!("readlink /proc/{host}/fd/0"),
            format!("readlink /proc/{host}/exe"),
            format!("ls /proc/{host}/root/"),
            format!("kill -0 {host}"),
        ] {
            let ran = bench.run(&script).await;
            assert_ne!(ran.ended.code, Some(0), "{tier:?} {script} {ran:?}");
        }
    }
    let bench = Bench::new();
    // The launcher's two, the shell and `ls`; `wc` may be there already.
    let seen = bench
        .run("ls -d /proc/[0-9]* | wc -l")
        .await
        .ok()
        .parse::<u32>()
        .unwrap_or(99);
    assert!((3..=4).contains(&seen), "{seen} processes");
    for script in [
        "cat /proc/1/environ",
        "readlink /proc/1/fd/3",
        "cat /proc/1/fd/3",
        "head -c 1 /proc/1/mem",
        "kill -9 1",
        "kill -0 1",
    ] {
        assert_ne!(bench.run(script).await.ended.code, Some(0), "{script}");
    }
    assert_eq!(
        bench.run("ls /proc/self/fd | wc -l").await.ok(),
        "4",
        "three streams and the listing itself"
    );
}

#[tokio::test]
async fn looking_into_processes_and_the_kernel_is_refused() {
    // By number, so that no program of that name is needed.
    let calls = [
        ("ptrace", libc::SYS_ptrace),
        ("process_vm_readv", libc::SYS_process_vm_readv),
        ("io_uring_setup", libc::SYS_io_uring_setup),
        ("bpf", libc::SYS_bpf),
        ("perf_event_open", libc::SYS_perf_event_open),
        ("keyctl", libc::SYS_keyctl),
        ("userfaultfd", libc::SYS_userfaultfd),
        ("setns", libc::SYS_setns),
        ("open_by_handle_at", libc::SYS_open_by_handle_at),
        ("mount", libc::SYS_mount),
        ("fsopen", libc::SYS_fsopen),
    ];
    for tier in [SandboxTier::A, SandboxTier::B, SandboxTier::C] {
        let bench = Bench::at_most(tier);
        for (name, number) in calls {
            let script = format!(
                "import ctypes; c = ctypes.CDLL(None, use_errno=True); \
                 print(c.syscall({number}, 0, 0, 0, 0, 0), ctypes.get_errno())"
            );
            let ran = bench
                .run_job(bench.job(&["python3", "-c", &script]))
                .await
                .unwrap();
            assert_eq!(ran.ok(), "-1 1", "{tier:?} {name}");
        }
        let clone3 = format!(
            "import ctypes; c = ctypes.CDLL(None, use_errno=True); print(c.syscall({}, 0, 0), ctypes.get_errno())",
            libc::SYS_clone3
        );
        let ran = bench
            .run_job(bench.job(&["python3", "-c", &clone3]))
            .await
            .unwrap();
        assert_eq!(ran.ok(), format!("-1 {}", libc::ENOSYS), "{tier:?}");
    }
}
