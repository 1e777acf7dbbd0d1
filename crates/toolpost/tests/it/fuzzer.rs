//! Schemathesis, a fuzzer of others, against the description of the HTTP API: no answer is an error of the server, and none
//! is one that the description does not know.

use std::{path::Path, process::Command};

use super::{home::Home, served::Served};

/// Answers are compared with their status, their media type and their schema.
const CHECKS: &str = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance";

#[test]
fn every_answer_is_one_that_the_description_knows() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let fuzzer = root.join("target/peers-fuzz/bin/schemathesis");
    assert!(fuzzer.exists(), "install it with `cargo xtask peers`");
    let home = Home::new();
    let served = Served::start(&home, &[]);
    let output = Command::new(fuzzer)
        .arg("run")
        .arg(root.join("docs/reference/openapi.json"))
        .args(["--url", &format!("http://{}", served.address)])
        .args([
            "--header",
            &format!("Authorization: Bearer {}", Served::token(&home)),
        ])
        .args([
            "--checks",
            CHECKS,
            "--phases",
            "coverage,fuzzing",
            "--max-examples",
            "20",
            "--seed",
            "1",
        ])
        // Streams do not end by themselves.
        .args(["--exclude-path-regex", "events$", "--request-timeout", "60"])
        .args([
            "--no-shrink",
            "--generation-database",
            "none",
            "--warnings",
            "off",
        ])
        .current_dir(home.workspace())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}");
    let generated = said.lines().find_map(|line| line.split_once(" generated,"));
    let count = generated.and_then(|(count, _)| count.trim().parse::<u32>().ok());
    assert!(
        count.is_some_and(|count| count > 200),
        "the fuzzer tried too little:\n{said}"
    );
    let (status, said) = served.stop();
    assert!(status.success() && !said.contains("panicked"), "{said}");
}
