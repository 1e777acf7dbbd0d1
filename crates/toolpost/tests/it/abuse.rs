//! The abuse suite: callers, files, commands, servers and programs that try to get out, against the real binary. One
//! test here for each of its files.

use std::{path::PathBuf, process::Command};

#[track_caller]
fn run(file: &str) {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/abuse");
    let output = Command::new("python3")
        .arg(folder)
        .args(["--pattern", file])
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

files! {
    borders code commands crash crowds hogs inner_calls inner_places kept links memory paths powers prying real_python search
    special_files survivors web
}
