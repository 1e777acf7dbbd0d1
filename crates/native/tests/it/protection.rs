//! Paths that ask before they are changed.

use std::fs;

use serde_json::{Value, json};
use toolpost_model::ResourceAccess;
use toolpost_processes::PathProtection;

use crate::desk::Desk;

fn caution(desk: &Desk, tool: &str, arguments: Value) -> Option<String> {
    desk.effects(tool, arguments).caution
}

/// One call of each tool that changes `path`.
fn changes(path: &str) -> Vec<(&'static str, Value)> {
    let patch =
        |change: String| json!({ "patch": format!("*** Begin Patch\n{change}\n*** End Patch") });
    vec![
        ("files.write_file", json!({ "path": path, "content": "" })),
        (
            "files.write_file",
            json!({ "path": path, "content": "", "create_directories": true }),
        ),
        (
            "files.edit_file",
            json!({ "path": path, "old_string": "a", "new_string": "b" }),
        ),
        ("files.delete_file", json!({ "path": path })),
        (
            "files.move_file",
            json!({ "from": path, "to": "plain.txt" }),
        ),
        (
            "files.move_file",
            json!({ "from": "plain.txt", "to": path }),
        ),
        (
            "files.apply_patch",
            patch(format!("*** Add File: {path}\n+x")),
        ),
        (
            "files.apply_patch",
            patch(format!("*** Update File: {path}\n-a\n+b")),
        ),
        (
            "files.apply_patch",
            patch(format!("*** Update File: plain.txt\n*** Move to: {path}")),
        ),
        (
            "files.apply_patch",
            patch(format!("*** Delete File: {path}")),
        ),
    ]
}

#[test]
fn every_tool_that_changes_a_protected_path_says_so() {
    let desk = Desk::new();
    desk.file(".git/config", "a");
    desk.file("plain.txt", "a");
    for path in [
        ".git/config",
        ".git/hooks/new",
        "sub/.git/config",
        ".envrc",
        "toolpost.yaml",
        "./x/../.git/config",
    ] {
        for (tool, arguments) in changes(path) {
            let caution = caution(&desk, tool, arguments.clone()).unwrap_or_default();
            assert!(
                caution.contains("is protected: "),
                "{tool} {arguments}: {caution:?}"
            );
        }
    }
    for path in ["plain.txt", "sub/toolpost.yaml", ".gitignore", "src/git.rs"] {
        for (tool, arguments) in changes(path) {
            assert_eq!(
                caution(&desk, tool, arguments.clone()),
                None,
                "{tool} {arguments}"
            );
        }
    }
    assert_eq!(
        caution(&desk, "files.read_file", json!({ "path": ".git/config" })),
        None
    );
}

#[test]
fn a_link_that_leads_there_counts_and_so_does_the_name_itself() {
    let desk = Desk::new();
    desk.file(".git/config", "a");
    desk.file("real/config", "a");
    desk.link("innocent.txt", ".git/config");
    desk.link("folder", ".git");
    desk.link("sub/.git", "../real");
    let write = |path: &str| {
        caution(
            &desk,
            "files.write_file",
            json!({ "path": path, "content": "" }),
        )
    };
    let told = "`innocent.txt` leads to `.git/config`, which is protected: hooks and settings of version control run \
                commands";
    assert_eq!(write("innocent.txt").as_deref(), Some(told));
    assert!(
        write("folder/hooks/x")
            .unwrap()
            .contains("leads to `.git/hooks/x`")
    );
    assert!(
        write("sub/.git/config")
            .unwrap()
            .contains("`sub/.git/config` is protected")
    );
    // The link itself is not protected: deleting it leaves `.git` as it is.
    assert_eq!(
        caution(
            &desk,
            "files.delete_file",
            json!({ "path": "innocent.txt" })
        ),
        None
    );
}

#[test]
fn directories_are_looked_through_before_they_are_moved_or_deleted() {
    let desk = Desk::new();
    desk.file("repository/inner/.git/config", "");
    desk.file("prepared/workflows/evil.yml", "");
    desk.file("plain/a/b.txt", "");
    let delete = |path: &str| {
        caution(
            &desk,
            "files.delete_file",
            json!({ "path": path, "recursive": true }),
        )
    };
    let rename =
        |from: &str, to: &str| caution(&desk, "files.move_file", json!({ "from": from, "to": to }));
    assert!(
        delete("repository")
            .unwrap()
            .contains("`repository/inner/.git` is protected")
    );
    assert!(
        rename("repository", "elsewhere")
            .unwrap()
            .contains(".git` is protected")
    );
    assert!(
        rename("prepared", ".github")
            .unwrap()
            .contains("`.github/workflows` is protected")
    );
    assert!(rename("prepared/workflows", ".github/workflows").is_some());
    assert_eq!((delete("plain"), rename("plain", "other")), (None, None));
    for number in 0..10_001 {
        fs::write(desk.path(&format!("plain/{number}")), "").unwrap();
    }
    assert!(
        delete("plain")
            .unwrap()
            .contains("too many to check for protected ones")
    );
}

