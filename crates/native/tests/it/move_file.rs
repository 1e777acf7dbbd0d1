use std::{fs, os::unix::fs::PermissionsExt};

use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::{Value, json};
use toolpost_model::{ErrorClass, ResourceAccess, ResourceKey, ToolOutput};

use crate::desk::{Desk, Failed, structured, text};

fn rename(desk: &Desk, from: &str, to: &str) -> Result<ToolOutput, Failed> {
    desk.call("files.move_file", json!({ "from": from, "to": to }))
}

fn code(result: Result<ToolOutput, Failed>) -> String {
    let failed = result.unwrap_err();
    assert!(failed.untouched, "{failed:?}");
    failed.code
}

#[test]
fn files_directories_and_links_are_moved() {
    let desk = Desk::new();
    desk.file("a.txt", "a");
    desk.file("dir/inner/b.txt", "b");
    desk.link("link", "a.txt");
    desk.link("through", "dir");
    let output = rename(&desk, "a.txt", "./dir/../dir/moved.txt").unwrap();
    assert_eq!(text(&output), "moved a.txt to dir/moved.txt");
    let expected =
        json!({ "from": "a.txt", "to": "dir/moved.txt", "type": "file", "overwritten": false });
    assert_eq!(structured(&output), &expected);
    rename(&desk, "through/inner", "inner").unwrap();
    assert_eq!(
        (
            desk.content("dir/moved.txt").as_str(),
            desk.content("inner/b.txt").as_str()
        ),
        ("a", "b")
    );
    let output = rename(&desk, "link", "dir/link").unwrap();
    assert_eq!(structured(&output)["type"], "symlink");
    assert_eq!(
        fs::read_link(desk.path("dir/link")).unwrap().to_str(),
        Some("a.txt")
    );
    rename(&desk, "through", "elsewhere").unwrap();
    assert!(
        desk.path("elsewhere")
            .symlink_metadata()
            .unwrap()
            .is_symlink()
            && desk.path("dir").is_dir()
    );
    let deep = json!({ "from": "inner", "to": "x/y/inner", "create_directories": true });
    desk.call("files.move_file", deep).unwrap();
    assert_eq!(desk.content("x/y/inner/b.txt"), "b");
}

#[test]
fn nothing_is_replaced_unless_told_and_directories_never() {
    let desk = Desk::new();
    desk.file("a.txt", "a");
    desk.file("b.txt", "b");
    desk.file("dir/c.txt", "c");
    fs::create_dir(desk.path("empty")).unwrap();
    fs::hard_link(desk.path("a.txt"), desk.path("same.txt")).unwrap();
    let before = desk.snapshot();
    let over = |from: &str, to: &str| {
        desk.call(
            "files.move_file",
            json!({ "from": from, "to": to, "overwrite": true }),
        )
    };
    assert_eq!(code(rename(&desk, "a.txt", "b.txt")), "exists");
    assert_eq!(code(rename(&desk, "a.txt", "dir")), "exists");
    assert_eq!(code(rename(&desk, "dir", "empty")), "exists");
    assert_eq!(code(over("a.txt", "dir")), "exists");
    assert_eq!(code(over("a.txt", "empty")), "exists");
    assert_eq!(code(over("dir", "b.txt")), "exists");
    assert_eq!(code(over("dir", "empty")), "exists");
    assert_eq!(code(over("a.txt", "same.txt")), "same_file");
    assert_eq!(code(rename(&desk, "dir", "dir/inside")), "into_itself");
    assert_eq!(code(rename(&desk, "missing", "x")), "not_found");
    assert_eq!(code(rename(&desk, "a.txt", "no/such/x")), "not_found");
    assert_eq!(code(rename(&desk, "a.txt/", "x")), "not_a_directory");
    let failed = rename(&desk, "a.txt", "dir/../a.txt").unwrap_err();
    assert_eq!(
        (failed.class, failed.hint.as_str()),
        (ErrorClass::InvalidArguments, "/to")
    );
    assert_eq!(desk.snapshot(), before);
    let output = over("a.txt", "b.txt").unwrap();
    assert_eq!(
        (
            desk.content("b.txt").as_str(),
            &structured(&output)["overwritten"]
        ),
        ("a", &json!(true))
    );
}

