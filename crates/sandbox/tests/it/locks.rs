//! Threads and processes of our own that lock themselves in.

use std::fs;
use std::net::TcpStream;
use std::process::Command;

use toolpost_model::ResourceAccess;
use toolpost_sandbox::{SandboxRoot, confine_thread, harden_host, lock_down};

use crate::bench_of_jobs::write;
use crate::roles;

#[test]
fn a_thread_is_confined_to_its_roots_and_the_others_are_not() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    for name in ["work/file", "library/file", "outside/file"] {
        write(&at(name), "x");
    }
    let roots = [
        SandboxRoot {
            path: at("work"),
            access: ResourceAccess::Write,
        },
        SandboxRoot {
            path: at("library"),
            access: ResourceAccess::Read,
        },
    ];
    std::thread::scope(|scope| {
        scope.spawn(|| {
            assert!(confine_thread(&roots).landlock_abi.is_some());
            fs::write(at("work/new"), "y").unwrap();
            fs::rename(at("work/new"), at("work/newer")).unwrap();
            fs::read(at("library/file")).unwrap();
            fs::write(at("library/file"), "y").unwrap_err();
            fs::read(at("outside/file")).unwrap_err();
            fs::read("/etc/passwd").unwrap_err();
            fs::read("/proc/self/environ").unwrap_err();
        });
    });
    fs::read(at("outside/file")).unwrap();
    fs::read("/etc/passwd").unwrap();
}

#[test]
fn a_locked_process_can_only_think() {
    const TEST: &str = "locks::a_locked_process_can_only_think";
    if roles::role().is_none() {
        return roles::must_succeed(roles::again(TEST, "locked"));
    }
    let (one, other) = std::os::unix::net::UnixStream::pair().unwrap();
    let locked = lock_down(64 << 20).unwrap();
    let refused = [
        ("read a file", fs::read("/etc/passwd").is_err()),
        ("list a directory", fs::read_dir("/").is_err()),
        (
            "write a file",
            fs::write("/tmp/locked-process-wrote", "x").is_err(),
        ),
        (
            "connect",
            TcpStream::connect("127.0.0.1:1")
                .is_err_and(|error| error.raw_os_error() == Some(libc::EPERM)),
        ),
        ("run a program", Command::new("/bin/true").spawn().is_err()),
        (
            "start a thread",
            std::thread::Builder::new().spawn(|| ()).is_err(),
        ),
        (
            "use much memory",
            Vec::<u8>::new().try_reserve_exact(128 << 20).is_err(),
        ),
    ];
    std::io::Write::write_all(&mut &one, b"x").unwrap();
    std::io::Read::read_exact(&mut &other, &mut [0]).unwrap();
    assert_eq!(vec![1_u8; 16 << 20].len(), 16 << 20);
    for (what, refused) in refused {
        assert!(refused, "it could {what}");
    }
    println!("{locked:?}");
    // The test's own threads are not locked, and the limits of the process would make them stumble.
    std::process::exit(0);
}

#[test]
fn a_hardened_host_leaves_no_core() {
    const TEST: &str = "locks::a_hardened_host_leaves_no_core";
    if roles::role().is_none() {
        return roles::must_succeed(roles::again(TEST, "host"));
    }
    harden_host();
    let limits = fs::read_to_string("/proc/self/limits").unwrap();
    let core = limits
        .lines()
        .find(|line| line.starts_with("Max core file size"))
        .unwrap();
    assert_eq!(core.split_whitespace().nth(4), Some("0"));
    // The kernel gives the files about a process that may not be looked into to root.
    assert_eq!(
        rustix::process::dumpable_behavior().unwrap(),
        rustix::process::DumpableBehavior::NotDumpable
    );
}
