use std::{
    fs::{self, File},
    io::Write as _,
    os::unix::net::UnixListener,
    path::Path,
    sync::Arc,
};

use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::json;
use sha2::{Digest, Sha256};
use toolpost_model::{CallContext, ErrorClass, ResultContent, ToolCall};

use crate::desk::{Desk, Failed, Port, input, structured, text, tools_of};

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

#[test]
fn text_comes_back_byte_for_byte() {
    let desk = Desk::new();
    for content in [
        "one\n",
        "no newline",
        "a\r\nb\r\n",
        "\u{feff}bom\n",
        "größe\u{2028}文\n\n\n",
        "tab\tand\u{7}bell",
    ] {
        desk.file("t.txt", content);
        let output = desk.read("t.txt").unwrap();
        assert_eq!(text(&output), content);
        assert!(output.truncated.is_none());
        let facts = structured(&output);
        assert_eq!(facts["size"], content.len());
        assert_eq!(facts["encoding"], "utf-8");
        assert_eq!(facts["sha256"], sha256(content.as_bytes()));
        assert!(facts.get("lossy").is_none());
    }
}

#[test]
fn lines_come_with_their_numbers_unless_asked_otherwise() {
    let desk = Desk::new();
    desk.file("t.txt", "one\n\n  three");
    let output = desk
        .call("files.read_file", json!({ "path": "t.txt" }))
        .unwrap();
    assert_eq!(text(&output), "     1\tone\n     2\t\n     3\t  three");
    assert!(
        !structured(&output).to_string().contains("three"),
        "the text is told once"
    );
    let output = desk
        .call("files.read_file", json!({ "path": "t.txt", "offset": 3 }))
        .unwrap();
    assert_eq!(text(&output), "     3\t  three");
}

#[test]
fn an_empty_file_is_said_to_be_empty() {
    let desk = Desk::new();
    desk.file("empty", "");
    let output = desk.read("empty").unwrap();
    assert_eq!(
        (text(&output), output.summary.as_deref()),
        ("empty is empty", Some("empty is empty"))
    );
    assert!(output.is_empty && !desk.read("empty").unwrap().partial);
    assert_eq!(structured(&output)["total_lines"], 0);
}

#[test]
fn offset_and_limit_choose_lines_and_the_rest_is_announced() {
    let desk = Desk::new();
    desk.file(
        "n.txt",
        (1..=10).map(|n| format!("line {n}\n")).collect::<String>(),
    );
    let window = |offset: u64, limit: u64| {
        desk.call(
            "files.read_file",
            json!({ "path": "n.txt", "offset": offset, "limit": limit, "line_numbers": false }),
        )
    };
    let output = window(3, 2).unwrap();
    assert_eq!(text(&output), "line 3\nline 4\n");
    assert_eq!(
        output.summary.as_deref(),
        Some("read lines 3 to 4 of 10 of n.txt")
    );
    let truncated = output.truncated.clone().unwrap();
    assert_eq!(
        (truncated.unit.as_str(), truncated.shown, truncated.total),
        ("lines", 2, Some(10))
    );
    assert_eq!(truncated.hint.as_deref(), Some("read on with `offset=5`"));
    let facts = structured(&output);
    assert_eq!(
        (
            &facts["first_line"],
            &facts["lines_shown"],
            &facts["next_offset"]
        ),
        (&json!(3), &json!(2), &json!(5))
    );

    let last = window(10, 50).unwrap();
    assert_eq!(text(&last), "line 10\n");
    assert!(last.truncated.is_none());

    let past = window(11, 1).unwrap_err();
    assert_eq!(
        (past.class, past.code.as_str()),
        (ErrorClass::InvalidArguments, "past_the_end")
    );
    assert_eq!(
        past.message,
        "`n.txt` has only 10 lines, so there is no line 11"
    );
    assert_eq!(window(0, 1).unwrap_err().hint, "/offset");
    assert_eq!(window(1, 0).unwrap_err().hint, "/limit");
}

#[test]
fn long_files_and_long_lines_are_cut_within_limits() {
    let desk = Desk::new();
    desk.file("long.txt", "0123456789\n".repeat(5000));
    let output = desk.read("long.txt").unwrap();
    let truncated = output.truncated.as_ref().unwrap();
    assert_eq!((truncated.shown, truncated.total), (2000, Some(5000)));

    desk.file("wide.txt", format!("{}\n", "w".repeat(1023)).repeat(1000));
    let output = desk.read("wide.txt").unwrap();
    assert_eq!(text(&output).len(), 32 * 1024);
    assert_eq!(structured(&output)["next_offset"], 33);

    desk.file("line.txt", format!("{}\nshort\n", "x".repeat(20_000)));
    let output = desk.read("line.txt").unwrap();
    assert!(text(&output).ends_with("x… [3616 more bytes of this line not shown]\nshort\n"));
    assert_eq!(structured(&output)["cut_lines"], 1);
    let hint = output.truncated.as_ref().unwrap().hint.clone().unwrap();
    assert_eq!(hint, "1 line longer than 16 KiB, cut with a mark");
}

