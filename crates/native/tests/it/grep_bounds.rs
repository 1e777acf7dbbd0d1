//! What a search does with trees, files and patterns that were made to hurt.

use std::{
    collections::BTreeSet,
    ffi::OsStr,
    fs,
    io::ErrorKind,
    os::unix::{ffi::OsStrExt, net::UnixListener},
    path::Path,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use rustix::fs::{CWD, FileType, Mode, RenameFlags, mknodat, renameat_with};
use serde_json::{Value, json};
use toolpost_model::{ErrorClass, ResourceAccess, ToolOutput};

use crate::{
    desk::{Desk, Port, SECRET, structured, text},
    permissions::{as_ordinary_user, set_mode},
};

fn grep(desk: &Desk, arguments: Value) -> ToolOutput {
    desk.call("search.grep", arguments).unwrap()
}

fn exchange(a: &Path, b: &Path) {
    renameat_with(CWD, a, CWD, b, RenameFlags::EXCHANGE).unwrap();
}

/// Everything a result tells.
fn told(output: &ToolOutput) -> String {
    format!(
        "{:?} {:?} {:?}",
        output.content, output.structured, output.summary
    )
}

#[test]
fn special_files_and_links_are_passed_over_without_waiting() {
    let desk = Desk::new();
    desk.file("dir/a.txt", "outside secret of our own\n");
    mknodat(
        CWD,
        desk.path("dir/pipe"),
        FileType::Fifo,
        Mode::RUSR | Mode::WUSR,
        0,
    )
    .unwrap();
    let _socket = UnixListener::bind(desk.path("dir/socket")).unwrap();
    desk.link("dir/loop", "..");
    desk.link("dir/self", "self");
    desk.link("dir/out", desk.outside());
    desk.link("dir/secret.txt", desk.outside().join("secret.txt"));
    desk.link("dir/zero", "/dev/zero");
    fs::write(
        desk.path("dir").join(OsStr::from_bytes(b"bad\xff.txt")),
        SECRET,
    )
    .unwrap();
    let output = grep(&desk, json!({ "pattern": SECRET, "output_mode": "count" }));
    let mut lines: Vec<&str> = text(&output).lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["dir/a.txt: 1", "dir/bad\u{fffd}.txt: 1"]);
    // The text comes by a second way, which must find names that are no text as well.
    let output = grep(
        &desk,
        json!({ "pattern": SECRET, "output_mode": "content" }),
    );
    assert_eq!(structured(&output)["files"].as_array().unwrap().len(), 2);
    assert_eq!(structured(&output)["searched_files"], 2);
    let failed = desk
        .call("search.grep", json!({ "pattern": "x", "path": "dir/pipe" }))
        .unwrap_err();
    assert_eq!(failed.code, "not_a_regular_file");
}

#[test]
fn binary_files_are_counted_and_text_in_other_encodings_is_read() {
    let desk = Desk::new();
    desk.file("blob", "needle\n\0\n");
    desk.file("late", format!("needle\n{}\0", "x\n".repeat(100_000)));
    desk.file(
        "early",
        format!("{}\0{}", "x\n".repeat(100), "needle\n".repeat(20_000)),
    );
    let utf16: Vec<u8> = "\u{feff}ein needle\n"
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    desk.file("utf16.txt", utf16);
    desk.file("latin1.txt", b"caf\xe9 needle\n");
    let output = grep(
        &desk,
        json!({ "pattern": "needle", "output_mode": "content" }),
    );
    let result = structured(&output);
    let mut found: Vec<(&str, &str)> = result["files"]
        .as_array()
        .unwrap()
        .iter()
        .map(|file| {
            (
                file["path"].as_str().unwrap(),
                file["lines"][0]["text"].as_str().unwrap(),
            )
        })
        .collect();
    found.sort_unstable();
    assert_eq!(
        found,
        [
            ("late", "needle"),
            ("latin1.txt", "caf\u{fffd} needle"),
            ("utf16.txt", "ein needle")
        ]
    );
    assert_eq!(
        (&result["binary_files"], &result["searched_files"]),
        (&json!(2), &json!(5))
    );
}

