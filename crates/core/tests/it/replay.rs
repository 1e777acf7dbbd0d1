//! A recorded session, served again.

use std::{collections::HashMap, sync::Arc, time::Duration};

use serde_json::{Value, json};
use toolpost_core::{
    CallRequest, Cassette, CassetteError, Host, HostError, Recorder, ReplayMatching, ReplayOptions,
    ReplayPace, ToolFilter,
};
use toolpost_model::{
    EffectClass, ErrorClass, EventBody, FnTool, LoadingStrategy, ModelInput, NestedCall, Outcome,
    PermissionMode, Principal, SurfaceRequest, ToolCall, ToolFailure, ToolOutput, ToolProgress,
    ToolResult, ToolSettings, ToolSurfaceSettings,
};
use toolpost_testkit::{CallEventRecorder, MockNativeTool, TestHost};

const ORDERED: ReplayOptions = ReplayOptions {
    matching: ReplayMatching::Ordered,
    pace: ReplayPace::AtOnce,
};

/// A host with tools of every kind of answer.
async fn recorded_host() -> TestHost {
    let schema = json!({ "type": "object", "properties": { "n": { "type": "integer" } }, "required": ["n"] });
    let secret = json!({ "type": "object", "properties": { "key": { "type": "string", "x-sensitive": true } } });
    TestHost::build(|builder| {
        builder
            .tool(MockNativeTool::named("a.text").output("hello"))
            .tool(
                MockNativeTool::named("a.value")
                    .schema(schema)
                    .output(json!({ "b": [1, 2.5], "a": null })),
            )
            .tool(MockNativeTool::named("a.nothing"))
            .tool(
                MockNativeTool::named("a.broken")
                    .failing(ToolFailure::new("no luck").hint("try later")),
            )
            .tool(MockNativeTool::named("a.denied").class(EffectClass::Write))
            .tool(MockNativeTool::named("a.hidden"))
            .tool(
                MockNativeTool::named("a.later")
                    .declare(|tool| tool.loading = LoadingStrategy::Deferred),
            )
            .tool(
                MockNativeTool::named("a.secret")
                    .schema(secret)
                    .output("done"),
            )
            .settings(HashMap::from([(
                "text".to_owned(),
                ToolSettings {
                    surface: ToolSurfaceSettings {
                        name: Some("say".to_owned()),
                        ..ToolSurfaceSettings::default()
                    },
                    ..ToolSettings::default()
                },
            )]))
            .policy(TestHost::policy(PermissionMode::Default, &["deny hidden"]))
    })
    .await
}

/// Calls that end in many ways, in their order.
fn script() -> Vec<(&'static str, Value)> {
    vec![
        ("say", json!({ "x": 1 })),
        ("a.text", json!({ "x": 2 })),
        ("value", json!({ "n": 1 })),
        ("value", json!({ "n": "one" })),
        ("value", json!([1])),
        ("nothing", json!({})),
        ("broken", json!({})),
        ("denied", json!({ "path": "x" })),
        ("hidden", json!({})),
        ("unknown", json!({ "q": 1 })),
        ("later", json!({})),
        ("secret", json!({ "key": "correct horse battery" })),
        ("say", json!({ "x": 1 })),
    ]
}

async fn play(host: &TestHost) -> Vec<ToolResult> {
    let mut results = Vec::new();
    for (tool, arguments) in script() {
        results.push(host.call(tool, arguments).await);
    }
    results
}

/// The same but for its id and its times.
fn masked(result: &ToolResult) -> Value {
    let mut value = serde_json::to_value(result).unwrap();
    let result = value.as_object_mut().unwrap();
    assert!(result.remove("invocation_id").is_some() && result.remove("timings").is_some());
    value
}

async fn names(host: &TestHost, filter: ToolFilter) -> Vec<String> {
    host.host
        .list(&host.session, &filter)
        .await
        .iter()
        .map(|tool| tool.entry.name().to_owned())
        .collect()
}

#[tokio::test]
async fn every_answer_is_the_recorded_one_in_either_order() {
    let host = recorded_host().await;
    let results = play(&host).await;
    let kinds: std::collections::HashSet<_> = results
        .iter()
        .map(|one| (one.outcome, one.error_class()))
        .collect();
    assert!(kinds.len() >= 8, "{kinds:?}");
    // What is written to a file and read back is what is served.
    let cassette = Cassette::read(&host.cassette().await.to_text()).unwrap();
    assert_eq!(cassette.calls.len(), script().len());
    for options in [ReplayOptions::default(), ORDERED] {
        let replay = TestHost::replaying(cassette.clone(), options).await;
        let deferred = ToolFilter {
            include_deferred: true,
            ..ToolFilter::default()
        };
        assert_eq!(
            names(&replay, ToolFilter::default()).await,
            names(&host, ToolFilter::default()).await
        );
        for (recorded, replayed) in results.iter().zip(play(&replay).await) {
            assert_eq!(masked(&replayed), masked(recorded));
            assert_ne!(replayed.invocation_id, recorded.invocation_id);
        }
        assert_eq!(
            names(&replay, deferred.clone()).await,
            names(&host, deferred).await
        );
        replay.assert_replayed();
    }
}