#[test]
fn a_huge_file_is_not_read_whole() {
    let desk = Desk::new();
    let mut file = File::create(desk.path("huge.txt")).unwrap();
    file.write_all("some line\n".repeat(600_000).as_bytes())
        .unwrap();
    file.set_len(1 << 30).unwrap();
    File::create(desk.path("sparse.bin"))
        .unwrap()
        .set_len(1 << 30)
        .unwrap();

    // The tool looks once per chunk, so reading on would end here.
    let few_looks = Port::new(|look| look >= 2);
    let (result, _) = desk.call_with(
        "files.read_file",
        json!({ "path": "huge.txt", "limit": 3, "line_numbers": false }),
        few_looks,
    );
    let output = result.unwrap();
    assert_eq!(text(&output), "some line\n".repeat(3));
    let truncated = output.truncated.as_ref().unwrap();
    assert_eq!((truncated.shown, truncated.total), (3, None));
    assert!(structured(&output).get("sha256").is_none() && structured(&output)["size"] == 1 << 30);

    let none = Port::new(|_| true);
    let output = desk
        .call_with("files.read_file", json!({ "path": "sparse.bin" }), none)
        .0
        .unwrap();
    assert!(
        matches!(&output.content[..], [ResultContent::Binary { size, .. }] if *size == 1 << 30)
    );
}

#[test]
fn a_line_beyond_the_scan_limit_is_an_error_that_says_so() {
    let desk = Desk::new();
    let mut file = File::create(desk.path("huge.txt")).unwrap();
    file.write_all("x\n".repeat(5000).as_bytes()).unwrap();
    file.set_len(1 << 30).unwrap();
    let failed = desk
        .call(
            "files.read_file",
            json!({ "path": "huge.txt", "offset": 900_000 }),
        )
        .unwrap_err();
    assert_eq!(failed.code, "too_large");
    assert!(
        failed
            .message
            .contains("line 900000 of `huge.txt` is beyond the first 64 MiB"),
        "{failed:?}"
    );

    let output = desk
        .call(
            "files.read_file",
            json!({ "path": "huge.txt", "offset": 5000, "line_numbers": false }),
        )
        .unwrap();
    assert!(text(&output).starts_with("x\n\0\0"));
    assert!(text(&output).ends_with("… [the rest of this line is not scanned]"));
    assert!(output.truncated.unwrap().hint.unwrap().contains("64 MiB"));
}

#[test]
fn binary_files_are_described_and_images_shown() {
    let desk = Desk::new();
    let png = [b"\x89PNG\r\n\x1a\n".as_slice(), &[0; 2000]].concat();
    desk.file("dot.txt", &png);
    let output = desk.read("dot.txt").unwrap();
    let [ResultContent::Image { data, media_type }] = &output.content[..] else {
        panic!("{:?}", output.content)
    };
    assert_eq!(
        (media_type.as_str(), data.len()),
        ("image/png", png.len().div_ceil(3) * 4)
    );
    assert!(output.truncated.is_none());
    assert_eq!(structured(&output)["sha256"], sha256(&png));

    desk.file(
        "large.png",
        [b"\x89PNG\r\n\x1a\n".as_slice(), &vec![0; 1024 * 1024]].concat(),
    );
    let output = desk.read("large.png").unwrap();
    let [
        ResultContent::Binary {
            media_type, size, ..
        },
    ] = &output.content[..]
    else {
        panic!("{:?}", output.content)
    };
    assert_eq!((media_type.as_str(), *size), ("image/png", 1024 * 1024 + 8));

    desk.file(
        "blob",
        [vec![b'a'; 8191], vec![0], vec![b'b'; 5000]].concat(),
    );
    let output = desk.read("blob").unwrap();
    let [
        ResultContent::Binary {
            data,
            media_type,
            size,
        },
    ] = &output.content[..]
    else {
        panic!("{:?}", output.content)
    };
    assert_eq!(
        (data.len(), media_type.as_str(), *size),
        (1368, "application/octet-stream", 13_192)
    );
    let truncated = output.truncated.as_ref().unwrap();
    assert_eq!(
        (truncated.shown, truncated.total, truncated.unit.as_str()),
        (1024, Some(13_192), "bytes")
    );
    assert_eq!(
        output.summary.as_deref(),
        Some("blob is binary: application/octet-stream, 13192 bytes")
    );

    assert_eq!(
        structured(&output)["sha256"],
        sha256(&fs::read(desk.path("blob")).unwrap())
    );

    desk.file("latin1.txt", b"caf\xe9");
    assert_eq!(
        structured(&desk.read("latin1.txt").unwrap())["encoding"],
        "binary"
    );
}

