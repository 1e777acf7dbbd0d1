//! `toolpost journal export`: what other programs get to read of the record.

use std::collections::{BTreeSet, HashSet};

use serde_json::{Value, json};

use super::home::Home;

/// A home in which calls came to different ends, in several lives of a host.
fn used() -> Home {
    let home = Home::new();
    home.write("a.txt", "one\ntwo\n");
    home.write("empty.txt", "");
    for (arguments, code) in [
        (&["call", "read_file", "path=a.txt"][..], 0),
        (&["call", "read_file", "path=missing"], 1),
        (&["call", "read_file", "nonsense=1"], 1),
        (&["call", "no_such_tool"], 1),
        (
            &[
                "call",
                "write_file",
                "path=b.txt",
                "content=x",
                "--mode",
                "edits",
            ],
            0,
        ),
        (
            &[
                "call",
                "write_file",
                "path=b.txt",
                "content=y",
                "--mode",
                "never-ask",
            ],
            3,
        ),
        (
            &[
                "call",
                "read_file",
                "path=a.txt",
                "--deny",
                "read_file(a.txt)",
            ],
            3,
        ),
        (&["call", "grep", "pattern=nowhere", "path=a.txt"], 0),
    ] {
        home.run(arguments).expect(code);
    }
    home
}

fn lines(text: &str) -> Vec<Value> {
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn export(home: &Home, arguments: &[&str]) -> Vec<Value> {
    lines(
        &home
            .run(&[&["journal", "export"], arguments].concat())
            .expect(0)
            .stdout,
    )
}

fn of<'a>(lines: &'a [Value], record: &str) -> Vec<&'a Value> {
    lines
        .iter()
        .filter(|line| line["record"] == record)
        .collect()
}

/// Every tool, surface and decision that calls name is in the same export.
fn check_references(lines: &[Value]) {
    let known = |record: &str, field: &str| -> HashSet<&str> {
        of(lines, record)
            .into_iter()
            .map(|line| line[field].as_str().unwrap())
            .collect()
    };
    let tools = known("tool_declaration", "tool_id");
    let surfaces = known("tool_surface", "surface_id");
    let decisions = known("permission_decision", "decision_id");
    let policies = known("scheduler_policy", "scheduler_policy_id");
    let calls = known("invocation", "invocation_id");
    let results = known("result", "result_id");
    assert!(!calls.is_empty());
    for call in of(lines, "invocation") {
        let name = |field: &str| call[field].as_str().unwrap();
        assert!(
            tools.contains(name("tool_id")) || call["asked_for"] == "no_such_tool",
            "{call}"
        );
        assert!(surfaces.contains(name("surface_id")), "{call}");
        assert!(policies.contains(name("scheduler_policy_ref")), "{call}");
        assert!(results.contains(name("result_ref")), "{call}");
        let named = call["permission_decision_refs"].as_array().unwrap();
        assert!(
            named
                .iter()
                .all(|id| decisions.contains(id.as_str().unwrap())),
            "{call}"
        );
    }
    for line in lines.iter().filter(|line| line["record"] != "event") {
        assert!(
            line["invocation_id"]
                .as_str()
                .is_none_or(|id| calls.contains(id)),
            "{line}"
        );
    }
}

#[test]
fn the_whole_record_fits_the_schema_that_is_printed_for_it() {
    let home = used();
    let exported = export(&home, &[]);
    let schema = home.run(&["reference", "evidence-schema"]).expect(0).json();
    let validator = jsonschema::validator_for(&schema).unwrap();
    for line in &exported {
        assert!(
            validator.is_valid(line),
            "{:?}: {line}",
            validator.validate(line).err().map(|e| e.to_string())
        );
    }
    let count = home.run(&["journal", "verify", "--json"]).expect(0).json()["records"].clone();
    assert_eq!(json!(exported.len()), count);
    let numbers: Vec<u64> = exported
        .iter()
        .map(|line| line["seq"].as_u64().unwrap())
        .collect();
    assert!(numbers.is_sorted() && numbers[0] == 1);
    assert_eq!(
        of(&exported, "catalog").len(),
        1,
        "eight hosts had the same tools"
    );
}

