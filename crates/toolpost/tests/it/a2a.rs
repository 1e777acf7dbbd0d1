//! The end-to-end suite of the A2A face: the official clients of each dialect against the real binary.

use std::{path::PathBuf, process::Command};

use super::{home::Home, served::Served};

/// Where an environment of other ends is.
#[track_caller]
fn peers(environment: &str) -> PathBuf {
    let place = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../target")
        .join(environment);
    assert!(
        place.join("made-of.txt").exists(),
        "`target/{environment}` is missing\nhint: cargo xtask peers"
    );
    place
}

fn suite() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/a2a")
}

/// Runs a file of the suite with the Python that has the SDK of its dialect.
#[track_caller]
fn run(environment: &str, file: &str) {
    let output = Command::new(peers(environment).join("bin/python"))
        .args(["-m", "unittest", "discover", "-p", file, "-s"])
        .arg(suite())
        .env("TOOLPOST_BIN", env!("CARGO_BIN_EXE_toolpost"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{file}:\n{said}");
    assert!(!said.contains("skipped"), "{file} left tests out:\n{said}");
    assert!(
        !said.contains("Ran 0 tests") && !said.contains("NO TESTS RAN"),
        "{file} has no tests"
    );
}

#[test]
fn the_official_client_of_1_0() {
    run("peers-a2a-1", "test_v1.py");
}

#[test]
fn the_official_client_of_0_3() {
    run("peers-a2a-0.3", "test_v0_3.py");
}

/// Over each of its transports, also as a client of 0.3.
#[test]
fn the_official_client_in_javascript() {
    let node = peers("peers-node");
    let home = Home::new();
    home.write("lines.txt", "one\ntwo\nthree\n");
    let served = Served::start(&home, &[]);
    let output = Command::new(node.join("bin/node"))
        .arg(suite().join("client.mjs"))
        .arg(node.canonicalize().unwrap())
        .arg(format!("http://{}", served.address))
        .env("A2A_TOKEN", Served::token(&home))
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "ok: 1.0 over JSON-RPC\nok: 1.0 over REST\nok: 0.3 over JSON-RPC\n"
    );
}