#[tokio::test]
async fn strict_matching_takes_any_order_and_each_call_once() {
    let host = recorded_host().await;
    for n in [1, 2] {
        host.call("value", json!({ "n": n })).await;
    }
    let cassette = host.cassette().await;
    let replay = TestHost::replaying(cassette.clone(), ReplayOptions::default()).await;
    assert_eq!(
        replay.call("value", json!({ "n": 2 })).await.outcome,
        Outcome::Succeeded
    );
    assert_eq!(
        replay.call("value", json!({ "n": 1.0 })).await.outcome,
        Outcome::Succeeded
    );
    let again = replay.call("value", json!({ "n": 1 })).await.error.unwrap();
    assert_eq!(again.code, "not_recorded");
    assert!(
        again
            .message
            .contains("recorded once, and every recorded answer is used"),
        "{}",
        again.message
    );

    let ordered = TestHost::replaying(cassette, ORDERED).await;
    let early = ordered
        .call("value", json!({ "n": 2 }))
        .await
        .error
        .unwrap();
    assert!(
        early
            .message
            .ends_with("which is call 1 (`-` recorded, `+` asked):\n- /n: 1\n+ /n: 2"),
        "{}",
        early.message
    );
    let other = ordered.call("nothing", json!({})).await.error.unwrap();
    assert!(
        other.message.contains("call 1 is a call of `a.value`"),
        "{}",
        other.message
    );
    for n in [1, 2] {
        assert_eq!(
            ordered.call("value", json!({ "n": n })).await.outcome,
            Outcome::Succeeded
        );
    }
    let over = ordered
        .call("value", json!({ "n": 2 }))
        .await
        .error
        .unwrap();
    assert!(
        over.message
            .contains("all 2 calls of the recording were answered"),
        "{}",
        over.message
    );
    let report = ordered.host.replay_report().unwrap();
    assert_eq!(
        (report.answered, report.refused, report.left.len()),
        (2, 3, 0)
    );
}

#[tokio::test]
async fn a_call_that_was_not_recorded_fails_with_a_difference() {
    let host = recorded_host().await;
    play(&host).await;
    let replay = TestHost::replaying(host.cassette().await, ReplayOptions::default()).await;
    let error = replay.call("say", json!({ "x": 3 })).await.error.unwrap();
    assert_eq!(
        (error.class, error.code.as_ref()),
        (ErrorClass::DependencyUnavailable, "not_recorded")
    );
    assert!(error.retry.safe && error.retry.change_arguments);
    let said = "no call of `say` with these arguments was recorded; the nearest is call 1 (`-` recorded, `+` asked):\n- /x: 1\n+ /x: 3";
    assert_eq!(error.message, said);
    assert_eq!(
        error.details.unwrap()["nearest"]["differences"][0]["at"],
        "/x"
    );
    let other = replay.call("absent", json!({})).await.error.unwrap();
    assert!(
        other
            .message
            .contains("no call of `absent` was recorded; the recording has calls of: a.broken"),
        "{}",
        other.message
    );
    // It is on record here like any other call.
    let ended = replay.records().await.last().unwrap().record.body.clone();
    assert!(ended.contains("not_recorded"), "{ended}");
}

#[tokio::test]
async fn a_sensitive_argument_is_neither_recorded_nor_needed() {
    let host = recorded_host().await;
    host.call("secret", json!({ "key": "correct horse battery" }))
        .await;
    let text = host.cassette().await.to_text();
    assert!(!text.contains("correct horse"), "{text}");
    let replay =
        TestHost::replaying(Cassette::read(&text).unwrap(), ReplayOptions::default()).await;
    assert_eq!(
        replay
            .call("secret", json!({ "key": "another" }))
            .await
            .model_text(),
        "done"
    );
}

