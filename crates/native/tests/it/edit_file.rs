use std::{fs, os::unix::fs::PermissionsExt};

use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::{Value, json};
use toolpost_model::{ErrorClass, ToolOutput};

use crate::desk::{Desk, Failed, Port, structured, text};

fn edit(desk: &Desk, path: &str, old: &str, new: &str) -> Result<ToolOutput, Failed> {
    desk.call(
        "files.edit_file",
        json!({ "path": path, "old_string": old, "new_string": new }),
    )
}

#[test]
fn an_edit_changes_one_place_and_shows_it() {
    let desk = Desk::new();
    desk.file("a.rs", "fn a() {}\nfn b() {}\nfn c() {}\n");
    let output = edit(&desk, "a.rs", "fn b()", "fn beta()").unwrap();
    assert_eq!(desk.content("a.rs"), "fn a() {}\nfn beta() {}\nfn c() {}\n");
    let expected = "edited a.rs at line 2\n--- a/a.rs\n+++ b/a.rs\n@@ -1,3 +1,3 @@\n fn a() {}\n-fn b() {}\n+fn beta() {}\n \
                    fn c() {}\n";
    assert_eq!(text(&output), expected);
    let facts = structured(&output);
    assert_eq!(
        (&facts["path"], &facts["replacements"], &facts["lines"]),
        (&json!("a.rs"), &json!(1), &json!([2]))
    );
    let digest = structured(&desk.read("a.rs").unwrap())["sha256"].clone();
    assert_eq!(facts["sha256"], digest);
    assert!(facts.get("diff").is_none(), "the diff is told once");
}

#[test]
fn what_does_not_fit_exactly_once_changes_nothing() {
    let desk = Desk::new();
    desk.file("a.txt", "one\n  two\none\n");
    let before = desk.snapshot();
    let check = |old: &str, code: &str, message: &str, hint: &str| {
        let failed = edit(&desk, "a.txt", old, "new").unwrap_err();
        assert_eq!(
            (failed.class, failed.code.as_str()),
            (ErrorClass::ExecutionFailed, code),
            "{failed:?}"
        );
        assert_eq!(failed.message, message);
        assert!(failed.hint.contains(hint) && failed.untouched, "{failed:?}");
    };
    check(
        "one",
        "ambiguous",
        "`old_string` occurs 2 times (lines 1, 3) in `a.txt`",
        "`replace_all`",
    );
    check(
        "three",
        "no_match",
        "`old_string` does not occur in `a.txt`",
        "copy the text exactly",
    );
    let near = "`old_string` does not occur exactly, but lines 1 to 2 differ from it only in blanks or line ends, in \
                `a.txt`";
    check("one\n\ttwo", "no_match", near, "with their blanks");
    check(
        "     1\tone\n",
        "no_match",
        "`old_string` does not occur in `a.txt`",
        "line numbers",
    );
    for (arguments, at) in [
        (
            json!({ "path": "a.txt", "old_string": "", "new_string": "x" }),
            "/old_string",
        ),
        (
            json!({ "path": "a.txt", "old_string": "x", "new_string": "x" }),
            "/new_string",
        ),
        (
            json!({ "path": "sub/", "old_string": "x", "new_string": "y" }),
            "/path",
        ),
        (
            json!({ "path": "a.txt", "old_string": "x", "new_string": "y", "expected_sha256": "1" }),
            "/expected_sha256",
        ),
    ] {
        let failed = desk.call("files.edit_file", arguments).unwrap_err();
        assert_eq!(
            (failed.class, failed.hint.as_str()),
            (ErrorClass::InvalidArguments, at)
        );
    }
    assert_eq!(desk.snapshot(), before);
    let all =
        json!({ "path": "a.txt", "old_string": "one", "new_string": "1", "replace_all": true });
    let output = desk.call("files.edit_file", all).unwrap();
    assert_eq!(
        (
            desk.content("a.txt").as_str(),
            &structured(&output)["lines"]
        ),
        ("1\n  two\n1\n", &json!([1, 3]))
    );
}

