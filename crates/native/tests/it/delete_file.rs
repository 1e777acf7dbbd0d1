use std::{fs, os::unix::fs::symlink};

use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::json;
use toolpost_model::{ErrorClass, ToolOutput};

use crate::desk::{Desk, Failed, Port, structured, text};

fn delete(desk: &Desk, path: &str) -> Result<ToolOutput, Failed> {
    desk.call("files.delete_file", json!({ "path": path }))
}

fn delete_all(desk: &Desk, path: &str) -> Result<ToolOutput, Failed> {
    desk.call(
        "files.delete_file",
        json!({ "path": path, "recursive": true }),
    )
}

#[test]
fn single_things_are_deleted() {
    let desk = Desk::new();
    desk.file("a.txt", "a");
    desk.link("link", "../outside/secret.txt");
    desk.link("dir_link", "../outside");
    fs::create_dir(desk.path("empty")).unwrap();
    mknodat(CWD, desk.path("pipe"), FileType::Fifo, Mode::RUSR, 0).unwrap();
    for (path, kind) in [
        ("a.txt", "file"),
        ("link", "symlink"),
        ("dir_link", "symlink"),
        ("empty/", "directory"),
        ("pipe", "other"),
    ] {
        let output = delete(&desk, path).unwrap_or_else(|failed| panic!("{path}: {failed:?}"));
        assert_eq!(
            (
                &structured(&output)["type"],
                &structured(&output)["deleted"]
            ),
            (&json!(kind), &json!(1)),
            "{path}"
        );
    }
    assert!(fs::read_dir(desk.path("")).unwrap().next().is_none());
    desk.outside_is_untouched();
    assert_eq!(delete(&desk, "a.txt").unwrap_err().code, "not_found");
}

#[test]
fn a_tree_goes_only_when_asked_for_and_links_in_it_are_not_followed() {
    let desk = Desk::new();
    for number in 0..5000 {
        desk.file(&format!("tree/{}/{number}", number % 3), "");
    }
    desk.file("beside.txt", "stays");
    symlink(desk.outside(), desk.path("tree/out")).unwrap();
    symlink("../beside.txt", desk.path("tree/beside")).unwrap();
    let failed = delete(&desk, "tree").unwrap_err();
    assert_eq!(
        (failed.code.as_str(), failed.untouched),
        ("not_empty", true)
    );
    assert_eq!(
        failed.hint,
        "set `recursive: true` to delete it with its content"
    );
    let failed = delete_all(&desk, "tree/out/").unwrap_err();
    assert_eq!(
        failed.code, "not_a_directory",
        "a link is never followed: {failed:?}"
    );
    let output = delete_all(&desk, "tree").unwrap();
    assert_eq!(text(&output), "deleted tree with 5005 entries in it");
    assert!(!desk.path("tree").exists());
    assert_eq!(desk.content("beside.txt"), "stays");
    desk.outside_is_untouched();
}

#[test]
fn a_tree_that_is_too_deep_says_so() {
    let desk = Desk::new();
    let mut path = desk.path("deep");
    for _ in 0..240 {
        path.push("d");
    }
    fs::create_dir_all(&path).unwrap();
    let failed = delete_all(&desk, "deep").unwrap_err();
    assert_eq!((failed.code.as_str(), failed.untouched), ("too_deep", true));
    assert!(path.exists());
}

#[test]
fn a_deletion_that_is_stopped_says_what_is_gone() {
    let desk = Desk::new();
    for number in 0..10 {
        desk.file(&format!("tree/{number}"), "");
    }
    let arguments = json!({ "path": "tree", "recursive": true });
    let failed = desk
        .call_with(
            "files.delete_file",
            arguments.clone(),
            Port::new(|look| look == 4),
        )
        .0
        .unwrap_err();
    assert_eq!(
        (failed.class, failed.code.as_str(), failed.untouched),
        (ErrorClass::Canceled, "partly_deleted", false)
    );
    assert!(
        failed
            .message
            .starts_with("4 entries of `tree` were deleted, the others remain"),
        "{failed:?}"
    );
    assert_eq!(fs::read_dir(desk.path("tree")).unwrap().count(), 6);
    let failed = desk
        .call_with("files.delete_file", arguments, Port::new(|_| true))
        .0
        .unwrap_err();
    assert!(
        failed.class == ErrorClass::Canceled && failed.untouched,
        "{failed:?}"
    );
}
