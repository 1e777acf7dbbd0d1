//! What a command can read and write.

use toolpost_model::{ResourceAccess, SandboxProfile, SandboxTier};
use toolpost_sandbox::{LaunchError, SandboxRoot};

use crate::bench_of_jobs::{Bench, write};

#[tokio::test]
async fn only_writable_roots_can_be_written() {
    for tier in [SandboxTier::A, SandboxTier::B] {
        let outside = tempfile::tempdir().unwrap();
        let library = tempfile::tempdir().unwrap();
        write(&outside.path().join("secret"), "secret");
        write(&library.path().join("code"), "code");
        let mut bench = Bench::at_most(tier);
        bench.confines.roots.push(SandboxRoot {
            path: library.path().to_owned(),
            access: ResourceAccess::Read,
        });
        let outside_path = outside.path().display();
        let library_path = library.path().display();
        assert_eq!(bench.run("echo new > file && cat file").await.ok(), "new");
        assert_eq!(
            bench.run(&format!("cat {library_path}/code")).await.ok(),
            "code"
        );
        for script in [
            format!("echo x > {library_path}/code"),
            format!("rm {library_path}/code"),
            format!("mkdir {library_path}/new"),
            "echo x > /etc/x".to_owned(),
            "echo x > /usr/x".to_owned(),
            "touch /etc/passwd".to_owned(),
            "echo x > /x".to_owned(),
            "echo 1 > /proc/sys/kernel/core_pattern".to_owned(),
            "echo 1 > /proc/sys/vm/overcommit_memory".to_owned(),
            "echo b > /proc/sysrq-trigger".to_owned(),
            format!("cat {outside_path}/secret"),
            format!("ls {outside_path}"),
            "ls /root /home".to_owned(),
            "cat /etc/shadow".to_owned(),
            "ls /etc/ssl/private".to_owned(),
            "mknod n c 1 3".to_owned(),
            "head -c 1 /dev/vda".to_owned(),
            "head -c 1 /dev/mem".to_owned(),
            "mount -t tmpfs t .".to_owned(),
            "unshare -r true".to_owned(),
            "chroot . /bin/true".to_owned(),
        ] {
            if tier == SandboxTier::B && script.starts_with("touch") {
                // Landlock leaves times and modes alone, and the report says so.
                continue;
            }
            let ran = bench.run(&script).await;
            assert_ne!(ran.ended.code, Some(0), "{tier:?} {script}: {ran:?}");
        }
        assert!(!outside.path().join("written").exists());
        assert_eq!(
            std::fs::read_to_string(library.path().join("code")).unwrap(),
            "code"
        );
    }
}

#[tokio::test]
async fn a_read_only_profile_writes_its_temporary_directory_only() {
    for tier in [SandboxTier::A, SandboxTier::B] {
        let bench = Bench::at_most(tier).profile(SandboxProfile::ReadOnly);
        write(&bench.path("a"), "a");
        assert_eq!(
            bench
                .run("cat a; echo b > $TMPDIR/b; cat $TMPDIR/b")
                .await
                .ok(),
            "ab"
        );
        for script in [
            "echo x > a",
            "rm a",
            "touch new",
            "mv a b",
            "chmod 777 a",
            "ln a $TMPDIR/a && echo > $TMPDIR/a",
        ] {
            if tier == SandboxTier::B && script.starts_with("chmod") {
                continue;
            }
            assert_ne!(
                bench.run(script).await.ended.code,
                Some(0),
                "{tier:?} {script}"
            );
        }
        let applied = bench.start("true").await.applied().clone();
        assert_eq!(applied.fs_write, ["tmp"]);
        assert_eq!(applied.requested, SandboxProfile::ReadOnly);
    }
}

#[tokio::test]
async fn what_is_temporary_is_the_jobs_alone() {
    for tier in [SandboxTier::A, SandboxTier::B] {
        let bench = Bench::at_most(tier);
        bench
            .run("echo left > $TMPDIR/left-by-a-job; echo left > ~/left-by-a-job")
            .await
            .ok();
        assert_ne!(
            bench
                .run("cat $TMPDIR/left-by-a-job || cat ~/left-by-a-job")
                .await
                .ended
                .code,
            Some(0)
        );
        assert!(!std::path::Path::new("/tmp/left-by-a-job").exists());
    }
}

