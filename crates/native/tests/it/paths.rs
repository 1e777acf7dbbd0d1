//! Which paths lead where, for all file tools.

use std::{fs, os::unix::fs::symlink};

use serde_json::{Value, json};
use toolpost_model::{ErrorClass, ResourceAccess, ResourceKey};

use crate::desk::{Desk, structured, text};

const FILE_TOOLS: [&str; 8] = [
    "files.read_file",
    "files.write_file",
    "files.list_directory",
    "files.file_info",
    "files.edit_file",
    "files.apply_patch add",
    "files.apply_patch update",
    "files.apply_patch move",
];

/// Arguments that bring `tool` to touch `path`.
fn touching(tool: &str, path: &str) -> Value {
    match tool {
        "files.write_file" => {
            json!({ "path": path, "content": "overwritten", "create_directories": true })
        }
        "files.edit_file" => {
            json!({ "path": path, "old_string": "secret", "new_string": "edited" })
        }
        "files.apply_patch add" => {
            json!({ "patch": format!("*** Begin Patch\n*** Add File: {path}\n+new\n*** End Patch") })
        }
        "files.apply_patch update" => {
            json!({ "patch": format!("--- {path}\n+++ {path}\n@@ -1 +1 @@\n-outside secret\n+patched\n") })
        }
        "files.apply_patch move" => json!({
            "patch": format!("*** Begin Patch\n*** Update File: a.txt\n*** Move to: {path}\n*** End Patch")
        }),
        _ => json!({ "path": path }),
    }
}

fn desk_with_links() -> Desk {
    let desk = Desk::new();
    let outside = desk.outside();
    desk.file("a.txt", "inside a");
    desk.file("sub/b.txt", "inside b");
    desk.link("file_out", "../outside/secret.txt");
    desk.link("file_out_absolute", outside.join("secret.txt"));
    desk.link("dir_out", "../outside");
    desk.link("dir_out_absolute", &outside);
    desk.link("new_out", "../outside/new.txt");
    desk.link("chain", "sub/chain");
    desk.link("sub/chain", "../file_out");
    desk.link("sub/up", "..");
    desk.link("sub/home", "../..");
    desk.link("fs_root", "/");
    desk.link("proc_root", "/proc/self/root");
    desk.link("null", "/dev/null");
    desk.link("zero", "/dev/zero");
    desk.link("loop", "loop");
    desk.link("file_in", "sub/b.txt");
    desk.link("chain_in", "sub/up/file_in");
    desk.link("dir_in", "./sub/");
    desk.link("file_in_absolute", desk.path("sub/b.txt"));
    desk.link("dir_in_absolute", desk.path("sub"));
    desk.link("sub/absolute", desk.path("a.txt"));
    desk.link("file_as_dir", "a.txt/");
    desk
}

#[test]
fn nothing_leads_out_of_the_workspace() {
    let desk = desk_with_links();
    let secret = desk.outside().join("secret.txt");
    let absolute = secret.to_str().unwrap();
    let climbing = format!("{}/../outside/secret.txt", desk.path("").to_str().unwrap());
    let before = desk.snapshot();
    for path in [
        "..",
        "../outside/secret.txt",
        "../w/a.txt",
        "a/../../x",
        "sub/../../outside/secret.txt",
        "./.././outside/secret.txt",
        absolute,
        &climbing,
        "/",
        "/etc/passwd",
        "/proc/self/root/etc/passwd",
        "file_out",
        "file_out_absolute",
        "dir_out/secret.txt",
        "dir_out_absolute/secret.txt",
        "dir_out/new.txt",
        "dir_out/new/new.txt",
        "dir_out/../w/a.txt",
        "new_out",
        "chain",
        "sub/chain",
        "sub/up/../../outside/secret.txt",
        "sub/up/../x",
        "sub/home/outside/secret.txt",
        "fs_root/etc/passwd",
        "proc_root/etc/passwd",
        "null",
        "zero",
    ] {
        for tool in FILE_TOOLS {
            let id = tool.split(' ').next().unwrap();
            let failed = desk.call(id, touching(tool, path)).unwrap_err();
            assert_eq!(
                failed.class,
                ErrorClass::SandboxViolation,
                "{tool} {path}: {failed:?}"
            );
            assert!(failed.untouched, "{tool} {path}");
            assert!(
                failed.message.contains(&format!("`{path}`")),
                "names the path as given: {failed:?}"
            );
            assert!(failed.message.contains("the workspace"), "{failed:?}");
        }
    }
    assert_eq!(desk.snapshot(), before);
}

#[test]
fn names_outside_are_neither_moved_nor_deleted_nor_made() {
    let desk = desk_with_links();
    let before = desk.snapshot();
    let absolute = desk.outside().join("secret.txt");
    let absolute = absolute.to_str().unwrap();
    // What ends in a link is not among them: the link itself may go.
    for path in [
        "..",
        "../outside/secret.txt",
        absolute,
        "/",
        "/etc/passwd",
        "dir_out/secret.txt",
        "dir_out/new.txt",
        "dir_out_absolute/new/new.txt",
        "sub/home/outside/secret.txt",
        "fs_root/tmp/x",
        "sub/up/../x",
    ] {
        for (tool, arguments) in [
            (
                "files.delete_file",
                json!({ "path": path, "recursive": true }),
            ),
            (
                "files.move_file",
                json!({ "from": path, "to": "taken", "overwrite": true }),
            ),
            (
                "files.move_file",
                json!({ "from": "a.txt", "to": path, "overwrite": true, "create_directories": true }),
            ),
        ] {
            let failed = desk.call(tool, arguments).unwrap_err();
            assert_eq!(
                failed.class,
                ErrorClass::SandboxViolation,
                "{tool} {path}: {failed:?}"
            );
            assert!(failed.untouched, "{tool} {path}");
        }
    }
    assert_eq!(desk.snapshot(), before);
}

