use std::{ffi::OsStr, fs, os::unix::ffi::OsStrExt};

use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::{Value, json};
use toolpost_model::{ErrorClass, ToolOutput};

use crate::desk::{Desk, Port, structured, text};

fn list(desk: &Desk, arguments: Value) -> ToolOutput {
    desk.call("files.list_directory", arguments).unwrap()
}

fn desk_with_tree() -> Desk {
    let desk = Desk::new();
    desk.file("b.txt", "12345");
    desk.file("B.txt", "");
    desk.file("a/one.txt", "1");
    desk.file("a/deep/two.txt", "22");
    desk.link("link", "../outside");
    desk.link("dangling", "no\nwhere");
    mknodat(CWD, desk.path("pipe"), FileType::Fifo, Mode::RUSR, 0).unwrap();
    desk
}

#[test]
fn entries_are_sorted_by_bytes_and_typed() {
    let output = list(&desk_with_tree(), json!({}));
    assert_eq!(
        text(&output),
        "B.txt\na/\nb.txt\ndangling -> no\\nwhere\nlink -> ../outside\npipe\n"
    );
    assert!(output.truncated.is_none());
    assert_eq!(output.summary.as_deref(), Some("6 entries in ."));
    let expected = json!({
        "path": ".",
        "entries": [
            { "path": "B.txt", "type": "file", "size": 0 },
            { "path": "a", "type": "directory" },
            { "path": "b.txt", "type": "file", "size": 5 },
            { "path": "dangling", "type": "symlink", "target": "no\nwhere" },
            { "path": "link", "type": "symlink", "target": "../outside" },
            { "path": "pipe", "type": "other" },
        ],
    });
    assert_eq!(structured(&output), &expected);
}

#[test]
fn depth_goes_down_but_never_through_links() {
    let desk = desk_with_tree();
    let output = list(&desk, json!({ "path": "a", "depth": 5 }));
    assert_eq!(text(&output), "deep/\ndeep/two.txt\none.txt\n");
    assert_eq!(structured(&output)["entries"][1]["path"], "a/deep/two.txt");
    let output = list(&desk, json!({ "depth": 2 }));
    assert_eq!(
        text(&output),
        "B.txt\na/\na/deep/\na/one.txt\nb.txt\ndangling -> no\\nwhere\nlink -> ../outside\npipe\n"
    );
}

#[test]
fn a_limit_that_bites_is_announced() {
    let desk = Desk::new();
    for n in 0..30 {
        desk.file(&format!("d{}/f{n:02}", n / 10), "");
    }
    let check = |arguments: Value, shown: u64, total: Option<Option<u64>>| {
        let output = list(&desk, arguments.clone());
        assert_eq!(
            structured(&output)["entries"].as_array().unwrap().len() as u64,
            shown,
            "{arguments}"
        );
        let truncated = output
            .truncated
            .as_ref()
            .inspect(|cut| assert_eq!((cut.shown, cut.unit.as_str()), (shown, "entries")));
        assert_eq!(truncated.map(|cut| cut.total), total, "{arguments}");
    };
    check(json!({ "path": "d1" }), 10, None);
    check(json!({ "path": "d1", "limit": 10 }), 10, None);
    check(json!({ "path": "d1", "limit": 9 }), 9, Some(Some(10)));
    check(json!({ "depth": 2 }), 33, None);
    check(json!({ "depth": 2, "limit": 33 }), 33, None);
    check(json!({ "depth": 2, "limit": 32 }), 32, Some(Some(33)));
    check(json!({ "depth": 2, "limit": 5 }), 5, Some(None));
    check(json!({ "depth": 2, "limit": 1 }), 1, Some(None));
}

#[test]
fn names_that_are_no_text_or_would_break_lines_are_shown_safely() {
    let desk = Desk::new();
    fs::write(desk.path("").join(OsStr::from_bytes(b"bad\xff.txt")), "").unwrap();
    desk.file("two\nlines\u{1b}[31m", "");
    let output = list(&desk, json!({}));
    assert_eq!(text(&output), "bad\u{fffd}.txt\ntwo\\nlines\\u{1b}[31m\n");
    let entries = &structured(&output)["entries"];
    assert_eq!(
        (&entries[0]["lossy_name"], &entries[1].get("lossy_name")),
        (&json!(true), &None)
    );
    assert_eq!(entries[1]["path"], "two\nlines\u{1b}[31m");
}

#[test]
fn an_empty_directory_is_said_to_be_empty() {
    let desk = Desk::new();
    let output = list(&desk, json!({ "path": "." }));
    assert_eq!(
        (text(&output), output.summary.as_deref()),
        (". is empty", Some(". is empty"))
    );
    assert!(output.is_empty);
}

#[test]
fn what_cannot_be_listed_says_why() {
    let desk = desk_with_tree();
    let fail = |arguments: Value| desk.call("files.list_directory", arguments).unwrap_err();
    assert_eq!(
        fail(json!({ "path": "b.txt" })).message,
        "`b.txt` is not a directory"
    );
    assert_eq!(fail(json!({ "path": "pipe" })).code, "not_a_directory");
    assert_eq!(fail(json!({ "path": "aa" })).hint, "did you mean `a`?");
    assert_eq!(
        fail(json!({ "path": "link" })).class,
        ErrorClass::SandboxViolation
    );
    for (arguments, at) in [
        (json!({ "depth": 0 }), "/depth"),
        (json!({ "depth": 6 }), "/depth"),
        (json!({ "limit": 0 }), "/limit"),
        (json!({ "limit": 5001 }), "/limit"),
        (json!({ "path": "" }), "/path"),
    ] {
        let failed = fail(arguments);
        assert_eq!(
            (failed.class, failed.hint.as_str()),
            (ErrorClass::InvalidArguments, at)
        );
    }
}

#[test]
fn listing_stops_when_told_to() {
    let desk = desk_with_tree();
    for moment in 0..4 {
        let port = Port::new(move |look| look == moment);
        let failed = desk
            .call_with("files.list_directory", json!({ "depth": 3 }), port)
            .0
            .unwrap_err();
        assert_eq!(failed.class, ErrorClass::Canceled);
    }
}
