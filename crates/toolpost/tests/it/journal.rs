//! `toolpost journal`: the record read, shown and checked.

use std::path::Path;

use serde_json::Value;

use super::home::Home;

/// A home in which three calls were made.
fn used() -> Home {
    let home = Home::new();
    home.run(&["call", "echo", "message=something to find"])
        .expect(0);
    home.run(&[
        "call",
        "write_file",
        "path=a",
        "content=x",
        "--mode",
        "edits",
    ])
    .expect(0);
    home.run(&["call", "read_file", "path=missing"]).expect(1);
    home
}

#[test]
fn the_tail_tells_what_happened() {
    let home = used();
    home.check("journal_tail", &["journal", "tail"]).expect(0);
    let last = home.run(&["journal", "tail", "-n", "1"]).expect(0).stdout;
    assert!(
        last.contains("ended") && last.contains("files.read_file failed"),
        "{last}"
    );
    let lines = home.run(&["journal", "tail", "--json"]).expect(0).stdout;
    let records: Vec<Value> = lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let kinds: Vec<&str> = records
        .iter()
        .map(|record| record["kind"].as_str().unwrap())
        .collect();
    let expected = [
        ["host_started", "catalog", "surface", "ended"].as_slice(),
        &["host_started", "surface", "started", "ended"],
        &["host_started", "surface", "ended"],
    ];
    assert_eq!(
        kinds,
        expected.concat(),
        "what can be called is told once, who sees it in each life"
    );
    let numbers: Vec<u64> = records
        .iter()
        .map(|record| record["seq"].as_u64().unwrap())
        .collect();
    assert_eq!(numbers, (1..=11).collect::<Vec<_>>());
    assert_eq!(records[3]["body"]["call"]["face"], "cli");
    assert_eq!(records[3]["body"]["call"]["principal"], "local");
}

