//! What is sensitive is in no record, event or answer.

use serde_json::json;
use toolpost_core::KnownSecrets;
use toolpost_model::{
    ArgumentKind, ArgumentMeaning, ClassFact, EffectClass, EventBody, FnTool, LogLevel, NestedCall,
    Outcome, OutputChunk, OutputStream, PermissionMode, ResultContent, ToolFailure, ToolResult,
};
use toolpost_testkit::{CallEventRecorder, MockNativeTool, TestHost};

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
    let tool = FnTool::named("demo.login")
        .unwrap()
        .class(EffectClass::Read)
        .run(|args: Login, context| async move {
            assert_eq!(
                (args.pin.as_str(), args.note.as_str()),
                (ARGUMENT_SECRET, HOST_SECRET)
            );
            context.log(
                LogLevel::Info,
                format!("pin {} note {}", args.pin, args.note),
            );
            context.artifact("copy", ResultContent::text(args.pin.clone()));
            if args.fail {
                return Err(ToolFailure::new(format!("bad pin {}", args.pin)).hint(args.note));
            }
            Ok(json!({ "echo": args.pin, args.note: [1, "x"] }))
        });
    let host = TestHost::build(|b| {
        b.tool(tool)
            .redactor(KnownSecrets::new([("host_token", HOST_SECRET)]))
    })
    .await;
    for fail in [false, true] {
        let (events, recorder) = CallEventRecorder::new(64);
        let mut request = host.request(
            "login",
            json!({ "pin": ARGUMENT_SECRET, "note": HOST_SECRET, "fail": fail }),
        );
        request.delivery.listener = Some(std::sync::Arc::new(events));
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
        assert!(
            everything.contains("[redacted:argument]")
                && everything.contains("[redacted:host_token]")
        );
    }
}

#[tokio::test]
async fn a_schema_error_does_not_quote_a_secret() {
    let tool = FnTool::named("demo.login")
        .unwrap()
        .run(|_: Login, _| async { Ok::<_, ToolFailure>(()) });
    let host = TestHost::with(tool).await;
    let result = host
        .call(
            "login",
            json!({ "pin": 987_654_321, "note": "n", "fail": false }),
        )
        .await;
    let text = format!(
        "{}{:?}",
        serde_json::to_string(&result).unwrap(),
        host.records().await
    );
    assert!(!text.contains("987654321"), "{text}");
}

#[tokio::test]
async fn arguments_that_nobody_could_judge_are_not_kept() {
    let later = MockNativeTool::named("demo.later")
        .declare(|d| d.loading = toolpost_model::LoadingStrategy::Deferred);
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
        assert!(
            !row.record.body.contains("sentinel-99"),
            "{}",
            row.record.body
        );
        assert!(
            row.record
                .body
                .contains(&format!("\"unread_bytes\":{}", input.len()))
        );
    }
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nested {
    login: Option<Login>,
}

#[tokio::test]
async fn a_mark_inside_a_nested_type_counts() {
    let tool = FnTool::named("demo.nest")
        .unwrap()
        .class(EffectClass::Read)
        .run(|args: Nested, _| async move {
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
        b.tool(MockNativeTool::named("demo.act"))
            .redactor(KnownSecrets::new([("host_token", HOST_SECRET)]))
    })
    .await;
    let request = toolpost_model::SurfaceRequest {
        task: Some(HOST_SECRET.into()),
        ..Default::default()
    };
    host.host
        .open_session(toolpost_model::Principal::agent("a"), request)
        .await
        .unwrap();
    for tool in [HOST_SECRET, "act"] {
        let mut request = host.request(tool, json!({}));
        request.identity.correlation_id = Some(HOST_SECRET.to_owned());
        request.identity.request_id = Some(toolpost_model::RequestId::new(HOST_SECRET));
        let answer = host.host.call(request).await;
        assert!(!answer.json().contains(HOST_SECRET), "{}", answer.json());
    }
    let records = host.journal.read(0, usize::MAX).await.unwrap();
    assert!(!format!("{records:?}").contains(HOST_SECRET), "{records:?}");
}

/// A tool that writes pieces of output, each followed by the next.
fn writer(pieces: &'static [&'static str]) -> impl toolpost_model::Tool {
    FnTool::named("demo.write")
        .unwrap()
        .class(EffectClass::Read)
        .run(move |_: serde_json::Value, context| async move {
            let mut bytes = 0;
            for piece in pieces {
                bytes += piece.len() as u64;
                let stream = OutputStream::Stdout;
                let text = (*piece).to_owned();
                context.output(OutputChunk {
                    stream,
                    text,
                    bytes,
                    lines: 0,
                    skipped: 0,
                });
            }
            Ok::<_, ToolFailure>(pieces.concat())
        })
}

