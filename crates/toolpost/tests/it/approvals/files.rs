//! An approval covers exactly the call that runs: the files that a command names as program or script are part of the
//! question, and are compared again before the command starts.

use std::{os::unix::fs::PermissionsExt as _, path::Path};

use serde_json::{Value, json};

use super::{Bench, ask, ended};

const FIRST: &str = "#!/bin/sh\necho one >> out.txt\n";
const OTHER: &str = "#!/bin/sh\necho two >> out.txt\n";

fn write(bench: &Bench, name: &str, content: &str) {
    let path = bench.home.workspace().join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, content).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

fn id(question: &Value) -> &str {
    question["ask_id"].as_str().unwrap()
}

/// The question that comes in place of one whose files changed.
fn next(bench: &Bench, before: &Value) -> Value {
    for _ in 0..1_000 {
        let now = bench.pending(1).remove(0);
        if id(&now) != id(before) {
            return now;
        }
    }
    panic!("{} is still the question", id(before));
}

/// The call asks about one content, the file gets another one by `change`, and the yes is for the first.
fn check(command: &str, set_up: impl FnOnce(&Bench), change: impl FnOnce(&Path)) {
    let bench = Bench::new("mode: default\n");
    set_up(&bench);
    let served = bench.serve();
    let call = ask(&served, &bench.home, command);
    let first = bench.pending(1).remove(0);
    change(&bench.home.workspace());
    bench.run(&["approvals", "allow", id(&first)]).expect(0);
    let second = next(&bench, &first);
    assert_eq!(
        bench.home.try_read("out.txt"),
        None,
        "`{command}` ran other than approved"
    );
    let changed = second["changed_programs"]
        .as_array()
        .unwrap_or_else(|| panic!("{second}"));
    assert!(!changed.is_empty(), "{second:#}");
    let shown = bench
        .run(&["approvals", "show", id(&second)])
        .expect(0)
        .stdout;
    let line = shown
        .lines()
        .find(|line| line.trim_start().starts_with("changed"))
        .unwrap_or_default();
    assert!(
        line.contains(changed[0]["name"].as_str().unwrap()) && line.contains("->"),
        "{shown}"
    );
    bench.run(&["approvals", "allow", id(&second)]).expect(0);
    let result = call.join().unwrap();
    assert_eq!(result["outcome"], "succeeded", "{result}");
    assert_eq!(bench.home.read("out.txt"), "two\n", "`{command}`");
    served.stop();
}

#[test]
fn a_script_that_changed_after_the_question_is_asked_about_again() {
    let other = |name: &'static str| {
        move |workspace: &Path| std::fs::write(workspace.join(name), OTHER).unwrap()
    };
    check(
        "sh run.sh",
        |bench| write(bench, "run.sh", FIRST),
        other("run.sh"),
    );
    check(
        "./run.sh",
        |bench| write(bench, "run.sh", FIRST),
        other("run.sh"),
    );
    check(
        "cd sub && cp ../x . ; cd ..; timeout 50 bash -eu sub/run.sh",
        |bench| {
            write(bench, "x", "");
            write(bench, "sub/run.sh", FIRST);
        },
        other("sub/run.sh"),
    );
}

#[test]
fn a_script_that_is_swapped_by_a_link_or_made_later_is_asked_about_again() {
    let swap = |workspace: &Path| {
        std::fs::remove_file(workspace.join("run.sh")).unwrap();
        std::os::unix::fs::symlink("other.sh", workspace.join("run.sh")).unwrap();
    };
    check(
        "./run.sh",
        |bench| {
            write(bench, "other.sh", OTHER);
            write(bench, "real.sh", FIRST);
            std::os::unix::fs::symlink("real.sh", bench.home.workspace().join("run.sh")).unwrap();
        },
        swap,
    );
    check(
        "bash run.sh",
        |_| {},
        |workspace| std::fs::write(workspace.join("run.sh"), OTHER).unwrap(),
    );
    check(
        "PATH=\"/usr/bin:/bin\" make -s",
        |bench| {
            write(bench, "Makefile", "all:\n\t@echo one >> out.txt\n");
        },
        |workspace| {
            std::fs::write(
                workspace.join("GNUmakefile"),
                "all:\n\t@echo two >> out.txt\n",
            )
            .unwrap();
        },
    );
}

#[test]
fn a_large_program_is_known_by_its_size_inode_and_time_of_change() {
    let long = |text: &str| format!("{text}exit\n{}", "# padding\n".repeat(900_000));
    let first = long(FIRST);
    let other = long(OTHER);
    let bench = Bench::new("mode: default\n");
    write(&bench, "run.sh", &first);
    let served = bench.serve();
    let call = ask(&served, &bench.home, "sh run.sh");
    let question = bench.pending(1).remove(0);
    assert_eq!(
        question["programs"][0]["content"]["form"], "identity",
        "{question:#}"
    );
    std::fs::write(bench.home.workspace().join("run.sh"), &other).unwrap();
    bench.run(&["approvals", "allow", id(&question)]).expect(0);
    let second = next(&bench, &question);
    assert_eq!(bench.home.try_read("out.txt"), None);
    bench.run(&["approvals", "allow", id(&second)]).expect(0);
    assert_eq!(call.join().unwrap()["outcome"], "succeeded");
    assert_eq!(bench.home.read("out.txt"), "two\n");
    served.stop();
}

