//! Paths that rules keep from a call: no tool that meets one on its way tells of it.

use std::path::Path;

use serde_json::{Value, json};
use toolpost_model::{ErrorClass, ResourceAccess, ToolOutput};

use crate::desk::{Desk, Failed, Port, structured, text};

const WORD: &str = "the-kept-word";

/// A tree with things to find and things that are kept: the folder `vault` with all in it, and `*.key` anywhere.
fn desk() -> Desk {
    let desk = Desk::new();
    for name in [
        "vault/plan.txt",
        "vault/deep/further.txt",
        "app/api.key",
        "top.key",
    ] {
        desk.file(name, format!("{WORD} in {name}\n"));
    }
    for name in ["app/main.rs", "app/api.rs", "notes.txt", "top.txt"] {
        desk.file(name, "plain\n");
    }
    desk.link("app/shortcut", "../vault/plan.txt");
    desk.link("app/circle", "circle");
    desk.link("plain-link", "notes.txt");
    desk
}

/// As a rule engine answers for `vault/**` and `*.key`, denied for this access.
fn keeping(kept: ResourceAccess) -> Port {
    Port::ruled(move |path: &Path, access| {
        let secret = path
            .ancestors()
            .skip(1)
            .any(|above| above.ends_with("w/vault"))
            || path.extension().is_some_and(|extension| extension == "key")
            || (kept == ResourceAccess::Write && path.ends_with("w/vault"));
        access != kept || !secret
    })
}

fn call(desk: &Desk, tool: &str, arguments: Value) -> Result<ToolOutput, Failed> {
    desk.call_with(tool, arguments, keeping(ResourceAccess::Read))
        .0
}

/// Everything that a caller gets to see.
fn seen(result: &Result<ToolOutput, Failed>) -> String {
    match result {
        Ok(output) => format!(
            "{} {:?} {:?}",
            text(output),
            output.structured,
            output.summary
        ),
        Err(failed) => format!("{failed:?}"),
    }
}

#[test]
fn searches_pass_over_what_is_kept_and_say_how_much() {
    let desk = desk();
    for (tool, arguments) in [
        ("search.grep", json!({ "pattern": WORD })),
        (
            "search.grep",
            json!({ "pattern": WORD, "output_mode": "content", "include_hidden": true }),
        ),
        (
            "search.grep",
            json!({ "pattern": ".", "output_mode": "count", "include_ignored": true }),
        ),
        ("search.glob", json!({ "pattern": "**/*" })),
        ("search.glob", json!({ "pattern": "*.key" })),
        ("search.glob", json!({ "pattern": "vault/**" })),
        ("files.list_directory", json!({ "depth": 5 })),
        ("files.list_directory", json!({ "path": "vault" })),
        ("files.list_directory", json!({ "path": "app", "limit": 1 })),
    ] {
        let result = call(&desk, tool, arguments.clone());
        let seen = seen(&result);
        let told = structured(result.as_ref().unwrap())["kept_by_rules"].as_u64();
        assert!(
            told.is_some_and(|kept| kept > 0),
            "{tool} {arguments}: {seen}"
        );
        for hidden in [
            "plan", "further", "deep", "api.key", "top.key", WORD, "shortcut",
        ] {
            let asked_for = arguments.to_string().contains(hidden);
            assert!(
                asked_for || !seen.contains(hidden),
                "{tool} {arguments} tells of {hidden}: {seen}"
            );
        }
    }
    let listed = call(&desk, "files.list_directory", json!({ "depth": 2 })).unwrap();
    let lines: Vec<_> = text(&listed).lines().collect();
    let expected = [
        "app/",
        "app/api.rs",
        "app/circle -> circle",
        "app/main.rs",
        "notes.txt",
        "plain-link -> notes.txt",
        "top.txt",
        "vault/",
        "[rules hide 5 entries from this call]",
    ];
    assert_eq!(lines, expected);
}