#[test]
fn long_lines_are_cut_around_the_match_and_endless_ones_passed_over() {
    let desk = Desk::new();
    desk.file(
        "long.js",
        format!("{}needle{}\n", "a".repeat(2 << 20), "b".repeat(2 << 20)),
    );
    desk.file("endless.js", vec![b'a'; 9 << 20]);
    let output = grep(
        &desk,
        json!({ "pattern": "needle", "output_mode": "content" }),
    );
    let line = structured(&output)["files"][0]["lines"][0]["text"]
        .as_str()
        .unwrap();
    assert!(
        line.starts_with("…aaa") && line.contains("needlebbb") && line.ends_with('…'),
        "{line}"
    );
    assert!(line.len() < 500);
    assert_eq!(structured(&output)["unsearched_files"], 1);
}

#[test]
fn a_file_larger_than_every_buffer_is_searched_to_its_end() {
    let desk = Desk::new();
    let lines = 400_000;
    let mut content: String = (1..lines).map(|n| format!("line number {n}\n")).collect();
    content.push_str("the needle");
    desk.file("large.log", content);
    let output = grep(
        &desk,
        json!({ "pattern": "needle", "output_mode": "content", "before": 1 }),
    );
    assert_eq!(
        text(&output),
        format!(
            "large.log\n{}-line number {0}\n{lines}:the needle\n",
            lines - 1
        )
    );
    let output = grep(&desk, json!({ "pattern": "line", "output_mode": "count" }));
    assert_eq!(structured(&output)["total_lines"], lines - 1);
}

#[test]
fn text_is_bounded_and_the_rest_can_be_had() {
    let desk = Desk::new();
    for n in 0..10 {
        desk.dated_file(
            &format!("f{n}.txt"),
            format!("needle {}\n", "x".repeat(300)).repeat(100),
            n,
        );
    }
    let mut offset = 0;
    let mut lines = 0;
    loop {
        let output = grep(
            &desk,
            json!({ "pattern": "needle", "output_mode": "content", "limit": 2000, "offset": offset }),
        );
        assert!(text(&output).len() < 80 << 10, "{}", text(&output).len());
        let files = structured(&output)["files"].as_array().unwrap();
        lines += files
            .iter()
            .map(|file| file["lines"].as_array().unwrap().len())
            .sum::<usize>();
        let Some(next) = structured(&output)
            .get("next_offset")
            .and_then(Value::as_u64)
        else {
            break;
        };
        assert!(next > offset);
        offset = next;
    }
    assert_eq!(lines, 1000);
}

#[test]
fn many_small_files_are_counted_exactly_and_only_a_page_is_kept() {
    let desk = Desk::new();
    for n in 0..3_000 {
        desk.file(
            &format!("d{}/f{n}", n % 7),
            if n % 3 == 0 { "needle" } else { "hay" },
        );
    }
    let output = grep(&desk, json!({ "pattern": "needle", "limit": 5 }));
    let result = structured(&output);
    assert_eq!(
        (&result["total_files"], &result["searched_files"]),
        (&json!(1000), &json!(3000))
    );
    assert_eq!(result["files"].as_array().unwrap().len(), 5);
    let output = desk
        .call("search.glob", json!({ "pattern": "f*", "limit": 5 }))
        .unwrap();
    assert_eq!(structured(&output)["total"], 3000);
}

#[test]
fn a_pattern_made_to_be_slow_ends_with_the_call_s_time() {
    let desk = Desk::new();
    let hostile: String = (0_u32..1 << 20)
        .map(|n| {
            if n.wrapping_mul(2_654_435_761) >> 31 == 0 {
                'a'
            } else {
                'b'
            }
        })
        .collect();
    let folded: String = hostile
        .as_bytes()
        .chunks(99)
        .map(|line| format!("{}\n", String::from_utf8_lossy(line)))
        .collect();
    // More than any machine searches in the time given.
    desk.file("folded.txt", folded.repeat(64));
    let pattern = "[ab]*a[ab]{60}c";
    let port = Port::until(Instant::now() + Duration::from_millis(300));
    let output = desk
        .call_with("search.grep", json!({ "pattern": pattern }), port)
        .0
        .unwrap();
    assert!(
        output.partial && text(&output).contains("the time ran out"),
        "{}",
        text(&output)
    );
    // One line cannot be searched in pieces, so a large expression is not let at a long one.
    desk.file("line.txt", hostile);
    let output = grep(
        &desk,
        json!({ "pattern": r"(\w{5}c){10}", "path": "line.txt" }),
    );
    assert_eq!(structured(&output)["long_lines"], 1);
}