async fn shown(pieces: &'static [&'static str]) -> (Vec<String>, ToolResult) {
    let secrets = KnownSecrets::new([("host_token", HOST_SECRET)]);
    let host = TestHost::build(|b| b.tool(writer(pieces)).redactor(secrets)).await;
    let (events, recorder) = CallEventRecorder::new(64);
    let mut request = host.request("write", json!({}));
    request.delivery.listener = Some(std::sync::Arc::new(events));
    let answer = host.host.call(request).await;
    let text = |event: toolpost_model::Event| match event.body {
        EventBody::Output(chunk) => Some(chunk.text),
        _ => None,
    };
    (
        recorder.all().await.into_iter().filter_map(text).collect(),
        answer.result().clone(),
    )
}

#[tokio::test]
async fn a_secret_that_is_torn_over_pieces_of_output_does_not_show() {
    let (events, result) = shown(&[
        "one tp_sentinel",
        "_host_01234",
        "56789 two\n",
        "ghp_16C7e42F292c6912E77",
        "10c838347Ae178B4a",
    ])
    .await;
    assert_eq!(
        events,
        ["one ", "[redacted:host_token] two\n", "[redacted:github]"]
    );
    assert_eq!(
        result.model_text(),
        "one [redacted:host_token] two\n[redacted:github]"
    );
    assert_eq!(
        serde_json::to_value(&result.redactions).unwrap(),
        json!({ "github": 1, "host_token": 1 })
    );
}

#[tokio::test]
async fn what_was_held_back_and_is_no_secret_is_told_at_the_end() {
    let (events, _) = shown(&["almost tp_sentinel", "_nothing", " and ghp_"]).await;
    assert_eq!(events.concat(), "almost tp_sentinel_nothing and ghp_");
}

#[tokio::test]
async fn a_secret_that_shows_only_beside_its_name_is_in_neither_answer_nor_record() {
    let tool = FnTool::named("demo.headers")
        .unwrap()
        .class(EffectClass::Read)
        .run(|_: serde_json::Value, _| async {
            Ok::<_, ToolFailure>(json!({ "Authorization": "Bearer abc-0123456789" }))
        });
    let host = TestHost::with(tool).await;
    let answer = host.host.call(host.request("headers", json!({}))).await;
    let records = format!("{:?}", host.records().await);
    assert!(!answer.json().contains("abc-0123456789") && !records.contains("abc-0123456789"));
    assert_eq!(
        answer.result().structured_content,
        Some(json!({ "Authorization": "Bearer [redacted:authorization]" }))
    );
    assert_eq!(answer.result().redactions.0["authorization"], 1);
    assert!(
        records.contains(&answer.json().replace('"', "\\\"")),
        "the record has the bytes of the answer"
    );
}

#[tokio::test]
async fn two_records_tell_whether_a_sensitive_argument_was_the_same() {
    let tool = FnTool::named("demo.login")
        .unwrap()
        .class(EffectClass::Read)
        .run(|_: Login, _| async { Ok::<_, ToolFailure>(()) });
    let host = TestHost::with(tool).await;
    for pin in ["1234", "1234", "4321"] {
        host.call("login", json!({ "pin": pin, "note": "n", "fail": false }))
            .await;
    }
    let of = |row: &toolpost_core::StoredRecord| {
        let body: serde_json::Value = serde_json::from_str(&row.record.body).unwrap();
        body["call"]["sensitive"][0].clone()
    };
    let told: Vec<_> = host
        .records()
        .await
        .iter()
        .map(of)
        .filter(|told| !told.is_null())
        .collect();
    assert_eq!(
        (&told[0]["pointer"], &told[0]["length"]),
        (&json!("/pin"), &json!(4))
    );
    assert_eq!(told[0], told[1]);
    assert_ne!(told[0]["hash"], told[2]["hash"]);
}

#[tokio::test]
async fn what_a_source_says_of_its_tools_is_shown_without_secrets() {
    let tool = MockNativeTool::named("demo.up").schema(json!({
        "type": "object", "properties": { "a": { "type": "string", "description": format!("use {HOST_SECRET}") } }
    }));
    let tool = tool.declare(|declaration| {
        declaration.description = format!("send {HOST_SECRET} or AKIAIOSFODNN7EXAMPLE");
        declaration.title = Some(HOST_SECRET.to_owned());
        declaration
            .annotations
            .insert("hint".to_owned(), json!([HOST_SECRET]));
    });
    let named = MockNativeTool::named("demo.tp_sentinel_host_0123456789");
    let secrets = KnownSecrets::new([("host_token", HOST_SECRET)]);
    let host = TestHost::build(|b| b.tool(tool).tool(named).redactor(secrets)).await;
    let catalog = host.host.catalog();
    let shown = serde_json::to_string(catalog.entries()[0].declaration()).unwrap();
    assert!(!shown.contains(HOST_SECRET), "{shown}");
    assert!(
        shown.contains("send [redacted:host_token] or [redacted:aws]"),
        "{shown}"
    );
    assert_eq!(catalog.entries().len(), 1);
    let notices: Vec<String> = host
        .host
        .notices()
        .iter()
        .map(ToString::to_string)
        .collect();
    assert!(
        notices
            .iter()
            .any(|notice| notice.contains("hold a secret")),
        "{notices:?}"
    );
}

