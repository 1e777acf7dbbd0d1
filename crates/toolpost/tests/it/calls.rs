//! `toolpost call`: what goes in, what comes out, and the exit code.

use super::home::Home;

#[test]
fn a_call_that_succeeds_gives_its_content_and_nothing_else() {
    let home = Home::new();
    home.write("a.txt", "one\ntwo\nthree");
    home.check("call_read", &["call", "read_file", "path=a.txt"])
        .expect(0);
    home.check(
        "call_read_part",
        &["call", "read_file", "path=a.txt", "offset=2", "limit:=1"],
    )
    .expect(0);
    home.check("call_by_id", &["call", "host.echo", "message=a=b c"])
        .expect(0);
    home.check(
        "call_write",
        &[
            "call",
            "write_file",
            "path=b",
            "content=x",
            "--mode",
            "edits",
        ],
    )
    .expect(0);
    assert_eq!(home.read("b"), "x");
}

#[test]
fn a_call_that_fails_says_why_and_what_to_do() {
    let home = Home::new();
    home.write("notes.md", "");
    home.check("call_missing_file", &["call", "read_file", "path=note.md"])
        .expect(1);
    home.check("call_outside", &["call", "read_file", "path=../secret"])
        .expect(1);
    home.check("call_unknown_tool", &["call", "raed_file", "path=a"])
        .expect(1);
    home.check(
        "call_bad_argument",
        &["call", "read_file", "path=a", "limit=many"],
    )
    .expect(1);
    home.check("call_no_argument", &["call", "echo"]).expect(1);
}

#[test]
fn a_call_that_is_denied_tells_what_would_allow_it() {
    let home = Home::new();
    let write = ["call", "write_file", "path=x", "content=y"];
    let with = |more: &[&'static str]| [&write[..], more].concat();
    home.check("call_denied", &write).expect(3);
    home.check("call_denied_by_mode", &with(&["--mode", "plan"]))
        .expect(3);
    home.check(
        "call_denied_by_rule",
        &with(&["--mode", "edits", "--deny", "write_file"]),
    )
    .expect(3);
    home.check(
        "call_asked",
        &with(&["--mode", "edits", "--ask", "class:write"]),
    )
    .expect(3);
    assert!(!home.workspace().join("x").exists());
    home.run(&with(&["--allow", "write_file"])).expect(0);
    assert_eq!(home.read("x"), "y");
}

#[test]
fn a_call_stopped_at_its_deadline_has_an_exit_code_of_its_own() {
    let home = Home::new();
    // A terabyte of nothing: no machine hashes that in a hundredth of a second.
    std::fs::File::create(home.workspace().join("huge"))
        .unwrap()
        .set_len(1 << 40)
        .unwrap();
    home.check(
        "call_timed_out",
        &["call", "file_info", "path=huge", "--timeout", "0.01"],
    )
    .expect(4);
    for seconds in ["0", "-1", "NaN", "inf"] {
        home.run(&["call", "echo", "message=x", &format!("--timeout={seconds}")])
            .expect(2);
    }
}

#[test]
fn arguments_come_as_json_from_anywhere() {
    let home = Home::new();
    home.write("arguments.json", r#"{"message":"from a file"}"#);
    let text = |ran: super::home::Ran| {
        ran.expect(0).json()["content"][0]["text"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    assert_eq!(
        text(home.run(&["call", "echo", "--json", "@arguments.json"])),
        "from a file"
    );
    assert_eq!(
        text(home.run(&["call", "echo", "--json", r#"{"message":"typed"}"#])),
        "typed"
    );
    assert_eq!(
        text(home.feed(&["call", "echo", "--json", "-"], r#"{"message":"piped"}"#)),
        "piped"
    );
    assert_eq!(
        text(home.run(&["call", "echo", "--json", "message=a word"])),
        "a word"
    );
    assert_eq!(
        text(home.run(&["call", "echo", "message=before", "--json"])),
        "before"
    );
    assert_eq!(
        text(home.run(&["call", "echo", r#"message:="quoted""#, "--json"])),
        "quoted"
    );
    home.check(
        "call_json",
        &["call", "echo", "--json", r#"{"message":"x"}"#],
    )
    .expect(0);
    let broken = home
        .feed(&["call", "echo", "--json", "-"], r#"{"message":"#)
        .expect(1)
        .json();
    assert_eq!(broken["error"]["class"], "schema_validation_failed");
}

#[test]
fn a_command_typed_wrong_is_told_apart_from_a_call_that_fails() {
    let home = Home::new();
    for (name, arguments) in [
        (
            "usage_both",
            &["call", "echo", "--json", "{}", "message=x"][..],
        ),
        ("usage_neither", &["call", "echo", "--json", "nonsense"]),
        ("usage_no_value", &["call", "echo", "message"]),
        ("usage_twice", &["call", "echo", "message=a", "message=b"]),
        ("usage_not_json", &["call", "echo", "message:=hi"]),
        ("usage_no_tool", &["call"]),
        (
            "usage_bad_mode",
            &["call", "echo", "message=x", "--mode", "free"],
        ),
        (
            "usage_bad_rule",
            &["call", "echo", "message=x", "--allow", "class:all"],
        ),
        (
            "usage_bad_config",
            &["call", "echo", "message=x", "--config", "missing.yaml"],
        ),
    ] {
        home.check(name, arguments).expect(2);
    }
}

#[test]
fn places_can_be_chosen() {
    let home = Home::new();
    let other = home.workspace().join("inner");
    std::fs::create_dir(&other).unwrap();
    std::fs::write(other.join("a"), "inner").unwrap();
    let data = home.workspace().with_file_name("data");
    let data = data.to_str().unwrap();
    let read = home
        .run(&[
            "call",
            "read_file",
            "path=a",
            "--workspace",
            "inner",
            "--data-dir",
            data,
        ])
        .expect(0);
    assert_eq!(read.stdout, "     1\tinner\n");
    let told = home
        .run(&["journal", "tail", "--json", "--data-dir", data])
        .expect(0);
    assert!(told.stdout.contains("files.read_file"), "{}", told.stdout);
    home.check(
        "data_in_workspace",
        &["call", "read_file", "path=a", "--data-dir", "state"],
    )
    .expect(1);
}

#[test]
fn text_from_a_tool_reaches_a_pipe_unchanged() {
    let home = Home::new();
    let text = "\u{1b}[31mred\u{1b}[0m \u{202e}gnitirw\ttab \u{0}nul żółć\n";
    home.write("a.txt", text);
    let json = home
        .run(&["call", "read_file", "--json", "path=a.txt"])
        .expect(0)
        .json();
    assert_eq!(
        json["content"][0]["type"], "binary",
        "a file with a nul is no text"
    );
    let text = text.replace('\u{0}', "");
    home.write("a.txt", &text);
    let plain = ["call", "read_file", "path=a.txt", "line_numbers:=false"];
    assert_eq!(home.run(&plain).expect(0).stdout, text);
    // A message on stderr is for eyes, and eyes are protected.
    let missing = home
        .run(&["call", "read_file", "path=\u{1b}[31m"])
        .expect(1);
    assert!(!missing.stderr.contains('\u{1b}'), "{:?}", missing.stderr);
}
