//! What programs are told, and what their exit codes and answers do.

use serde_json::{Value, json};
use toolpost_core::{HookScope, PathBaseFolders};
use toolpost_model::{ErrorClass, HookEvent, HookStanding, Outcome, SandboxProfile};

use super::{at, echo, failure, hook, last, shell, shop};
use crate::workshop::text;

#[tokio::test]
async fn a_program_reads_the_call_and_later_the_result_as_one_line_of_json() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().canonicalize().unwrap();
    let mut keep = hook(&["sh", "-c", "cat >> \"$0/seen\"", place.to_str().unwrap()]);
    keep.events = vec![HookEvent::Before, HookEvent::After, HookEvent::Failure];
    keep.writable = vec![place.clone()];
    let shop = shop([keep]).await;
    let result = shop
        .call("echo", json!({ "message": "hello\nthere" }))
        .await;
    assert_eq!(result.outcome, Outcome::Succeeded, "{result:#?}");
    shop.call("read_file", json!({ "path": "missing" })).await;
    let seen = std::fs::read_to_string(place.join("seen")).unwrap();
    let lines: Vec<Value> = seen
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines.len(), 4, "{seen}");
    let events: Vec<&str> = lines
        .iter()
        .filter_map(|line| line["event"].as_str())
        .collect();
    assert_eq!(events, ["before", "after", "before", "failure"]);
    let expected = json!({
        "event": "before", "invocation_id": result.invocation_id, "session_id": shop.host.session.id(),
        "principal": { "name": "test", "role": "agent" }, "tool": { "id": "host.echo", "name": "echo" },
        "arguments": { "message": "hello\nthere" },
    });
    assert_eq!(lines[0], expected);
    assert_eq!(lines[1]["result"]["outcome"], "succeeded");
    assert_eq!(lines[1]["result"]["content"][0]["text"], "hello\nthere");
    assert_eq!(
        (&lines[3]["result"]["outcome"], &lines[3]["arguments"]),
        (&json!("failed"), &json!({ "path": "missing" }))
    );
}

#[tokio::test]
async fn exit_codes_mean_what_they_mean_elsewhere() {
    let (result, body) = echo(shell("echo chatter >&2")).await;
    assert_eq!(
        (result.outcome, text(&result)),
        (Outcome::Succeeded, "hello")
    );
    assert!(
        body["hooks"][0]["error"].is_null() && body["hooks"][0]["did"].is_null(),
        "{body:#}"
    );

    let (result, body) = echo(shell("echo no such luck >&2; exit 2")).await;
    assert_eq!(
        (result.outcome, result.error_class()),
        (Outcome::Denied, Some(ErrorClass::HookBlocked))
    );
    assert_eq!(
        result.error.unwrap().message,
        "the hook `try` stopped the call: no such luck"
    );
    assert_eq!(body["hooks"][0]["did"], json!(["stopped"]));

    let (result, _) = echo(at(HookEvent::After, shell("echo look twice >&2; exit 2"))).await;
    assert_eq!(result.model_text(), "hello\n[hook try] look twice");

    assert_eq!(
        failure(shell("echo oops >&2; exit 1")).await,
        "it ended with exit code 1: oops"
    );
    assert_eq!(failure(shell("exit 3")).await, "it ended with exit code 3");
    assert_eq!(
        failure(shell("kill -9 $$")).await,
        "it was ended by signal 9"
    );
    let missing = failure(hook(&["no-such-program"])).await;
    assert!(
        missing.starts_with("it did not start: ") && missing.contains("no-such-program"),
        "{missing}"
    );
}

#[tokio::test]
async fn a_failure_counts_as_the_standing_says() {
    for (standing, class) in [
        (HookStanding::Guard, Some(ErrorClass::HookFailed)),
        (HookStanding::Ordinary, Some(ErrorClass::PermissionDenied)),
        (HookStanding::Observer, None),
    ] {
        let mut broken = shell("exit 1");
        broken.standing = standing;
        let (result, body) = echo(broken).await;
        assert_eq!(result.error_class(), class, "{standing:?}");
        assert_eq!(body["hooks"][0]["standing"], json!(standing));
    }
}