#[tokio::test]
async fn a_secret_that_is_a_word_of_the_record_leaves_the_record_whole() {
    let words = [
        "principal",
        "arguments",
        "decision",
        "disposition",
        "succeeded",
        "transitions",
        "invocation_id",
        "structured_content",
        "exit_code",
        "truncated",
        "artifacts",
        "operator",
        "synthetic",
        "embedded",
    ];
    for word in words {
        let tool = MockNativeTool::named("demo.login")
            .class(EffectClass::Write)
            .output("done");
        let host = TestHost::build(|b| {
            b.policy(TestHost::policy(PermissionMode::Bypass, &[]))
                .tool(tool)
        })
        .await;
        let mut request = host.request(
            "login",
            json!({ "password": word, "note": format!("it is {word}") }),
        );
        request.identity.correlation_id = Some("job-7".to_owned());
        let principal = request.session.principal().clone();
        let answer = host.host.call(request).await;
        assert_eq!(answer.result().outcome, Outcome::Succeeded, "{word}");
        let parsed: ToolResult = serde_json::from_str(answer.json()).expect(word);
        assert_eq!(
            parsed.invocation_id,
            answer.result().invocation_id,
            "{word}"
        );
        let rows = host
            .host
            .invocation(parsed.invocation_id, &principal)
            .await
            .expect(word);
        assert!(rows.is_some(), "{word}: the call can be looked up");
        for row in host.call_records().await {
            let body: serde_json::Value = serde_json::from_str(&row.record.body).unwrap();
            if let Some(call) = body.get("call") {
                let expected = json!({ "password": "[redacted:argument]", "note": "it is [redacted:argument]" });
                assert_eq!(call["arguments"], expected, "{word}");
                assert!(
                    call["principal"].is_string() && call["role"].is_string(),
                    "{word}: {call}"
                );
            }
            assert!(body["decision"]["behavior"].is_string(), "{word}: {body}");
        }
    }
}

#[tokio::test]
async fn a_call_made_by_a_call_knows_its_secrets() {
    let outer = FnTool::named("demo.outer")
        .unwrap()
        .class(EffectClass::Read)
        .run(|args: Login, context| async move {
            let arguments = json!({ "text": format!("pin {}", args.pin) });
            let result = context
                .call_tool(NestedCall::new("inner", arguments))
                .await?;
            Ok::<_, ToolFailure>(result.model_text())
        });
    let inner = MockNativeTool::named("demo.inner")
        .class(EffectClass::Read)
        .output(ARGUMENT_SECRET);
    let host = TestHost::build(|b| b.tool(outer).tool(inner.clone())).await;
    let result = host
        .call(
            "outer",
            json!({ "pin": ARGUMENT_SECRET, "note": "n", "fail": false }),
        )
        .await;
    assert_eq!(result.model_text(), "[redacted:argument]");
    assert_eq!(
        inner.inputs(),
        [json!({ "text": format!("pin {ARGUMENT_SECRET}") })]
    );
    for row in host.records().await {
        assert!(
            !row.record.body.contains(ARGUMENT_SECRET),
            "{}",
            row.record.body
        );
    }
}

#[tokio::test]
async fn a_long_command_is_shortened_after_its_secrets_were_taken_out() {
    let tool = MockNativeTool::named("demo.run")
        .class(EffectClass::Execute)
        .declare(|d| {
            d.interface.safety.class = ClassFact::ByInput;
            d.interface.permission.arguments =
                vec![ArgumentMeaning::of("command", ArgumentKind::Command)];
        });
    let redactor = KnownSecrets::new([("host_token", HOST_SECRET)]);
    let host = TestHost::build(|b| b.tool(tool).redactor(redactor)).await;
    for length in [150, 170, 185, 190, 199, 230, 255] {
        // Where the text is cut at a fixed place, one of these has the secret across it.
        for command in ["curl", "eval $(x)", "TOKEN=abc", "sh -c"] {
            let command = format!(
                "{command} {} {HOST_SECRET} {}",
                "x".repeat(length),
                "y".repeat(1_000)
            );
            host.call("run", json!({ "command": command })).await;
        }
    }
    for row in host.records().await {
        let body = &row.record.body;
        assert!(!body.contains(&HOST_SECRET[..8]), "{body}");
        let body: serde_json::Value = serde_json::from_str(body).unwrap();
        if let Some(found) = body["decision"]["classified"]["found"].as_str() {
            assert!(found.chars().count() < 300, "{found}");
        }
    }
}