#[tokio::test]
async fn protected_paths_hold_and_git_still_reads() {
    let mut bench = Bench::new();
    bench.run("git init -q . && git config user.email a@b && git config user.name n && echo 1 > f && git add f && git commit -qm first").await.ok();
    write(&bench.path(".envrc"), "safe");
    bench.confines.protected = vec![
        bench.path(".git"),
        bench.path(".envrc"),
        bench.path(".missing"),
    ];
    let process = bench.start("true").await;
    let expected = [".git", ".envrc"].map(|name| bench.path(name).display().to_string());
    assert_eq!(process.applied().protected, expected);
    for script in [
        "echo x > .git/hooks/pre-commit",
        "echo x >> .git/config",
        "mv .git elsewhere",
        "rm -rf .git",
        "echo x > .envrc",
        "rm -f .envrc",
        "mv .envrc e",
        "git commit -qam second",
        "mkdir t && mv -T t .envrc",
    ] {
        assert_ne!(bench.run(script).await.ended.code, Some(0), "{script}");
    }
    assert_eq!(
        bench
            .run("echo 2 >> f && git status --porcelain && git log --format=%s")
            .await
            .ok(),
        " M f\n?? .envrc\nfirst"
    );
    assert!(bench.run("git diff").await.ok().contains("+2"));
    assert_eq!(
        std::fs::read_to_string(bench.path(".envrc")).unwrap(),
        "safe"
    );
}

#[tokio::test]
async fn masked_paths_cannot_be_read() {
    let mut bench = Bench::new();
    write(&bench.path("keys/private"), "secret");
    write(&bench.path("plain/.env"), "secret");
    write(&bench.path("deep/er/.env"), "secret");
    let library = tempfile::tempdir().unwrap();
    write(&library.path().join("open"), "open");
    write(&library.path().join("credentials"), "secret");
    bench.confines.readable = vec![library.path().to_owned()];
    bench.confines.masked = vec![
        bench.path("keys"),
        bench.path("plain/.env"),
        bench.path("deep/er/.env"),
        library.path().join("credentials"),
        bench.path("missing"),
    ];
    let library_path = library.path().display();
    for script in [
        "cat keys/private".to_owned(),
        "ls keys".to_owned(),
        "chmod 700 keys".to_owned(),
        "cat plain/.env".to_owned(),
        "chmod 600 plain/.env".to_owned(),
        "mv plain/.env plain/e".to_owned(),
        "rm -f plain/.env".to_owned(),
        "mv plain other".to_owned(),
        "mv deep deeper".to_owned(),
        "mv deep/er deep/est".to_owned(),
        format!("cat {library_path}/credentials"),
    ] {
        let ran = bench.run(&script).await;
        assert_ne!(ran.ended.code, Some(0), "{script}");
        assert!(!ran.stdout.contains("secret"));
    }
    assert_eq!(
        bench
            .run(&format!(
                "cat {library_path}/open; echo x > plain/new && mv plain/new deep/new"
            ))
            .await
            .ok(),
        "open"
    );
}

#[tokio::test]
async fn a_mask_beside_what_may_be_read_holds_without_mounts() {
    let mut bench = Bench::at_most(SandboxTier::B);
    let library = tempfile::tempdir().unwrap();
    write(&library.path().join("deep/open"), "open");
    write(&library.path().join("deep/credentials"), "secret");
    bench.confines.readable = vec![library.path().to_owned()];
    bench.confines.masked = vec![library.path().join("deep/credentials")];
    let path = library.path().display();
    assert_eq!(
        bench.run(&format!("cat {path}/deep/open")).await.ok(),
        "open"
    );
    bench
        .run(&format!("cat {path}/deep/credentials"))
        .await
        .refused("Permission denied");
    let missing = bench.start("true").await.applied().missing.clone();
    assert!(
        !missing.iter().any(|one| one.contains("masked")),
        "{missing:?}"
    );
    bench.confines.masked.push(bench.path("inside"));
    write(&bench.path("inside"), "secret");
    let missing = bench.start("true").await.applied().missing.clone();
    assert!(
        missing.iter().any(|one| one.contains("masked")),
        "{missing:?}"
    );
}

