use std::{
    fs::{self, File, FileTimes},
    os::unix::fs::PermissionsExt,
    time::{Duration, SystemTime},
};

use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::{Value, json};
use toolpost_model::{ErrorClass, EventBody, ToolProgress};

use crate::desk::{Desk, Port, structured, text};

fn info(desk: &Desk, path: &str) -> Value {
    structured(
        &desk
            .call("files.file_info", json!({ "path": path }))
            .unwrap(),
    )
    .clone()
}

#[test]
fn a_file_is_described_with_its_digest() {
    let desk = Desk::new();
    desk.file("a.txt", "abc");
    desk.link("link", "a.txt");
    fs::set_permissions(desk.path("a.txt"), fs::Permissions::from_mode(0o640)).unwrap();
    let moment = SystemTime::UNIX_EPOCH + Duration::new(1_700_000_000, 5_000_000);
    File::options()
        .write(true)
        .open(desk.path("a.txt"))
        .unwrap()
        .set_times(FileTimes::new().set_modified(moment))
        .unwrap();
    let expected = json!({
        "path": "a.txt",
        "type": "file",
        "size": 3,
        "mode": "0640",
        "modified": "2023-11-14T22:13:20.005Z",
        "sha256": "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
    });
    assert_eq!(info(&desk, "a.txt"), expected);
    assert_eq!(info(&desk, "link"), expected);
    let output = desk
        .call("files.file_info", json!({ "path": "a.txt" }))
        .unwrap();
    assert!(
        text(&output).contains("\nmodified: 2023-11-14T22:13:20.005Z\nsha256: ba7816bf"),
        "{}",
        text(&output)
    );
}

#[test]
fn other_things_have_no_digest_and_are_not_opened() {
    let desk = Desk::new();
    mknodat(CWD, desk.path("pipe"), FileType::Fifo, Mode::RUSR, 0).unwrap();
    for (path, kind) in [("pipe", "other"), (".", "directory")] {
        let info = info(&desk, path);
        assert_eq!((&info["type"], info.get("sha256")), (&json!(kind), None));
    }
    desk.file("empty", "");
    assert_eq!(
        info(&desk, "empty")["sha256"]
            .as_str()
            .map(|digest| &digest[..8]),
        Some("e3b0c442")
    );
    let failed = desk
        .call("files.file_info", json!({ "path": "emtpy" }))
        .unwrap_err();
    assert_eq!(
        (failed.code.as_str(), failed.hint.as_str()),
        ("not_found", "did you mean `empty`?")
    );
}

#[test]
fn hashing_tells_how_far_it_is_and_stops_when_told_to() {
    let desk = Desk::new();
    let size = 8 * 1024 * 1024_u64;
    File::create(desk.path("large"))
        .unwrap()
        .set_len(size)
        .unwrap();
    let (result, events) = desk.call_with(
        "files.file_info",
        json!({ "path": "large" }),
        Port::new(|_| false),
    );
    result.unwrap();
    let done: Vec<u64> = events
        .iter()
        .map(|event| match event {
            EventBody::Progress(ToolProgress {
                done: Some(done),
                total,
                ..
            }) if *total == Some(size) => *done,
            other => panic!("{other:?}"),
        })
        .collect();
    assert!((10..=20).contains(&done.len()), "{} events", done.len());
    assert!(done.is_sorted() && done.last() == Some(&size), "{done:?}");

    let (result, events) = desk.call_with(
        "files.file_info",
        json!({ "path": "large" }),
        Port::new(|look| look == 10),
    );
    assert_eq!(result.unwrap_err().class, ErrorClass::Canceled);
    assert!(events.len() < 10);
}

#[test]
fn a_file_that_grows_while_it_is_read_gets_no_digest() {
    let desk = Desk::new();
    desk.file("log", "x".repeat(1000));
    let path = desk.path("log");
    let port = Port::new(move |look| {
        if look == 0 {
            fs::write(&path, "x".repeat(2000)).unwrap();
        }
        false
    });
    let output = desk
        .call_with("files.file_info", json!({ "path": "log" }), port)
        .0
        .unwrap();
    assert_eq!(
        (
            structured(&output)["size"].as_u64(),
            structured(&output).get("sha256")
        ),
        (Some(1000), None)
    );
}
