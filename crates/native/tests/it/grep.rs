use serde_json::{Value, json};
use toolpost_model::{EffectClass, ErrorClass, ToolOutput};

use crate::desk::{Desk, structured, text};

fn grep(desk: &Desk, arguments: Value) -> ToolOutput {
    desk.call("search.grep", arguments).unwrap()
}

/// The paths found, sorted by name.
fn names(desk: &Desk, arguments: Value) -> Vec<String> {
    let output = grep(desk, arguments);
    let files = structured(&output)["files"].as_array().unwrap();
    let mut names: Vec<String> = files
        .iter()
        .map(|file| file["path"].as_str().unwrap().to_owned())
        .collect();
    names.sort();
    names
}

fn desk_with_code() -> Desk {
    let desk = Desk::new();
    desk.dated_file(
        "src/main.rs",
        "fn main() {\n    start();\n}\n\nfn start() {}\n",
        10,
    );
    desk.dated_file("src/lib.rs", "pub fn stop() {}\r\n// start(x)*\r\n", 30);
    desk.dated_file("tools/run.py", "def start():\n    pass\n", 20);
    desk.dated_file("notes.md", "nothing here\n", 40);
    desk
}

#[test]
fn three_modes_tell_files_counts_or_lines_newest_file_first() {
    let desk = desk_with_code();
    let output = grep(&desk, json!({ "pattern": "start" }));
    assert_eq!(text(&output), "src/lib.rs\ntools/run.py\nsrc/main.rs\n");
    assert_eq!(
        output.summary.as_deref(),
        Some("3 files match `start` in .")
    );
    assert!(output.truncated.is_none() && !output.partial);

    let output = grep(&desk, json!({ "pattern": "start", "output_mode": "count" }));
    assert_eq!(
        text(&output),
        "src/lib.rs: 1\ntools/run.py: 1\nsrc/main.rs: 2\n"
    );
    assert_eq!(structured(&output)["total_lines"], 4);

    let output = grep(
        &desk,
        json!({ "pattern": "start", "output_mode": "content" }),
    );
    assert_eq!(
        text(&output),
        "src/lib.rs\n2:// start(x)*\n\ntools/run.py\n1:def start():\n\nsrc/main.rs\n2:    start();\n5:fn start() {}\n"
    );
    let expected = json!({
        "path": ".",
        "output_mode": "content",
        "files": [
            { "path": "src/lib.rs", "modified": "2020-01-01T00:00:30Z", "matching_lines": 1,
              "lines": [{ "line": 2, "text": "// start(x)*" }] },
            { "path": "tools/run.py", "modified": "2020-01-01T00:00:20Z", "matching_lines": 1,
              "lines": [{ "line": 1, "text": "def start():" }] },
            { "path": "src/main.rs", "modified": "2020-01-01T00:00:10Z", "matching_lines": 2,
              "lines": [{ "line": 2, "text": "    start();" }, { "line": 5, "text": "fn start() {}" }] },
        ],
        "total_files": 3, "total_lines": 4, "searched_files": 4, "binary_files": 0, "unsearched_files": 0,
        "long_lines": 0, "ignored": 0, "unreadable": 0,
    });
    assert_eq!(structured(&output), &expected);
}

#[test]
fn the_pattern_is_read_as_told() {
    let desk = desk_with_code();
    let check = |arguments: Value, expected: &[&str]| {
        assert_eq!(names(&desk, arguments.clone()), expected, "{arguments}");
    };
    check(json!({ "pattern": "START" }), &[]);
    check(
        json!({ "pattern": "START", "case_insensitive": true }),
        &["src/lib.rs", "src/main.rs", "tools/run.py"],
    );
    check(
        json!({ "pattern": "start(x)*", "literal": true }),
        &["src/lib.rs"],
    );
    check(json!({ "pattern": r"^fn \w+\(\)" }), &["src/main.rs"]);
    // In front of a carriage return a line ends too.
    check(
        json!({ "pattern": r"\{\}$" }),
        &["src/lib.rs", "src/main.rs"],
    );
    check(
        json!({ "pattern": r"main.*start", "multiline": true }),
        &["src/main.rs"],
    );
    check(
        json!({ "pattern": r"\}\s*\n\s*fn" , "multiline": true }),
        &["src/main.rs"],
    );
    let output = grep(
        &desk,
        json!({ "pattern": r"\(\);\n\}", "multiline": true, "output_mode": "content" }),
    );
    assert_eq!(text(&output), "src/main.rs\n2:    start();\n3:}\n");
}

