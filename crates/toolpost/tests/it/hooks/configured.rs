//! Hooks of a configuration through the binary, with the example's own files.

use std::path::Path;

use serde_json::Value;

use crate::home::{Home, Ran};

/// The example's files, beside the workspace.
fn example(home: &Home) -> String {
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/hooks");
    let to = home.workspace().parent().unwrap().join("host");
    std::fs::create_dir_all(to.join("log")).unwrap();
    for name in ["toolpost.yaml", "closed_folder.py", "log.sh"] {
        std::fs::copy(from.join(name), to.join(name)).unwrap();
    }
    to.to_str().unwrap().to_owned()
}

fn call(home: &Home, config: &str, arguments: &[&str]) -> Ran {
    home.run(&[&["call", "--config", config], arguments].concat())
}

fn log(folder: &str) -> Vec<Value> {
    let text =
        std::fs::read_to_string(Path::new(folder).join("log/calls.jsonl")).unwrap_or_default();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn the_example_guards_a_folder_and_logs_every_call() {
    let home = Home::new();
    let folder = example(&home);
    let config = format!("{folder}/toolpost.yaml");
    std::fs::create_dir(home.workspace().join("generated")).unwrap();
    std::os::unix::fs::symlink("generated", home.workspace().join("link")).unwrap();

    call(
        &home,
        &config,
        &["write_file", "path=notes.txt", "content=hello"],
    )
    .expect(0);
    for path in ["generated/a.txt", "x/../generated/a.txt", "link/a.txt"] {
        let stopped = call(
            &home,
            &config,
            &["write_file", &format!("path={path}"), "content=x"],
        )
        .expect(3);
        assert!(
            stopped
                .stderr
                .contains("the hook `no-generated` stopped the call"),
            "{}",
            stopped.stderr
        );
    }
    call(
        &home,
        &config,
        &["move_file", "from=notes.txt", "to=generated/notes.txt"],
    )
    .expect(3);
    let patch = "*** Begin Patch\n*** Add File: generated/b.txt\n+x\n*** End Patch";
    call(&home, &config, &["apply_patch", &format!("patch={patch}")]).expect(3);
    assert_eq!(
        std::fs::read_dir(home.workspace().join("generated"))
            .unwrap()
            .count(),
        0
    );

    let outcomes: Vec<Value> = log(&folder)
        .iter()
        .map(|line| line["result"]["outcome"].clone())
        .collect();
    assert_eq!(
        outcomes,
        [
            "succeeded",
            "denied",
            "denied",
            "denied",
            "denied",
            "denied"
        ]
    );

    let recorded = home.run(&["journal", "tail", "--json"]).expect(0);
    assert!(
        recorded
            .stdout
            .contains(r#""name":"no-generated","event":"before","standing":"guard""#)
    );
}

#[test]
fn a_guard_that_breaks_stops_every_write_and_a_missing_one_the_start() {
    let home = Home::new();
    let folder = example(&home);
    let config = format!("{folder}/toolpost.yaml");
    std::fs::write(
        format!("{folder}/closed_folder.py"),
        "raise SystemError('broken')",
    )
    .unwrap();
    let denied = call(
        &home,
        &config,
        &["write_file", "path=notes.txt", "content=hello"],
    )
    .expect(3);
    assert!(
        denied
            .stderr
            .contains("the hook `no-generated` failed, so the call was not run"),
        "{}",
        denied.stderr
    );
    std::fs::remove_file(format!("{folder}/closed_folder.py")).unwrap();
    let refused = home.run(&[
        "call",
        "--config",
        &config,
        "write_file",
        "path=notes.txt",
        "content=hello",
    ]);
    assert_ne!(refused.code, 0);
    assert!(
        refused.stderr.contains("closed_folder.py` cannot be found"),
        "{}",
        refused.stderr
    );
    assert_eq!(home.try_read("notes.txt"), None);
}

#[test]
fn an_untrusted_projects_hooks_are_not_run_and_a_trusted_ones_files_are_protected() {
    let home = Home::new();
    home.write("spy.sh", "touch spied; exit 2");
    home.write(
        "toolpost.yaml",
        "mode: edits\nhooks:\n  - { name: spy, event: before, command: [sh, ./spy.sh], profile: none, timeout: 30s }\n",
    );
    let ignored = home.run(&["call", "list_directory"]).expect(0);
    assert!(
        ignored.stderr.contains("`hooks: spy` is ignored"),
        "{}",
        ignored.stderr
    );
    assert_eq!(home.try_read("spied"), None);

    home.run(&["trust"]).expect(0);
    home.run(&["call", "list_directory"]).expect(3);
    home.write("spy.sh", "exit 0");
    let asked = home
        .run(&["call", "write_file", "path=spy.sh", "content=exit 0"])
        .expect(3);
    assert!(
        asked.stderr.contains("needs approval"),
        "who writes the hook says what it says: {}",
        asked.stderr
    );
    assert_eq!(home.read("spy.sh"), "exit 0");
}

#[test]
fn doctor_lists_the_hooks_and_says_what_is_missing() {
    let home = Home::new();
    let folder = example(&home);
    let config = format!("{folder}/toolpost.yaml");
    let listed = home.run(&["doctor", "--config", &config, "--json"]).json();
    let findings: Vec<&Value> = listed["findings"].as_array().unwrap().iter().collect();
    let hooks: Vec<&str> = findings
        .iter()
        .filter(|one| one["what"] == "hook")
        .filter_map(|one| one["text"].as_str())
        .collect();
    assert_eq!(hooks.len(), 2, "{listed:#}");
    assert!(
        hooks[0].starts_with("no-generated (guard, before): write_file, edit_file"),
        "{}",
        hooks[0]
    );
    assert!(
        hooks[1].starts_with("log (observer, after, failure): every tool; `sh "),
        "{}",
        hooks[1]
    );
    std::fs::remove_file(format!("{folder}/log.sh")).unwrap();
    let missing = home.run(&["doctor", "--config", &config]).expect(1);
    assert!(
        missing.stdout.contains("log.sh` cannot be found"),
        "{}",
        missing.stdout
    );
}
