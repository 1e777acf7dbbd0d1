//! `toolpost journal search`, and `tail` with filters.

use serde_json::Value;

use super::{home::Home, served::Served};

fn used() -> Home {
    let home = Home::new();
    home.run(&["call", "echo", "message=Something to FIND"])
        .expect(0);
    home.run(&[
        "call",
        "write_file",
        "path=a",
        "content=a needle",
        "--mode",
        "edits",
    ])
    .expect(0);
    home.run(&["call", "read_file", "path=missing"]).expect(1);
    home.run(&["call", "no_such_tool"]).expect(1);
    home
}

/// The records that a command prints, by kind and tool.
fn found(home: &Home, arguments: &[&str]) -> Vec<(String, String)> {
    let lines = home
        .run(&[arguments, &["--json"]].concat())
        .expect(0)
        .stdout;
    let record = |line: &str| {
        let record: Value = serde_json::from_str(line).unwrap();
        let tool = record["body"]
            .get("tool_id")
            .unwrap_or(&record["body"]["call"]["tool"]);
        (
            record["kind"].as_str().unwrap().to_owned(),
            tool.as_str().unwrap_or_default().to_owned(),
        )
    };
    lines.lines().map(record).collect()
}

/// A result that looks like the first record of a call does not keep the real one from being searched.
#[test]
fn a_result_that_looks_like_a_record_hides_nothing() {
    let home = Home::new();
    let served = Served::start(&home, &["--mode", "bypass"]);
    let body = serde_json::json!({ "code": "# needle\n{'call': {'a': 1}}" }).to_string();
    let ran = served
        .connect(&home)
        .post_with_key("/tools/run_code/call", "k", &body)
        .unwrap()
        .json();
    assert_eq!(
        ran["structured_content"]["value"],
        serde_json::json!({ "call": { "a": 1 } }),
        "{ran}"
    );
    served.stop();
    let calls = found(&home, &["journal", "search", "--text", "needle"]);
    assert_eq!(calls, [("ended".to_owned(), "code.run_code".to_owned())]);
}

#[test]
fn calls_are_found_by_what_they_are_and_what_was_said_newest_first() {
    let home = used();
    let check = |filters: &[&str], expected: &[&str]| {
        let calls = found(&home, &[&["journal", "search"], filters].concat());
        assert!(
            calls.iter().all(|(kind, _)| kind == "ended"),
            "{filters:?}: {calls:?}"
        );
        assert_eq!(
            calls
                .iter()
                .map(|(_, tool)| tool.as_str())
                .collect::<Vec<_>>(),
            expected,
            "{filters:?}"
        );
    };
    let echo = "host.echo";
    let write = "files.write_file";
    let read = "files.read_file";
    check(&[], &["no_such_tool", read, write, echo]);
    check(&["-n", "2"], &["no_such_tool", read]);
    check(&["--tool", "write_file"], &[write]);
    check(&["--tool", "files.*_file"], &[read, write]);
    check(&["--tool", "no_such_tool"], &["no_such_tool"]);
    check(&["--principal", "local", "--tool", "read_file"], &[read]);
    check(&["--principal", "nobody"], &[]);
    check(&["--outcome", "succeeded"], &[write, echo]);
    check(&["--outcome", "failed", "--tool", "files.*"], &[read]);
    check(&["--since", "1h"], &["no_such_tool", read, write, echo]);
    check(&["--until", "1h"], &[]);
    check(
        &["--since", "2020-01-01", "--until", "2020-01-02T00:00:00Z"],
        &[],
    );
    // In arguments, of a call in one record and of one in two; in results; in any case, all words.
    check(&["--text", "find something"], &[echo]);
    check(&["--text", "NEEDLE"], &[write]);
    check(&["--text", "missing"], &[read]);
    check(&["--text", "needle something"], &[]);
    check(&["--text", "\"type\""], &[]);
}

#[test]
fn a_search_shows_where_the_words_are() {
    let home = used();
    let told = home
        .run(&["journal", "search", "--text", "needle"])
        .expect(0)
        .stdout;
    let lines: Vec<&str> = told.lines().collect();
    assert_eq!(lines.len(), 2, "{told}");
    assert!(lines[0].contains("files.write_file succeeded"), "{told}");
    assert!(lines[1].contains("a needle"), "{told}");
    let none = home
        .run(&["journal", "search", "--text", "no-such-word"])
        .expect(0);
    assert_eq!(
        (none.stdout.as_str(), none.stderr.trim()),
        ("", "no call matches")
    );
}

#[test]
fn filters_that_mean_nothing_are_refused() {
    let home = used();
    for filters in [
        ["--outcome", "fine"],
        ["--since", "yesterday"],
        ["--until", "30"],
    ] {
        home.run(&[&["journal", "search"], &filters[..]].concat())
            .expect(2);
        home.run(&[&["journal", "tail"], &filters[..]].concat())
            .expect(2);
    }
}

#[test]
fn a_tail_with_filters_tells_whole_calls_in_their_order() {
    let home = used();
    let write = |kind: &str| (kind.to_owned(), "files.write_file".to_owned());
    let records = found(&home, &["journal", "tail", "--tool", "write_file"]);
    assert_eq!(records, [write("started"), write("ended")]);
    assert_eq!(
        found(
            &home,
            &["journal", "tail", "--tool", "write_file", "-n", "1"]
        ),
        [write("ended")]
    );
    let failed = found(
        &home,
        &[
            "journal",
            "tail",
            "--outcome",
            "failed",
            "--tool",
            "read_file",
        ],
    );
    assert_eq!(failed.len(), 1);
    assert_eq!(
        found(&home, &["journal", "tail", "--principal", "nobody"]),
        []
    );
}
