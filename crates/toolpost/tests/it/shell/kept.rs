//! Paths that rules keep from a call, and processes that want them all the same.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use jiff::Timestamp;
use serde_json::{Value, json};
use toolpost_core::{PermissionFacts, Policy, PolicyEngine};
use toolpost_model::{
    Decision, Declaration, EffectClass, ErrorClass, PermissionMode, Principal, ResourceAccess,
    SandboxProfile, SandboxTier, ToolResult,
};
use toolpost_native::{CommandDeclaration, CommandParameter, CommandParameterType};
use toolpost_sandbox::Launcher;
use toolpost_testkit::TestHost;

use crate::workshop::{Plan, Workshop, facts, program, text};

const WORD: &str = "the-kept-word";

/// Runs everything, and keeps `vault/**` and `*.key` from being read or written.
struct Keeper {
    usual: Policy,
    kept: Option<ResourceAccess>,
    places: Arc<[PathBuf]>,
}

impl Keeper {
    fn of(access: ResourceAccess) -> Self {
        let usual = TestHost::policy(PermissionMode::Bypass, &[]);
        Self {
            usual,
            kept: Some(access),
            places: Arc::new([PathBuf::from("/")]),
        }
    }
}

impl PolicyEngine for Keeper {
    fn decide(&self, facts: &PermissionFacts<'_>) -> Decision {
        self.usual.decide(facts)
    }

    fn denies_outright(&self, declaration: &Declaration, class: Option<EffectClass>) -> bool {
        self.usual.denies_outright(declaration, class)
    }

    fn has_path_rules(&self, _: &Principal) -> bool {
        self.kept.is_some()
    }

    fn may_use(&self, path: &Path, access: ResourceAccess, _: &Principal, _: Timestamp) -> bool {
        let kept = self.kept.expect("nobody asks where there are no rules");
        let inside = path
            .ancestors()
            .skip(1)
            .any(|above| above.ends_with("w/vault"));
        let itself = kept == ResourceAccess::Write && path.ends_with("w/vault");
        let key = path.extension().is_some_and(|extension| extension == "key");
        access != kept || !(inside || itself || key)
    }

    fn kept_places(&self, _: &Principal) -> Vec<PathBuf> {
        self.places.to_vec()
    }
}

async fn shop(access: ResourceAccess, change: impl FnOnce(&mut Plan)) -> Workshop {
    let shop = Workshop::governed(change, |builder| builder.policy(Keeper::of(access))).await;
    for name in [
        "vault/plan.txt",
        "vault/deep/further.txt",
        "app/api.key",
        "top.key",
    ] {
        shop.file(name, &format!("{WORD} in {name}\n"));
    }
    shop.file("app/main.rs", "plain\n");
    std::os::unix::fs::symlink("../vault/plan.txt", shop.path("app/shortcut")).unwrap();
    shop
}

/// Everything in the workspace that holds the word, by its path.
fn holders(shop: &Workshop) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut pending = vec![shop.path("")];
    while let Some(folder) = pending.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            match entry.file_type().unwrap() {
                kind if kind.is_dir() => pending.push(entry.path()),
                kind if kind.is_file() => {
                    let content = std::fs::read(entry.path()).unwrap();
                    let holds = content
                        .windows(WORD.len())
                        .any(|part| part == WORD.as_bytes());
                    found.extend(holds.then(|| entry.path()));
                }
                _ => {}
            }
        }
    }
    found.sort();
    found
}

fn whole(result: &ToolResult) -> String {
    serde_json::to_string(result).unwrap()
}

