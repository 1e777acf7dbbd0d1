//! The official clients in Python against the real binary, and the reference servers behind it. One test here for each
//! file of that suite and each of its classes that is worth a process of its own.

use std::{path::PathBuf, process::Command};

use super::suite::peers;

/// Runs a file of the suite, or the classes of it whose names hold a word.
#[track_caller]
fn run(file: &str, word: &str) {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/mcp_peers");
    let output = Command::new(peers("peers-mcp").join("bin/python"))
        .args([
            "-W", "ignore", "-m", "unittest", "discover", "-p", file, "-k", word, "-s",
        ])
        .arg(folder)
        .env("TOOLPOST_BIN", env!("CARGO_BIN_EXE_toolpost"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{file} {word}:\n{said}");
    assert!(
        !said.contains("skipped"),
        "{file} {word} left tests out:\n{said}"
    );
    assert!(
        !said.contains("Ran 0 tests") && !said.contains("NO TESTS RAN"),
        "{file} {word} has no tests"
    );
}

#[test]
fn the_official_client_over_http() {
    run("test_sdk.py", "OnHttp");
}

#[test]
fn the_official_client_over_stdio() {
    run("test_sdk.py", "OnStdio");
}

#[test]
fn the_official_client_over_a_host_that_is_joined() {
    run("test_sdk.py", "OnJoined");
}

#[test]
fn fastmcp_over_http() {
    run("test_fastmcp.py", "OnHttp");
}

#[test]
fn fastmcp_over_stdio() {
    run("test_fastmcp.py", "OnStdio");
}

#[test]
fn fastmcp_over_a_host_that_is_joined() {
    run("test_fastmcp.py", "OnJoined");
}

#[test]
fn the_reference_servers_behind_the_host() {
    run("test_servers.py", "*");
}
