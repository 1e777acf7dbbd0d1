//! Commands as such: exit codes, streams, working directories, and programs that must work.

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use tokio::io::AsyncWriteExt;
use toolpost_model::{SandboxProfile, SandboxTier};
use toolpost_sandbox::{LaunchError, StderrTarget, Stdin};

use crate::bench_of_jobs::{Bench, finish, write};

const ALL: [SandboxTier; 4] = [
    SandboxTier::A,
    SandboxTier::B,
    SandboxTier::C,
    SandboxTier::N,
];

#[tokio::test]
async fn exit_codes_and_signals_are_exact() {
    for tier in ALL {
        let bench = Bench::at_most(tier);
        for (script, code, signal) in [
            ("true", Some(0), None),
            ("exit 3", Some(3), None),
            ("exit 255", Some(255), None),
            ("kill -TERM $$", None, Some(15)),
            ("kill -KILL $$", None, Some(9)),
            ("kill -SEGV $$", None, Some(11)),
            ("nothing-of-this-name", Some(127), None),
        ] {
            let ended = bench.run(script).await.ended;
            assert_eq!(
                (ended.code, ended.signal),
                (code, signal),
                "{tier:?} {script}"
            );
            assert!(!ended.out_of_memory);
        }
    }
}

#[tokio::test]
async fn ordinary_programs_work() {
    for tier in [SandboxTier::A, SandboxTier::B] {
        let bench = Bench::at_most(tier);
        write(&bench.path("a.txt"), "one\ntwo\n");
        for (script, expected) in [
            ("cat <<END\nhere $((1 + 1))\nEND", "here 2"),
            ("cat a.txt | sort -r | head -1", "two"),
            ("diff <(echo a) <(echo a) && echo same", "same"),
            ("f=$(mktemp) && echo x > $f && cat $f", "x"),
            ("d=$(mktemp -d) && touch $d/y && ls $d", "y"),
            ("echo z > ~/z && cat ~/z", "z"),
            ("mkfifo p && (echo through > p &) && cat p", "through"),
            ("echo gone > /dev/null; echo here", "here"),
            ("echo out > /dev/stdout", "out"),
            ("head -c 4 /dev/zero | wc -c", "4"),
            ("python3 -c 'print(6 * 7)'", "42"),
            (
                "python3 -c 'import tempfile; f = tempfile.NamedTemporaryFile(); f.write(b\"x\"); print(len(f.name) > 0)'",
                "True",
            ),
            (
                "python3 -c 'import subprocess; print(subprocess.run([\"echo\", \"sub\"], capture_output=True).stdout.decode().strip())'",
                "sub",
            ),
            (
                "python3 -c 'import threading; t = threading.Thread(target=lambda: print(\"thread\")); t.start(); t.join()'",
                "thread",
            ),
            (
                "git init -q r && cd r && git config user.email a@b && git config user.name n && echo 1 > f && git add f && git commit -qm first && git log --format=%s",
                "first",
            ),
            ("perl -e 'print 3 ** 2'", "9"),
            ("tar cf t.tar a.txt && tar tf t.tar", "a.txt"),
            (
                "mv a.txt b.txt && ln b.txt c.txt && ln -s b.txt d.txt && cat d.txt | head -1 && mv b.txt a.txt",
                "one",
            ),
            ("ulimit -c", "0"),
        ] {
            let ran = bench.run(script).await;
            assert_eq!(ran.ok(), expected, "{tier:?} {script}: {}", ran.stderr);
        }
    }
    let python = "python3 -c 'import multiprocessing as m; print(m.Pool(2).map(abs, [-1, -2]))'";
    assert_eq!(Bench::new().run(python).await.ok(), "[1, 2]");
    assert!(Bench::new().run("ls /").await.ok().contains("usr"));
}

#[tokio::test]
async fn streams_are_kept_apart_or_together() {
    let bench = Bench::new();
    let script = "echo one; echo two >&2; echo three";
    let apart = bench.run(script).await;
    assert_eq!(
        (apart.stdout.as_str(), apart.stderr.as_str()),
        ("one\nthree\n", "two\n")
    );
    let mut job = bench.shell_job(script);
    job.stderr = StderrTarget::WithStdout;
    assert_eq!(
        bench.run_job(job).await.unwrap().stdout,
        "one\ntwo\nthree\n"
    );
}