#[test]
fn an_operator_says_what_is_protected() {
    let with = |protection: PathProtection| {
        Desk::prepared(|_, workspace| workspace.with_protection(protection))
    };
    let write = |desk: &Desk, path: &str| {
        caution(
            desk,
            "files.write_file",
            json!({ "path": path, "content": "" }),
        )
    };
    let none = with(PathProtection::none());
    assert_eq!(write(&none, ".git/config"), None);
    let own = with(PathProtection::none().with(["deploy/**"]).unwrap());
    assert!(
        write(&own, "deploy/x")
            .unwrap()
            .ends_with("the operator's configuration protects it")
    );
    let open = with(PathProtection::standard().without_repositories());
    assert_eq!(write(&open, ".git/config"), None);
    assert!(write(&open, ".envrc").is_some());
    let file = Desk::prepared(|home, workspace| {
        workspace.with_protection(PathProtection::none().with_file(home.join("w/conf/mine.yaml")))
    });
    assert!(write(&file, "conf/mine.yaml").is_some());
    assert_eq!(write(&file, "mine.yaml"), None);
}

#[test]
fn only_what_lies_within_a_root_is_judged() {
    let desk = Desk::prepared(|home, workspace| {
        fs::create_dir_all(home.join(".claude/notes")).unwrap();
        workspace
            .with_root(&home.join(".claude/notes"), ResourceAccess::Write)
            .unwrap()
    });
    let write = |place: &str| {
        let path = desk.beside(place);
        caution(
            &desk,
            "files.write_file",
            json!({ "path": path, "content": "" }),
        )
    };
    assert_eq!(write(".claude/notes/a.txt"), None);
    assert!(write(".claude/notes/.git/config").is_some());
}

/// The paths a call is cautioned about one by one, beneath the workspace.
fn steering(desk: &Desk, tool: &str, arguments: Value) -> Vec<String> {
    let effects = desk.effects(tool, arguments);
    assert_eq!(effects.caution, None, "{tool}");
    let beneath = format!("path:{}/", desk.path("").canonicalize().unwrap().display());
    let path = |key: &str| key.strip_prefix(&beneath).unwrap_or(key).to_owned();
    effects
        .path_cautions
        .iter()
        .map(|caution| path(caution.key.as_str()))
        .collect()
}

#[test]
fn files_that_steer_agents_are_told_apart_from_those_that_run_code() {
    let desk = Desk::new();
    desk.file("AGENTS.md", "a");
    desk.file("plain.txt", "a");
    for path in [
        "AGENTS.md",
        "sub/CLAUDE.md",
        ".cursorrules",
        ".github/copilot-instructions.md",
    ] {
        for (tool, arguments) in changes(path) {
            assert_eq!(
                steering(&desk, tool, arguments.clone()),
                [path],
                "{tool} {arguments}"
            );
        }
    }
    desk.link("notes.md", "AGENTS.md");
    let write = json!({ "path": "notes.md", "content": "" });
    assert_eq!(steering(&desk, "files.write_file", write), ["AGENTS.md"]);
    // What runs code outweighs what only steers.
    assert!(
        caution(
            &desk,
            "files.write_file",
            json!({ "path": ".claude/CLAUDE.md", "content": "" })
        )
        .is_some()
    );
}

#[test]
fn a_directory_with_files_for_agents_is_moved_with_a_question_for_each() {
    let desk = Desk::new();
    desk.file("docs/AGENTS.md", "");
    desk.file("docs/deep/CLAUDE.md", "");
    let mut found = steering(
        &desk,
        "files.move_file",
        json!({ "from": "docs", "to": "pages" }),
    );
    found.sort();
    assert_eq!(
        found,
        [
            "docs/AGENTS.md",
            "docs/deep/CLAUDE.md",
            "pages/AGENTS.md",
            "pages/deep/CLAUDE.md"
        ]
    );
    let mut found = steering(
        &desk,
        "files.delete_file",
        json!({ "path": "docs", "recursive": true }),
    );
    found.sort();
    assert_eq!(found, ["docs/AGENTS.md", "docs/deep/CLAUDE.md"]);
    for number in 0..40 {
        desk.file(&format!("docs/{number}/AGENTS.md"), "");
    }
    let many = caution(
        &desk,
        "files.delete_file",
        json!({ "path": "docs", "recursive": true }),
    );
    assert!(many.unwrap().contains("too many"));
}

#[test]
fn ordinary_coding_is_free() {
    let desk = Desk::new();
    for path in [
        "package.json",
        "Makefile",
        "build.rs",
        "Cargo.toml",
        "src/main.rs",
        "README.md",
        ".gitignore",
        ".env",
    ] {
        let effects = desk.effects("files.write_file", json!({ "path": path, "content": "" }));
        assert_eq!(
            (effects.caution, effects.path_cautions),
            (None, Vec::new()),
            "{path}"
        );
    }
}
