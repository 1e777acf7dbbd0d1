//! The shell and its processes through a whole host, with real processes in the real sandbox.

mod background;
mod created;
mod kept;
mod output;
mod reading;
mod sandbox;
mod stopping;

use serde_json::json;
use toolpost_model::{ErrorClass, Outcome, SandboxProfile};

use crate::workshop::{Workshop, facts, text};

#[tokio::test]
async fn a_command_that_ran_is_a_success_whatever_it_says() {
    let shop = Workshop::new().await;
    let check = async |command: &str, expected: &str, code: i32| {
        let result = shop.shell(command).await;
        assert_eq!(
            (text(&result), result.exit_code),
            (expected, Some(code)),
            "{command}"
        );
        assert_eq!(
            (result.outcome, result.is_error),
            (Outcome::Succeeded, false)
        );
        assert_eq!(facts(&result)["exit_code"], code);
        assert_ne!(result.sandbox.unwrap().requested, SandboxProfile::None);
    };
    check("echo hello", "hello\n[exit code 0]", 0).await;
    check(
        "printf 'no line end'; exit 3",
        "no line end\n[exit code 3]",
        3,
    )
    .await;
    check("true", "[exit code 0]", 0).await;
    check(
        "echo out; echo err >&2; echo out",
        "out\nerr\nout\n[exit code 0]",
        0,
    )
    .await;
    check(
        "nothing-of-that-name",
        "bash: line 1: nothing-of-that-name: command not found\n[exit code 127]",
        127,
    )
    .await;
}

#[tokio::test]
async fn a_signal_is_told_by_number_and_name() {
    let shop = Workshop::new().await;
    let result = shop.shell("echo before; kill -9 $$").await;
    assert_eq!(text(&result), "before\n[killed by signal 9 (SIGKILL)]");
    assert_eq!(
        (&facts(&result)["signal"], result.exit_code),
        (&json!(9), None)
    );
}

#[tokio::test]
async fn what_people_do_in_a_shell_works() {
    let shop = Workshop::new().await;
    shop.file("a.txt", "b\na\nc\n");
    let check = async |command: &str, expected: &str| {
        let result = shop.shell(command).await;
        assert_eq!(
            text(&result),
            format!("{expected}[exit code 0]"),
            "{command}"
        );
    };
    check("sort a.txt | head -2 | tr a-z A-Z", "A\nB\n").await;
    check("cat <<'END'\n$HOME `x`\nEND\n", "$HOME `x`\n").await;
    check(
        "diff <(sort a.txt) <(printf 'a\\nb\\nc\\n') && echo same",
        "same\n",
    )
    .await;
    check("t=$(mktemp) && echo in > $t && cat $t && rm $t", "in\n").await;
    check("echo x > ~/f && cat ~/f", "x\n").await;
    check("mkdir -p d/e && cd d && echo new > e/f && cat e/f", "new\n").await;
    check("python3 -c 'print(6 * 7)'", "42\n").await;
    check(
        "for i in 1 2 3; do sleep 0.01 & done; wait; echo done",
        "done\n",
    )
    .await;
    check("git init -q g && cd g && git -c user.name=n -c user.email=e commit -q --allow-empty -m m && git log --format=%s", "m\n").await;
    assert_eq!(
        std::fs::read_to_string(shop.path("d/e/f")).unwrap(),
        "new\n"
    );
}

#[tokio::test]
async fn nothing_but_files_lasts_and_input_is_closed() {
    let shop = Workshop::new().await;
    shop.shell("export KEPT=1; cd /; echo x > /tmp/left").await;
    let result = shop
        .shell("echo \"[$KEPT]\"; pwd; ls /tmp/left 2>&1 | grep -c 'No such'; cat; echo read")
        .await;
    assert_eq!(
        text(&result),
        format!("[]\n{}\n1\nread\n[exit code 0]", shop.path("").display()).replace("/\n", "\n")
    );
}

