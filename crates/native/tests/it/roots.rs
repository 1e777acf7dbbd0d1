//! Workspaces of several roots.

use std::{fs, os::unix::fs::symlink, path::Path};

use serde_json::{Value, json};
use toolpost_model::{ErrorClass, ResourceAccess, ResourceKey};
use toolpost_processes::Workspace;

use crate::desk::{Desk, structured, text};

/// `w` with `w/vendor` read-only and `w/vendor/out` writable in it; `lib` read-only and `scratch` writable beside it.
fn desk_with_roots() -> Desk {
    let desk = Desk::prepared(|home, workspace| {
        for directory in ["w/vendor/out", "w/src", "lib/gen", "scratch"] {
            fs::create_dir_all(home.join(directory)).unwrap();
        }
        symlink(home.join("lib"), home.join("lib_alias")).unwrap();
        workspace
            .with_root(&home.join("w/vendor"), ResourceAccess::Read)
            .and_then(|workspace| {
                workspace.with_root(&home.join("w/vendor/out"), ResourceAccess::Write)
            })
            .and_then(|workspace| {
                workspace.with_root(&home.join("lib_alias"), ResourceAccess::Read)
            })
            .and_then(|workspace| workspace.with_root(&home.join("scratch"), ResourceAccess::Write))
            .unwrap()
    });
    for file in ["a.txt", "vendor/v.txt", "vendor/out/o.txt"] {
        desk.file(file, file);
    }
    fs::write(desk.beside("lib/l.txt"), "l.txt").unwrap();
    fs::write(desk.beside("scratch/s.txt"), "s.txt").unwrap();
    desk
}

fn absolute(desk: &Desk, place: &str) -> String {
    desk.beside(place).to_str().unwrap().to_owned()
}

#[test]
fn every_root_is_read_and_places_are_named_from_the_primary_one() {
    let desk = desk_with_roots();
    let check = |path: &str, content: &str, place: &str| {
        let output = desk
            .read(path)
            .unwrap_or_else(|failed| panic!("{path}: {failed:?}"));
        assert_eq!(
            (text(&output), &structured(&output)["path"]),
            (content, &json!(place)),
            "{path}"
        );
        let effects = desk.effects("files.read_file", json!({ "path": path }));
        let key = desk.path("").join(place);
        assert_eq!(
            effects.uses[0].key,
            ResourceKey::path(key.to_str().unwrap()),
            "{path}"
        );
    };
    let library = absolute(&desk, "lib/l.txt");
    check("a.txt", "a.txt", "a.txt");
    check(&library, "l.txt", &library);
    check(&absolute(&desk, "lib_alias/l.txt"), "l.txt", &library);
    check(
        &absolute(&desk, "scratch/s.txt"),
        "s.txt",
        &absolute(&desk, "scratch/s.txt"),
    );
    check("vendor/v.txt", "vendor/v.txt", "vendor/v.txt");
    check(
        &absolute(&desk, "w/vendor/v.txt"),
        "vendor/v.txt",
        "vendor/v.txt",
    );
    check(&absolute(&desk, "w/vendor/../a.txt"), "a.txt", "a.txt");
    check("vendor/out/../v.txt", "vendor/v.txt", "vendor/v.txt");
    check(&absolute(&desk, "lib/gen/../l.txt"), "l.txt", &library);
    let listed = desk
        .call(
            "files.list_directory",
            json!({ "path": absolute(&desk, "lib") }),
        )
        .unwrap();
    assert_eq!(text(&listed), "gen/\nl.txt\n");
    assert_eq!(structured(&listed)["entries"][1]["path"], library);
}

#[test]
fn descriptions_tell_the_other_roots() {
    let desk = desk_with_roots();
    let told = desk.tool("files.read_file").declaration().description;
    assert!(
        told.contains(&format!("`{}` (read-only)", absolute(&desk, "lib"))),
        "{told}"
    );
    assert!(
        told.contains(&format!("`{}` work too", absolute(&desk, "scratch"))),
        "{told}"
    );
    assert!(
        !Desk::new()
            .tool("files.read_file")
            .declaration()
            .description
            .contains("Absolute paths")
    );
}