#[test]
fn the_message_names_the_link_that_leads_out() {
    let failed = desk_with_links().read("chain").unwrap_err();
    let message =
        "`chain` leaves the workspace: the link `file_out` points to `../outside/secret.txt`";
    assert_eq!(failed.message, message);
}

#[test]
fn paths_that_stay_inside_are_found_however_they_are_spelled() {
    let desk = desk_with_links();
    let root = desk
        .path("")
        .to_str()
        .unwrap()
        .trim_end_matches('/')
        .to_owned();
    let check = |path: &str, content: &str, real: &str| {
        let output = desk
            .read(path)
            .unwrap_or_else(|failed| panic!("{path}: {failed:?}"));
        assert_eq!(
            (text(&output), &structured(&output)["path"]),
            (content, &json!(real)),
            "{path}"
        );
        let effects = desk.effects("files.read_file", json!({ "path": path }));
        assert_eq!(
            effects.uses[0].key,
            ResourceKey::path(&format!("{root}/{real}")),
            "{path}"
        );
        assert_eq!(effects.uses[0].access, ResourceAccess::Read);
    };
    check("a.txt", "inside a", "a.txt");
    check("./a.txt", "inside a", "a.txt");
    check(".//sub///../a.txt", "inside a", "a.txt");
    check(&format!("{root}/a.txt"), "inside a", "a.txt");
    check(&format!("{root}/sub/../a.txt"), "inside a", "a.txt");
    check("file_in", "inside b", "sub/b.txt");
    check("chain_in", "inside b", "sub/b.txt");
    check("dir_in/b.txt", "inside b", "sub/b.txt");
    check("file_in_absolute", "inside b", "sub/b.txt");
    check("dir_in_absolute/b.txt", "inside b", "sub/b.txt");
    check("dir_in_absolute/../a.txt", "inside a", "a.txt");
    check("sub/absolute", "inside a", "a.txt");
    check("sub/up/a.txt", "inside a", "a.txt");
    check("sub/up/sub/up/sub/b.txt", "inside b", "sub/b.txt");
}

#[test]
fn odd_paths_are_refused_with_a_reason() {
    let desk = desk_with_links();
    let long = "x".repeat(5000);
    let name = "x".repeat(256);
    for (path, class, part) in [
        ("", ErrorClass::InvalidArguments, "is empty"),
        ("a\0.txt", ErrorClass::InvalidArguments, "NUL"),
        (&long, ErrorClass::InvalidArguments, "the limit is 4096"),
        (&name, ErrorClass::ExecutionFailed, "cannot open"),
        (
            "a.txt/",
            ErrorClass::ExecutionFailed,
            "`a.txt` is not a directory",
        ),
        (
            "a.txt/.",
            ErrorClass::ExecutionFailed,
            "`a.txt` is not a directory",
        ),
        (
            "a.txt/x",
            ErrorClass::ExecutionFailed,
            "`a.txt` is not a directory",
        ),
        (
            "a.txt/../a.txt",
            ErrorClass::ExecutionFailed,
            "`a.txt` is not a directory",
        ),
        (
            "file_as_dir",
            ErrorClass::ExecutionFailed,
            "`a.txt` is not a directory",
        ),
        ("loop", ErrorClass::ExecutionFailed, "too many links"),
        (
            "missing/../a.txt",
            ErrorClass::ExecutionFailed,
            "there is no `missing`",
        ),
    ] {
        let failed = desk.read(path).unwrap_err();
        assert_eq!(failed.class, class, "{path:?}: {failed:?}");
        assert!(failed.message.contains(part), "{path:?}: {failed:?}");
        assert!(
            failed.message.len() < 1000,
            "a message does not repeat a path at any length"
        );
    }
}

#[test]
fn the_workspace_answers_to_the_name_it_was_opened_by() {
    let desk = Desk::opened_as(|home| {
        symlink(home.join("w"), home.join("alias")).unwrap();
        home.join("alias")
    });
    desk.file("a.txt", "inside a");
    let alias = desk.outside().with_file_name("alias");
    for root in [alias, desk.path("")] {
        let output = desk.read(root.join("a.txt").to_str().unwrap()).unwrap();
        assert_eq!(text(&output), "inside a");
    }
}

#[test]
fn the_workspace_stays_the_same_directory_when_its_name_is_taken_over() {
    let desk = Desk::new();
    desk.file("a.txt", "inside a");
    desk.link("absolute", desk.path("a.txt"));
    let root = desk.outside().with_file_name("w");
    fs::rename(&root, root.with_file_name("moved")).unwrap();
    symlink(desk.outside(), &root).unwrap();
    assert_eq!(text(&desk.read("a.txt").unwrap()), "inside a");
    assert_eq!(text(&desk.read("absolute").unwrap()), "inside a");
    assert_eq!(desk.read("secret.txt").unwrap_err().code, "not_found");
    desk.write("new.txt", "new").unwrap();
    assert_eq!(
        fs::read_to_string(root.with_file_name("moved").join("new.txt")).unwrap(),
        "new"
    );
    desk.outside_is_untouched();
}

#[test]
fn effects_fall_back_to_the_text_where_nothing_can_be_found() {
    let desk = desk_with_links();
    let root = desk.path("");
    for (path, place) in [
        ("loop/x", "loop/x"),
        ("missing/x.txt", "missing/x.txt"),
        ("sub/new.txt", "sub/new.txt"),
    ] {
        let effects = desk.effects("files.read_file", json!({ "path": path }));
        assert_eq!(
            effects.uses[0].key,
            ResourceKey::path(root.join(place).to_str().unwrap()),
            "{path}"
        );
    }
}
