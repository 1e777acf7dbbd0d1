//! Folders that git takes for a repository: whoever runs git in one runs what its settings say.

use std::{fs, process::Command};

use serde_json::{Value, json};
use toolpost_processes::PathProtection;

use crate::desk::Desk;

const PIECES: [&str; 4] = ["HEAD", "config", "objects/x", "refs/x"];

fn caution(desk: &Desk, tool: &str, arguments: Value) -> Option<String> {
    desk.effects(tool, arguments).caution
}

fn write(desk: &Desk, path: &str) -> Option<String> {
    caution(
        desk,
        "files.write_file",
        json!({ "path": path, "content": content(path), "create_directories": true }),
    )
}

fn content(path: &str) -> &'static str {
    match path.rsplit('/').next() {
        Some("HEAD") => "ref: refs/heads/main\n",
        Some("commondir") => "../common\n",
        Some("config") => {
            "[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tworktree = .\n\tfsmonitor = touch ran; true\n"
        }
        _ => "",
    }
}

/// Every order of some pieces.
fn orders(pieces: &[&'static str]) -> Vec<Vec<&'static str>> {
    if pieces.is_empty() {
        return vec![Vec::new()];
    }
    let with_first = |first: usize| {
        let rest: Vec<&str> = pieces
            .iter()
            .enumerate()
            .filter(|(at, _)| *at != first)
            .map(|(_, p)| *p)
            .collect();
        orders(&rest)
            .into_iter()
            .map(move |order| [vec![pieces[first]], order].concat())
    };
    (0..pieces.len()).flat_map(with_first).collect()
}

/// Whether git would run what the settings of `place` say.
fn git_runs_its_settings(desk: &Desk, place: &str) -> bool {
    let directory = desk.path(place);
    let status = Command::new("git")
        .arg("status")
        .current_dir(&directory)
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("GIT_CEILING_DIRECTORIES", desk.path("").parent().unwrap())
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("HOME", "/nonexistent")
        .output()
        .unwrap();
    let ran = directory.join("ran").exists();
    assert!(ran || !status.status.success(), "{status:?}");
    ran
}

/// Before git runs anything in a folder, a person was asked: in whichever order its pieces come.
#[test]
fn a_folder_becomes_a_repository_only_with_a_question() {
    let mut planted = 0;
    for (number, order) in orders(&PIECES).into_iter().enumerate() {
        let desk = Desk::new();
        let folder = if number % 2 == 0 {
            "deep/folder"
        } else {
            "folder"
        };
        let mut asked = false;
        for piece in &order {
            let path = format!("{folder}/{piece}");
            asked |= write(&desk, &path).is_some_and(|why| why.contains("git"));
            desk.file(&path, content(&path));
        }
        assert!(asked, "{order:?}");
        planted += usize::from(git_runs_its_settings(&desk, folder));
    }
    // The danger is real: git runs the command in each of them.
    assert_eq!(planted, 24);
}

#[test]
fn settings_of_a_repository_that_lie_elsewhere_count_too() {
    for order in orders(&["folder/HEAD", "folder/commondir"]) {
        let desk = Desk::new();
        desk.file(order[0], content(order[0]));
        assert_eq!(write(&desk, order[0]), None);
        assert!(write(&desk, order[1]).is_some(), "{order:?}");
    }
    // The folder that holds the settings has no `HEAD` of its own.
    for order in orders(&["common/config", "common/objects/x", "common/refs/x"]) {
        let desk = Desk::new();
        order[..2]
            .iter()
            .for_each(|path| desk.file(path, content(path)));
        assert!(write(&desk, order[2]).is_some(), "{order:?}");
    }
}

#[test]
fn the_root_itself_is_such_a_folder() {
    let desk = Desk::new();
    for path in ["objects/x", "refs/x"] {
        desk.file(path, "");
    }
    assert!(write(&desk, "HEAD").is_some());
}

#[test]
fn a_patch_that_brings_all_pieces_at_once_asks() {
    let desk = Desk::new();
    let add = |folder: &str, pieces: &[&str]| {
        let adds: String = pieces
            .iter()
            .map(|piece| format!("*** Add File: {folder}/{piece}\n+x\n"))
            .collect();
        json!({ "patch": format!("*** Begin Patch\n{adds}*** End Patch") })
    };
    let patch = |arguments| caution(&desk, "files.apply_patch", arguments);
    assert!(patch(add("folder", &PIECES)).unwrap().contains("`folder`"));
    assert!(patch(add("folder", &["HEAD", "commondir"])).is_some());
    assert_eq!(patch(add("folder", &["HEAD", "config", "objects/x"])), None);
    desk.file("folder/objects/x", "");
    assert!(patch(add("folder", &["HEAD", "refs/x"])).is_some());
    let moving = "*** Begin Patch\n*** Update File: plain\n*** Move to: folder/HEAD\n*** Add File: folder/refs/x\n+x\n*** End Patch";
    desk.file("plain", "x");
    assert!(patch(json!({ "patch": moving })).is_some());
}

#[test]
fn moves_count_like_writes() {
    let desk = Desk::new();
    for path in [
        "folder/HEAD",
        "folder/objects/x",
        "prepared/x",
        "other/part/y",
    ] {
        desk.file(path, "");
    }
    let rename =
        |from: &str, to: &str| caution(&desk, "files.move_file", json!({ "from": from, "to": to }));
    assert!(rename("prepared", "folder/refs").is_some());
    assert!(rename("prepared/x", "folder/refs").is_some());
    let made = json!({ "from": "prepared/x", "to": "folder/refs/x", "create_directories": true });
    assert!(caution(&desk, "files.move_file", made).is_some());
    assert_eq!(rename("other", "folder/notes"), None);
    // A whole repository that was there before, or one that a command made.
    for path in ["made/sub/HEAD", "made/sub/objects/x", "made/sub/refs/x"] {
        desk.file(path, "");
    }
    assert!(rename("made", "elsewhere").unwrap().contains("`made/sub`"));
    assert!(rename("made/sub", "elsewhere").is_some());
    let delete = caution(
        &desk,
        "files.delete_file",
        json!({ "path": "made", "recursive": true }),
    );
    assert!(delete.unwrap().contains("`made/sub`"));
}

#[test]
fn a_repository_without_a_working_tree_is_protected_like_another() {
    let desk = Desk::new();
    for path in [
        "mirror.git/HEAD",
        "mirror.git/objects/x",
        "mirror.git/refs/x",
        "mirror.git/config",
    ] {
        desk.file(path, content(path));
    }
    for path in [
        "HEAD",
        "config",
        "hooks/post-update",
        "info/attributes",
        "config.worktree",
        "objects/aa",
    ] {
        assert!(
            write(&desk, &format!("mirror.git/{path}")).is_some(),
            "{path}"
        );
    }
    // Working trees beside the data are ordinary folders.
    for path in ["main/src/lib.rs", "notes.md", "main/config/app.yaml"] {
        assert_eq!(write(&desk, &format!("mirror.git/{path}")), None, "{path}");
    }
    let edit = json!({ "path": "mirror.git/config", "old_string": "bare", "new_string": "bear" });
    assert!(caution(&desk, "files.edit_file", edit).is_some());
}

#[test]
fn ordinary_folders_with_such_names_are_free() {
    let desk = Desk::new();
    fs::create_dir_all(desk.path("src/objects")).unwrap();
    fs::create_dir_all(desk.path("src/refs")).unwrap();
    for path in [
        "config/app.yaml",
        "src/objects/cube.rs",
        "src/refs/list.rs",
        "src/config.rs",
        "HEAD",
        "hooks/use.ts",
    ] {
        assert_eq!(write(&desk, path), None, "{path}");
    }
}

#[test]
fn an_operator_who_leaves_repositories_open_is_not_asked() {
    let open = Desk::prepared(|_, workspace| {
        workspace.with_protection(PathProtection::standard().without_repositories())
    });
    let none = Desk::prepared(|_, workspace| workspace.with_protection(PathProtection::none()));
    for desk in [open, none] {
        PIECES
            .iter()
            .for_each(|piece| desk.file(&format!("folder/{piece}"), ""));
        assert_eq!(write(&desk, "folder/config"), None);
    }
}