#[test]
fn files_are_chosen_by_path_glob_and_type() {
    let desk = desk_with_code();
    desk.file(".gitignore", "gen\n");
    desk.file("gen/x.rs", "start");
    desk.file(".config/y.rs", "start");
    let check = |mut arguments: Value, expected: &[&str]| {
        arguments["pattern"] = json!("start");
        assert_eq!(names(&desk, arguments.clone()), expected, "{arguments}");
    };
    check(json!({ "path": "src" }), &["src/lib.rs", "src/main.rs"]);
    check(json!({ "path": "src/main.rs" }), &["src/main.rs"]);
    check(json!({ "path": "gen/x.rs" }), &["gen/x.rs"]);
    check(json!({ "glob": "*.py" }), &["tools/run.py"]);
    check(json!({ "glob": "!*.rs" }), &["tools/run.py"]);
    check(
        json!({ "glob": "src/**", "path": "src" }),
        &["src/lib.rs", "src/main.rs"],
    );
    check(
        json!({ "glob": "{lib,run}.*" }),
        &["src/lib.rs", "tools/run.py"],
    );
    check(json!({ "type": "rust" }), &["src/lib.rs", "src/main.rs"]);
    check(json!({ "type": "py" }), &["tools/run.py"]);
    check(
        json!({ "type": "rust", "include_ignored": true }),
        &["gen/x.rs", "src/lib.rs", "src/main.rs"],
    );
    check(
        json!({ "type": "rust", "include_hidden": true }),
        &[".config/y.rs", "src/lib.rs", "src/main.rs"],
    );
    check(json!({ "glob": ".config/*" }), &[".config/y.rs"]);
    let output = grep(
        &desk,
        json!({ "pattern": "start", "path": "src/main.rs", "output_mode": "count" }),
    );
    assert_eq!(
        (text(&output), &structured(&output)["path"]),
        ("src/main.rs: 2\n", &json!("src/main.rs"))
    );
}

#[test]
fn lines_around_a_match_are_shown_once_and_marked() {
    let desk = Desk::new();
    desk.file(
        "a.txt",
        (1..=20)
            .map(|n| {
                format!(
                    "line {n}{}\n",
                    if [3, 5, 15].contains(&n) { " hit" } else { "" }
                )
            })
            .collect::<String>(),
    );
    let content = |mut arguments: Value| {
        arguments["pattern"] = json!("hit");
        arguments["output_mode"] = json!("content");
        text(&grep(&desk, arguments)).to_owned()
    };
    assert_eq!(
        content(json!({})),
        "a.txt\n3:line 3 hit\n5:line 5 hit\n15:line 15 hit\n"
    );
    assert_eq!(
        content(json!({ "context": 1 })),
        "a.txt\n2-line 2\n3:line 3 hit\n4-line 4\n5:line 5 hit\n6-line 6\n--\n14-line 14\n15:line 15 hit\n16-line 16\n"
    );
    assert_eq!(
        content(json!({ "after": 1, "limit": 2 }))
            .lines()
            .take(5)
            .collect::<Vec<_>>(),
        [
            "a.txt",
            "3:line 3 hit",
            "4-line 4",
            "5:line 5 hit",
            "6-line 6"
        ]
    );
    // Lines in front of the first match shown are there, also where they belong to one passed over.
    assert_eq!(
        content(json!({ "before": 2, "offset": 1 }))
            .lines()
            .take(4)
            .collect::<Vec<_>>(),
        ["a.txt", "3-line 3 hit", "4-line 4", "5:line 5 hit"]
    );
    assert_eq!(
        content(json!({ "context": 3, "before": 0, "offset": 2 })),
        "a.txt\n15:line 15 hit\n16-line 16\n17-line 17\n18-line 18\n"
    );
}

#[test]
fn pages_of_lines_put_together_are_all_lines() {
    let desk = Desk::new();
    let mut expected = Vec::new();
    for file in (0..9).rev() {
        let lines: Vec<String> = (0..file * 7 + 1)
            .map(|n| format!("needle {file} {n}"))
            .collect();
        desk.dated_file(
            &format!("f{file}.txt"),
            format!("{}\nother\n", lines.join("\n")),
            file,
        );
        expected.extend(lines);
    }
    for limit in [1, 10, 64, 500] {
        let mut seen = Vec::new();
        let mut offset = 0;
        loop {
            let output = grep(
                &desk,
                json!({ "pattern": "needle", "output_mode": "content", "limit": limit, "offset": offset }),
            );
            let result = structured(&output);
            let lines = result["files"]
                .as_array()
                .unwrap()
                .iter()
                .flat_map(|file| file["lines"].as_array().unwrap());
            seen.extend(lines.map(|line| line["text"].as_str().unwrap().to_owned()));
            assert_eq!(result["total_lines"], expected.len());
            let Some(next) = result.get("next_offset") else {
                break;
            };
            let hint = output.truncated.as_ref().unwrap().hint.as_ref().unwrap();
            assert!(hint.contains(&format!("offset={next}")), "{hint}");
            assert_eq!(next.as_u64().unwrap(), seen.len() as u64);
            offset = next.as_u64().unwrap();
        }
        assert_eq!(seen, expected, "limit {limit}");
    }
}

