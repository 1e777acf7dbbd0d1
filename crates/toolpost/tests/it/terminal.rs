//! The binary on a terminal, with a person at it: a suite in Python, which can make terminals.

use std::{path::PathBuf, process::Command};

#[test]
fn prompts() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/terminal");
    let output = Command::new("python3")
        .arg(folder)
        .env("TOOLPOST_BIN", env!("CARGO_BIN_EXE_toolpost"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(
        !said.contains("skipped") && !said.contains("Ran 0 tests"),
        "{said}"
    );
}
