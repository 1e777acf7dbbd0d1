//! The end-to-end suite of Amplifier's modules: the real binary, modules in Python, and the real `amplifier-core` beside
//! them. One test here for each of its files.

use std::{path::PathBuf, process::Command};

/// The Python that `amplifier-core` is installed for.
fn peers() -> PathBuf {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(2)
        .unwrap()
        .to_owned();
    let python = root.join("target/peers/bin/python");
    assert!(
        python.exists(),
        "hint: `cargo xtask test` installs `amplifier-core` there"
    );
    python
}

#[track_caller]
fn run(file: &str) {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/amplifier");
    let output = Command::new(peers())
        .args(["-m", "unittest", "discover", "-s"])
        .arg(&folder)
        .args(["-p", file])
        .env("TOOLPOST_BIN", env!("CARGO_BIN_EXE_toolpost"))
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

files! { modules plugins results }