#[tokio::test]
async fn standard_input_is_nothing_a_pipe_or_a_socket() {
    for tier in ALL {
        let bench = Bench::at_most(tier);
        assert_eq!(bench.run("cat | wc -c").await.ok(), "0", "{tier:?}");
        let mut job = bench.shell_job("cat; echo end");
        job.stdin = Stdin::Piped;
        let mut process = bench.launcher.start(job).await.unwrap();
        let mut stdin = process.take_stdin().unwrap();
        let typing = tokio::spawn(async move { stdin.write_all(&vec![b'x'; 300_000]).await });
        let ran = finish(process).await;
        assert!(
            ran.ok().ends_with("xend") && ran.ok().len() == 300_003,
            "{tier:?}"
        );
        typing.await.unwrap().unwrap();
        let (ours, theirs) = UnixStream::pair().unwrap();
        let mut job = bench.shell_job("read line; echo got $line");
        job.stdin = Stdin::Socket(OwnedFd::from(theirs));
        let process = bench.launcher.start(job).await.unwrap();
        std::io::Write::write_all(&mut &ours, b"words\n").unwrap();
        assert_eq!(finish(process).await.ok(), "got words", "{tier:?}");
    }
}

#[tokio::test]
async fn what_cannot_run_says_why() {
    let bench = Bench::new();
    let mut job = bench.job(&["true"]);
    job.directory = bench.path("missing");
    let error = bench.run_job(job).await.unwrap_err();
    assert!(
        matches!(&error, LaunchError::Directory { path, .. } if path.ends_with("missing")),
        "{error}"
    );
    let error = bench
        .run_job(bench.job(&["no-such-program"]))
        .await
        .unwrap_err();
    assert!(
        matches!(&error, LaunchError::Command { program, .. } if program == "no-such-program"),
        "{error}"
    );
    write(&bench.path("data"), "not a program");
    let error = bench.run_job(bench.job(&["./data"])).await.unwrap_err();
    assert!(error.to_string().contains("Permission denied"), "{error}");
    assert!(matches!(
        bench.run_job(bench.job(&[])).await,
        Err(LaunchError::NoCommand)
    ));
    assert!(matches!(
        bench.run_job(bench.job(&["a\0b"])).await,
        Err(LaunchError::Unspeakable { .. })
    ));
    let mut job = bench.job(&["true"]);
    job.directory = PathBuf::from("relative");
    assert!(matches!(
        bench.run_job(job).await,
        Err(LaunchError::NotAbsolute { .. })
    ));
    let mut job = bench.job(&["true"]);
    job.confines.roots[0].path = PathBuf::from("/nowhere/at/all");
    let error = bench.run_job(job).await.unwrap_err();
    assert!(error.to_string().contains("/nowhere/at/all"), "{error}");
}

#[tokio::test]
async fn a_launcher_that_is_none_is_told_apart() {
    let launcher = toolpost_sandbox::Launcher::new(PathBuf::from("/bin/true"));
    assert_eq!(launcher.tier(), SandboxTier::N);
    let bench = Bench::with(launcher);
    assert!(matches!(
        bench.run_job(bench.job(&["true"])).await,
        Err(LaunchError::Silent { .. })
    ));
}

#[tokio::test]
async fn only_the_jobs_own_environment_is_there() {
    for (tier, profile) in [
        (SandboxTier::A, SandboxProfile::WorkspaceWrite),
        (SandboxTier::B, SandboxProfile::WorkspaceWrite),
        (SandboxTier::A, SandboxProfile::None),
    ] {
        let bench = Bench::at_most(tier).profile(profile);
        let ran = bench.run_job(bench.job(&["env"])).await.unwrap();
        let mut names: Vec<&str> = ran
            .ok()
            .lines()
            .filter_map(|line| line.split('=').next())
            .collect();
        names.sort_unstable();
        assert_eq!(names, ["HOME", "LANG", "PATH", "TMPDIR"], "{tier:?}");
        let ran = bench
            .run("test -w $HOME && test -w $TMPDIR && ps -o sid= -p $$ | tr -d ' '; echo $$")
            .await;
        let mut lines = ran.ok().lines();
        assert_eq!(lines.next(), lines.next(), "leads its own session");
    }
}
