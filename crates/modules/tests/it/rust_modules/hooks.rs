//! Hooks of modules among the host's: what each answer does to a call, and what each failure means.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use serde_json::{Map, Value, json};
use toolpost_amplifier::{
    Coordinator, HookFailure, HookHandler, HookResult, ModuleId, MountError, MountReturn,
    ToolResult, UnfitAnswer,
};
use toolpost_core::CallRequest;
use toolpost_model::{
    BoxFuture, ErrorClass, HookStanding, ModelInput, Outcome, Principal, ResultContent,
    SurfaceRequest,
};
use toolpost_modules::{ModuleStandings, RustModule, RustModules};
use toolpost_testkit::{MockNativeTool, TestHost, amplifier};

use super::{handling, set};

type Answer = Result<HookResult, HookFailure>;

fn changed(data: &Value) -> HookResult {
    HookResult::modify(data.as_object().unwrap().clone())
}

/// A tool that takes one number, in a host with these modules.
async fn host(modules: &RustModules) -> (TestHost, MockNativeTool) {
    let schema = json!({ "type": "object", "properties": { "n": { "type": "integer" } }, "required": ["n"] });
    let tool = MockNativeTool::named("test.act")
        .output("apples")
        .schema(schema);
    let own = tool.clone();
    (
        TestHost::build(|builder| modules.join(builder).tool(own)).await,
        tool,
    )
}

/// A host with a module that has one handler.
async fn hooked(
    event: &'static str,
    says: impl Fn(&Value) -> Answer + Send + Sync + Clone + 'static,
) -> (TestHost, MockNativeTool) {
    host(&set(vec![RustModule::hook(
        "hooks-test",
        handling(event, says),
    )]))
    .await
}

async fn last(host: &TestHost) -> Value {
    serde_json::from_str(&host.call_records().await.last().unwrap().record.body).unwrap()
}

#[tokio::test]
async fn a_changed_input_is_checked_used_and_on_record() {
    let (host, tool) = hooked("tool:pre", |data| {
        assert_eq!(data["tool_name"], "act");
        Ok(changed(
            &json!({ "tool_input": { "n": data["tool_input"]["n"].as_i64().unwrap() + 1 } }),
        ))
    })
    .await;
    assert_eq!(
        host.call("act", json!({ "n": 1 })).await.outcome,
        Outcome::Succeeded
    );
    assert_eq!(tool.inputs(), [json!({ "n": 2 })]);
    let record = last(&host).await;
    assert_eq!(record["mutations"][0]["source"], "rust:pre");
    assert_eq!(record["mutations"][0]["changed_fields"], json!(["n"]));

    let (host, tool) = hooked("tool:pre", |_| {
        Ok(changed(&json!({ "tool_input": { "n": "two" } })))
    })
    .await;
    let result = host.call("act", json!({ "n": 1 })).await;
    assert_eq!(result.error_class(), Some(ErrorClass::InvalidArguments));
    assert_eq!(tool.call_count(), 0);
}

#[tokio::test]
async fn a_no_stops_the_call_and_a_question_needs_a_person() {
    let (host, tool) = hooked("tool:pre", |_| Ok(HookResult::deny("not on Sundays"))).await;
    let result = host.call("act", json!({ "n": 1 })).await;
    assert_eq!(result.error_class(), Some(ErrorClass::HookBlocked));
    assert!(
        result.model_text().contains("not on Sundays"),
        "{}",
        result.model_text()
    );

    let asks = |_: &Value| {
        let mut answer = HookResult::ask_user("is it Sunday?");
        answer.data = changed(&json!({ "tool_input": { "n": 7 } })).data;
        Ok(answer)
    };
    let (asking, other) = hooked("tool:pre", asks).await;
    let result = asking.call("act", json!({ "n": 1 })).await;
    // Nobody is there to be asked.
    assert_eq!(result.error_class(), Some(ErrorClass::PermissionDenied));
    assert!(
        result.model_text().contains("is it Sunday?"),
        "{}",
        result.model_text()
    );
    assert_eq!(
        last(&asking).await["mutations"][0]["changed_fields"],
        json!(["n"]),
        "the change survives"
    );
    assert_eq!((tool.call_count(), other.call_count()), (0, 0));
}

