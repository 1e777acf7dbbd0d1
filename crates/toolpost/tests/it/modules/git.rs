//! Modules of git repositories.

use std::{
    fs,
    os::unix::fs::MetadataExt as _,
    process::{Command, Stdio},
};

use serde_json::Value;

use super::place::{Place, files, said};

/// A repository with one module in a folder, and a plan that names it.
struct Repository {
    place: Place,
}

impl Repository {
    fn new(reference: &str) -> Self {
        let place = Place::new();
        place.module("repo/mods/tool-a", "tool-a", "");
        let repository = Self { place };
        repository.git(&["init", "--quiet", "--initial-branch=main", "."]);
        repository.commit("one");
        repository.plan(reference);
        repository
    }

    fn plan(&self, reference: &str) {
        let source = format!(
            "git+file://{}{reference}#subdirectory=mods/tool-a",
            self.place.path("repo").display()
        );
        self.place.plan(&format!(
            "tools:\n  - module: tool-a\n    source: {source}\n"
        ));
    }

    fn git(&self, words: &[&str]) -> String {
        let mut git = Command::new("git");
        git.current_dir(self.place.path("repo"))
            .args(["-c", "user.name=t", "-c", "user.email=t@t"])
            .args(words);
        said(git.env("GIT_CONFIG_GLOBAL", "/dev/null"))
    }

    /// Commits a change; the commit's id.
    fn commit(&self, text: &str) -> String {
        self.place.write("repo/mods/tool-a/NOTES", text);
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--message", text]);
        self.git(&["rev-parse", "HEAD"])
    }

    fn fetch(&self, word: &str) -> Value {
        self.place.modules(&[word, "--json"]).expect(0).json()["modules"][0].clone()
    }
}

#[test]
fn a_commit_is_fetched_once_and_later_starts_need_no_repository() {
    let repository = Repository::new("@main");
    let place = &repository.place;
    assert!(
        place
            .modules(&["list"])
            .expect(0)
            .stdout
            .contains("not fetched")
    );
    assert!(!place.cache().exists(), "to look makes nothing");
    let commit = repository.git(&["rev-parse", "HEAD"]);
    let fetched = repository.fetch("fetch");
    assert_eq!(
        (&fetched["state"], &fetched["pin"]["commit"]),
        (&"fetched".into(), &commit.as_str().into())
    );
    let root = fetched["root"].as_str().unwrap();
    assert_eq!(fs::read_to_string(format!("{root}/NOTES")).unwrap(), "one");
    assert!(
        files(&place.cache())
            .iter()
            .all(|file| !file.to_str().unwrap().contains("/.git/"))
    );
    assert_eq!(fs::metadata(place.cache()).unwrap().mode() & 0o777, 0o700);
    fs::remove_dir_all(place.path("repo")).unwrap();
    assert_eq!(repository.fetch("fetch"), fetched);
    let listed = place.modules(&["list", "--json"]).expect(0).json();
    assert_eq!(listed[0], fetched);
    let failed = place.modules(&["update"]).expect(1);
    assert!(failed.stdout.contains("`git` failed"), "{}", failed.stdout);
    assert_eq!(
        place.modules(&["list", "--json"]).expect(0).json()[0],
        fetched,
        "what was pinned stays"
    );
}

#[test]
fn a_branch_that_moves_is_followed_when_asked_to() {
    let repository = Repository::new("@main");
    let first = repository.fetch("fetch");
    let second = repository.commit("two");
    assert_eq!(repository.fetch("fetch"), first);
    let updated = repository.fetch("update");
    assert_eq!(updated["pin"]["commit"], second.as_str());
    // A host that runs may still use the first.
    for (fetched, text) in [(&first, "one"), (&updated, "two")] {
        let root = fetched["root"].as_str().unwrap();
        assert_eq!(fs::read_to_string(format!("{root}/NOTES")).unwrap(), text);
    }
    let third = repository.commit("three");
    assert_eq!(repository.fetch("update")["pin"]["commit"], third.as_str());
    assert!(
        !std::path::Path::new(first["root"].as_str().unwrap()).exists(),
        "nobody can be using it"
    );
}

