//! The end-to-end suite of the A2A face: the official client of each dialect against the real binary.

use std::{path::PathBuf, process::Command};

/// Runs a file of the suite with the Python that has the SDK of its dialect.
#[track_caller]
fn run(environment: &str, file: &str) {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let python = here.join("../../target").join(environment).join("bin/python");
    assert!(
        python.exists(),
        "there is no `target/{environment}` with the A2A client\nhint: cargo xtask peers"
    );
    let output = Command::new(python)
        .args(["-m", "unittest", "discover", "-p", file, "-s"])
        .arg(here.join("tests/a2a"))
        .env("TOOLPOST_BIN", env!("CARGO_BIN_EXE_toolpost"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{file}:\n{said}");
    assert!(!said.contains("skipped"), "{file} left tests out:\n{said}");
    assert!(!said.contains("Ran 0 tests") && !said.contains("NO TESTS RAN"), "{file} has no tests");
}

#[test]
fn the_official_client_of_1_0() {
    run("peers-a2a-1", "test_v1.py");
}

#[test]
fn the_official_client_of_0_3() {
    run("peers-a2a-0.3", "test_v0_3.py");
}
