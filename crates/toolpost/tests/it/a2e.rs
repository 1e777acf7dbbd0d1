//! The end-to-end suite of the A2E face: an independent client in Python, as strict about every field as the real
//! ones, against the real binary and a host of tools that misbehave. One test here for each of its files.

use std::{path::PathBuf, process::Command};

/// The host of misbehaving tools, an example of the crate that serves. `cargo test --workspace` builds it.
fn fixture() -> PathBuf {
    let beside = PathBuf::from(env!("CARGO_BIN_EXE_toolpost"));
    let fixture = beside.parent().unwrap().join("examples/a2e_fixture");
    assert!(
        fixture.exists(),
        "hint: cargo build -p toolpost-serve --example a2e_fixture"
    );
    fixture
}

#[track_caller]
fn run(file: &str) {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/a2e");
    let output = Command::new("python3")
        .arg(folder)
        .args(["--pattern", file])
        .env("TOOLPOST_BIN", env!("CARGO_BIN_EXE_toolpost"))
        .env("TOOLPOST_A2E_FIXTURE", fixture())
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{file}:\n{said}");
    assert!(!said.contains("skipped"), "{file} left tests out:\n{said}");
    assert!(!said.contains("Ran 0 tests"), "{file} has no tests");
}

macro_rules! files {
    ($($name:ident)*) => { $(#[test] fn $name() { run(concat!("test_", stringify!($name), ".py")); })* };
}

files! {
    access approvals audit calls errors handshake joining listing load repeats replay running sessions
    shutdown stdio strangers stream strict
}