#[test]
fn tags_and_whole_commits_are_references_too() {
    let repository = Repository::new("@v1");
    let first = repository.git(&["rev-parse", "HEAD"]);
    repository.git(&["tag", "--annotate", "v1", "--message", "v1"]);
    let second = repository.commit("two");
    assert_eq!(repository.fetch("fetch")["pin"]["commit"], first.as_str());
    repository.plan(&format!("@{second}"));
    repository.commit("three");
    assert_eq!(repository.fetch("fetch")["pin"]["commit"], second.as_str());
    repository.plan("@nothing");
    let failed = repository.place.modules(&["fetch"]).expect(1);
    assert!(failed.stdout.contains("nothing"), "{}", failed.stdout);
}

#[test]
fn what_changed_in_the_cache_is_refused() {
    let repository = Repository::new("");
    let place = &repository.place;
    let fetched = repository.fetch("fetch");
    let notes = format!("{}/NOTES", fetched["root"].as_str().unwrap());
    for change in 0..3 {
        match change {
            0 => fs::write(&notes, "two").unwrap(),
            1 => fs::remove_file(&notes).unwrap(),
            _ => fs::write(notes.replace("NOTES", "sitecustomize.py"), "import os\n").unwrap(),
        }
        let listed = place.modules(&["list"]).expect(1);
        assert!(
            listed.stdout.contains("changed since it was fetched"),
            "change {change}: {}",
            listed.stdout
        );
        let refused = place.modules(&["fetch"]).expect(1);
        assert!(
            refused.stdout.contains("changed since it was fetched"),
            "change {change}: {}",
            refused.stdout
        );
        assert_eq!(repository.fetch("update"), fetched, "change {change}");
    }
    let pin = files(&place.cache())
        .into_iter()
        .find(|file| file.ends_with("pin.json"))
        .unwrap();
    let record = fs::read_to_string(&pin).unwrap();
    let folder = serde_json::from_str::<Value>(&record).unwrap()["folder"]
        .as_str()
        .unwrap()
        .to_owned();
    fs::write(&pin, record.replace(&folder, "../../../../etc")).unwrap();
    place.modules(&["list"]).expect(1);
}