/// Ways to a file that a process might try. `$W` is the workspace.
const WAYS: &[&str] = &[
    "cat vault/plan.txt top.key app/api.key",
    "cat app/shortcut",
    "cat < vault/plan.txt",
    "cat /proc/self/cwd/top.key /proc/self/root$W/top.key /proc/1/root$W/top.key /proc/1/cwd/top.key",
    "exec 7<top.key; cat /proc/self/fd/7",
    "cd vault && cat plan.txt",
    "ls -la vault vault/deep",
    "find . -type f -exec cat {} +",
    "grep -r the-kept .",
    "cp top.key copy.txt; cat copy.txt",
    "cp -r vault copy; cat copy/*",
    "tar cf - vault top.key app/api.key | tar xOf -",
    "dd if=top.key 2>/dev/null",
    "python3 -c \"print(open('top.key').read())\"",
    "python3 -c \"import os; print(os.read(os.open('vault/deep/further.txt', os.O_RDONLY), 99))\"",
    "python3 -c \"import os; fd = os.open('.', os.O_RDONLY); print(os.read(os.open('top.key', 0, dir_fd=fd), 99))\"",
    "ln top.key hard; cat hard",
    "ln -s ../top.key app/soft; cat app/soft",
    "mv vault open; cat open/plan.txt",
    "mv app open; cat open/api.key",
    "mv top.key open.txt; cat open.txt",
    "chmod -R 777 . ; cat top.key vault/plan.txt",
    "umount top.key; umount -l vault; cat top.key vault/plan.txt",
    "mount --bind vault /tmp; cat /tmp/plan.txt",
    "unshare -Urm cat top.key",
    "perl -e 'open F, \"top.key\"; print <F>'",
    "while read -r line; do echo \"$line\"; done < top.key",
    "rm -f top.key; git hash-object top.key; strings top.key",
    "echo */* vault/* ; printf '%s\\n' vault/deep/*",
];

#[tokio::test]
async fn no_process_reads_what_is_kept() {
    for profile in [SandboxProfile::WorkspaceWrite, SandboxProfile::Network] {
        let shop = shop(ResourceAccess::Read, |plan| plan.children.profile = profile).await;
        let before = holders(&shop);
        let root = shop
            .path("")
            .to_string_lossy()
            .trim_end_matches('/')
            .to_owned();
        for way in WAYS {
            let result = shop.shell(&way.replace("$W", &root)).await;
            let seen = whole(&result);
            assert!(!seen.contains(WORD), "{profile} {way}: {seen}");
            let named = way.contains("further");
            assert!(
                named || !seen.contains("further"),
                "{profile} {way} tells a name: {seen}"
            );
            let applied = result
                .sandbox
                .unwrap_or_else(|| panic!("{way} did not run: {:?}", result.error));
            assert!(applied.masked >= 3, "{way}: {applied:?}");
        }
        assert_eq!(
            holders(&shop),
            before,
            "what is kept was copied, moved or lost"
        );
    }
}

#[tokio::test]
async fn what_is_not_kept_can_still_be_used() {
    let shop = shop(ResourceAccess::Read, |_| {}).await;
    for (command, expected) in [
        ("cat app/main.rs", "plain\n[exit code 0]"),
        (
            "echo new > app/new.txt && cat app/new.txt",
            "new\n[exit code 0]",
        ),
        (
            "mkdir -p other/x && mv other moved && ls moved",
            "x\n[exit code 0]",
        ),
        (
            "echo mine > fresh.key && cat fresh.key",
            "mine\n[exit code 0]",
        ),
    ] {
        let result = shop.shell(command).await;
        assert_eq!(text(&result), expected, "{command}");
    }
    // Made by a command, and kept from the next one.
    let next = shop.shell("cat fresh.key").await;
    assert!(!whole(&next).contains("mine"), "{next:#?}");
}