#[test]
fn line_ends_marks_and_modes_stay() {
    let desk = Desk::new();
    desk.file("dos.txt", "\u{feff}one\r\ntwo\r\nthree");
    fs::set_permissions(desk.path("dos.txt"), fs::Permissions::from_mode(0o751)).unwrap();
    edit(&desk, "dos.txt", "one\ntwo\n", "1\n2\n2b\n").unwrap();
    assert_eq!(desk.content("dos.txt"), "\u{feff}1\r\n2\r\n2b\r\nthree");
    edit(&desk, "dos.txt", "three", "three\nfour").unwrap();
    assert_eq!(
        desk.content("dos.txt"),
        "\u{feff}1\r\n2\r\n2b\r\nthree\r\nfour"
    );
    assert_eq!(
        fs::metadata(desk.path("dos.txt"))
            .unwrap()
            .permissions()
            .mode()
            & 0o777,
        0o751
    );
}

#[test]
fn only_text_files_are_edited() {
    let desk = Desk::new();
    desk.file("latin1.txt", b"caf\xe9 a");
    desk.file("nul", b"a\0b");
    desk.file("huge.txt", "a".repeat(8 * 1024 * 1024 + 1));
    fs::create_dir(desk.path("dir")).unwrap();
    mknodat(
        CWD,
        desk.path("pipe"),
        FileType::Fifo,
        Mode::RUSR | Mode::WUSR,
        0,
    )
    .unwrap();
    desk.link("dangling", "nowhere.txt");
    for (path, code) in [
        ("latin1.txt", "not_text"),
        ("nul", "not_text"),
        ("huge.txt", "too_large"),
        ("dir", "is_directory"),
        ("pipe", "not_a_regular_file"),
        ("missing.txt", "not_found"),
        ("dangling", "not_found"),
    ] {
        let failed = edit(&desk, path, "a", "b").unwrap_err();
        assert_eq!(
            (failed.code.as_str(), failed.untouched),
            (code, true),
            "{path}: {failed:?}"
        );
    }
    assert_eq!(fs::read(desk.path("latin1.txt")).unwrap(), b"caf\xe9 a");
    assert!(!desk.path("nowhere.txt").exists());
    desk.file("grows.txt", "ab".repeat(2 * 1024 * 1024));
    let grow = json!({ "path": "grows.txt", "old_string": "a", "new_string": "aaaa", "replace_all": true });
    assert_eq!(
        desk.call("files.edit_file", grow).unwrap_err().code,
        "too_large"
    );
}

#[test]
fn a_file_that_changed_since_it_was_read_is_not_edited() {
    let desk = Desk::new();
    desk.file("a.txt", "old");
    let digest = structured(&desk.read("a.txt").unwrap())["sha256"].clone();
    let arguments =
        json!({ "path": "a.txt", "old_string": "o", "new_string": "0", "expected_sha256": digest });
    desk.call("files.edit_file", arguments.clone()).unwrap();
    assert_eq!(
        desk.call("files.edit_file", arguments).unwrap_err().code,
        "changed"
    );

    // Also in the middle of the call, whether or not a digest was given.
    let mut noticed = 0;
    for moment in 0..6 {
        desk.file("a.txt", "old");
        let path = desk.path("a.txt");
        let port = Port::new(move |look| {
            if look == moment {
                fs::write(&path, "somebody else's old").unwrap();
            }
            false
        });
        let arguments: Value = json!({ "path": "a.txt", "old_string": "old", "new_string": "new" });
        let (result, _) = desk.call_with("files.edit_file", arguments, port);
        match result {
            Err(failed) => {
                assert_eq!(failed.code, "changed", "{failed:?}");
                assert_eq!(desk.content("a.txt"), "somebody else's old");
                noticed += 1;
            }
            Ok(_) => assert!(desk.content("a.txt").ends_with("new") || moment >= 3),
        }
    }
    assert!(noticed >= 2, "noticed only {noticed} times");
}