#[test]
fn ignore_files_made_to_be_slow_are_bounded() {
    let desk = Desk::new();
    let rules: String = (0..200_000)
        .map(|n| format!("*a{n}*b?[xyz]**/{{c,d}}\n"))
        .collect();
    for level in 0..6 {
        desk.file(&format!("{}.gitignore", "d/".repeat(level)), &rules);
    }
    desk.file("d/d/d/d/d/needle.txt", "needle");
    assert_eq!(
        text(&grep(&desk, json!({ "pattern": "needle" }))),
        "d/d/d/d/d/needle.txt\n"
    );
}

#[test]
fn what_may_not_be_read_is_counted() {
    as_ordinary_user(|desk| {
        desk.file("a.txt", "needle");
        desk.file("closed/b.txt", "needle");
        desk.file("c.txt", "needle");
        set_mode(&desk, "closed", 0o000);
        set_mode(&desk, "c.txt", 0o000);
        let output = grep(&desk, json!({ "pattern": "needle" }));
        set_mode(&desk, "closed", 0o700);
        assert!(
            text(&output).starts_with("a.txt\n[skipped: 1 file that could not be searched, "),
            "{}",
            text(&output)
        );
        let result = structured(&output);
        assert_eq!(
            (&result["unreadable"], &result["unsearched_files"]),
            (&json!(1), &json!(1))
        );
    });
}

#[test]
fn a_search_stops_when_told_to_and_tells_what_it_has_when_time_runs_out() {
    let desk = Desk::new();
    for n in 0..40 {
        desk.file(&format!("d{n}/f.txt"), "needle");
    }
    desk.file("large.txt", "hay\n".repeat(2 << 20));
    for arguments in [
        json!({ "pattern": "needle" }),
        json!({ "pattern": "needle", "path": "large.txt" }),
    ] {
        for moment in [0, 1, 3, 6] {
            let port = Port::new(move |look| look >= moment);
            let failed = desk
                .call_with("search.grep", arguments.clone(), port)
                .0
                .unwrap_err();
            assert_eq!(
                (failed.class, failed.untouched),
                (ErrorClass::Canceled, true),
                "{arguments} {moment}"
            );
        }
    }
    let port = Port::until(Instant::now());
    let output = desk
        .call_with("search.grep", json!({ "pattern": "needle" }), port)
        .0
        .unwrap();
    assert!(
        output.partial && text(&output).contains("the time ran out"),
        "{}",
        text(&output)
    );
    assert_eq!(output.truncated.unwrap().total, None);
}

/// `tree/d7` and `tree/file.txt` are real; `spare` and `spare.txt` are links to the secret outside.
fn desk_to_swap() -> Desk {
    let desk = Desk::new();
    for n in 0..12 {
        desk.file(&format!("tree/d{n}/secret.txt"), "inside secret\n");
    }
    desk.file("tree/file.txt", "inside secret\n");
    desk.link("spare", desk.outside());
    desk.link("spare.txt", "../outside/secret.txt");
    desk
}

