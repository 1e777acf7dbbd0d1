//! Questions and answers with the real binary: an agent asks over HTTP, a person answers on the command line, and the
//! record tells the whole story, also when the host dies in between.

mod crashes;
mod files;
mod scopes;
mod waiting;

use std::{
    path::PathBuf,
    process::Command,
    thread::{self, JoinHandle},
    time::Duration,
};

use serde_json::{Value, json};

use super::{
    home::{Home, Ran},
    http::Http,
    served::Served,
};

/// A home whose host can run commands, with a trusted configuration beside the workspace.
pub(super) struct Bench {
    pub(super) home: Home,
    config: PathBuf,
}

impl Bench {
    pub(super) fn new(config: &str) -> Self {
        let home = Home::new();
        let path = home.workspace().parent().unwrap().join("trusted.yaml");
        std::fs::write(&path, config).unwrap();
        Self { home, config: path }
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = self.home.command(words);
        command
            .arg("--config")
            .arg(&self.config)
            .env("PATH", std::env::var_os("PATH").unwrap());
        command
    }

    pub(super) fn serve(&self) -> Served {
        Served::spawn(&mut self.command(&["serve", "--http", "127.0.0.1:0"]))
    }

    pub(super) fn run(&self, words: &[&str]) -> Ran {
        Ran::from(self.command(words).output().unwrap())
    }

    /// The questions, once there are `count`.
    pub(super) fn pending(&self, count: usize) -> Vec<Value> {
        for _ in 0..1_000 {
            let listed = self.run(&["approvals", "--json"]).expect(0).json();
            let questions = listed["approvals"].as_array().unwrap().clone();
            if questions.len() == count {
                return questions;
            }
            thread::sleep(Duration::from_millis(10));
        }
        panic!("there are never {count} questions");
    }

    /// The id of the only question.
    pub(super) fn only(&self) -> String {
        self.pending(1)[0]["ask_id"].as_str().unwrap().to_owned()
    }
}

/// A call that an agent waits for.
pub(super) fn ask(served: &Served, home: &Home, command: &str) -> JoinHandle<Value> {
    let mut http = served.connect(home);
    let body = json!({ "command": command }).to_string();
    thread::spawn(move || http.post("/tools/shell/call", &body).unwrap().json())
}

/// Asks until the call has ended, and gives its result.
pub(super) fn ended(http: &mut Http, id: &str) -> Value {
    let mut told = Value::Null;
    for _ in 0..2_000 {
        told = http.get(&format!("/invocations/{id}")).unwrap().json();
        if told["status"] == "ended" {
            return told["result"].clone();
        }
        thread::sleep(Duration::from_millis(10));
    }
    panic!("{id} never ended: {told}");
}