#[test]
fn finding_nothing_says_what_was_searched() {
    let desk = desk_with_code();
    desk.file(".gitignore", "gen\n");
    desk.file("gen/x.rs", "absent");
    desk.file("blob", "\0absent");
    let output = grep(&desk, json!({ "pattern": "absent" }));
    assert_eq!(
        text(&output),
        "[nothing in . matches `absent` (5 files searched, 1 binary, 1 left out by ignore files, set `include_ignored` to include them)]\n"
    );
    let output = grep(&desk, json!({ "pattern": "start", "offset": 7 }));
    assert_eq!(
        text(&output),
        "[`offset=7` is past the end, 3 files match `start`]\n"
    );
}

#[test]
fn what_cannot_be_searched_says_why() {
    let desk = desk_with_code();
    desk.link("out", desk.outside());
    for (arguments, class, at) in [
        (
            json!({ "pattern": "" }),
            ErrorClass::InvalidArguments,
            "/pattern",
        ),
        (
            json!({ "pattern": "main(" }),
            ErrorClass::InvalidArguments,
            "/pattern",
        ),
        (
            json!({ "pattern": "x", "glob": "a{" }),
            ErrorClass::InvalidArguments,
            "/glob",
        ),
        (
            json!({ "pattern": "x", "type": "rs" }),
            ErrorClass::InvalidArguments,
            "/type",
        ),
        (
            json!({ "pattern": "x", "context": 51 }),
            ErrorClass::InvalidArguments,
            "/context",
        ),
        (
            json!({ "pattern": "x", "limit": 0 }),
            ErrorClass::InvalidArguments,
            "/limit",
        ),
        (
            json!({ "pattern": "x", "limit": 2001 }),
            ErrorClass::InvalidArguments,
            "/limit",
        ),
        (
            json!({ "pattern": "x", "offset": 50_000 }),
            ErrorClass::InvalidArguments,
            "/offset",
        ),
        (
            json!({ "pattern": "x", "path": "../outside" }),
            ErrorClass::SandboxViolation,
            "/path",
        ),
        (
            json!({ "pattern": "x", "output_mode": "lines" }),
            ErrorClass::InvalidArguments,
            "",
        ),
    ] {
        let failed = desk.call("search.grep", arguments.clone()).unwrap_err();
        assert_eq!(
            (failed.class, failed.hint.as_str()),
            (class, at),
            "{arguments}: {failed:?}"
        );
    }
    let fail = |path: &str| {
        desk.call("search.grep", json!({ "pattern": "secret", "path": path }))
            .unwrap_err()
    };
    assert_eq!(fail("out").code, "leaves_workspace");
    assert_eq!(fail("out/secret.txt").code, "leaves_workspace");
    assert_eq!(fail("note.md").hint, "did you mean `notes.md`?");
}

#[test]
fn the_place_searched_is_what_the_call_uses() {
    let desk = desk_with_code();
    let effects = desk.effects(
        "search.grep",
        json!({ "pattern": "x", "path": "src/main.rs" }),
    );
    let key = format!("path:{}", desk.path("src/main.rs").display());
    assert_eq!(
        (effects.class, effects.uses[0].key.as_str()),
        (EffectClass::Read, key.as_str())
    );
}

#[test]
fn control_characters_are_written_out_for_models_and_stay_for_programs() {
    let desk = Desk::new();
    desk.file(
        "od\u{1b}[2Kd.txt",
        "red \u{1b}[31mword\tand \u{200b}gone\rover\r\n",
    );
    let output = grep(
        &desk,
        json!({ "pattern": "word", "output_mode": "content" }),
    );
    assert_eq!(
        text(&output),
        "od\\u{1b}[2Kd.txt\n1:red \\u{1b}[31mword\tand \\u{200b}gone\\rover\n"
    );
    let file = &structured(&output)["files"][0];
    assert_eq!(file["path"], "od\u{1b}[2Kd.txt");
    assert_eq!(
        file["lines"][0]["text"],
        "red \u{1b}[31mword\tand \u{200b}gone\rover"
    );
    let found = desk
        .call("search.glob", json!({ "pattern": "*.txt" }))
        .unwrap();
    assert_eq!(text(&found), "od\\u{1b}[2Kd.txt\n");
    assert_eq!(structured(&found)["files"][0]["path"], "od\u{1b}[2Kd.txt");
    let failure = desk
        .call("files.read_file", json!({ "path": "od\u{1b}[2Kd.tx" }))
        .unwrap_err();
    let told = format!("{} {}", failure.message, failure.hint);
    assert!(
        told.contains("od\\u{1b}[2Kd.txt") && !told.contains('\u{1b}'),
        "{told}"
    );
    let read = desk
        .call("files.read_file", json!({ "path": "od\u{1b}[2Kd.txt" }))
        .unwrap();
    assert!(text(&read).contains("\u{1b}[31mword"), "{:?}", text(&read));
}