#[test]
fn how_much_is_kept_does_not_depend_on_the_question() {
    let desk = desk();
    desk.file(".ignore", "top.k*\n*.rs\n");
    let kept = |tool: &str, arguments: Value| {
        let result = call(&desk, tool, arguments).unwrap();
        let facts = structured(&result);
        (
            facts["kept_by_rules"].as_u64().unwrap(),
            facts["ignored"].as_u64().unwrap(),
        )
    };
    let all = kept("search.glob", json!({ "pattern": "**/*" }));
    for pattern in ["**/top.*", "**/plan*", "**/nothing", "**/*.key"] {
        let (found, _) = kept("search.glob", json!({ "pattern": pattern }));
        assert_eq!(found, all.0, "{pattern}");
    }
    // An ignore file of the caller's is no way to ask for names either: it fits two files that may be seen.
    assert_eq!(all.1, 2);
    let by_content = |pattern: &str| kept("search.grep", json!({ "pattern": pattern })).0;
    assert_eq!(by_content(WORD), by_content("no such word"));
}

#[test]
fn nobody_is_told_of_kept_names_by_suggestion() {
    let desk = desk();
    for (tool, arguments) in [
        ("files.read_file", json!({ "path": "top.kay" })),
        ("files.file_info", json!({ "path": "top.kay" })),
        (
            "files.edit_file",
            json!({ "path": "app/api.kez", "old_string": "a", "new_string": "b" }),
        ),
        ("files.delete_file", json!({ "path": "top.kex" })),
        ("files.move_file", json!({ "from": "top.kex", "to": "x" })),
        ("files.list_directory", json!({ "path": "vault/dep" })),
        (
            "search.grep",
            json!({ "path": "vault/plan.tx", "pattern": "x" }),
        ),
    ] {
        let failed = call(&desk, tool, arguments.clone()).unwrap_err();
        assert!(
            !failed.hint.contains("did you mean `top.key") && !failed.hint.contains("vault/"),
            "{failed:?}"
        );
        assert!(
            !failed.hint.contains("api.key"),
            "{tool} {arguments}: {failed:?}"
        );
    }
    let failed = call(&desk, "files.read_file", json!({ "path": "top.tx" })).unwrap_err();
    assert_eq!(failed.hint, "did you mean `top.txt`?");
}

/// The host decides on what a name means before the call runs; these calls meet it afterwards, as if the name had been
/// made to mean something else in between.
#[test]
fn what_a_name_means_by_now_counts() {
    let desk = desk();
    let before = desk.snapshot();
    let patch = |body: &str| json!({ "patch": format!("*** Begin Patch\n{body}\n*** End Patch") });
    let digest = "0".repeat(64);
    for (tool, arguments) in [
        ("files.read_file", json!({ "path": "app/shortcut" })),
        ("files.read_file", json!({ "path": "vault/plan.txt" })),
        ("files.file_info", json!({ "path": "app/shortcut" })),
        (
            "files.edit_file",
            json!({ "path": "app/shortcut", "old_string": "in", "new_string": "on" }),
        ),
        (
            "files.write_file",
            json!({ "path": "top.key", "content": "", "expected_sha256": digest }),
        ),
        (
            "files.apply_patch",
            patch("*** Update File: top.key\n-x\n+y"),
        ),
        (
            "files.apply_patch",
            patch("*** Update File: top.key\n*** Move to: top.txt.2"),
        ),
        (
            "files.apply_patch",
            patch("*** Delete File: vault/plan.txt"),
        ),
        (
            "files.move_file",
            json!({ "from": "top.key", "to": "top.open" }),
        ),
        ("files.list_directory", json!({ "path": "vault/deep" })),
        (
            "search.grep",
            json!({ "path": "app/shortcut", "pattern": "x" }),
        ),
        (
            "search.glob",
            json!({ "path": "vault/deep", "pattern": "*" }),
        ),
    ] {
        let failed = call(&desk, tool, arguments.clone()).unwrap_err();
        assert_eq!(
            failed.class,
            ErrorClass::PermissionDenied,
            "{tool} {arguments}: {failed:?}"
        );
        assert_eq!(
            (failed.code.as_str(), failed.untouched),
            ("kept_by_rule", true),
            "{tool}: {failed:?}"
        );
        assert!(
            !format!("{failed:?}").contains(WORD),
            "{tool} {arguments}: {failed:?}"
        );
    }
    assert_eq!(desk.snapshot(), before);
}