#[tokio::test]
async fn roots_may_lie_in_one_another_and_anywhere() {
    let mut bench = Bench::new();
    write(&bench.path("inner/deep/file"), "x");
    bench.confines.roots.push(SandboxRoot {
        path: bench.path("inner"),
        access: ResourceAccess::Read,
    });
    bench.confines.roots.push(SandboxRoot {
        path: bench.path("inner/deep"),
        access: ResourceAccess::Write,
    });
    assert_eq!(
        bench
            .run("echo y > inner/deep/file && echo z > outer && cat inner/deep/file")
            .await
            .ok(),
        "y"
    );
    bench.run("echo x > inner/file").await.refused("Read-only");
    let home = tempfile::Builder::new()
        .prefix(".sandbox-test")
        .tempdir_in("/var/tmp")
        .unwrap();
    bench.confines.roots.push(SandboxRoot {
        path: home.path().to_owned(),
        access: ResourceAccess::Write,
    });
    bench
        .run(&format!("echo x > {}/file", home.path().display()))
        .await;
    let mut job = bench.job(&["true"]);
    job.confines.roots = vec![SandboxRoot {
        path: "/".into(),
        access: ResourceAccess::Write,
    }];
    assert!(matches!(
        bench.run_job(job).await,
        Err(LaunchError::Sandbox { .. })
    ));
}

#[tokio::test]
async fn the_way_to_a_root_inside_of_a_root_cannot_be_moved() {
    let mut bench = Bench::new();
    write(&bench.path("vendor/deep/library/file"), "plain");
    bench.confines.roots.push(SandboxRoot {
        path: bench.path("vendor/deep/library"),
        access: ResourceAccess::Read,
    });
    for way in ["vendor", "vendor/deep", "vendor/deep/library"] {
        // Beside itself: from one mount to another nothing can be renamed anyway.
        let rename = format!("python3 -I -S -c 'import os; os.rename(\"{way}\", \"{way}-away\")'");
        bench.run(&rename).await.refused("busy");
    }
    bench
        .run("echo x > vendor/new && mv vendor/new vendor/deep/new && cat vendor/deep/library/file")
        .await
        .ok();
}

#[tokio::test]
async fn no_program_is_left_behind_that_lends_its_owners_rights() {
    for tier in [SandboxTier::A, SandboxTier::B] {
        let bench = Bench::at_most(tier);
        bench.run("cp /bin/true x && chmod 755 x && ./x").await.ok();
        for attempt in [
            "chmod 4755 x",
            "chmod g+s x",
            "install -m 4755 /bin/true y",
            "python3 -I -S -c 'import os; os.open(\"z\", os.O_CREAT | os.O_WRONLY, 0o4755)'",
            "python3 -I -S -c 'import os; os.fchmod(os.open(\"x\", os.O_RDONLY), 0o2755)'",
        ] {
            bench.run(attempt).await.refused("not permitted");
        }
        bench
            .run("find . -perm /6000 | grep . && exit 1; exit 0")
            .await
            .ok();
    }
}

#[tokio::test]
async fn a_root_inside_of_a_root_is_not_taken_for_what_a_link_leads_to() {
    let secret = tempfile::tempdir().unwrap();
    write(&secret.path().join("file"), "secret");
    for access in [ResourceAccess::Read, ResourceAccess::Write] {
        let mut bench = Bench::new();
        write(&bench.path("inner/file"), "plain");
        bench
            .run(&format!(
                "mv inner away && ln -s {} inner",
                secret.path().display()
            ))
            .await
            .ok();
        bench.confines.roots.push(SandboxRoot {
            path: bench.path("inner"),
            access,
        });
        let error = bench
            .run_job(bench.shell_job("cat inner/file"))
            .await
            .unwrap_err();
        assert!(error.to_string().contains("inner"), "{error}");
        bench.confines.roots.pop();
        bench.confines.readable = vec![bench.path("inner")];
        bench.run("cat inner/file").await.refused("No such file");
        // Without mounts it is left out, and leads nowhere.
        bench.launcher = Bench::at_most(SandboxTier::B).launcher;
        bench
            .run("cat inner/file")
            .await
            .refused("Permission denied");
        bench.confines.roots.push(SandboxRoot {
            path: bench.path("inner"),
            access,
        });
        bench
            .run("echo x > inner/file")
            .await
            .refused("Permission denied");
    }
}