#[tokio::test]
async fn a_word_for_the_model_comes_with_the_result_and_beside_a_change() {
    let says = |_: &Value| {
        let mut answer = HookResult::inject_context("mind the gap").with_message("told it");
        answer.data = changed(&json!({ "tool_input": { "n": 5 } })).data;
        Ok(answer)
    };
    let (host, tool) = hooked("tool:pre", says).await;
    let result = host.call("act", json!({ "n": 1 })).await;
    assert_eq!(
        result.content,
        [
            ResultContent::text("apples"),
            ResultContent::text("[hook rust:pre] mind the gap")
        ]
    );
    assert_eq!(tool.inputs(), [json!({ "n": 5 })]);
    assert_eq!(last(&host).await["hooks"][0]["message"], "handler: told it");
}

#[tokio::test]
async fn a_changed_result_is_what_the_model_sees() {
    let (host, _) = hooked("tool:post", |data| {
        let result = &data["result"];
        assert_eq!(
            (&result["success"], &result["output"]),
            (&json!(true), &json!("apples"))
        );
        assert!(data["duration_ms"].is_u64());
        Ok(changed(
            &json!({ "result": { "success": true, "output": { "rows": 3 } } }),
        ))
    })
    .await;
    let result = host.call("act", json!({ "n": 1 })).await;
    assert_eq!(result.model_text(), r#"{"rows": 3}"#);
    assert_eq!(result.structured_content, Some(json!({ "rows": 3 })));
    assert_eq!(
        last(&host).await["output_mutations"][0]["source"],
        "rust:post"
    );

    let (host, _) = hooked("tool:post", |_| Ok(HookResult::deny("confidential"))).await;
    let result = host.call("act", json!({ "n": 1 })).await;
    assert_eq!(result.error_class(), Some(ErrorClass::HookBlocked));
    assert!(!result.model_text().contains("apples"));

    let (host, _) = hooked("tool:post", |_| Ok(HookResult::ask_user("may it be seen?"))).await;
    let result = host.call("act", json!({ "n": 1 })).await;
    assert!(
        result.model_text().contains("may it be seen?") && !result.model_text().contains("apples")
    );
}

#[tokio::test]
async fn images_survive_a_hook_that_was_not_shown_them() {
    let picture = toolpost_amplifier::ContentBlock::image("image/png", b"hi").unwrap();
    let drawing = ToolResult::success("drawn").with_content(vec![picture]);
    let tool = amplifier::MockTool::new("draw", "").answering(Ok(drawing));
    let post = handling("tool:post", |data| {
        let mut result = data["result"].clone();
        assert!(!result.to_string().contains("aGk="), "{result}");
        result["output"] = json!("painted");
        Ok(changed(&json!({ "result": result })))
    });
    let modules = set(vec![
        RustModule::tool("tool-draw", super::offering([tool])),
        RustModule::hook("hooks-test", post),
    ]);
    let (host, _) = host(&modules).await;
    let result = host.call("draw", json!({})).await;
    let image = ResultContent::Image {
        data: "aGk=".to_owned(),
        media_type: "image/png".to_owned(),
    };
    assert_eq!(result.content, [ResultContent::text("painted"), image]);
}

/// What a call comes to whose only handler behaves so, where its module has a standing.
async fn fares(
    event: &'static str,
    standing: Option<HookStanding>,
    says: impl Fn(&Value) -> Answer + Send + Sync + Clone + 'static,
) -> (Option<ErrorClass>, Value) {
    let standings = standing.map(|standing| (ModuleId::new("hooks-test"), standing));
    let modules = set(vec![RustModule::hook("hooks-test", handling(event, says))]);
    let (host, _) = host(&modules.standings(ModuleStandings::new(standings))).await;
    let result = host.call("act", json!({ "n": 1 })).await;
    (result.error_class(), last(&host).await["hooks"].clone())
}

#[tokio::test]
async fn guards_fail_closed_and_observers_open() {
    use HookStanding::{Guard, Observer, Ordinary};
    let broken = |_: &Value| -> Answer { Err(HookFailure::broke("oops")) };
    let odd = |_: &Value| -> Answer { Err(UnfitAnswer("a text".to_owned()).into()) };
    let panics = |_: &Value| -> Answer { panic!("no") };
    let no = |_: &Value| -> Answer { Ok(HookResult::deny("no")) };
    let blocked = Some(ErrorClass::HookBlocked);
    let denied = Some(ErrorClass::PermissionDenied);
    assert_eq!(
        fares("tool:pre", None, broken).await.0,
        blocked,
        "a guard where nobody says otherwise"
    );
    assert_eq!(fares("tool:pre", Some(Guard), broken).await.0, blocked);
    assert_eq!(fares("tool:pre", Some(Guard), odd).await.0, blocked);
    assert_eq!(fares("tool:pre", Some(Guard), panics).await.0, blocked);
    assert_eq!(
        fares("tool:pre", Some(Ordinary), broken).await.0,
        denied,
        "a person would be asked"
    );
    assert_eq!(fares("tool:pre", Some(Ordinary), odd).await.0, blocked);
    for says in [broken, odd, panics, no] {
        let (class, runs) = fares("tool:pre", Some(Observer), says).await;
        assert_eq!(class, None);
        assert!(runs[0]["message"].is_string(), "it is noted: {runs}");
    }
    assert_eq!(fares("tool:post", None, broken).await.0, None);
    assert_eq!(fares("tool:post", Some(Guard), broken).await.0, blocked);
}

/// Never answers.
struct Stuck;

impl HookHandler for Stuck {
    fn handle<'a>(&'a self, _: &'a str, _: &'a Value) -> BoxFuture<'a, Answer> {
        Box::pin(std::future::pending())
    }
}

