use std::{
    ffi::OsStr,
    fs,
    os::unix::{ffi::OsStrExt, net::UnixListener},
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use rustix::fs::{CWD, FileType, Mode, RenameFlags, mknodat, renameat_with};
use serde_json::{Value, json};
use toolpost_model::{ClassFact, EffectClass, ErrorClass, ToolOutput};

use crate::desk::{Desk, Port, input, structured, text};

fn glob(desk: &Desk, arguments: Value) -> ToolOutput {
    desk.call("search.glob", arguments).unwrap()
}

/// The paths found, sorted by name.
fn names(desk: &Desk, arguments: Value) -> Vec<String> {
    let output = glob(desk, arguments);
    let files = structured(&output)["files"].as_array().unwrap();
    let mut names: Vec<String> = files
        .iter()
        .map(|file| file["path"].as_str().unwrap().to_owned())
        .collect();
    names.sort();
    names
}

#[test]
fn both_search_tools_declare_what_they_are() {
    let desk = Desk::new();
    desk.file("a.txt", "needle\n");
    for (tool, arguments) in [
        ("search.glob", json!({ "pattern": "*.txt" })),
        ("search.grep", json!({ "pattern": "needle" })),
        (
            "search.grep",
            json!({ "pattern": "needle", "output_mode": "content" }),
        ),
    ] {
        let declaration = desk.tool(tool).declaration();
        assert_eq!(
            declaration.interface.safety.class,
            ClassFact::Always(EffectClass::Read)
        );
        assert!(declaration.interface.execution.idempotent);
        let schema = &declaration.input.schema;
        assert_eq!(
            (&schema["additionalProperties"], &schema["required"]),
            (&json!(false), &json!(["pattern"]))
        );
        let properties = schema["properties"].as_object().unwrap();
        assert!(
            properties
                .values()
                .all(|property| property["description"].is_string()),
            "{tool}: {schema}"
        );
        for example in &declaration.input.examples {
            desk.tool(tool).check(&input(example.clone())).unwrap();
        }
        let output = desk.call(tool, arguments).unwrap();
        let facts = structured(&output).as_object().unwrap();
        let schema = declaration.output.schema.unwrap();
        assert!(
            facts
                .keys()
                .all(|key| schema["properties"].get(key).is_some()),
            "{tool}: {facts:?}"
        );
        for key in schema["required"].as_array().unwrap() {
            assert!(
                facts.contains_key(key.as_str().unwrap()),
                "{tool} does not give {key}"
            );
        }
    }
}

#[test]
fn files_come_newest_first_and_in_pages_that_say_what_is_left() {
    let desk = Desk::new();
    for (name, seconds) in [
        ("a.rs", 10),
        ("src/b.rs", 30),
        ("src/deep/c.rs", 20),
        ("same2.rs", 5),
        ("same1.rs", 5),
    ] {
        desk.dated_file(name, "", seconds);
    }
    desk.file("d.txt", "");
    let output = glob(&desk, json!({ "pattern": "**/*.rs" }));
    assert_eq!(
        text(&output),
        "src/b.rs\nsrc/deep/c.rs\na.rs\nsame1.rs\nsame2.rs\n"
    );
    assert_eq!(
        output.summary.as_deref(),
        Some("5 files in . fit `**/*.rs`")
    );
    assert!(output.truncated.is_none());
    assert_eq!(
        structured(&output)["files"][0],
        json!({ "path": "src/b.rs", "modified": "2020-01-01T00:00:30Z" })
    );
    assert_eq!(
        (&structured(&output)["total"], &structured(&output)["path"]),
        (&json!(5), &json!("."))
    );

    let output = glob(
        &desk,
        json!({ "pattern": "**/*.rs", "limit": 2, "offset": 1 }),
    );
    assert_eq!(
        text(&output),
        "src/deep/c.rs\na.rs\n[2 of 5 files in . that fit `**/*.rs`; go on with `offset=3`]\n"
    );
    let cut = output.truncated.as_ref().unwrap();
    assert_eq!(
        (cut.shown, cut.total, cut.unit.as_str()),
        (2, Some(5), "entries")
    );
    assert_eq!(structured(&output)["next_offset"], 3);

    let output = glob(
        &desk,
        json!({ "pattern": "**/*.rs", "limit": 2, "offset": 3 }),
    );
    assert_eq!(text(&output), "same1.rs\nsame2.rs\n");
    assert!(structured(&output).get("next_offset").is_none());
    let output = glob(&desk, json!({ "pattern": "**/*.rs", "offset": 9 }));
    assert_eq!(
        text(&output),
        "[`offset=9` is past the end, 5 fit `**/*.rs`]\n"
    );
}

#[test]
fn patterns_are_about_names_without_a_slash_and_about_paths_with_one() {
    let desk = Desk::new();
    for name in [
        "a.rs",
        "src/b.rs",
        "src/x/c.rs",
        "src/x/d.ts",
        "docs/e.md",
        "src/x/y/f.rs",
    ] {
        desk.file(name, "");
    }
    let check = |arguments: Value, expected: &[&str]| {
        assert_eq!(names(&desk, arguments.clone()), expected, "{arguments}");
    };
    check(json!({ "pattern": "*.md" }), &["docs/e.md"]);
    check(json!({ "pattern": "./*.rs" }), &["a.rs"]);
    check(json!({ "pattern": "src/*.rs" }), &["src/b.rs"]);
    check(
        json!({ "pattern": "src/*/*.{rs,ts}" }),
        &["src/x/c.rs", "src/x/d.ts"],
    );
    check(json!({ "pattern": "src/**/f.rs" }), &["src/x/y/f.rs"]);
    check(
        json!({ "pattern": "x/*.rs", "path": "src" }),
        &["src/x/c.rs"],
    );
    check(
        json!({ "pattern": "*.rs", "path": "src/x" }),
        &["src/x/c.rs", "src/x/y/f.rs"],
    );
    check(
        json!({ "pattern": desk.path("src/x/*.ts") }),
        &["src/x/d.ts"],
    );
    check(
        json!({ "pattern": "src/x/" }),
        &["src/x/c.rs", "src/x/d.ts", "src/x/y/f.rs"],
    );
    check(
        json!({ "pattern": "../docs/*", "path": "src" }),
        &["docs/e.md"],
    );
    check(json!({ "pattern": "nowhere/*.rs" }), &[]);
    check(json!({ "pattern": "a.rs/*.rs" }), &[]);
    check(json!({ "pattern": "[ab].rs" }), &["a.rs", "src/b.rs"]);
}

#[test]
fn ignore_files_hold_without_a_repository() {
    let desk = Desk::new();
    desk.file(
        ".gitignore",
        "/target\n*.log\n!keep.log\n# comment\n\n[broken\nbuild/\n",
    );
    desk.file("src/.ignore", "!*.log\nsecret.txt\n");
    desk.file(".hidden/a.txt", "");
    for name in [
        "target/a.txt",
        "a.log",
        "keep.log",
        "src/b.log",
        "src/secret.txt",
        "src/build/c.txt",
        "src/target/d.txt",
    ] {
        desk.file(name, "");
    }
    desk.file(".git/config", "");
    desk.file("sub/.git/config", "");
    let check = |arguments: Value, expected: &[&str]| {
        assert_eq!(names(&desk, arguments.clone()), expected, "{arguments}");
    };
    check(
        json!({ "pattern": "**" }),
        &["keep.log", "src/b.log", "src/target/d.txt"],
    );
    check(
        json!({ "pattern": "**", "path": "src" }),
        &["src/b.log", "src/target/d.txt"],
    );
    check(
        json!({ "pattern": "*.txt", "include_ignored": true }),
        &[
            "src/build/c.txt",
            "src/secret.txt",
            "src/target/d.txt",
            "target/a.txt",
        ],
    );
    // A directory that is named is searched, and so is a hidden one that the pattern spells.
    check(
        json!({ "pattern": "**", "path": "target" }),
        &["target/a.txt"],
    );
    check(json!({ "pattern": "target/*" }), &["target/a.txt"]);
    check(json!({ "pattern": ".hidden/*" }), &[".hidden/a.txt"]);
    check(
        json!({ "pattern": "a.txt", "include_hidden": true }),
        &[".hidden/a.txt"],
    );
    // Version control's own only when named.
    check(
        json!({ "pattern": "config", "include_hidden": true, "include_ignored": true }),
        &[],
    );
    check(json!({ "pattern": ".git/*" }), &[".git/config"]);
    check(
        json!({ "pattern": "config", "path": "sub/.git" }),
        &["sub/.git/config"],
    );
    let output = glob(&desk, json!({ "pattern": "a.log" }));
    assert_eq!(
        text(&output),
        "[no file in . fits `a.log`; 3 names were left out by ignore files, set `include_ignored` to include them]\n"
    );
}

#[test]
fn only_regular_files_are_found_and_links_lead_nowhere() {
    let desk = Desk::new();
    desk.file("dir/real.txt", "");
    desk.link("dir/loop", ".");
    desk.link("dir/up", "..");
    desk.link("out", desk.outside());
    desk.link("link.txt", "dir/real.txt");
    mknodat(CWD, desk.path("pipe.txt"), FileType::Fifo, Mode::RUSR, 0).unwrap();
    let _socket = UnixListener::bind(desk.path("socket.txt")).unwrap();
    fs::write(desk.path("").join(OsStr::from_bytes(b"bad\xff.txt")), "").unwrap();
    desk.file("two\nlines.txt", "");
    let output = glob(&desk, json!({ "pattern": "*.txt" }));
    let mut lines: Vec<&str> = text(&output).lines().collect();
    lines.sort_unstable();
    assert_eq!(
        lines,
        ["bad\u{fffd}.txt", "dir/real.txt", "two\\nlines.txt"]
    );
    let files = structured(&output)["files"].as_array().unwrap();
    assert_eq!(
        files
            .iter()
            .filter(|file| file["lossy_name"] == true)
            .count(),
        1
    );
    // A link that is named is followed where it stays inside.
    assert_eq!(
        names(&desk, json!({ "pattern": "*.txt", "path": "dir/up/dir" })),
        ["dir/real.txt"]
    );
    let failed = desk
        .call("search.glob", json!({ "pattern": "*", "path": "out" }))
        .unwrap_err();
    assert_eq!(
        (failed.class, failed.code.as_str()),
        (ErrorClass::SandboxViolation, "leaves_workspace")
    );
    let failed = desk
        .call("search.glob", json!({ "pattern": "out/*" }))
        .unwrap_err();
    assert_eq!(failed.class, ErrorClass::SandboxViolation);
}

#[test]
fn what_cannot_be_searched_says_why() {
    let desk = Desk::new();
    desk.file("a.txt", "");
    for (arguments, class, at) in [
        (
            json!({ "pattern": "" }),
            ErrorClass::InvalidArguments,
            "/pattern",
        ),
        (
            json!({ "pattern": "a{" }),
            ErrorClass::InvalidArguments,
            "/pattern",
        ),
        (
            json!({ "pattern": "../*" }),
            ErrorClass::SandboxViolation,
            "/pattern",
        ),
        (
            json!({ "pattern": "/etc/*" }),
            ErrorClass::SandboxViolation,
            "/pattern",
        ),
        (
            json!({ "pattern": "*", "path": "/etc" }),
            ErrorClass::SandboxViolation,
            "/path",
        ),
        (
            json!({ "pattern": "*", "limit": 0 }),
            ErrorClass::InvalidArguments,
            "/limit",
        ),
        (
            json!({ "pattern": "*", "limit": 5001 }),
            ErrorClass::InvalidArguments,
            "/limit",
        ),
        (
            json!({ "pattern": "*", "offset": 50_000 }),
            ErrorClass::InvalidArguments,
            "/offset",
        ),
        (
            json!({ "pattern": "*", "depth": 1 }),
            ErrorClass::InvalidArguments,
            "",
        ),
    ] {
        let failed = desk.call("search.glob", arguments.clone()).unwrap_err();
        assert_eq!(
            (failed.class, failed.hint.as_str()),
            (class, at),
            "{arguments}: {failed:?}"
        );
    }
    let fail = |arguments: Value| desk.call("search.glob", arguments).unwrap_err();
    assert_eq!(
        fail(json!({ "pattern": "*", "path": "b.txt" })).hint,
        "did you mean `a.txt`?"
    );
    assert_eq!(
        fail(json!({ "pattern": "*", "path": "a.txt" })).message,
        "`a.txt` is a file, not a directory"
    );
    assert_eq!(
        fail(json!({ "pattern": "x/*", "path": "gone" })).code,
        "not_found"
    );
}

#[test]
fn the_directory_searched_is_what_the_call_uses() {
    let desk = Desk::new();
    desk.file("src/a/x", "");
    desk.link("link", "src");
    for (arguments, place) in [
        (json!({ "pattern": "*" }), ""),
        (json!({ "pattern": "src/a/*.rs" }), "src/a"),
        (json!({ "pattern": "a/*", "path": "link" }), "src/a"),
    ] {
        let effects = desk.effects("search.glob", arguments.clone());
        let key = format!(
            "path:{}",
            desk.path(place).to_str().unwrap().trim_end_matches('/')
        );
        assert_eq!(
            (effects.class, effects.uses[0].key.as_str()),
            (EffectClass::Read, key.as_str()),
            "{arguments}"
        );
    }
}

#[test]
fn directories_too_deep_to_be_named_are_passed_over_and_counted() {
    let desk = Desk::new();
    desk.file(&format!("{}top.txt", "d/".repeat(100)), "");
    desk.file(&format!("{}bottom.txt", "d/".repeat(400)), "");
    let output = glob(&desk, json!({ "pattern": "*.txt" }));
    assert_eq!(text(&output), format!("{}top.txt\n", "d/".repeat(100)));
    assert_eq!(structured(&output)["unreadable"], 1);
}

#[test]
fn a_search_stops_when_told_to_and_tells_what_it_has_when_time_runs_out() {
    let desk = Desk::new();
    for n in 0..40 {
        desk.file(&format!("d{n}/f.txt"), "");
    }
    for moment in [0, 1, 5, 20] {
        let port = Port::new(move |look| look >= moment);
        let failed = desk
            .call_with("search.glob", json!({ "pattern": "*.txt" }), port)
            .0
            .unwrap_err();
        assert_eq!(
            (failed.class, failed.untouched),
            (ErrorClass::Canceled, true)
        );
    }
    let output = desk
        .call_with(
            "search.glob",
            json!({ "pattern": "*.txt" }),
            Port::until(Instant::now()),
        )
        .0
        .unwrap();
    assert!(output.partial);
    assert!(
        text(&output).contains("the time ran out"),
        "{}",
        text(&output)
    );
    assert_eq!(
        (
            output.truncated.unwrap().total,
            structured_total(&output.structured)
        ),
        (None, None)
    );
}

fn structured_total(structured: &Option<Value>) -> Option<&Value> {
    structured.as_ref().unwrap().get("total")
}

#[test]
fn a_directory_that_turns_into_a_link_all_the_time_shows_nothing_outside() {
    let desk = Desk::new();
    for n in 0..20 {
        desk.file(&format!("tree/d{n}/inside.txt"), "");
    }
    fs::create_dir(desk.outside().join("d7")).unwrap();
    fs::write(desk.outside().join("d7/outside.txt"), "").unwrap();
    desk.link("spare", desk.outside().join("d7"));
    let stop = AtomicBool::new(false);
    let begun = Instant::now();
    std::thread::scope(|scope| {
        let swapping = scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                renameat_with(
                    CWD,
                    desk.path("tree/d7"),
                    CWD,
                    desk.path("spare"),
                    RenameFlags::EXCHANGE,
                )
                .unwrap();
            }
        });
        while begun.elapsed() < Duration::from_millis(700) && !swapping.is_finished() {
            let found = names(&desk, json!({ "pattern": "**", "include_hidden": true }));
            let escaped = found.iter().any(|name| name.contains("outside"));
            stop.store(escaped, Ordering::Relaxed);
            assert!(!escaped, "{found:?}");
            assert!(found.len() >= 19, "{found:?}");
        }
        stop.store(true, Ordering::Relaxed);
    });
}