#[test]
fn ends_are_told_apart_in_the_draft_s_terms_and_what_they_name_is_there() {
    let home = used();
    let exported = export(&home, &["--format", "agent-tool"]);
    check_references(&exported);
    let ends: BTreeSet<(&str, &str)> = of(&exported, "result")
        .into_iter()
        .map(|result| {
            (
                result["status"].as_str().unwrap(),
                result["error"]["error_class"].as_str().unwrap_or(""),
            )
        })
        .collect();
    for expected in [
        ("succeeded", ""),
        ("failed", "execution_failed"),
        ("failed", "invalid_arguments"),
        ("failed", "unknown_tool"),
        ("denied", "permission_denied"),
        ("denied", "policy_blocked"),
    ] {
        assert!(ends.contains(&expected), "{expected:?} is not in {ends:?}");
    }
}

#[test]
fn a_part_of_the_record_comes_with_what_it_stands_on() {
    let home = used();
    let whole = export(&home, &["--format", "agent-tool"]);
    let calls = of(&whole, "invocation");
    let id = calls[4]["invocation_id"].as_str().unwrap();
    let one = export(&home, &["--format", "agent-tool", "--call", id]);
    check_references(&one);
    assert_eq!(of(&one, "invocation").len(), 1);
    assert_eq!(
        of(&one, "tool_declaration").len(),
        of(&whole, "tool_declaration").len()
    );
    let told = export(&home, &["--call", id]);
    let kinds: Vec<&str> = told
        .iter()
        .map(|line| line["record"].as_str().unwrap())
        .collect();
    assert_eq!(kinds[1], "catalog", "{kinds:?}");
    assert_eq!(kinds[kinds.len() - 2..], ["started", "ended"], "{kinds:?}");

    let since = calls[6]["created_at"].as_str().unwrap();
    let later = export(&home, &["--format", "agent-tool", "--since", since]);
    check_references(&later);
    assert_eq!(of(&later, "invocation").len(), calls.len() - 6);
    let earlier = export(&home, &["--format", "agent-tool", "--until", since]);
    check_references(&earlier);
    assert_eq!(of(&earlier, "invocation").len(), 6);

    let session = calls[0]["session_id"].as_str().unwrap();
    let all = export(&home, &["--format", "agent-tool", "--session", session]);
    check_references(&all);
    assert_eq!(of(&all, "invocation").len(), calls.len());
    assert!(export(&home, &["--since", "1h"]).len() > calls.len());
    assert!(export(&home, &["--until", "2001-01-01"]).is_empty());
}

#[test]
fn a_file_is_there_once_it_is_whole_and_is_its_owner_s() {
    use std::os::unix::fs::PermissionsExt as _;
    let home = used();
    let said = home
        .run(&[
            "journal",
            "export",
            "--format",
            "a2e-audit",
            "-o",
            "audit.jsonl",
        ])
        .expect(0);
    assert!(
        said.stdout.is_empty() && said.stderr.contains("8 lines"),
        "{}",
        said.stderr
    );
    let audit = lines(&home.read("audit.jsonl"));
    assert_eq!(audit.len(), 8);
    assert_eq!(audit[1]["error_code"], "tool_error");
    assert_eq!(audit[3]["error_code"], "unknown_tool");
    assert!(audit[0]["error_code"].is_null() && audit[0]["success"] == true);
    let mode = std::fs::metadata(home.workspace().join("audit.jsonl"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);

    home.run(&["journal", "export", "-o", "no/such/folder/x"])
        .expect(1);
    let id = "019f3c00-1122-7000-8000-000000000001";
    home.run(&["journal", "export", "--call", id, "-o", "none.jsonl"])
        .expect(1);
    home.run(&["journal", "export", "--since", "yesterday"])
        .expect(2);
    let left: Vec<String> = std::fs::read_dir(home.workspace())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.contains("part") || name.starts_with("none"))
        .collect();
    assert!(left.is_empty(), "{left:?}");
}