#[tokio::test]
async fn what_an_agent_found_by_search_is_found_again() {
    let host = recorded_host().await;
    let search = ToolFilter {
        query: "later".to_owned(),
        include_deferred: true,
        ..ToolFilter::default()
    };
    let before = host.call("later", json!({ "a": 1 })).await;
    assert_eq!(before.error_class(), Some(ErrorClass::SchemaNotLoaded));
    host.host.list(&host.session, &search).await;
    let after = host.call("later", json!({ "a": 1 })).await;
    let replay = TestHost::replaying(host.cassette().await, ReplayOptions::default()).await;
    assert_eq!(
        masked(&replay.call("later", json!({ "a": 1 })).await),
        masked(&before)
    );
    replay.host.list(&replay.session, &search).await;
    assert_eq!(
        masked(&replay.call("later", json!({ "a": 1 })).await),
        masked(&after)
    );
    replay.assert_replayed();
}

/// Answers with the id it is given, so that later calls speak of earlier ones.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct About {
    id: String,
}

fn about() -> impl toolpost_model::Tool {
    FnTool::named("a.about")
        .unwrap()
        .class(EffectClass::Read)
        .run(|about: About, _| async move {
            Ok::<_, ToolFailure>(format!(
                "you mean {} (art_{}_1)",
                about.id,
                about.id.replace('-', "")
            ))
        })
}

#[tokio::test]
async fn calls_that_name_earlier_calls_name_those_of_the_replay() {
    let host =
        TestHost::build(|builder| builder.tool(about()).tool(MockNativeTool::named("a.text")))
            .await;
    let script = async |host: &TestHost| {
        let first = host.call("text", json!({})).await.invocation_id;
        let said = host
            .call("about", json!({ "id": first.to_string() }))
            .await
            .model_text();
        assert_eq!(said, format!("you mean {first} (art_{}_1)", first.to_hex()));
        first
    };
    let recorded = script(&host).await;
    let cassette = host.cassette().await;
    assert!(
        !cassette.to_text().contains(&recorded.to_string()),
        "a cassette holds places, not ids"
    );
    let replay = TestHost::replaying(cassette, ORDERED).await;
    assert_ne!(script(&replay).await, recorded);
    replay.assert_replayed();
}

#[tokio::test]
async fn a_recording_made_again_is_the_same_file() {
    let first = recorded_host().await;
    let second = recorded_host().await;
    for host in [&first, &second] {
        play(host).await;
    }
    let text = async |host: &TestHost| {
        let mut cassette = host.cassette().await;
        cassette.calls.iter_mut().for_each(|call| call.took_ms = 0);
        cassette.to_text()
    };
    assert_eq!(text(&first).await, text(&second).await);
}

struct Outer;

impl toolpost_model::Tool for Outer {
    fn declaration(&self) -> toolpost_model::Declaration {
        let mut declaration =
            toolpost_model::Declaration::new("a.outer".parse().unwrap(), "Calls another");
        declaration.interface.safety.class = toolpost_model::ClassFact::Always(EffectClass::Read);
        declaration
    }

    async fn execute(&self, call: ToolCall) -> Result<ToolOutput, ToolFailure> {
        let inner = NestedCall::new("a.text", json!({}));
        Ok(call.context.call_tool(inner).await?.model_text().into())
    }
}

#[tokio::test]
async fn only_what_the_agent_asked_for_is_on_the_cassette() {
    let text = MockNativeTool::named("a.text").output("inner");
    let host = TestHost::build(|builder| builder.tool(Outer).tool(text.clone())).await;
    assert_eq!(host.call("outer", json!({})).await.model_text(), "inner");
    let cassette = host.cassette().await;
    assert_eq!(
        cassette
            .calls
            .iter()
            .map(|call| call.tool.as_str())
            .collect::<Vec<_>>(),
        ["outer"]
    );
    let replay = TestHost::replaying(cassette, ORDERED).await;
    assert_eq!(replay.call("outer", json!({})).await.model_text(), "inner");
    assert_eq!(text.call_count(), 1, "nothing runs in a replay");
    replay.assert_replayed();
}

#[tokio::test]
async fn a_call_that_can_be_read_is_not_taken_for_a_recorded_one_that_could_not() {
    let host = recorded_host().await;
    let malformed = r#"{"n": 12"#;
    let say = async |host: &TestHost, input: ModelInput| {
        let request = CallRequest::new(Arc::clone(&host.session), "value", input);
        host.host
            .call(request)
            .await
            .result()
            .error
            .clone()
            .unwrap()
    };
    let recorded = say(&host, ModelInput::text(malformed)).await;
    let valid = json!({ "n": 12 });
    assert_eq!(valid.to_string().len(), malformed.len());
    for options in [ReplayOptions::default(), ORDERED] {
        let replay = TestHost::replaying(host.cassette().await, options).await;
        assert_eq!(
            say(&replay, ModelInput::value(valid.clone())).await.code,
            "not_recorded"
        );
        assert_eq!(
            say(&replay, ModelInput::text(malformed)).await.code,
            recorded.code
        );
    }
}

