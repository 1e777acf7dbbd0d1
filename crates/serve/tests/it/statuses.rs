//! One status for each way a call can end: 200 where the tool ran, another where the host did not let it.

use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};
use toolpost_model::{
    BoxFuture, Declaration, EffectClass, EffectOrigin, ErrorClass, Lifecycle, LoadingStrategy,
    PermissionMode, PrincipalRole, Rule, RuleOrigin, SessionScope, ShareRules, Source, SourceError,
    SourceSession, ToolFailure, ToolSettings, ToolSurfaceSettings, WireNaming,
};
use toolpost_testkit::{MockNativeTool, MockToolGate};

use super::{
    client::Request,
    running::{Place, Running},
};

/// Calls, and compares status, outcome, class and code.
async fn check(server: &Running, tool: &str, arguments: Value, expected: (u16, &str, &str, &str)) {
    let answer = server.call(tool, arguments).await;
    let result = answer.json();
    let text = |pointer: &str| {
        result
            .pointer(pointer)
            .and_then(Value::as_str)
            .unwrap_or("none")
            .to_owned()
    };
    let outcome = text("/outcome");
    let class = text("/error/class");
    let code = text("/error/code");
    assert_eq!(
        (answer.status(), &*outcome, &*class, &*code),
        expected,
        "{tool}: {result}"
    );
    assert_eq!(result["is_error"], class != "none", "{tool}");
}

/// A source that lists a tool and cannot be opened.
struct Away;

impl Source for Away {
    fn name(&self) -> &str {
        "away"
    }

    fn origin(&self) -> EffectOrigin {
        EffectOrigin::HostCode
    }

    fn naming(&self) -> WireNaming {
        WireNaming::Bare
    }

    fn list(&self) -> BoxFuture<'_, Result<Vec<Declaration>, SourceError>> {
        let tool = Declaration::new("away.unreachable".parse().unwrap(), "Never answers");
        Box::pin(std::future::ready(Ok(vec![tool])))
    }

    fn open<'a>(
        &'a self,
        _: &'a SessionScope,
    ) -> BoxFuture<'a, Result<Arc<dyn SourceSession>, SourceError>> {
        let error = SourceError {
            origin: "away".to_owned(),
            reason: "nobody is there".to_owned(),
        };
        Box::pin(std::future::ready(Err(error)))
    }
}

fn tools() -> Vec<MockNativeTool> {
    let failing =
        |id: &str, class| MockNativeTool::named(id).failing(ToolFailure::of(class, "it broke"));
    let strict = json!({ "type": "object", "properties": { "count": { "type": "integer" } } });
    vec![
        MockNativeTool::named("ends.well").output("done"),
        failing("ends.failed", ErrorClass::ExecutionFailed),
        failing("ends.invalid", ErrorClass::InvalidArguments),
        failing("ends.too_large", ErrorClass::ResultTooLarge),
        failing("ends.canceled", ErrorClass::Canceled),
        MockNativeTool::named("ends.writes").class(EffectClass::Write),
        MockNativeTool::named("ends.runs").class(EffectClass::Execute),
        MockNativeTool::named("ends.ruled_out"),
        MockNativeTool::named("ends.off"),
        MockNativeTool::named("ends.strict").schema(strict),
        MockNativeTool::named("ends.deferred")
            .declare(|tool| tool.loading = LoadingStrategy::Deferred),
        MockNativeTool::named("ends.unset")
            .declare(|tool| tool.lifecycle = Lifecycle::RequiresSetup("install it".to_owned())),
    ]
}