#[test]
fn links_come_as_their_text_and_submodules_not_at_all() {
    let repository = Repository::new("");
    let place = &repository.place;
    std::os::unix::fs::symlink("/etc/passwd", place.path("repo/mods/tool-a/passwd")).unwrap();
    let other = Repository::new("");
    let url = format!("file://{}", other.place.path("repo").display());
    repository.git(&[
        "-c",
        "protocol.file.allow=always",
        "submodule",
        "--quiet",
        "add",
        &url,
        "mods/tool-a/sub",
    ]);
    assert!(place.path("repo/mods/tool-a/sub/mods").exists());
    repository.commit("two");
    let root = repository.fetch("fetch")["root"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(
        fs::symlink_metadata(format!("{root}/passwd"))
            .unwrap()
            .is_file()
    );
    assert_eq!(
        fs::read_to_string(format!("{root}/passwd")).unwrap(),
        "/etc/passwd"
    );
    assert_eq!(fs::read_dir(format!("{root}/sub")).unwrap().count(), 0);
}

#[test]
fn modules_of_one_repository_share_what_was_fetched_and_are_removed_together() {
    let repository = Repository::new("");
    let place = &repository.place;
    place.module("repo/mods/tool-b", "tool-b", "");
    repository.commit("two");
    let url = format!("git+file://{}", place.path("repo").display());
    place.plan(&format!(
        "tools:\n  - {{ module: tool-a, source: '{url}#subdirectory=mods/tool-a' }}\n  \
         - {{ module: tool-b, source: '{url}#subdirectory=mods/tool-b' }}\n  \
         - {{ module: tool-c, source: '{url}#subdirectory=mods/tool-c' }}\n"
    ));
    let fetched = place.modules(&["fetch", "--json"]).expect(1).json();
    let states: Vec<&str> = fetched["modules"]
        .as_array()
        .unwrap()
        .iter()
        .map(|line| line["state"].as_str().unwrap())
        .collect();
    assert_eq!(states, ["fetched", "fetched", "broken"], "{fetched}");
    assert!(
        fetched["modules"][2]["problem"]
            .as_str()
            .unwrap()
            .contains("no folder or file `mods/tool-c`"),
        "{fetched}"
    );
    let entries = fs::read_dir(place.cache().join("modules")).unwrap().count();
    assert_eq!(entries, 1);
    place.plan("tools: []\n");
    place.modules(&["remove"]).expect(2);
    let removed = place
        .modules(&["remove", "--unused", "--json"])
        .expect(0)
        .json();
    assert_eq!(removed["removed"], serde_json::json!([url]));
    assert_eq!(
        fs::read_dir(place.cache().join("modules")).unwrap().count(),
        0
    );
    assert!(
        place
            .modules(&["remove", "--all"])
            .expect(0)
            .stdout
            .contains("nothing to remove")
    );
}

#[test]
fn a_bundle_in_a_repository_is_fetched_with_what_it_plans() {
    let repository = Repository::new("");
    let place = &repository.place;
    place.write(
        "repo/bundle.md",
        "---\nbundle: { name: base }\ntools:\n  - { module: tool-a, source: ./mods/tool-a }\n---\nWords.\n",
    );
    repository.commit("two");
    place.plan(&format!(
        "includes:\n  - git+file://{}\n",
        place.path("repo").display()
    ));
    let listed = place.modules(&["list"]).expect(0);
    assert!(
        listed
            .stderr
            .contains("is not fetched, so its modules are missing"),
        "{}",
        listed.stderr
    );
    let fetched = place.modules(&["fetch", "--json"]).expect(0).json();
    assert_eq!(
        (
            &fetched["modules"][0]["id"],
            &fetched["modules"][0]["state"]
        ),
        (&"tool-a".into(), &"in_place".into())
    );
    let root = fetched["modules"][0]["root"].as_str().unwrap();
    assert!(root.starts_with(place.cache().to_str().unwrap()), "{root}");
    assert_eq!(place.modules(&["list"]).expect(0).stderr, "");
    fs::remove_dir_all(place.cache()).unwrap();
    // A host fetches it by itself, and serves what it plans.
    let tools = place.run("tools", &["--json"]).expect(0).json();
    let names: Vec<&str> = tools["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect();
    assert!(names.contains(&"amplifier_module_tool_a"), "{names:?}");
}

#[test]
fn a_first_start_makes_its_cache_for_its_user_alone() {
    let repository = Repository::new("@main");
    let place = &repository.place;
    let command = place.command_of("tools", &[], &place.cache());
    let mut shell = Command::new("sh");
    shell
        .args(["-c", "umask 022 && exec \"$0\" \"$@\""])
        .arg(command.get_program())
        .args(command.get_args());
    shell.env_clear().envs(
        command
            .get_envs()
            .filter_map(|(name, value)| Some((name, value?))),
    );
    shell
        .current_dir(command.get_current_dir().unwrap())
        .stdin(Stdio::null());
    assert!(!place.cache().exists());
    crate::home::Ran::from(shell.output().unwrap()).expect(0);
    assert_eq!(fs::metadata(place.cache()).unwrap().mode() & 0o777, 0o700);
}

/// A repository that is a bundle, and a plan that builds on it.
fn bundle() -> Repository {
    let repository = Repository::new("");
    let text = "bundle: { name: base }\ntools:\n  - { module: tool-a, source: ./mods/tool-a }\n";
    repository.place.write("repo/bundle.yaml", text);
    repository.commit("two");
    let address = repository.place.path("repo").display().to_string();
    repository
        .place
        .plan(&format!("includes:\n  - git+file://{address}\n"));
    repository
}

#[test]
fn bundles_are_updated_mended_and_not_removed_while_in_use() {
    let repository = bundle();
    let place = &repository.place;
    let notes = |fetched: Value| {
        let root = fetched["modules"][0]["root"].as_str().unwrap().to_owned();
        fs::read_to_string(format!("{root}/NOTES")).unwrap()
    };
    assert_eq!(
        notes(place.modules(&["fetch", "--json"]).expect(0).json()),
        "two"
    );
    repository.commit("three");
    assert_eq!(
        notes(place.modules(&["fetch", "--json"]).expect(0).json()),
        "two"
    );
    assert_eq!(
        notes(place.modules(&["update", "--json"]).expect(0).json()),
        "three"
    );
    let kept = place
        .modules(&["remove", "--unused", "--json"])
        .expect(0)
        .json();
    assert_eq!(kept["removed"], serde_json::json!([]));
    // The copy before the last stays for hosts that run, so all of them are changed.
    for plan in files(&place.cache())
        .into_iter()
        .filter(|file| file.ends_with("bundle.yaml"))
    {
        fs::write(plan, "tools: []\n").unwrap();
    }
    let refused = place.modules(&["fetch"]).expect(1);
    assert!(
        refused.stderr.contains("changed since it was fetched"),
        "{}",
        refused.stderr
    );
    place.modules(&["remove", "--unused"]).expect(1);
    assert_eq!(
        notes(place.modules(&["update", "--json"]).expect(0).json()),
        "three"
    );
}

#[test]
fn a_bundle_that_is_not_there_is_missed() {
    let repository = bundle();
    let place = &repository.place;
    fs::remove_dir_all(place.path("repo")).unwrap();
    let tools = place.run("tools", &["--json"]).expect(6).json();
    assert!(
        tools["unavailable"][0]["message"]
            .as_str()
            .unwrap()
            .contains("the bundle is not fetched"),
        "{tools}"
    );
    let doctor = place.run("doctor", &[]).expect(1);
    assert!(
        doctor.stdout.contains("the bundle is not fetched"),
        "{}",
        doctor.stdout
    );
    // It may plan a guard.
    let called = place.run("call", &["echo", "message=hello"]).expect(3);
    assert!(called.stderr.contains("hook_failed"), "{}", called.stderr);
}

#[test]
fn a_host_starts_from_the_cache_alone() {
    let repository = Repository::new("@main");
    let place = &repository.place;
    place.run("tools", &[]).expect(0);
    fs::remove_dir_all(place.path("repo")).unwrap();
    place.config("amplifier: { install: offline }\n");
    let called = place
        .run("call", &["amplifier_module_tool_a", "--mode", "bypass"])
        .expect(0);
    assert_eq!(called.stdout, "hello\n");
    fs::remove_dir_all(place.cache()).unwrap();
    let missing = place.run("call", &["amplifier_module_tool_a", "--mode", "bypass"]);
    assert_ne!(missing.code, 0);
    assert!(
        missing.stderr.contains("fetching is off"),
        "{}",
        missing.stderr
    );
}

#[test]
fn a_cache_that_agents_can_write_is_refused() {
    let repository = Repository::new("@main");
    let place = &repository.place;
    let workspace = place.home.workspace();
    let inside = workspace.join("cache");
    let mut command = place.command_of("tools", &[], &inside);
    let ran = crate::home::Ran::from(command.output().unwrap());
    assert!(
        ran.code != 0 && ran.stderr.contains("lies inside of"),
        "{}",
        ran.stderr
    );
    assert!(!inside.exists());
}