#[test]
fn names_that_turn_into_links_all_the_time_never_lead_out() {
    let desk = desk_to_swap();
    let names = ["tree/d7", "spare", "tree/file.txt", "spare.txt"].map(|name| desk.path(name));
    let stop = AtomicBool::new(false);
    let mut whole = 0;
    let mut fewer = 0;
    std::thread::scope(|scope| {
        let swapping = scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                exchange(&names[0], &names[1]);
                exchange(&names[2], &names[3]);
            }
        });
        let begun = Instant::now();
        // Longer only on a machine so busy that one of the two ends was not seen yet.
        while !swapping.is_finished()
            && (begun.elapsed() < Duration::from_secs(1)
                || (whole == 0 || fewer == 0) && begun.elapsed() < Duration::from_secs(30))
        {
            for path in [".", "tree"] {
                let output = grep(
                    &desk,
                    json!({ "pattern": "secret", "output_mode": "content", "path": path }),
                );
                let leaked = told(&output).contains(SECRET);
                stop.store(leaked, Ordering::Relaxed);
                assert!(!leaked, "{}", told(&output));
                match structured(&output)["total_lines"].as_u64().unwrap() {
                    13 => whole += 1,
                    _ => fewer += 1,
                }
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert!(
        whole > 0 && fewer > 0,
        "both ends must be seen: {whole} {fewer}"
    );
}

#[test]
fn a_swap_at_every_single_moment_of_a_search_never_leads_out() {
    for mode in ["content", "count", "files_with_matches"] {
        for moment in 0..40 {
            let desk = desk_to_swap();
            let names =
                ["tree/d7", "spare", "tree/file.txt", "spare.txt"].map(|name| desk.path(name));
            let port = Port::new(move |look| {
                if look == moment {
                    exchange(&names[0], &names[1]);
                    exchange(&names[2], &names[3]);
                }
                false
            });
            let arguments = json!({ "pattern": "outside|inside", "output_mode": mode });
            let output = desk.call_with("search.grep", arguments, port).0.unwrap();
            assert!(
                !told(&output).contains(SECRET),
                "{mode} at {moment}: {}",
                told(&output)
            );
            let files = structured(&output)["files"].as_array().unwrap();
            assert!(files.len() >= 11, "{mode} at {moment}");
        }
    }
}

#[test]
fn every_thread_of_a_search_is_confined_to_the_roots() {
    let desk = Desk::new();
    for n in 0..200 {
        desk.file(&format!("d{n}/f.txt"), "hay");
    }
    let secret = desk.outside().join("secret.txt");
    let tried = Arc::new(Mutex::new(BTreeSet::new()));
    let seen = tried.clone();
    let opened = secret.clone();
    // The host is asked from the threads that search, so what is tried here is tried there.
    let port = Port::new(move |_| {
        let thread = std::thread::current();
        let refused =
            fs::File::open(&opened).is_err_and(|error| error.kind() == ErrorKind::PermissionDenied);
        seen.lock()
            .unwrap()
            .insert((thread.name().unwrap_or_default().to_owned(), refused));
        false
    });
    desk.call_with("search.grep", json!({ "pattern": "needle" }), port)
        .0
        .unwrap();
    assert!(
        fs::File::open(&secret).is_ok(),
        "the test's own thread is free"
    );
    let seen = tried.lock().unwrap();
    // Tried on a thread of its own, which is then lost for anything else.
    let confined = std::thread::spawn(|| toolpost_sandbox::confine_thread(&[]))
        .join()
        .unwrap();
    let has_landlock = confined.landlock_abi.is_some();
    assert!(
        !seen.is_empty() && seen.iter().all(|(_, refused)| *refused == has_landlock),
        "{seen:?}"
    );
}

#[test]
fn other_roots_are_searched_by_their_absolute_paths() {
    let desk = Desk::prepared(|home, workspace| {
        fs::create_dir_all(home.join("lib/src/deep")).unwrap();
        fs::write(home.join("lib/.gitignore"), "*.log\n").unwrap();
        for name in ["lib/src/a.txt", "lib/src/deep/b.txt", "lib/src/c.log"] {
            fs::write(home.join(name), "needle\n").unwrap();
        }
        workspace
            .with_root(&home.join("lib"), ResourceAccess::Read)
            .unwrap()
    });
    desk.file("own.txt", "needle\n");
    let place = |name: &str| desk.beside(name).to_str().unwrap().to_owned();
    assert_eq!(
        text(&grep(&desk, json!({ "pattern": "needle" }))),
        "own.txt\n"
    );
    let output = grep(
        &desk,
        json!({ "pattern": "needle", "path": place("lib/src"), "output_mode": "content" }),
    );
    let a = place("lib/src/a.txt");
    let b = place("lib/src/deep/b.txt");
    let mut found: Vec<&str> = text(&output).split("\n\n").map(str::trim_end).collect();
    found.sort_unstable();
    assert_eq!(found, [format!("{a}\n1:needle"), format!("{b}\n1:needle")]);
    let output = desk
        .call("search.glob", json!({ "pattern": place("lib/**/b.*") }))
        .unwrap();
    assert_eq!(text(&output), format!("{b}\n"));
}