#[tokio::test]
async fn a_python_program_changes_arguments_and_output() {
    let rewrite = r#"
import json, sys
call = json.load(sys.stdin)
call["arguments"]["message"] = call["arguments"]["message"].upper()
json.dump({"arguments": call["arguments"], "reason": "louder", "message": "made it loud"}, sys.stdout)
"#;
    let (result, body) = echo(hook(&["python3", "-c", rewrite])).await;
    assert_eq!(
        (result.outcome, text(&result)),
        (Outcome::Succeeded, "HELLO"),
        "{result:#?}"
    );
    let mut mutation = body["mutations"][0].clone();
    assert!(
        mutation
            .as_object_mut()
            .unwrap()
            .remove("at_us")
            .is_some_and(|at| at.is_u64())
    );
    assert_eq!(
        mutation,
        json!({
        "source_type": "hook", "source": "try", "changed_fields": ["message"], "reason": "louder" })
    );
    assert_eq!(
        body["hooks"][0]["did"],
        json!(["left_message", "changed_arguments"])
    );

    let replace = r#"
import json, sys
result = json.load(sys.stdin)["result"]
print(json.dumps({"output": result["content"][0]["text"].replace("l", "-"), "context": ["one", "two"]}))
"#;
    let (result, body) = echo(at(HookEvent::After, hook(&["python3", "-c", replace]))).await;
    assert_eq!(
        result.model_text(),
        "he--o\n[hook try] one\n[hook try] two",
        "{body:#}"
    );
    assert_eq!(body["output_mutations"][0]["source"], "try");
}

#[tokio::test]
async fn a_program_has_an_opinion_or_keeps_the_result() {
    let (result, body) = echo(shell(r#"echo '{"decision":"deny","reason":"it is late"}'"#)).await;
    assert_eq!(result.error_class(), Some(ErrorClass::PermissionDenied));
    assert_eq!(
        body["decision"]["reason"]["text"],
        "the hook `try`: it is late"
    );

    let keep = shell(r#"echo '{"continue":false,"reason":"it holds a key"}'"#);
    let (result, _) = echo(at(HookEvent::After, keep)).await;
    assert_eq!(
        (result.outcome, result.error_class()),
        (Outcome::Succeeded, Some(ErrorClass::HookBlocked))
    );
    assert!(!serde_json::to_string(&result).unwrap().contains("hello"));
}

#[tokio::test]
async fn only_calls_that_concern_it_start_the_program() {
    let mut choosy = shell("exit 2");
    choosy.concern = HookScope::with_tools(vec!["echo".parse().unwrap()])
        .when(
            "echo[/message = stop*]".parse().unwrap(),
            PathBaseFolders::default(),
        )
        .unwrap();
    let shop = shop([choosy]).await;
    assert_eq!(
        shop.call("echo", json!({ "message": "go" })).await.outcome,
        Outcome::Succeeded
    );
    assert!(last(&shop).await["hooks"].is_null());
    assert_eq!(
        shop.call("echo", json!({ "message": "stop it" }))
            .await
            .outcome,
        Outcome::Denied
    );
}

#[tokio::test]
async fn a_program_writes_only_where_it_may_and_sees_no_secret_of_the_environment() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().canonicalize().unwrap();
    let tried = format!(
        "cat > /dev/null; touch inside 2>/dev/null && echo inside >&2; touch {0}/outside 2>/dev/null && \
                         echo outside >&2; echo \"home=$HOME secret=$SECRET_TOKEN mine=$MINE\" >&2; exit 2",
        place.display()
    );
    let check = async |change: &dyn Fn(&mut toolpost_processes::HookDeclaration),
                       expected: &[&str]| {
        let _ = std::fs::remove_file(place.join("outside"));
        let mut hook = shell(&tried);
        hook.environment = [("MINE".to_owned(), "1".to_owned())].into();
        change(&mut hook);
        let shop = shop([hook]).await;
        let result = shop.call("echo", json!({ "message": "hello" })).await;
        let said = result.error.unwrap().message;
        let wrote: Vec<&str> = ["inside", "outside"]
            .into_iter()
            .filter(|word| {
                said.contains(&format!(" {word}\n")) || said.contains(&format!("\n{word}\n"))
            })
            .collect();
        assert_eq!(wrote, expected, "{said}");
        assert!(said.contains("home=/tmp/home secret= mine=1"), "{said}");
        assert_eq!(shop.path("inside").exists(), expected.contains(&"inside"));
    };
    check(&|_| {}, &[]).await;
    check(&|hook| hook.writable = vec![place.clone()], &["outside"]).await;
    check(
        &|hook| hook.profile = SandboxProfile::WorkspaceWrite,
        &["inside"],
    )
    .await;
}
