//! Machines that can give less: what is still in force, and that nobody is told otherwise.

use toolpost_model::{SandboxProfile, SandboxTier};
use toolpost_sandbox::{LaunchError, Launcher};

use crate::bench_of_jobs::{Bench, write};
use crate::roles;

#[tokio::test]
async fn each_tier_says_what_it_is() {
    for tier in [
        SandboxTier::A,
        SandboxTier::B,
        SandboxTier::C,
        SandboxTier::N,
    ] {
        let mut bench = Bench::at_most(tier);
        assert_eq!(
            bench.launcher.tier(),
            tier,
            "{:#?}",
            bench.launcher.self_test()
        );
        write(&bench.path(".envrc"), "x");
        bench.confines.protected = vec![bench.path(".envrc")];
        let applied = bench.start("true").await.applied().clone();
        assert_eq!(
            (applied.tier, applied.requested),
            (tier, SandboxProfile::WorkspaceWrite)
        );
        assert_eq!(
            applied.missing.is_empty(),
            tier == SandboxTier::A,
            "{applied:#?}"
        );
        assert_eq!(applied.landlock_abi.is_some(), tier <= SandboxTier::B);
        assert_eq!(applied.seccomp, tier <= SandboxTier::C);
        assert_eq!(applied.caps == "none", tier <= SandboxTier::C);
        assert_eq!(applied.fs_read == "system+roots", tier <= SandboxTier::B);
        assert_eq!(applied.protected.len(), usize::from(tier == SandboxTier::A));
        // What is said to be missing is missing, and the rest is not.
        let writes = bench.run("echo y > .envrc").await.ended.code == Some(0);
        assert_eq!(
            writes,
            applied.missing.iter().any(|one| one.contains("protected"))
        );
        bench.confines.required = true;
        match bench.run_job(bench.shell_job("echo ran > ran")).await {
            Ok(ran) => assert!(tier == SandboxTier::A, "{ran:?}"),
            Err(LaunchError::Incomplete { applied: refused }) => {
                assert_eq!(refused.missing, applied.missing);
                assert!(!bench.path("ran").exists(), "nothing ran");
            }
            Err(other) => panic!("{other}"),
        }
    }
}

#[tokio::test]
async fn not_confined_means_so_and_is_said() {
    let bench = Bench::new().profile(SandboxProfile::None);
    let outside = tempfile::tempdir().unwrap();
    let file = outside.path().join("written");
    let process = bench.start(&format!("echo x > {}", file.display())).await;
    let applied = process.applied().clone();
    crate::bench_of_jobs::finish(process).await.ok();
    assert!(file.exists());
    assert_eq!(
        (
            applied.fs_read.as_str(),
            applied.net.as_str(),
            applied.seccomp
        ),
        ("everything", "host", false)
    );
    assert_eq!(
        applied.missing,
        Vec::<String>::new(),
        "nothing was promised"
    );
}

#[test]
fn the_self_test_says_what_it_tried() {
    let launcher = Launcher::new(crate::bench_of_jobs::launcher_program());
    let test = launcher.self_test();
    assert!(
        test.checks.len() > 10 && test.checks.iter().all(|check| check.ok),
        "{test:#?}"
    );
    assert!(test.landlock_abi.is_some());
    assert!(!test.cgroups.is_empty());
}

/// The same launcher for a user without any privilege, by way of a user namespace.
#[tokio::test]
async fn an_ordinary_user_gets_the_same_confines() {
    const TEST: &str = "tiers::an_ordinary_user_gets_the_same_confines";
    let Some(program) = roles::role() else {
        let place = tempfile::tempdir().unwrap();
        return roles::must_succeed(roles::again_as_nobody(TEST, place.path()));
    };
    let launcher = Launcher::new(program.clone().into());
    assert_eq!(
        launcher.tier(),
        SandboxTier::A,
        "{:#?}",
        launcher.self_test()
    );
    let mut bench = Bench::with(launcher);
    write(&bench.path(".git/config"), "x");
    write(&bench.path("secret"), "secret");
    bench.confines.protected = vec![bench.path(".git")];
    bench.confines.masked = vec![bench.path("secret")];
    let applied = bench.start("true").await.applied().clone();
    println!("{applied:#?}");
    assert!(
        applied.userns && applied.caps == "none" && applied.seccomp,
        "{applied:#?}"
    );
    assert_eq!(applied.missing, Vec::<String>::new());
    assert_eq!(
        bench.run("echo new > file && cat file && id -u").await.ok(),
        "new\n65534"
    );
    for script in [
        "cat secret",
        "echo y > .git/config",
        "mv .git x",
        "echo x > /etc/x",
        "unshare -r true",
        "mount -t tmpfs t .",
        "cat /etc/shadow",
        "exec 3<>/dev/tcp/127.0.0.1/1",
    ] {
        assert_ne!(bench.run(script).await.ended.code, Some(0), "{script}");
    }
    let works =
        "python3 -c 'print(1)'; f=$(mktemp); echo x > /dev/null; head -c 2 /dev/urandom | wc -c";
    assert_eq!(bench.run(works).await.ok(), "1\n2");
    bench.confines.limits.processes = 16;
    let bomb = "n=0; while [ $n -lt 100 ]; do sleep 1000 & n=$((n + 1)); done; echo unbounded";
    let ran = bench.run_job(bench.job(&["sh", "-c", bomb])).await.unwrap();
    assert!(!ran.stdout.contains("unbounded"), "{ran:?}");
    // And where there are no namespaces to be had.
    let bench = Bench::with(Launcher::with_tier_at_most(program.into(), SandboxTier::B));
    assert_eq!(
        bench.launcher.tier(),
        SandboxTier::B,
        "{:#?}",
        bench.launcher.self_test()
    );
    let outside = tempfile::tempdir().unwrap();
    bench
        .run(&format!("echo x > {}/x", outside.path().display()))
        .await
        .refused("Permission denied");
    assert_eq!(
        bench
            .run("echo x > x && cat x && echo y > $TMPDIR/y && cat $TMPDIR/y")
            .await
            .ok(),
        "x\ny"
    );
    bench.run("setsid sleep 1000 & sleep 1000 & exit 3").await;
    let mut process = bench
        .start("trap '' TERM; (setsid sleep 1000 &); sleep 1000")
        .await;
    assert_eq!(process.kill().await.signal, Some(9));
    let of_nobody = |entry: std::fs::DirEntry| {
        use std::os::unix::fs::MetadataExt;
        entry
            .metadata()
            .is_ok_and(|metadata| metadata.uid() == 65534)
            && std::fs::read(entry.path().join("cmdline"))
                .is_ok_and(|line| line == b"sleep\x001000\0")
    };
    let sleeps = || std::fs::read_dir("/proc").unwrap().flatten().any(of_nobody);
    crate::bench_of_jobs::eventually("nothing of it sleeps", || !sleeps()).await;
}