#[tokio::test]
async fn a_handler_that_does_not_answer_has_failed() {
    let stuck = |coordinator: Coordinator, _: Map<String, Value>| async move {
        coordinator.hooks().register("tool:pre", 0, "stuck", Stuck);
        Ok(MountReturn::Nothing)
    };
    for (standing, class) in [
        (HookStanding::Guard, Some(ErrorClass::HookBlocked)),
        (HookStanding::Observer, None),
    ] {
        let modules = set(vec![RustModule::hook("hooks-stuck", stuck)])
            .standings(ModuleStandings::new([(
                ModuleId::new("hooks-stuck"),
                standing,
            )]))
            .time_limits(Duration::from_millis(20), None);
        let (host, _) = host(&modules).await;
        let result = host.call("act", json!({ "n": 1 })).await;
        assert_eq!(result.error_class(), class);
        let record = last(&host).await.to_string();
        assert!(
            record.contains("`stuck` failed: it did not answer within 20 ms"),
            "{record}"
        );
    }
}

#[tokio::test]
async fn a_guard_that_is_not_there_lets_nothing_pass() {
    let absent = |_: Coordinator, _: Map<String, Value>| async { Err(MountError::other("no key")) };
    for (standing, class) in [
        (HookStanding::Guard, Some(ErrorClass::HookBlocked)),
        (HookStanding::Ordinary, Some(ErrorClass::PermissionDenied)),
        (HookStanding::Observer, None),
    ] {
        let modules =
            set(vec![RustModule::hook("hooks-absent", absent)]).standings(ModuleStandings::new([
                (ModuleId::new("hooks-absent"), standing),
            ]));
        let (host, _) = host(&modules).await;
        assert_eq!(
            host.call("act", json!({ "n": 1 })).await.error_class(),
            class,
            "{standing:?}"
        );
    }
}

#[tokio::test]
async fn a_hook_that_was_mounted_once_cannot_decline_in_a_later_session() {
    let mounts = Arc::new(AtomicUsize::new(0));
    let module = move |coordinator: Coordinator, _: Map<String, Value>| {
        let first = mounts.fetch_add(1, Ordering::SeqCst) == 0;
        async move {
            if first {
                let handler = |_: String, _: Value| std::future::ready(Ok(HookResult::default()));
                coordinator
                    .hooks()
                    .register("tool:pre", 0, "handler", handler);
            }
            Ok(MountReturn::Nothing)
        }
    };
    let (host, tool) = host(&set(vec![RustModule::hook("hooks-test", module)])).await;
    let outcomes = async {
        let mut outcomes = Vec::new();
        for _ in 0..2 {
            let session = host
                .host
                .open_session(Principal::agent("one"), SurfaceRequest::default())
                .await
                .unwrap();
            let input = ModelInput::value(json!({ "n": 1 }));
            let answer = host
                .host
                .call(CallRequest::new(session, "act", input))
                .await;
            outcomes.push(answer.result().model_text());
        }
        outcomes
    }
    .await;
    let denied = outcomes
        .iter()
        .filter(|text| text.contains("it declined, but was mounted"))
        .count();
    assert!(denied >= 1, "{outcomes:?}");
    assert_eq!(tool.call_count() + denied, 2);
}
