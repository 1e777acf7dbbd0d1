//! What is sensitive is in no record, event or answer.

use serde_json::json;
use toolpost_core::KnownSecrets;
use toolpost_model::{Content, EffectClass, FnTool, LogLevel, ToolFailure};
use toolpost_testkit::{EventRecorder, TestHost};

const HOST_SECRET: &str = "tp_sentinel_host_0123456789";
const ARGUMENT_SECRET: &str = "sentinel-argument-98765";

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Login {
    #[schemars(extend("x-sensitive" = true))]
    pin: String,
    note: String,
    fail: bool,
}

#[tokio::test]
async fn sentinels_show_up_nowhere_and_the_tool_still_gets_the_real_value() {
    let tool = FnTool::named("demo.login").unwrap().class(EffectClass::Read).run(
        |args: Login, context| async move {
            assert_eq!((args.pin.as_str(), args.note.as_str()), (ARGUMENT_SECRET, HOST_SECRET));
            context.log(LogLevel::Info, format!("pin {} note {}", args.pin, args.note));
            context.artifact("copy", Content::text(args.pin.clone()));
            if args.fail {
                return Err(ToolFailure::new(format!("bad pin {}", args.pin)).hint(args.note));
            }
            Ok(json!({ "echo": args.pin, args.note: [1, "x"] }))
        },
    );
    let host =
        TestHost::build(|b| b.tool(tool).redactor(KnownSecrets::new([("host_token", HOST_SECRET)]))).await;
    for fail in [false, true] {
        let (events, recorder) = EventRecorder::new(64);
        let mut request =
            host.request("login", json!({ "pin": ARGUMENT_SECRET, "note": HOST_SECRET, "fail": fail }));
        request.listener = Some(std::sync::Arc::new(events));
        let answer = host.host.call(request).await;
        assert_eq!(answer.result().is_error, fail);
        let mut everything = answer.json().to_owned();
        for event in recorder.all().await {
            everything.push_str(&serde_json::to_string(&event).unwrap());
        }
        for row in host.records().await {
            everything.push_str(&row.record.body);
        }
        assert!(!everything.contains(HOST_SECRET), "{everything}");
        assert!(!everything.contains(ARGUMENT_SECRET), "{everything}");
        assert!(everything.contains("[redacted:argument]") && everything.contains("[redacted:host_token]"));
    }
}

#[tokio::test]
async fn a_schema_error_does_not_quote_a_secret() {
    let tool = FnTool::named("demo.login").unwrap().run(|_: Login, _| async { Ok::<_, ToolFailure>(()) });
    let host = TestHost::with(tool).await;
    let result = host.call("login", json!({ "pin": 987_654_321, "note": "n", "fail": false })).await;
    let text = format!("{}{:?}", serde_json::to_string(&result).unwrap(), host.records().await);
    assert!(!text.contains("987654321"), "{text}");
}

#[tokio::test]
async fn arguments_that_nobody_could_judge_are_not_kept() {
    let later = toolpost_testkit::MockTool::named("demo.later")
        .declare(|d| d.loading = toolpost_model::Loading::Deferred);
    let host = TestHost::with(later).await;
    for (tool, input) in [
        ("unknown", r#"{"x":"sentinel-99"}"#),
        ("later", r#"{"x":"sentinel-99"}"#),
        ("later", "sentinel-99 {"),
    ] {
        let mut request = host.request(tool, json!({}));
        request.input = toolpost_model::ModelInput::text(input);
        host.host.call(request).await;
        let row = host.records().await.pop().unwrap();
        assert!(!row.record.body.contains("sentinel-99"), "{}", row.record.body);
        assert!(row.record.body.contains(&format!("\"unread_bytes\":{}", input.len())));
    }
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nested {
    login: Option<Login>,
}

#[tokio::test]
async fn a_mark_inside_a_nested_type_counts() {
    let tool =
        FnTool::named("demo.nest").unwrap().class(EffectClass::Read).run(|args: Nested, _| async move {
            Ok::<_, ToolFailure>(args.login.map(|login| login.pin).unwrap_or_default())
        });
    let host = TestHost::with(tool).await;
    let login = json!({ "pin": ARGUMENT_SECRET, "note": "n", "fail": false });
    let result = host.call("nest", json!({ "login": login })).await;
    assert_eq!(result.model_text(), "[redacted:argument]");
    assert!(!format!("{:?}", host.records().await).contains(ARGUMENT_SECRET));
}

#[tokio::test]
async fn names_and_ids_are_no_way_around() {
    use toolpost_core::Journal as _;
    let host = TestHost::build(|b| {
        b.tool(toolpost_testkit::MockTool::named("demo.act"))
            .redactor(KnownSecrets::new([("host_token", HOST_SECRET)]))
    })
    .await;
    let request = toolpost_model::SurfaceRequest { task: Some(HOST_SECRET.into()), ..Default::default() };
    host.host.open_session(toolpost_model::Principal::agent("a"), request).await.unwrap();
    for tool in [HOST_SECRET, "act"] {
        let mut request = host.request(tool, json!({}));
        request.correlation_id = Some(HOST_SECRET.to_owned());
        request.request_id = Some(toolpost_model::RequestId::new(HOST_SECRET));
        let answer = host.host.call(request).await;
        assert!(!answer.json().contains(HOST_SECRET), "{}", answer.json());
    }
    let records = host.journal.read(0, usize::MAX).await.unwrap();
    assert!(!format!("{records:?}").contains(HOST_SECRET), "{records:?}");
}