#[test]
fn links_lead_from_root_to_root_and_nowhere_else() {
    let desk = desk_with_roots();
    desk.link("to_lib", desk.beside("lib"));
    desk.link("vendor/up", "../a.txt");
    desk.link("vendor/out/up", "../../src/../a.txt");
    symlink("../scratch/s.txt", desk.beside("lib/sideways")).unwrap();
    symlink("../outside/secret.txt", desk.beside("lib/away")).unwrap();
    let read = |path: &str| desk.read(path).map(|output| text(&output).to_owned());
    assert_eq!(read("to_lib/l.txt").unwrap(), "l.txt");
    assert_eq!(read(&absolute(&desk, "w/vendor/up")).unwrap(), "a.txt");
    assert_eq!(read(&absolute(&desk, "w/vendor/out/up")).unwrap(), "a.txt");
    // Roots side by side are not reached by `..`: what is between them is none.
    for path in [
        "lib/sideways",
        "lib/away",
        "lib/../scratch/s.txt",
        "lib/../outside/secret.txt",
        "outside/secret.txt",
    ] {
        let failed = read(&absolute(&desk, path)).unwrap_err();
        assert_eq!(
            failed.class,
            ErrorClass::SandboxViolation,
            "{path}: {failed:?}"
        );
    }
}

#[test]
fn what_is_read_only_is_changed_by_no_tool() {
    let desk = desk_with_roots();
    desk.link("to_lib", desk.beside("lib"));
    desk.link("to_file", desk.beside("lib/l.txt"));
    let before = desk.snapshot();
    let library = absolute(&desk, "lib/l.txt");
    let patch =
        |change: &str| json!({ "patch": format!("*** Begin Patch\n{change}\n*** End Patch") });
    let attempts = |path: &str| -> Vec<(&'static str, Value)> {
        vec![
            (
                "files.write_file",
                json!({ "path": path, "content": "x", "create_directories": true }),
            ),
            (
                "files.edit_file",
                json!({ "path": path, "old_string": "txt", "new_string": "x" }),
            ),
            (
                "files.delete_file",
                json!({ "path": path, "recursive": true }),
            ),
            ("files.move_file", json!({ "from": path, "to": "moved" })),
            (
                "files.move_file",
                json!({ "from": "a.txt", "to": path, "overwrite": true }),
            ),
            (
                "files.apply_patch",
                patch(&format!("*** Delete File: {path}")),
            ),
            (
                "files.apply_patch",
                patch(&format!("*** Update File: a.txt\n*** Move to: {path}")),
            ),
            (
                "files.apply_patch",
                patch(&format!("*** Add File: {path}\n+x")),
            ),
        ]
    };
    for path in [
        &library,
        "vendor/v.txt",
        "to_lib/l.txt",
        "vendor/out/../v.txt",
    ] {
        for (tool, arguments) in attempts(path) {
            let failed = desk.call(tool, arguments).unwrap_err();
            assert_eq!(
                failed.class,
                ErrorClass::SandboxViolation,
                "{tool} {path}: {failed:?}"
            );
            assert!(
                failed.untouched && failed.message.contains("is read-only"),
                "{tool} {path}: {failed:?}"
            );
        }
    }
    for path in [
        absolute(&desk, "lib/new.txt"),
        "vendor/new/x.txt".to_owned(),
        "to_lib/new.txt".to_owned(),
    ] {
        let arguments = json!({ "path": path, "content": "x", "create_directories": true });
        assert_eq!(
            desk.call("files.write_file", arguments).unwrap_err().class,
            ErrorClass::SandboxViolation
        );
    }
    let failed = desk.write("to_file", "x").unwrap_err();
    assert_eq!(
        (failed.code.as_str(), failed.hint.as_str()),
        ("read_only_root", "files in this root can only be read")
    );
    assert_eq!(desk.snapshot(), before);
    // The link itself lies in the writable root.
    desk.call("files.delete_file", json!({ "path": "to_file" }))
        .unwrap();
    assert!(desk.beside("lib/l.txt").exists());
}