fn git(folder: &std::path::Path, words: &[&str]) -> String {
    let output = Command::new("git")
        .current_dir(folder)
        .args([
            "-c",
            "user.name=Test",
            "-c",
            "user.email=t@example.org",
            "-c",
            "init.defaultBranch=main",
        ])
        .args(words)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "git {words:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn an_operator_edits_the_branch_of_a_push_and_the_record_tells_it_all() {
    let config = "rules:\n  - { rule: 'ask shell(git push *)', reason: pushes are looked at }\n\
                  roots: [{ path: remote.git, access: write }]\nprotect: { git: false }\n";
    let bench = Bench::new(config);
    let home = &bench.home;
    let workspace = bench.home.workspace();
    let remote = workspace.parent().unwrap().join("remote.git");
    git(
        workspace.parent().unwrap(),
        &["init", "-q", "--bare", "remote.git"],
    );
    git(&workspace, &["init", "-q"]);
    git(
        &workspace,
        &["commit", "-q", "--allow-empty", "-m", "first"],
    );
    git(
        &workspace,
        &["remote", "add", "origin", remote.to_str().unwrap()],
    );
    let served = bench.serve();
    let call = ask(&served, home, "git push origin main:mian");

    let id = bench.only();
    let short = &id[id.len() - 8..];
    let listed = bench.run(&["approvals"]).expect(0);
    assert!(
        listed.stdout.contains(short) && listed.stdout.contains("git push origin main:mian"),
        "{}",
        listed.stdout
    );
    let shown = bench.run(&["approvals", "show", short]).expect(0);
    for part in [
        "agent (agent)",
        "git push origin main:mian",
        "pushes are looked at",
        "trusted.yaml:2",
        "expires",
    ] {
        assert!(
            shown.stdout.contains(part),
            "`{part}` is missing in\n{}",
            shown.stdout
        );
    }
    let editor = workspace.parent().unwrap().join("editor.sh");
    std::fs::write(&editor, "sed -i s/mian/main/ \"$1\"\n").unwrap();
    let editor = format!("sh {}", editor.display());
    let edited = bench
        .command(&["approvals", "allow", short, "--edit"])
        .env("EDITOR", editor)
        .output()
        .unwrap();
    let edited = Ran::from(edited).expect(0);
    assert!(
        edited.stdout.contains("with the edited arguments"),
        "{}",
        edited.stdout
    );

    let result = call.join().unwrap();
    assert_eq!(result["outcome"], "succeeded", "{result}");
    assert_eq!(
        git(&remote, &["for-each-ref", "--format=%(refname)"]),
        "refs/heads/main\n"
    );
    let story = bench.run(&["journal", "show", &id]).expect(0).stdout;
    for part in [
        "git push origin main:mian",
        "asked",
        "pushes are looked at",
        "answered",
        "by local: allowed once",
        "arguments changed: command",
        "git push origin main:main",
        "(the approver)",
        "await_approval",
        "succeeded",
    ] {
        assert!(story.contains(part), "`{part}` is missing in\n{story}");
    }
    let kinds: Vec<String> = story
        .lines()
        .filter_map(|line| line.strip_prefix("record"))
        .filter_map(|rest| rest.split_whitespace().next().map(str::to_owned))
        .collect();
    assert_eq!(
        kinds.iter().filter(|kind| *kind == "asked").count(),
        1,
        "{kinds:?}"
    );
    assert!(
        bench
            .run(&["journal", "tail"])
            .expect(0)
            .stdout
            .contains("allowed by local")
    );
    served.stop();
}

#[test]
fn a_no_reaches_the_agent_with_its_reason() {
    let bench = Bench::new("mode: default\n");
    let served = bench.serve();
    let call = ask(&served, &bench.home, "echo ran > ran.txt");
    let id = bench.only();
    let denied = bench
        .run(&["approvals", "deny", &id, "--feedback", "ask me on Monday"])
        .expect(0);
    assert!(denied.stdout.contains("denied"), "{}", denied.stdout);
    let result = call.join().unwrap();
    assert_eq!(
        (&result["outcome"], &result["error"]["class"]),
        (&json!("denied"), &json!("approval_rejected"))
    );
    assert!(
        result["error"]["message"]
            .as_str()
            .unwrap()
            .contains("ask me on Monday"),
        "{result}"
    );
    assert_eq!(bench.home.try_read("ran.txt"), None);
    let story = bench.run(&["journal", "show", &id]).expect(0).stdout;
    assert!(
        story.contains("ask me on Monday") && story.contains("by local: denied"),
        "{story}"
    );
    for words in [["approvals", "allow", &id], ["approvals", "show", &id]] {
        let late = bench.run(&words).expect(1);
        assert!(late.stderr.contains("is not open"), "{}", late.stderr);
    }
}