#[test]
fn a_link_in_the_way_is_replaced_itself() {
    let desk = Desk::new();
    desk.file("a.txt", "a");
    desk.link("out", "../outside/secret.txt");
    desk.call(
        "files.move_file",
        json!({ "from": "a.txt", "to": "out", "overwrite": true }),
    )
    .unwrap();
    assert!(desk.path("out").symlink_metadata().unwrap().is_file());
    desk.outside_is_untouched();
}

#[test]
fn special_files_are_renamed_without_being_opened() {
    let desk = Desk::new();
    mknodat(CWD, desk.path("pipe"), FileType::Fifo, Mode::RUSR, 0).unwrap();
    assert_eq!(
        structured(&rename(&desk, "pipe", "tube").unwrap())["type"],
        "other"
    );
}

#[test]
fn a_file_goes_to_another_file_system_by_a_copy() {
    // Where there is no second file system to write to, there is nothing to show.
    let Ok(other) = tempfile::tempdir_in("/dev/shm") else {
        return;
    };
    let desk = Desk::prepared(|_, workspace| {
        workspace
            .with_root(other.path(), ResourceAccess::Write)
            .unwrap()
    });
    let there = |name: &str| other.path().join(name).to_str().unwrap().to_owned();
    desk.file("a.sh", "content");
    desk.file("dir/b", "b");
    fs::set_permissions(desk.path("a.sh"), fs::Permissions::from_mode(0o750)).unwrap();
    rename(&desk, "a.sh", &there("moved.sh")).unwrap();
    assert!(!desk.path("a.sh").exists());
    assert_eq!(fs::read_to_string(there("moved.sh")).unwrap(), "content");
    assert_eq!(
        fs::metadata(there("moved.sh"))
            .unwrap()
            .permissions()
            .mode()
            & 0o777,
        0o750
    );
    desk.file("a.sh", "other");
    assert_eq!(code(rename(&desk, "a.sh", &there("moved.sh"))), "exists");
    let same_device = fs::metadata(other.path()).unwrap().permissions()
        == fs::metadata(desk.path("")).unwrap().permissions();
    if !same_device || rename(&desk, "dir", &there("dir")).is_err() {
        assert!(desk.path("dir/b").exists());
    }
    assert_eq!(
        fs::read_dir(other.path())
            .unwrap()
            .filter(|entry| entry
                .as_ref()
                .unwrap()
                .file_name()
                .to_str()
                .unwrap()
                .contains("tmp"))
            .count(),
        0
    );
}

#[test]
fn effects_name_both_places() {
    let desk = Desk::new();
    desk.file("a.txt", "a");
    desk.link("link", "a.txt");
    let check = |arguments: Value, from: &str, to: &[&str]| {
        let effects = desk.effects("files.move_file", arguments);
        let keys: Vec<_> = effects
            .uses
            .iter()
            .map(|used| (used.key.clone(), used.access))
            .collect();
        let key = |place: &str| ResourceKey::path(desk.path(place).to_str().unwrap());
        // Under its new name it can be read.
        let mut expected = vec![
            (key(from), ResourceAccess::Write),
            (key(from), ResourceAccess::Read),
        ];
        expected.extend(to.iter().map(|place| (key(place), ResourceAccess::Write)));
        assert_eq!(keys, expected);
    };
    check(json!({ "from": "link", "to": "b.txt" }), "link", &["b.txt"]);
    let deep = json!({ "from": "a.txt", "to": "x/y/b.txt", "create_directories": true });
    check(deep, "a.txt", &["x", "x/y/b.txt"]);
}