#[test]
fn what_is_writable_is_changed_also_within_what_is_not() {
    let desk = desk_with_roots();
    desk.write("vendor/out/o.txt", "new").unwrap();
    let output = desk
        .write(&absolute(&desk, "scratch/new.txt"), "new")
        .unwrap();
    assert_eq!(
        structured(&output)["path"],
        absolute(&desk, "scratch/new.txt")
    );
    let moved = json!({ "from": absolute(&desk, "scratch/new.txt"), "to": "src/new.txt" });
    desk.call("files.move_file", moved).unwrap();
    assert_eq!(
        (
            desk.content("vendor/out/o.txt"),
            desk.content("src/new.txt")
        ),
        ("new".into(), "new".into())
    );
}

#[test]
fn roots_and_what_holds_them_stay_where_they_are() {
    let desk = desk_with_roots();
    fs::create_dir_all(desk.path("deep/inner")).unwrap();
    let before = desk.snapshot();
    let root = absolute(&desk, "w");
    let scratch = absolute(&desk, "scratch");
    for path in [
        ".",
        "src/..",
        &root,
        &scratch,
        "vendor",
        "vendor/out",
        "vendor/out/",
    ] {
        for (tool, arguments) in [
            (
                "files.delete_file",
                json!({ "path": path, "recursive": true }),
            ),
            ("files.delete_file", json!({ "path": path })),
            (
                "files.move_file",
                json!({ "from": path, "to": "elsewhere" }),
            ),
        ] {
            let failed = desk.call(tool, arguments).unwrap_err();
            assert_eq!(
                failed.class,
                ErrorClass::SandboxViolation,
                "{tool} {path}: {failed:?}"
            );
        }
    }
    let failed = desk
        .call(
            "files.delete_file",
            json!({ "path": "deep/inner/..", "recursive": true }),
        )
        .unwrap_err();
    assert_eq!(failed.code, "no_name", "{failed:?}");
    assert_eq!(desk.snapshot(), before);
}

#[test]
fn a_read_only_root_stays_so_under_another_name() {
    let desk = desk_with_roots();
    fs::rename(desk.path("vendor"), desk.path("renamed")).unwrap();
    for path in ["renamed/v.txt", "renamed/new.txt", "vendor/new.txt"] {
        let arguments = json!({ "path": path, "content": "x", "create_directories": true });
        let failed = desk.call("files.write_file", arguments).unwrap_err();
        assert_eq!(
            failed.class,
            ErrorClass::SandboxViolation,
            "{path}: {failed:?}"
        );
    }
    assert_eq!(desk.content("renamed/v.txt"), "vendor/v.txt");
    let failed = desk
        .call(
            "files.delete_file",
            json!({ "path": "renamed", "recursive": true }),
        )
        .unwrap_err();
    assert_eq!(failed.class, ErrorClass::SandboxViolation);
}

#[test]
fn a_root_given_twice_is_as_strict_as_the_stricter() {
    let desk = Desk::prepared(|home, workspace| {
        workspace
            .with_root(&home.join("w"), ResourceAccess::Read)
            .and_then(|w| w.with_root(&home.join("w"), ResourceAccess::Write))
            .unwrap()
    });
    assert_eq!(
        desk.write("a.txt", "x").unwrap_err().class,
        ErrorClass::SandboxViolation
    );
    let error = Workspace::open(&desk.path(""))
        .unwrap()
        .with_root(Path::new("/nonexistent"), ResourceAccess::Read);
    assert_eq!(
        error.unwrap_err().to_string(),
        "cannot open the workspace `/nonexistent`"
    );
}