#[test]
fn what_may_be_written_and_not_read_is_written_blindly() {
    let desk = desk();
    let written = call(
        &desk,
        "files.write_file",
        json!({ "path": "top.key", "content": "new\n" }),
    );
    assert!(!seen(&written).contains(WORD), "{}", seen(&written));
    let written = written.unwrap();
    assert_eq!(text(&written), "wrote 4 bytes to top.key");
    assert_eq!(structured(&written)["previous_sha256"], Value::Null);
    assert_eq!(desk.content("top.key"), "new\n");
    // Deleting shows nothing.
    call(&desk, "files.delete_file", json!({ "path": "top.key" })).unwrap();
}

#[test]
fn folders_are_not_moved_or_deleted_over_what_is_kept() {
    let desk = desk();
    desk.file("plain/a/b.txt", "x");
    desk.file("made/x.key", "x");
    let before = desk.snapshot();
    for access in [ResourceAccess::Read, ResourceAccess::Write] {
        for (tool, arguments) in [
            ("files.move_file", json!({ "from": "vault", "to": "open" })),
            ("files.move_file", json!({ "from": "app", "to": "open" })),
            (
                "files.delete_file",
                json!({ "path": "app", "recursive": true }),
            ),
            (
                "files.delete_file",
                json!({ "path": "vault", "recursive": true }),
            ),
        ] {
            let failed = desk
                .call_with(tool, arguments.clone(), keeping(access))
                .0
                .unwrap_err();
            assert_eq!(
                failed.code, "kept_by_rule",
                "{tool} {arguments}: {failed:?}"
            );
            assert!(
                !failed.message.contains("plan") && !failed.message.contains("api.key"),
                "{failed:?}"
            );
        }
    }
    // What it would be called there counts as well.
    let into = json!({ "from": "plain", "to": "vault/plain" });
    let failed = desk
        .call_with("files.move_file", into, keeping(ResourceAccess::Write))
        .0
        .unwrap_err();
    assert_eq!(failed.code, "kept_by_rule");
    assert_eq!(desk.snapshot(), before);
    let moved = desk.call_with(
        "files.move_file",
        json!({ "from": "plain", "to": "elsewhere" }),
        keeping(ResourceAccess::Read),
    );
    assert!(moved.0.is_ok());
    let port = keeping(ResourceAccess::Read);
    assert!(
        desk.call_with(
            "files.delete_file",
            json!({ "path": "elsewhere", "recursive": true }),
            port
        )
        .0
        .is_ok()
    );
}

#[test]
fn nothing_is_written_where_rules_keep_writes_out() {
    let desk = desk();
    let before = desk.snapshot();
    let patch = |body: &str| json!({ "patch": format!("*** Begin Patch\n{body}\n*** End Patch") });
    for (tool, arguments) in [
        (
            "files.write_file",
            json!({ "path": "vault/new.txt", "content": "" }),
        ),
        (
            "files.write_file",
            json!({ "path": "new/x.key", "content": "", "create_directories": true }),
        ),
        (
            "files.edit_file",
            json!({ "path": "top.key", "old_string": "in", "new_string": "on" }),
        ),
        (
            "files.move_file",
            json!({ "from": "notes.txt", "to": "notes.key" }),
        ),
        ("files.delete_file", json!({ "path": "top.key" })),
        (
            "files.apply_patch",
            patch("*** Add File: vault/new.txt\n+x"),
        ),
        (
            "files.apply_patch",
            patch("*** Update File: notes.txt\n*** Move to: notes.key"),
        ),
    ] {
        let failed = desk
            .call_with(tool, arguments.clone(), keeping(ResourceAccess::Write))
            .0
            .unwrap_err();
        assert_eq!(
            failed.code, "kept_by_rule",
            "{tool} {arguments}: {failed:?}"
        );
    }
    assert_eq!(desk.snapshot(), before);
}