#[tokio::test]
async fn the_status_says_whether_the_tool_ran() {
    let mut place = Place::new();
    place.config.mode = PermissionMode::Default;
    place.config.approvals.timeout = Duration::from_millis(10);
    place.config.rules = vec![Rule::parse("deny ruled_out", RuleOrigin::Cli, "test").unwrap()];
    place.config.tools.insert(
        "off".to_owned(),
        ToolSettings {
            surface: ToolSurfaceSettings {
                enabled: Some(false),
                ..ToolSurfaceSettings::default()
            },
            ..ToolSettings::default()
        },
    );
    let server = place
        .start_with(|builder| {
            tools()
                .into_iter()
                .fold(builder.source(Away), |builder, tool| builder.tool(tool))
        })
        .await;
    let empty = json!({});
    for (tool, arguments, expected) in [
        ("well", empty.clone(), (200, "succeeded", "none", "none")),
        (
            "failed",
            empty.clone(),
            (200, "failed", "execution_failed", "execution_failed"),
        ),
        (
            "too_large",
            empty.clone(),
            (200, "failed", "result_too_large", "result_too_large"),
        ),
        (
            "canceled",
            empty.clone(),
            (200, "canceled", "canceled", "canceled"),
        ),
        (
            "unreachable",
            empty.clone(),
            (
                200,
                "failed",
                "dependency_unavailable",
                "dependency_unavailable",
            ),
        ),
        (
            "invalid",
            empty.clone(),
            (422, "failed", "invalid_arguments", "invalid_arguments"),
        ),
        (
            "strict",
            json!({ "count": "two" }),
            (422, "failed", "invalid_arguments", "invalid_arguments"),
        ),
        (
            "read_file",
            json!({ "path": "../x" }),
            (422, "failed", "sandbox_violation", "sandbox_violation"),
        ),
        (
            "read_file",
            json!({ "path": "missing" }),
            (200, "failed", "execution_failed", "not_found"),
        ),
        (
            "writes",
            empty.clone(),
            (403, "denied", "approval_rejected", "approval_expired"),
        ),
        (
            "runs",
            empty.clone(),
            (403, "denied", "approval_rejected", "approval_expired"),
        ),
        (
            "ruled_out",
            empty.clone(),
            (403, "denied", "policy_blocked", "policy"),
        ),
        (
            "off",
            empty.clone(),
            (403, "denied", "policy_blocked", "disabled"),
        ),
        (
            "nothing",
            empty.clone(),
            (404, "failed", "unknown_tool", "unknown_tool"),
        ),
        (
            "deferred",
            empty.clone(),
            (409, "failed", "schema_not_loaded", "schema_not_loaded"),
        ),
        (
            "unset",
            empty.clone(),
            (503, "failed", "setup_required", "setup"),
        ),
    ] {
        check(&server, tool, arguments, expected).await;
    }
    let hint = server.call("wel", empty).await.json()["error"]["hint"].clone();
    assert_eq!(hint, "did you mean `well`?");
}