#[test]
fn a_file_that_changed_while_the_host_was_dead_is_asked_about_again() {
    let bench = Bench::new("mode: default\n");
    write(&bench, "run.sh", FIRST);
    let served = bench.serve();
    let mut http = served.connect(&bench.home);
    let path = "/tools/shell/call";
    let body = r#"{"command":"sh run.sh"}"#;
    http.begin_with_key(path, "k1", body).unwrap();
    let first = bench.pending(1).remove(0);
    served.kill();
    let served = bench.serve();
    assert_eq!(
        bench.pending(1).remove(0)["call_hash"],
        first["call_hash"],
        "nothing changed"
    );
    served.kill();
    write(&bench, "run.sh", OTHER);

    let served = bench.serve();
    let second = next(&bench, &first);
    assert_eq!(
        second["changed_programs"][0]["name"], "run.sh",
        "{second:#}"
    );
    bench.run(&["approvals", "allow", id(&first)]).expect(1);
    bench.run(&["approvals", "allow", id(&second)]).expect(0);
    let call = first["ask_id"].as_str().unwrap();
    assert_eq!(
        ended(&mut served.connect(&bench.home), call)["outcome"],
        "succeeded"
    );
    assert_eq!(bench.home.read("out.txt"), "two\n");
    served.stop();
}

#[test]
fn a_remembered_rule_covers_any_content_and_the_question_says_so() {
    let bench = Bench::new("mode: default\n");
    write(&bench, "run.sh", FIRST);
    let served = bench.serve();
    let call = ask(&served, &bench.home, "sh run.sh");
    let question = bench.pending(1).remove(0);
    let shown = bench
        .run(&["approvals", "show", id(&question)])
        .expect(0)
        .stdout;
    assert!(shown.contains("covers any content of `run.sh`"), "{shown}");
    let digest = question["programs"][0]["content"]["sha256"]
        .as_str()
        .unwrap();
    assert!(shown.contains(&digest[..12]), "{shown}");
    bench
        .run(&["approvals", "allow", id(&question), "--remember"])
        .expect(0);
    assert_eq!(call.join().unwrap()["outcome"], "succeeded");
    write(&bench, "run.sh", OTHER);
    assert_eq!(
        ask(&served, &bench.home, "sh run.sh").join().unwrap()["outcome"],
        "succeeded",
        "unasked"
    );
    assert_eq!(bench.home.read("out.txt"), "one\ntwo\n");
    served.stop();
}

#[test]
fn an_answer_with_other_arguments_reports_the_change() {
    let bench = Bench::new("mode: default\n");
    write(&bench, "run.sh", FIRST);
    write(&bench, "other.sh", OTHER);
    let served = bench.serve();
    let call = ask(&served, &bench.home, "sh run.sh");
    let id = bench.only();
    let other = json!({ "command": "sh other.sh \u{202e}" }).to_string();
    let told = bench
        .run(&["approvals", "allow", &id, "--arguments", &other])
        .expect(0)
        .stdout;
    let change = r#"command: "sh run.sh" -> "sh other.sh \u{202e}""#;
    assert!(told.contains(change), "{told}");
    assert_eq!(call.join().unwrap()["outcome"], "succeeded");
    assert_eq!(bench.home.read("out.txt"), "two\n");
    let story = bench.run(&["journal", "show", &id]).expect(0).stdout;
    assert!(
        story.contains(change) && story.contains("arguments changed: command"),
        "{story}"
    );
    assert!(!story.contains('\u{202e}'), "{story:?}");

    let call = ask(&served, &bench.home, "sh run.sh");
    let id = bench.only();
    let mut socket = served.socket(&bench.home);
    let verdict = json!({ "decision": "allow", "arguments": { "command": "sh other.sh", "background": false } });
    let decided = socket
        .post(&format!("/approvals/{id}"), &verdict.to_string())
        .unwrap()
        .json();
    let expected = json!([
        { "field": "background", "after": "false" },
        { "field": "command", "before": "\"sh run.sh\"", "after": "\"sh other.sh\"" },
    ]);
    assert_eq!(
        decided["decided"]["changed_arguments"], expected,
        "{decided}"
    );
    assert_eq!(call.join().unwrap()["outcome"], "succeeded");
    served.stop();
}

#[test]
fn nothing_hides_in_a_question_on_a_terminal() {
    let bench = Bench::new("mode: default\n");
    write(&bench, "a\u{202e}hs.sh", FIRST);
    let served = bench.serve();
    let call = ask(&served, &bench.home, "sh 'a\u{202e}hs.sh' \u{200b}x");
    let question = bench.pending(1).remove(0);
    for words in [&["approvals"][..], &["approvals", "show", id(&question)]] {
        let shown = bench.run(words).expect(0).stdout;
        assert!(!shown.contains(['\u{202e}', '\u{200b}']), "{shown:?}");
        assert!(shown.contains("\\u{202e}"), "{shown}");
    }
    for part in ["summary", "commands", "decision", "programs"] {
        assert!(
            !question[part]
                .to_string()
                .contains(['\u{202e}', '\u{200b}']),
            "{part}: {question:#}"
        );
    }
    assert!(
        question["arguments"].to_string().contains('\u{202e}'),
        "the arguments are as they are"
    );
    let denied = bench
        .run(&["approvals", "deny", id(&question)])
        .expect(0)
        .stdout;
    assert!(!denied.contains('\u{202e}'), "{denied:?}");
    call.join().unwrap();
    served.stop();
}