#[tokio::test]
async fn a_process_in_the_background_and_a_declared_command_read_nothing_kept_either() {
    let path = CommandParameter {
        kind: CommandParameterType::Path,
        description: "a file".to_owned(),
        required: true,
        default: None,
        allow_dash: false,
    };
    let shop = shop(ResourceAccess::Read, |plan| {
        for (name, class) in [("show", EffectClass::Read), ("send", EffectClass::Network)] {
            let argv = ["cat", "{path}", "vault/plan.txt", "top.key"]
                .map(str::to_owned)
                .to_vec();
            let mut command = CommandDeclaration::new(name, "Shows a file", argv);
            command.class = class;
            command.parameters.insert("path".to_owned(), path.clone());
            plan.commands.push(command);
        }
    })
    .await;
    for name in ["show", "send"] {
        let result = shop.call(name, json!({ "path": "app/main.rs" })).await;
        let seen = whole(&result);
        assert!(
            seen.contains("plain") && !seen.contains(WORD),
            "{name}: {seen}"
        );
    }
    let command = "cat vault/plan.txt; while read -r file; do cat \"$file\"; done; echo done";
    let started = shop
        .call("shell", json!({ "command": command, "background": true }))
        .await;
    let id = facts(&started)["process_id"].clone();
    let lines = "top.key\napp/api.key\napp/main.rs\n";
    shop.call(
        "process_write",
        json!({ "process_id": id, "text": lines, "close": true }),
    )
    .await;
    let mut seen = whole(&started);
    let mut at = 0;
    loop {
        let arguments = json!({ "process_id": id, "offset": at, "wait_seconds": 30 });
        let part = shop.call("process_read", arguments).await;
        seen.push_str(&whole(&part));
        at = facts(&part)["next_offset"].as_u64().unwrap();
        if facts(&part)["at_end"] == true {
            break;
        }
    }
    assert!(
        seen.contains("plain") && seen.contains("done") && !seen.contains(WORD),
        "{seen}"
    );
}

#[tokio::test]
async fn no_process_writes_where_rules_keep_writes_out() {
    let shop = shop(ResourceAccess::Write, |_| {}).await;
    for way in [
        "echo more >> top.key",
        "echo new > vault/new.txt",
        "rm -rf vault top.key app/api.key",
        "mv vault open",
        "mv top.key open.txt",
        "mv app open",
        "ln -f app/main.rs top.key",
        "cp app/main.rs app/api.key",
        "truncate -s 0 vault/plan.txt",
        "python3 -c \"import os; os.rename('app/main.rs', 'app/api.key')\"",
        "sed -i s/the/a/ top.key",
        "touch vault/deep/x; mkdir vault/y; rmdir vault/deep; chmod 0 vault/plan.txt",
    ] {
        let result = shop.shell(way).await;
        let applied = result
            .sandbox
            .as_ref()
            .unwrap_or_else(|| panic!("{way}: {:?}", result.error));
        let vault = shop.path("vault").display().to_string();
        assert!(applied.protected.contains(&vault), "{way}: {applied:?}");
        for name in [
            "vault/plan.txt",
            "vault/deep/further.txt",
            "app/api.key",
            "top.key",
        ] {
            let content = std::fs::read_to_string(shop.path(name)).unwrap_or_default();
            assert_eq!(
                content,
                format!("{WORD} in {name}\n"),
                "{way} changed {name}: {result:#?}"
            );
        }
        let names = std::fs::read_dir(shop.path("vault")).unwrap().count();
        assert_eq!(names, 2, "{way} made something");
    }
    let read = shop.shell("cat vault/plan.txt").await;
    assert!(
        text(&read).contains(WORD),
        "reading is not kept from it: {read:#?}"
    );
}

#[tokio::test]
async fn too_much_to_keep_apart_runs_nothing() {
    let shop = shop(ResourceAccess::Read, |_| {}).await;
    std::fs::create_dir(shop.path("many")).unwrap();
    for number in 0..4_200 {
        std::fs::write(shop.path(&format!("many/{number}.key")), "").unwrap();
    }
    let result = shop.shell("touch ran").await;
    let error = result.error.as_ref().unwrap();
    assert_eq!(
        (error.class, &*error.code),
        (ErrorClass::PermissionDenied, "kept_by_rule"),
        "{result:#?}"
    );
    assert!(
        error.message.contains("4096 single paths"),
        "{}",
        error.message
    );
    assert!(!shop.path("ran").exists());
}