/// Arguments are an agent's text: none of it counts as a fact about an approval.
#[test]
fn arguments_that_look_like_parts_of_a_record_are_shown_as_arguments_only() {
    let home = Home::new();
    let approval = r#""approval":{"ask_id":"01a1e924-dff7-76fa-9439-6bb21eed51e9","spent":true}"#;
    for (arguments, code) in [
        (r#"{"message":"x","spent":true}"#.to_owned(), 1),
        (r#"{"message":"x","note":{"spent":true}}"#.to_owned(), 1),
        (r#"{"message":"\"spent\":true"}"#.to_owned(), 0),
        (format!(r#"{{"message":"x",{approval}}}"#), 1),
        (
            format!(
                r#"{{"message":"x","result":{{{approval},"outcome":"denied"}},"decision":{{"behavior":"deny"}}}}"#
            ),
            1,
        ),
    ] {
        let result = home
            .run(&["call", "echo", "--json", &arguments])
            .expect(code)
            .json();
        let id = result["invocation_id"].as_str().unwrap();
        let story = home.run(&["journal", "show", id]).expect(0).stdout;
        for false_fact in [
            "kept for one call",
            "answered",
            "asked  ",
            "denied (",
            "deny:",
        ] {
            let told = story
                .lines()
                .filter(|line| !line.starts_with("arguments"))
                .any(|line| line.contains(false_fact));
            assert!(!told, "`{false_fact}` is told of {arguments}\n{story}");
        }
        assert!(
            story.contains(result["outcome"].as_str().unwrap()),
            "{story}"
        );
    }
}

#[test]
fn a_call_is_shown_with_its_stages_and_its_end() {
    let home = used();
    let lines = home.run(&["journal", "tail", "--json"]).expect(0).stdout;
    let ids: Vec<String> = lines
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .filter(|record| record["kind"] == "ended")
        .map(|record| record["invocation_id"].as_str().unwrap().to_owned())
        .collect();
    for (name, id) in ["show_echo", "show_write", "show_failed"]
        .into_iter()
        .zip(&ids)
    {
        let shown = home.run(&["journal", "show", id]).expect(0);
        home.compare(name, &["journal", "show", "[ID]"], &shown);
    }
    let records = home
        .run(&["journal", "show", &ids[1], "--json"])
        .expect(0)
        .json();
    let kinds: Vec<&Value> = records
        .as_array()
        .unwrap()
        .iter()
        .map(|record| &record["kind"])
        .collect();
    assert_eq!(kinds, ["started", "ended"]);
    assert_eq!(records[1]["body"]["result"]["outcome"], "succeeded");
    home.run(&["journal", "show", "nonsense"]).expect(2);
}

/// Two hooks: what lies between them is in no record of its own.
#[test]
fn a_call_is_shown_with_what_the_model_sent_and_every_difference() {
    let home = Home::new();
    let hook = |name: &str, change: &str| {
        let script = format!(
            "import json, sys; call = json.load(sys.stdin); call['arguments']['message'] {change}; \
             json.dump({{'arguments': call['arguments'], 'reason': 'as {name} wants'}}, sys.stdout)"
        );
        let command = serde_json::json!(["python3", "-c", script]);
        format!("  - {{ name: {name}, command: {command}, event: before }}\n")
    };
    home.write_user(&format!(
        "hooks:\n{}{}",
        hook("first", "+= ' one'"),
        hook("second", "+= ' two'")
    ));
    let result = home
        .run(&["call", "echo", "message=sent", "--json"])
        .expect(0)
        .json();
    let id = result["invocation_id"].as_str().unwrap();
    let shown = home.run(&["journal", "show", id]).expect(0).stdout;
    for told in [
        r#"arguments  {"message":"sent"}"#,
        r#"became     {"message":"sent one two"}"#,
        "arguments message by first (hook): as first wants",
        r#"message: "sent" -> "sent one""#,
        r#"message: "sent one" -> "sent one two""#,
    ] {
        assert!(shown.contains(told), "`{told}` is missing:\n{shown}");
    }
    home.write_user("");
    let plain = home
        .run(&["call", "echo", "message=sent", "--json"])
        .expect(0)
        .json();
    let shown = home
        .run(&["journal", "show", plain["invocation_id"].as_str().unwrap()])
        .expect(0)
        .stdout;
    assert!(
        !shown.contains("became") && !shown.contains("rewritten"),
        "{shown}"
    );
}

#[test]
fn a_record_nobody_touched_is_clean_and_its_head_vouches_for_it() {
    let home = used();
    home.check("journal_verify", &["journal", "verify"])
        .expect(0);
    let report = home.run(&["journal", "verify", "--json"]).expect(0).json();
    assert_eq!(report["clean"], true);
    assert_eq!(
        (&report["records"], &report["invocations"]),
        (&11.into(), &3.into())
    );
    assert_eq!(report["open_invocations"], serde_json::json!([]));
    let head = report["head"].as_str().unwrap();
    home.run(&["journal", "verify", "--head", head]).expect(0);
    home.run(&["journal", "verify", "--head", &head.to_uppercase()])
        .expect(0);
    home.run(&["call", "echo", "message=more"]).expect(0);
    let later = home
        .run(&["journal", "verify", "--head", head, "--json"])
        .expect(0)
        .json();
    assert_ne!(
        later["head"], report["head"],
        "the record has grown, and the old head is still in it"
    );
    let other = "0".repeat(64);
    home.check(
        "journal_verify_other_head",
        &["journal", "verify", "--head", &other],
    )
    .expect(1);
}

/// Changes the bytes of the closed database, past SQLite and its triggers.
fn patch(path: &Path, old: &str, new: &str) {
    assert_eq!(old.len(), new.len());
    let mut bytes = std::fs::read(path).unwrap();
    let places: Vec<usize> = bytes
        .windows(old.len())
        .enumerate()
        .filter(|(_, window)| *window == old.as_bytes())
        .map(|(at, _)| at)
        .collect();
    assert!(!places.is_empty(), "`{old}` is in the file");
    for at in places {
        bytes[at..at + old.len()].copy_from_slice(new.as_bytes());
    }
    std::fs::write(path, bytes).unwrap();
}

#[test]
fn a_changed_byte_is_found() {
    let home = used();
    let journal = home.data_dir().join("journal.db");
    patch(&journal, "something to find", "something to finD");
    home.check("journal_verify_changed", &["journal", "verify"])
        .expect(1);
    let report = home.run(&["journal", "verify", "--json"]).expect(1).json();
    assert_eq!(report["clean"], false);
    assert_eq!(report["problems"].as_array().unwrap().len(), 1);
    let doctor = home.run(&["doctor"]).expect(1).stdout;
    assert!(doctor.contains("bad   journal"), "{doctor}");
    // A changed record stops nobody from working, and the new records do not hide it.
    home.run(&["call", "echo", "message=on"]).expect(0);
    home.run(&["journal", "verify"]).expect(1);
    patch(&journal, "something to finD", "something to find");
    home.run(&["journal", "verify"]).expect(0);
}

#[test]
fn records_cut_off_show_against_an_older_head() {
    let home = Home::new();
    home.run(&["call", "echo", "message=kept"]).expect(0);
    let journal = home.data_dir().join("journal.db");
    let before = std::fs::read(&journal).unwrap();
    home.run(&["call", "echo", "message=cut"]).expect(0);
    let sealed = home.run(&["journal", "seal"]).expect(0).stdout;
    let report = home.run(&["journal", "verify", "--json"]).expect(0).json();
    let head = report["head"].as_str().unwrap();
    assert_eq!(sealed.trim_end(), head);
    let as_json = home.run(&["journal", "seal", "--json"]).expect(0).json();
    assert_eq!(
        (&as_json["head"], &as_json["seq"]),
        (&report["head"], &7.into())
    );
    std::fs::write(&journal, before).unwrap();
    home.run(&["journal", "verify"]).expect(0);
    let told = home
        .run(&["journal", "verify", "--head", head])
        .expect(1)
        .stdout;
    assert!(told.contains("records were cut off or replaced"), "{told}");
}

#[test]
fn without_a_record_there_is_nothing_to_show() {
    let home = Home::new();
    for arguments in [&["journal", "tail"][..], &["journal", "verify"]] {
        home.check("journal_nothing", &["journal", "tail"]);
        home.run(arguments).expect(1);
    }
}

#[test]
fn what_is_no_journal_is_not_taken_for_one() {
    let home = used();
    std::fs::write(
        home.data_dir().join("journal.db"),
        "not a database, but long enough to be read as one",
    )
    .unwrap();
    home.check("journal_garbage", &["journal", "verify"])
        .expect(1);
    home.run(&["call", "echo", "message=x"]).expect(1);
}
