//! Programs that misbehave: the call ends, the host is unharmed, and nothing of the program is left.

use std::time::Duration;

use serde_json::json;
use toolpost_model::{HookEvent, HookStanding, Outcome, Principal, SandboxProfile};
use toolpost_processes::HookDeclaration;

use super::{at, echo, failure, hook, last, shell, shop};
use crate::workshop::{PATIENCE, Tripwire};

#[tokio::test]
async fn output_without_end_is_a_failure_and_not_waited_for() {
    let endless = [
        ("yes", "it wrote more than 64 KiB to standard output"),
        ("yes >&2", "it wrote more than 64 KiB to standard error"),
        (
            "head -c 70000 /dev/zero",
            "it wrote more than 64 KiB to standard output",
        ),
    ];
    for (script, said) in endless {
        assert_eq!(failure(shell(script)).await, said, "{script}");
    }
    let (result, _) = echo(at(
        HookEvent::After,
        shell("head -c 60000 /dev/zero | tr '\\0' x"),
    ))
    .await;
    assert_eq!(result.outcome, Outcome::Succeeded, "what fits is taken");
    assert!(result.model_text().len() > 30_000);
}

#[tokio::test]
async fn output_that_is_no_text_is_a_failure() {
    for event in [HookEvent::Before, HookEvent::After] {
        let said = failure(at(event, shell("printf '\\377\\376'"))).await;
        assert_eq!(said, "its standard output is not UTF-8");
    }
    let said = failure(shell("printf '\\377' >&2; exit 2")).await;
    assert_eq!(said, "its standard error is not UTF-8");
}

#[tokio::test]
async fn a_program_need_not_read_what_it_is_told() {
    let large = "x".repeat(1 << 20);
    for script in ["exit 0", "exec 0<&-; sleep 0.1", "head -c 10 > /dev/null"] {
        let shop = shop([shell(script)]).await;
        let result = shop.call("echo", json!({ "message": large })).await;
        assert_eq!(
            result.outcome,
            Outcome::Succeeded,
            "{script}: {:?}",
            result.error
        );
    }
}

#[tokio::test]
async fn what_a_program_leaves_running_is_gone_and_not_waited_for() {
    let mut forks =
        shell("exec 9>wire; (sleep 1000 & sleep 1000 & wait) & setsid sleep 1000 & echo '{}'");
    forks.profile = SandboxProfile::WorkspaceWrite;
    let shop = shop([forks]).await;
    let wire = Tripwire::lay(&shop, "wire");
    let result = shop.call("echo", json!({ "message": "hello" })).await;
    assert_eq!(result.outcome, Outcome::Succeeded, "{result:#?}");
    assert_eq!(wire.sprung().await, "");
}

#[tokio::test]
async fn a_program_that_hangs_is_ended_with_everything_it_started() {
    for standing in [HookStanding::Guard, HookStanding::Observer] {
        let mut hangs = shell(
            "exec 9>wire; trap '' TERM INT; sleep 1000 & echo started >&9; while :; do sleep 1; done",
        );
        hangs.profile = SandboxProfile::WorkspaceWrite;
        // Long enough that it starts on a slow machine.
        hangs.time_limit = Some(Duration::from_secs(3));
        hangs.standing = standing;
        let shop = shop([hangs]).await;
        let wire = Tripwire::lay(&shop, "wire");
        let result = shop.call("echo", json!({ "message": "hello" })).await;
        let expected = if standing == HookStanding::Guard {
            Outcome::Denied
        } else {
            Outcome::Succeeded
        };
        assert_eq!(result.outcome, expected);
        assert_eq!(
            last(&shop).await["hooks"][0]["error"],
            "it did not answer within 3000 ms"
        );
        assert_eq!(wire.sprung().await, "started\n");
    }
}

#[tokio::test]
async fn a_cancel_ends_the_program_and_the_call_never_starts() {
    let mut hangs = shell("exec 9>wire; echo started >&9; sleep 1000");
    hangs.profile = SandboxProfile::WorkspaceWrite;
    let shop = shop([hangs]).await;
    let path = shop.path("wire");
    let handle = {
        assert!(
            std::process::Command::new("mkfifo")
                .arg(&path)
                .status()
                .unwrap()
                .success()
        );
        shop.host
            .host
            .start(shop.host.request("echo", json!({ "message": "hello" })))
            .await
    };
    let (said, hears) = std::sync::mpsc::channel();
    let reader = std::thread::spawn(move || {
        use std::io::Read as _;
        let mut pipe = std::fs::File::open(path).unwrap();
        let mut first = [0; 8];
        pipe.read_exact(&mut first).unwrap();
        said.send(()).unwrap();
        let mut rest = String::new();
        pipe.read_to_string(&mut rest).unwrap();
    });
    tokio::task::spawn_blocking(move || hears.recv_timeout(PATIENCE).unwrap())
        .await
        .unwrap();
    assert!(
        shop.host
            .host
            .cancel(handle.invocation_id(), &Principal::agent("test"))
    );
    let answer = tokio::time::timeout(PATIENCE, handle.answer())
        .await
        .unwrap();
    assert_eq!(answer.result().outcome, Outcome::Canceled);
    let gone = tokio::task::spawn_blocking(move || reader.join().unwrap());
    tokio::time::timeout(PATIENCE, gone)
        .await
        .expect("nothing of it is left")
        .unwrap();
}

#[tokio::test]
async fn many_calls_at_once_each_have_their_own_program() {
    let shop = shop([hook(&["sh", "-c", "grep -q odd && exit 2; exit 0"])]).await;
    let mut calls = Vec::new();
    for n in 0..16 {
        let message = if n % 2 == 0 { "even" } else { "odd" };
        calls.push(
            shop.host
                .host
                .start(shop.host.request("echo", json!({ "message": message })))
                .await,
        );
    }
    for (n, call) in calls.into_iter().enumerate() {
        let answer = tokio::time::timeout(PATIENCE, call.answer()).await.unwrap();
        let expected = if n % 2 == 0 {
            Outcome::Succeeded
        } else {
            Outcome::Denied
        };
        assert_eq!(
            answer.result().outcome,
            expected,
            "{n}: {:#?}",
            answer.result()
        );
    }
}

#[test]
fn a_declaration_that_cannot_work_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let check = |hook: HookDeclaration, said: &str| {
        let parts = toolpost_processes::HookParts {
            workspace: std::sync::Arc::new(
                toolpost_processes::Workspace::open(folder.path()).unwrap(),
            ),
            launcher: toolpost_sandbox::Launcher::new(crate::workshop::program()),
            children: toolpost_processes::ChildSettings::default(),
            hooks: vec![hook],
        };
        let error = toolpost_processes::command_hooks(parts)
            .map(|_| ())
            .unwrap_err();
        assert_eq!(error.to_string(), said);
    };
    check(hook(&[]), "hook `try`: its command is empty");
    check(hook(&[" "]), "hook `try`: its command is empty");
    check(
        HookDeclaration {
            events: Vec::new(),
            ..shell("")
        },
        "hook `try`: it has no event",
    );
    let variable = [("LD_PRELOAD".to_owned(), "x".to_owned())].into();
    let said = "hook `try`: `LD_PRELOAD` is never passed to a process: it can change which code runs, or it looks like \
                a credential";
    check(
        HookDeclaration {
            environment: variable,
            ..shell("")
        },
        said,
    );
}