#[tokio::test]
async fn a_denial_tells_the_operator_what_to_change() {
    let mut place = Place::new();
    place.config.mode = PermissionMode::NeverAsk;
    let server = place.start().await;
    let denied = server
        .call("write_file", json!({ "path": "a", "content": "" }))
        .await
        .json();
    assert_eq!(denied["error"]["recoverability"], "operator");
    assert_eq!(
        denied["error"]["hint"],
        "start the host with `--allow files.write_file` or `--mode edits`"
    );
    assert!(!place.workspace().join("a").exists());
    let explained = Request::post("/tools/write_file/explain", r#"{"path":"a","content":""}"#);
    let explained = server.send(explained).await;
    assert_eq!(explained.status(), 200);
    assert_eq!(
        (&explained.json()["would_run"], &explained.json()["outcome"]),
        (&json!(false), &json!("denied"))
    );
}

#[tokio::test]
async fn a_full_queue_is_told_with_the_time_to_wait() {
    let gate = MockToolGate::new();
    let mut place = Place::without_native_tools();
    place.config.limits.concurrency = 1;
    place.config.limits.queue = 1;
    let tool = MockNativeTool::named("demo.wait").gate(&gate);
    let server = place.start_with(|builder| builder.tool(tool.clone())).await;
    let mut running = server.begin(Request::call("wait", &json!({}))).await;
    gate.entered(1).await;
    let mut queued = server
        .begin(Request::call("wait", &json!({})).streamed())
        .await;
    // The one event a queued call sends once it waits; only then is the queue full.
    assert_eq!(queued.head().await.status, 200);
    loop {
        let frame = queued.frame().await.expect("the stream goes on");
        if frame.event == "status" {
            break;
        }
    }
    let refused = server.call("wait", json!({})).await;
    assert_eq!(refused.status(), 429);
    assert_eq!(refused.head.header("retry-after"), Some("1"));
    assert_eq!(refused.json()["outcome"], "rejected");
    let message = refused.json()["error"]["message"].clone();
    assert!(
        message.as_str().unwrap().contains("`limits.queue`"),
        "{message}"
    );
    let health = server.send(Request::get("/health")).await.json();
    assert_eq!(
        (&health["running"], &health["queued"]),
        (&json!(1), &json!(1))
    );
    gate.let_through(2);
    assert_eq!(running.receive().await.status(), 200);
    assert_eq!(queued.frames().await.last().unwrap().event, "result");
    assert_eq!(tool.call_count(), 2);
}

#[tokio::test]
async fn nothing_runs_that_cannot_be_recorded() {
    let mut place = Place::without_native_tools();
    place.config.limits.journal = 256 << 10;
    // Otherwise the agent is refused for its share before the journal is full.
    place.config.limits.shares = ShareRules {
        share: 100,
        operator_reserve: 0,
    };
    let tool = MockNativeTool::named("demo.write").class(EffectClass::Write);
    let server = place.start_with(|builder| builder.tool(tool.clone())).await;
    let arguments = json!({ "text": "x".repeat(20_000) });
    let mut refused = None;
    for _ in 0..200 {
        let answer = server.call("write", arguments.clone()).await;
        if answer.status() != 200 {
            refused = Some(answer);
            break;
        }
    }
    let refused = refused.expect("a journal of 256 KiB gets full");
    assert_eq!(
        (refused.status(), refused.json()["error"]["class"].clone()),
        (503, json!("journal_unavailable"))
    );
    let ran = tool.call_count();
    for _ in 0..3 {
        let again = server.call("write", arguments.clone()).await;
        assert_eq!(
            (again.status(), again.json()["outcome"].clone()),
            (503, json!("rejected"))
        );
    }
    assert_eq!(
        tool.call_count(),
        ran,
        "what cannot be recorded does not run"
    );
    assert_eq!(
        server.send(Request::get("/health")).await.json()["status"],
        "journal_failing"
    );
    let session = server
        .send(Request::post(
            "/sessions",
            json!({ "task": "x".repeat(20_000) }).to_string(),
        ))
        .await;
    assert_eq!(
        (session.status(), session.code().as_str()),
        (503, "journal_unavailable")
    );
}

#[tokio::test]
async fn an_explanation_tells_where_a_large_result_is_kept_and_only_operators_the_folder() {
    let place = Place::new().with_token("olga", PrincipalRole::Operator, "olga-has-a-token");
    let server = place.start().await;
    let explain = Request::post("/tools/write_file/explain", r#"{"path":"a","content":""}"#);
    for (request, is_operator) in [
        (explain.clone(), false),
        (explain.bearer("olga-has-a-token"), true),
    ] {
        let told = server.send(request).await.json()["layers"]["persistence"].clone();
        assert_eq!(
            (&told["strategy"], &told["not_kept"]),
            (&json!("preview_and_persist"), &Value::Null),
            "{told}"
        );
        assert_eq!(
            (&told["preview_chars"], &told["kept"]["place"]),
            (&json!(10_000), &json!("folder")),
            "{told}"
        );
        assert_eq!(
            told["kept"]["read_with"],
            json!(["read_result", "search_result"])
        );
        let blobs = place.data_dir().join("blobs").display().to_string();
        let folder = told["kept"]["folder"].as_str();
        assert_eq!(folder, is_operator.then_some(blobs.as_str()), "{told}");
    }
    let reads = server
        .send(Request::post("/tools/read_file/explain", r#"{"path":"a"}"#))
        .await
        .json();
    let told = &reads["layers"]["persistence"];
    assert!(
        told["kept"].is_null() && told["not_kept"].is_string(),
        "{told}"
    );
}