#[tokio::test]
async fn where_nothing_can_be_hidden_from_a_process_that_writes_it_does_not_run() {
    let tier = SandboxTier::B;
    let shop = shop(ResourceAccess::Read, |plan| {
        plan.launcher = Some(Launcher::with_tier_at_most(program(), tier));
    })
    .await;
    let refused = shop.shell("touch ran; cat top.key").await;
    let error = refused.error.as_ref().unwrap();
    assert_eq!(
        (error.class, &*error.code),
        (ErrorClass::PermissionDenied, "kept_by_rule"),
        "{refused:#?}"
    );
    assert!(
        error
            .message
            .contains("this machine cannot hide them from a process"),
        "{}",
        error.message
    );
    assert!(!shop.path("ran").exists());
    // What only reads can be shown everything but that.
    let seen = shop.shell("cat top.key app/shortcut app/main.rs").await;
    assert!(
        text(&seen).contains("plain") && !whole(&seen).contains(WORD),
        "{seen:#?}"
    );
    assert_eq!(seen.sandbox.unwrap().requested, SandboxProfile::ReadOnly);
}

#[tokio::test]
async fn only_places_that_rules_name_are_searched() {
    let folder = tempfile::tempdir().unwrap();
    let beside = folder.path().canonicalize().unwrap().join("beside");
    std::fs::create_dir(&beside).unwrap();
    for name in ["lib.key", "lib.txt"] {
        std::fs::write(beside.join(name), format!("{WORD} {name}\n")).unwrap();
    }
    let readable = beside.clone();
    let places = [beside.clone(), PathBuf::from("/etc/hostname.key")];
    let shop = Workshop::governed(
        |plan| plan.children.readable = vec![readable],
        |builder| {
            let keeper = Keeper {
                places: Arc::new(places),
                ..Keeper::of(ResourceAccess::Read)
            };
            builder.policy(keeper)
        },
    )
    .await;
    shop.file("top.key", "not named by a rule\n");
    let result = shop
        .shell(&format!(
            "cat top.key {}/lib.txt {0}/lib.key",
            beside.display()
        ))
        .await;
    let seen = text(&result);
    assert!(
        seen.contains("not named by a rule") && seen.contains(&format!("{WORD} lib.txt")),
        "{seen}"
    );
    assert!(!seen.contains(&format!("{WORD} lib.key")), "{seen}");
}

#[tokio::test]
async fn without_rules_about_paths_nobody_is_asked() {
    let shop = Workshop::governed(
        |_| {},
        |builder| {
            builder.policy(Keeper {
                kept: None,
                ..Keeper::of(ResourceAccess::Read)
            })
        },
    )
    .await;
    shop.file("a.key", "seen\n");
    for (tool, arguments) in [
        ("shell", json!({ "command": "cat a.key" })),
        ("shell", json!({ "command": "touch b" })),
        ("grep", json!({ "pattern": "seen" })),
        ("glob", json!({ "pattern": "*" })),
        ("list_directory", json!({})),
        ("read_file", json!({ "path": "a.key" })),
        ("read_file", json!({ "path": "a.kez" })),
        ("move_file", json!({ "from": "a.key", "to": "b.key" })),
    ] {
        let result = shop.call(tool, arguments.clone()).await;
        let panicked = result
            .error
            .as_ref()
            .is_some_and(|error| error.message.contains("panicked"));
        assert!(!panicked, "{tool} {arguments}: {result:#?}");
        assert_eq!(facts_or_null(&result)["kept_by_rules"], Value::Null);
    }
}

fn facts_or_null(result: &ToolResult) -> Value {
    result.structured_content.clone().unwrap_or_default()
}