#[test]
fn other_arguments_are_checked_and_ids_may_be_short() {
    let bench = Bench::new("mode: default\n");
    let served = bench.serve();
    let call = ask(&served, &bench.home, "echo one > one.txt");
    let id = bench.only();
    let short = &id[id.len() - 8..];
    let refused = bench
        .run(&[
            "approvals",
            "allow",
            short,
            "--arguments",
            r#"{"command":5}"#,
        ])
        .expect(1);
    assert!(
        refused.stderr.contains("the arguments do not fit"),
        "{}",
        refused.stderr
    );
    bench
        .run(&["approvals", "allow", short, "--arguments", "{"])
        .expect(2);
    bench.run(&["approvals", "allow", "zz", "--json"]).expect(2);
    bench
        .run(&["approvals", "allow", short, "--rule", "1"])
        .expect(2);
    bench
        .run(&["approvals", "allow", short, "--session", "--remember"])
        .expect(2);
    bench
        .run(&["approvals", "allow", short, "--for", "30d"])
        .expect(2);
    let unchanged = bench
        .command(&["approvals", "allow", short, "--edit"])
        .env("EDITOR", "true")
        .output()
        .unwrap();
    assert!(Ran::from(unchanged).expect(1).stderr.contains("stays open"));
    let broken = bench
        .command(&["approvals", "allow", short, "--edit"])
        .env("VISUAL", "false")
        .output()
        .unwrap();
    assert!(
        Ran::from(broken)
            .expect(1)
            .stderr
            .contains("so the question stays open")
    );
    assert_eq!(bench.only(), id, "none of these was an answer");
    let other = r#"{"command":"echo two > two.txt"}"#;
    let decided = bench
        .run(&[
            "approvals",
            "allow",
            &id[..13],
            "--arguments",
            other,
            "--json",
        ])
        .expect(0)
        .json();
    assert_eq!(decided["decided"]["allowed"], true, "{decided}");
    assert_eq!(call.join().unwrap()["outcome"], "succeeded");
    assert_eq!(
        (bench.home.try_read("one.txt"), bench.home.read("two.txt")),
        (None, "two\n".to_owned())
    );
}

#[test]
fn without_a_host_there_is_nothing_to_answer_and_it_says_so() {
    let bench = Bench::new("mode: default\n");
    for words in [
        &["approvals"][..],
        &["approvals", "show", "01234567"],
        &["approvals", "deny", "01234567"],
    ] {
        let ran = bench.run(words).expect(1);
        assert!(
            ran.stderr.contains("no host runs") && ran.stderr.contains("toolpost serve"),
            "{}",
            ran.stderr
        );
    }
    assert_eq!(
        bench
            .run(&["approvals", "rules", "--json"])
            .expect(0)
            .json(),
        json!({ "rules": [] })
    );
    let served = bench.serve();
    let empty = bench.run(&["approvals"]).expect(0);
    assert_eq!(
        (
            empty.stdout.as_str(),
            empty.stderr.contains("no open questions")
        ),
        ("", true)
    );
    assert!(
        bench
            .run(&["approvals", "watch"])
            .expect(2)
            .stderr
            .contains("no terminal")
    );
    served.stop();
}

#[test]
fn no_answer_in_time_is_a_no_and_who_hangs_up_asks_no_more() {
    let bench = Bench::new("approvals: { timeout: 1s }\n");
    let served = bench.serve();
    assert!(
        served
            .banner
            .contains("rejected without an answer within 1s"),
        "{}",
        served.banner
    );
    let result = ask(&served, &bench.home, "echo ran > ran.txt")
        .join()
        .unwrap();
    assert_eq!(result["error"]["code"], "approval_expired", "{result}");
    served.stop();

    let bench = Bench::new("mode: default\n");
    let served = bench.serve();
    let mut http = served.connect(&bench.home);
    http.begin("/tools/shell/call", r#"{"command":"echo ran > ran.txt"}"#)
        .unwrap();
    let id = bench.only();
    drop(http);
    bench.pending(0);
    let story = bench.run(&["journal", "show", &id]).expect(0).stdout;
    assert!(story.contains("canceled"), "{story}");
    served.stop();
    assert_eq!(bench.home.try_read("ran.txt"), None);
}

#[test]
fn a_call_without_a_terminal_is_denied_and_beside_a_host_it_waits() {
    let bench = Bench::new("mode: default\n");
    let alone = bench
        .run(&["call", "write_file", "path=a", "content=b"])
        .expect(3);
    assert!(
        alone.stderr.contains("this host has no operator"),
        "{}",
        alone.stderr
    );
    let served = bench.serve();
    let call = bench
        .command(&["call", "write_file", "path=a", "content=b"])
        .spawn()
        .unwrap();
    let id = bench.only();
    bench.run(&["approvals", "allow", &id]).expect(0);
    let ran = Ran::from(call.wait_with_output().unwrap()).expect(0);
    let short = &id[id.len() - 8..];
    for part in [
        "waiting until",
        "operator's approval",
        &format!("`toolpost approvals allow {short}`"),
    ] {
        assert!(ran.stderr.contains(part), "{}", ran.stderr);
    }
    assert_eq!(bench.home.read("a"), "b");
    served.stop();
}