#[test]
fn a_character_across_the_head_s_end_does_not_make_a_file_binary() {
    let desk = Desk::new();
    let content = format!("{}é and more\n", "a".repeat(8191));
    desk.file("t.txt", &content);
    assert_eq!(text(&desk.read("t.txt").unwrap()), content);
}

#[test]
fn broken_text_further_down_is_replaced_and_said_so() {
    let desk = Desk::new();
    let mut content = "fine\n".repeat(3000).into_bytes();
    content.extend_from_slice(b"broken \xff\xfe here\n");
    desk.file("t.txt", &content);
    let output = desk
        .call(
            "files.read_file",
            json!({ "path": "t.txt", "offset": 3000, "line_numbers": false }),
        )
        .unwrap();
    assert_eq!(text(&output), "fine\nbroken \u{fffd}\u{fffd} here\n");
    assert_eq!(structured(&output)["lossy"], true);
    assert_eq!(structured(&output)["sha256"], sha256(&content));
    assert!(output.summary.unwrap().contains("not UTF-8"));
}

#[test]
fn only_regular_files_are_read_and_nothing_blocks() {
    let desk = Desk::new();
    mknodat(
        CWD,
        desk.path("pipe"),
        FileType::Fifo,
        Mode::RUSR | Mode::WUSR,
        0,
    )
    .unwrap();
    let _listener = UnixListener::bind(desk.path("socket")).unwrap();
    fs::create_dir(desk.path("dir")).unwrap();
    desk.link("to_pipe", "pipe");
    let check = |path: &str, code: &str, message: &str| {
        let failed: Failed = desk.read(path).unwrap_err();
        assert_eq!(
            (failed.class, failed.code.as_str()),
            (ErrorClass::ExecutionFailed, code),
            "{failed:?}"
        );
        assert_eq!(failed.message, message);
    };
    check(
        "pipe",
        "not_a_regular_file",
        "`pipe` is a named pipe, not a regular file",
    );
    check(
        "to_pipe",
        "not_a_regular_file",
        "`to_pipe` is a named pipe, not a regular file",
    );
    check(
        "socket",
        "not_a_regular_file",
        "`socket` is a socket, not a regular file",
    );
    check("dir", "is_directory", "`dir` is a directory");
    check(".", "is_directory", "`.` is a directory");
    assert!(
        desk.read("dir")
            .unwrap_err()
            .hint
            .contains("list_directory")
    );
}

#[test]
fn a_missing_file_comes_with_names_that_could_be_meant() {
    let desk = Desk::new();
    for name in [
        "src/main.rs",
        "src/lib.rs",
        "src/mian.rs",
        "src/Main.rs",
        "src/main.py",
        "README.md",
    ] {
        desk.file(name, "");
    }
    let check = |path: &str, message: &str, hint: &str| {
        let failed = desk.read(path).unwrap_err();
        assert_eq!(
            (failed.class, failed.code.as_str()),
            (ErrorClass::ExecutionFailed, "not_found")
        );
        assert_eq!(
            (failed.message.as_str(), failed.hint.as_str()),
            (message, hint)
        );
    };
    check(
        "readme",
        "`readme` does not exist",
        "did you mean `README.md`?",
    );
    check(
        "src/main.r",
        "`src/main.r` does not exist",
        "did you mean `src/Main.rs` or `src/main.rs` or `src/main.py`?",
    );
    check(
        "scr/main.rs",
        "`scr/main.rs` does not exist: there is no `scr`",
        "did you mean `src`?",
    );
    check(
        "zebra",
        "`zebra` does not exist",
        "use `list_directory` to see the names",
    );
}

#[test]
fn files_without_a_size_are_read_as_far_as_they_go() {
    let tools = tools_of(Path::new("/proc/self"));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let context = CallContext::new(Arc::new(Port::new(|_| false)));
    let call = ToolCall {
        input: input(json!({ "path": "status", "line_numbers": false })),
        context,
    };
    let output = runtime
        .block_on(tools["files.read_file"].execute(call))
        .unwrap();
    assert!(text(&output).starts_with("Name:"));
    assert_eq!(structured(&output)["size"], text(&output).len());
}

#[test]
fn reading_stops_when_told_to() {
    let desk = Desk::new();
    desk.file("t.txt", "x\n".repeat(100_000));
    let (result, _) = desk.call_with(
        "files.read_file",
        json!({ "path": "t.txt" }),
        Port::new(|look| look == 1),
    );
    let failed = result.unwrap_err();
    assert!(
        failed.class == ErrorClass::Canceled && failed.untouched,
        "{failed:?}"
    );
}