#[tokio::test]
async fn the_environment_is_clean_and_can_be_added_to() {
    let shop = Workshop::new().await;
    let arguments = json!({ "command": "env | cut -d= -f1 | sort | tr '\\n' ' '; echo $GREETING", "environment": { "GREETING": "hi there" } });
    let result = shop.call("shell", arguments).await;
    let names = text(&result).lines().next().unwrap();
    assert_eq!(
        names,
        "GREETING HOME NO_COLOR PATH PWD SHLVL TERM TMPDIR TRACEPARENT _ hi there"
    );
    for name in ["LD_PRELOAD", "API_TOKEN", "a b"] {
        let result = shop
            .call(
                "shell",
                json!({ "command": "true", "environment": { name: "x" } }),
            )
            .await;
        let error = result.error.unwrap();
        assert_eq!(error.class, ErrorClass::InvalidArguments, "{name}");
        assert!(
            error.message.contains(&format!("`{name}`")),
            "{}",
            error.message
        );
    }
}

#[tokio::test]
async fn the_working_directory_stays_inside_the_workspace() {
    let shop = Workshop::new().await;
    shop.file("sub/deep/x", "");
    std::os::unix::fs::symlink("sub/deep", shop.path("link")).unwrap();
    std::os::unix::fs::symlink("/etc", shop.path("out")).unwrap();
    let run = async |directory: &str| {
        shop.call(
            "shell",
            json!({ "command": "pwd", "working_directory": directory }),
        )
        .await
    };
    let deep = format!("{}\n[exit code 0]", shop.path("sub/deep").display());
    assert_eq!(text(&run("sub/deep").await), deep);
    assert_eq!(text(&run("link").await), deep);
    let check = async |directory: &str, class: ErrorClass, words: &str| {
        let error = run(directory).await.error.unwrap();
        assert_eq!(error.class, class, "{directory}: {}", error.message);
        assert!(
            error.message.contains(words),
            "{directory}: {}",
            error.message
        );
    };
    check("../", ErrorClass::SandboxViolation, "leaves the workspace").await;
    check(
        "/etc",
        ErrorClass::SandboxViolation,
        "outside the workspace",
    )
    .await;
    check("out", ErrorClass::SandboxViolation, "leaves the workspace").await;
    check("none", ErrorClass::ExecutionFailed, "does not exist").await;
    check(
        "sub/deep/x",
        ErrorClass::ExecutionFailed,
        "is not a directory",
    )
    .await;
}

#[tokio::test]
async fn commands_that_cannot_work_are_refused_before_anything_runs() {
    let shop = Workshop::new().await;
    let check = async |arguments: serde_json::Value, words: &str| {
        let error = shop.call("shell", arguments).await.error.unwrap();
        assert_eq!(
            error.class,
            ErrorClass::InvalidArguments,
            "{}",
            error.message
        );
        assert!(error.message.contains(words), "{}", error.message);
    };
    check(json!({ "command": " \n" }), "is empty").await;
    check(json!({ "command": "a\u{0}b" }), "NUL").await;
    check(json!({ "command": "x".repeat(128 * 1024) }), "131072 bytes").await;
    check(
        json!({ "command": "true", "timeout_seconds": 0 }),
        "timeout_seconds",
    )
    .await;
    check(
        json!({ "command": "true", "background": true, "timeout_seconds": 5 }),
        "process_kill",
    )
    .await;
    check(json!({ "command": "true", "shell": "zsh" }), "shell").await;
}

#[tokio::test]
async fn a_machine_without_bash_is_told_what_is_missing() {
    let shop = Workshop::planned(|plan| {
        let variables = [("PATH".to_owned(), "/nowhere".to_owned())].into();
        let host = toolpost_processes::HostEnvironment {
            variables,
            home: None,
        };
        plan.children.environment = toolpost_processes::ChildEnvironment::new(&host, &[], &[]);
    })
    .await;
    let error = shop.shell("true").await.error.unwrap();
    assert_eq!(
        (error.class, error.code.as_ref()),
        (ErrorClass::SetupRequired, "program_missing")
    );
    assert!(
        error.message.contains("`bash`") && error.hint.unwrap().contains("requires bash"),
        "{}",
        error.message
    );
}