#[tokio::test]
async fn one_session_of_several_is_taken_alone() {
    let host = TestHost::with(MockNativeTool::named("a.text").output("x")).await;
    let session = host
        .host
        .open_session(Principal::agent("other"), SurfaceRequest::default())
        .await
        .unwrap();
    host.call("text", json!({ "mine": true })).await;
    let input = ModelInput::value(json!({ "mine": false }));
    host.host
        .call(CallRequest::new(Arc::clone(&session), "text", input))
        .await;
    let mut recorder = Recorder::of_session(session.id().clone());
    host.records()
        .await
        .iter()
        .for_each(|row| recorder.take(row));
    assert!(recorder.found());
    let cassette = recorder.finish();
    assert_eq!((cassette.sessions.len(), cassette.calls.len()), (1, 1));
    assert_eq!(cassette.sessions[0].principal.as_str(), "other");
    assert_eq!(cassette.calls[0].arguments, Some(json!({ "mine": false })));
    assert_eq!(host.cassette().await.sessions.len(), 2);
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nothing {}

#[tokio::test]
async fn progress_is_heard_again() {
    let busy = FnTool::named("a.busy")
        .unwrap()
        .class(EffectClass::Read)
        .run(|_: Nothing, call| async move {
            call.progress(ToolProgress {
                done: Some(1),
                total: Some(2),
                ..ToolProgress::default()
            });
            call.status("nearly there");
            Ok::<_, ToolFailure>("done")
        });
    let host = TestHost::with(busy).await;
    let heard = async |host: &TestHost| {
        let (events, recorder) = CallEventRecorder::new(64);
        let mut request = host.request("busy", json!({}));
        request.delivery.listener = Some(Arc::new(events));
        assert_eq!(host.host.call(request).await.result().model_text(), "done");
        let told = recorder
            .all()
            .await
            .into_iter()
            .filter(|event| !matches!(event.body, EventBody::Stage { .. }));
        told.map(|event| serde_json::to_value(event.body).unwrap())
            .collect::<Vec<_>>()
    };
    let recorded = heard(&host).await;
    assert_eq!(recorded.len(), 2, "{recorded:?}");
    let replay = TestHost::replaying(host.cassette().await, ReplayOptions::default()).await;
    assert_eq!(heard(&replay).await, recorded);
}

#[tokio::test(start_paused = true)]
async fn recorded_delays_are_waited_for_only_where_asked() {
    let host = TestHost::with(MockNativeTool::named("a.text").output("x")).await;
    host.call("text", json!({})).await;
    let mut cassette = host.cassette().await;
    cassette.calls[0].took_ms = 60_000;
    let took = async |pace| {
        let options = ReplayOptions {
            pace,
            ..ReplayOptions::default()
        };
        let replay = TestHost::replaying(cassette.clone(), options).await;
        let began = tokio::time::Instant::now();
        assert_eq!(replay.call("text", json!({})).await.model_text(), "x");
        began.elapsed()
    };
    assert!(took(ReplayPace::AtOnce).await < Duration::from_secs(1));
    assert!(took(ReplayPace::AsRecorded).await >= Duration::from_secs(59));
}

#[tokio::test]
async fn what_is_no_cassette_is_refused_with_the_reason() {
    let check = |text: &str, said: &str| {
        let error = Cassette::read(text).unwrap_err().to_string();
        assert!(error.contains(said), "{error}");
    };
    check("{", "cannot be read as a cassette");
    check("{}", "missing field `format`");
    check(r#"{"format":2,"anything":true}"#, "its format is 2");
    let bad = json!({ "tool": "x", "took_ms": 0, "answer": { "outcome": "excellent" } });
    let text = json!({ "format": 1, "toolpost": "0", "sessions": [], "tools": [], "calls": [bad] })
        .to_string();
    check(&text, "the answer of call 1 (`x`) is not a result");
    let mut cassette = TestHost::with(MockNativeTool::named("a.text"))
        .await
        .cassette()
        .await;
    cassette.calls.push(serde_json::from_value(bad).unwrap());
    let built = Host::builder()
        .replay(cassette, ReplayOptions::default())
        .build()
        .await;
    assert!(matches!(
        built,
        Err(HostError::Cassette(CassetteError::Answer { call: 1, .. }))
    ));
}
