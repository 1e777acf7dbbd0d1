//! The stages: what passes, what ends where, and what is on record.

use serde_json::{Value, json};
use toolpost_core::{AcknowledgementTiming, HostLimits, RecordKind};
use toolpost_model::{
    Behavior, Disposition, EffectClass, ErrorClass, ModelInput, Outcome, PermissionMode, Stage,
    ToolFailure, ToolOutput,
};
use toolpost_testkit::{CallEventRecorder, MockNativeTool, TestHost};

fn greeter() -> MockNativeTool {
    MockNativeTool::named("demo.greet").output("hello").schema(json!({
        "type": "object", "required": ["name"], "additionalProperties": false,
        "properties": { "name": { "type": "string" }, "times": { "type": "integer", "minimum": 1 } }
    }))
}

#[tokio::test]
async fn a_call_passes_every_stage_and_costs_one_record() {
    let host = TestHost::with(greeter()).await;
    let (events, recorder) = CallEventRecorder::new(64);
    let mut request = host.request("greet", json!({ "name": "x" }));
    request.delivery.listener = Some(std::sync::Arc::new(events));
    let answer = host.host.call(request).await;
    assert_eq!(answer.result().outcome, Outcome::Succeeded);
    assert_eq!(answer.result().disposition, Disposition::Inline);

    let events = recorder.all().await;
    let seqs: Vec<u64> = events.iter().map(|event| event.seq).collect();
    assert_eq!(
        seqs,
        (1..=events.len() as u64).collect::<Vec<_>>(),
        "one numbered lifecycle"
    );
    assert_eq!(
        CallEventRecorder::stages(&events),
        [
            Stage::Resolve,
            Stage::Parse,
            Stage::Validate,
            Stage::Observe,
            Stage::PreHooks,
            Stage::Decide,
            Stage::Admit,
            Stage::Execute,
            Stage::Map,
            Stage::PostHooks,
            Stage::Persist,
            Stage::Emit
        ]
    );

    let records = host.records().await;
    let kinds: Vec<RecordKind> = records.iter().map(|row| row.record.kind).collect();
    let expected = [
        RecordKind::HostStarted,
        RecordKind::Catalog,
        RecordKind::Surface,
        RecordKind::Ended,
    ];
    assert_eq!(
        kinds, expected,
        "one record of the call; the others once in a host's life"
    );
    let body: Value = serde_json::from_str(&records[3].record.body).unwrap();
    assert_eq!(body["call"]["arguments"], json!({ "name": "x" }));
    assert_eq!(body["decision"]["behavior"], "allow");
    assert_eq!(
        body["result"],
        serde_json::from_str::<Value>(answer.json()).unwrap()
    );
}

#[tokio::test]
async fn a_write_is_on_record_before_it_runs_and_an_early_answer_needs_one_record_more() {
    for (acknowledged, class, expected) in [
        (
            AcknowledgementTiming::AtTheEnd,
            EffectClass::Read,
            &[RecordKind::Ended][..],
        ),
        (
            AcknowledgementTiming::Early,
            EffectClass::Read,
            &[RecordKind::Accepted, RecordKind::Ended],
        ),
        (
            AcknowledgementTiming::AtTheEnd,
            EffectClass::Write,
            &[RecordKind::Started, RecordKind::Ended],
        ),
        (
            AcknowledgementTiming::Early,
            EffectClass::Write,
            &[RecordKind::Accepted, RecordKind::Started, RecordKind::Ended],
        ),
    ] {
        let host = TestHost::with(MockNativeTool::named("demo.act").class(class)).await;
        let mut request = host.request("act", json!({}));
        request.delivery.acknowledged = acknowledged;
        host.host.call(request).await;
        let kinds: Vec<RecordKind> = host
            .call_records()
            .await
            .iter()
            .map(|row| row.record.kind)
            .collect();
        assert_eq!(kinds, expected, "{acknowledged:?} {class}");
    }
}

#[tokio::test]
async fn invalid_arguments_never_reach_the_tool_and_say_what_is_wrong() {
    for (input, class, message) in [
        (
            r#"{"name":5}"#,
            ErrorClass::InvalidArguments,
            "at /name: expected string, got number 5",
        ),
        (
            r#"{"name":"x","times":0}"#,
            ErrorClass::InvalidArguments,
            "at /times: expected a number of at least 1",
        ),
        ("{}", ErrorClass::InvalidArguments, "`name` is missing"),
        (
            r#"{"nmae":"x"}"#,
            ErrorClass::InvalidArguments,
            "unknown `nmae`",
        ),
        (
            "[1]",
            ErrorClass::SchemaValidationFailed,
            "must be a JSON object, but an array was given",
        ),
        ("{", ErrorClass::SchemaValidationFailed, "not valid JSON"),
        (
            r#"{"name":"a","name":"b"}"#,
            ErrorClass::SchemaValidationFailed,
            "the key `name` is given twice",
        ),
    ] {
        let tool = greeter();
        let host = TestHost::with(tool.clone()).await;
        let mut request = host.request("greet", json!({}));
        request.input = ModelInput::text(input);
        let answer = host.host.call(request).await;
        let error = answer.result().error.as_ref().unwrap();
        assert_eq!(error.class, class, "{input}");
        assert!(
            error.message.contains(message),
            "{input}: {}",
            error.message
        );
        assert!(error.retry.change_arguments && error.retry.safe);
        assert_eq!(
            (tool.call_count(), answer.result().outcome),
            (0, Outcome::Failed)
        );
        assert_eq!(
            host.call_records().await.len(),
            1,
            "the failure is on record: {input}"
        );
    }
}

#[tokio::test]
async fn an_unknown_tool_is_told_with_its_neighbours() {
    let host = TestHost::with(greeter()).await;
    let result = host.call("gret", json!({})).await;
    let error = result.error.unwrap();
    assert_eq!(error.class, ErrorClass::UnknownTool);
    assert_eq!(error.hint.as_deref(), Some("did you mean `greet`?"));
}

#[tokio::test]
async fn decisions_name_their_rule_and_asks_without_a_person_are_denials_with_a_way_out() {
    let tool = MockNativeTool::named("demo.act").class(EffectClass::Write);
    let host = TestHost::build(|b| {
        b.tool(tool.clone())
            .policy(TestHost::policy(PermissionMode::Default, &[]))
    })
    .await;
    let error = host.call("act", json!({})).await.error.unwrap();
    assert_eq!(
        (error.class, error.code.as_ref()),
        (ErrorClass::PermissionDenied, "no_approver")
    );
    assert_eq!(
        error.hint.as_deref(),
        Some("start the host with `--allow demo.act` or `--mode edits`")
    );
    assert!(error.retry.needs_approval);

    let policy = TestHost::policy(PermissionMode::Bypass, &["allow act", "ask class:write"]);
    let host = TestHost::build(|b| b.tool(tool.clone()).policy(policy)).await;
    host.call("act", json!({})).await;
    let body: Value = serde_json::from_str(&host.call_records().await[0].record.body).unwrap();
    assert_eq!(body["decision"]["behavior"], "ask");
    assert_eq!(
        body["decision"]["reason"]["rule"]["rule"],
        "ask class:write"
    );
    assert_eq!(body["decision"]["also_matched"][0]["rule"], "allow act");
    assert_eq!(tool.call_count(), 0);
}

#[tokio::test]
async fn explain_tells_the_decision_without_running_or_recording_anything() {
    let tool = MockNativeTool::named("demo.act").class(EffectClass::Write);
    let host = TestHost::build(|b| {
        b.tool(tool.clone())
            .policy(TestHost::policy(PermissionMode::Edits, &[]))
    })
    .await;
    let explanation = host.host.explain(host.request("act", json!({}))).await;
    assert!(explanation.would_run);
    assert_eq!(explanation.decision.unwrap().behavior, Behavior::Allow);
    assert_eq!(
        explanation.stages.last(),
        Some(&Stage::Admit),
        "reached, not entered"
    );
    let explanation = host.host.explain(host.request("nothing", json!({}))).await;
    assert_eq!(explanation.error.unwrap().class, ErrorClass::UnknownTool);
    assert_eq!((tool.call_count(), host.call_records().await.len()), (0, 0));
}

#[tokio::test]
async fn outcome_and_disposition_are_two_things() {
    let long = "x".repeat(1_000);
    let mut partial = ToolOutput::text("half");
    partial.partial = true;
    for (output, outcome, disposition) in [
        (
            ToolOutput::default(),
            Outcome::Succeeded,
            Disposition::Empty,
        ),
        (ToolOutput::text(""), Outcome::Succeeded, Disposition::Empty),
        (partial, Outcome::Partial, Disposition::Inline),
        (
            ToolOutput::text(long),
            Outcome::Succeeded,
            Disposition::Preview,
        ),
    ] {
        let limits = HostLimits {
            inline_chars: 100,
            ..HostLimits::default()
        };
        let host = TestHost::build(|b| {
            b.tool(MockNativeTool::named("demo.say").output(output))
                .limits(limits)
        })
        .await;
        let result = host.call("say", json!({})).await;
        assert_eq!((result.outcome, result.disposition), (outcome, disposition));
        if let Some(cut) = &result.truncated {
            assert_eq!((cut.shown, cut.total), (100, Some(1_000)));
            assert!(result.model_text().contains("900 characters cut"));
        }
    }
}

#[tokio::test]
async fn a_success_without_anything_to_show_is_empty_and_never_silence() {
    let found = || ToolOutput::text("").with_structured(json!({ "files": [] }));
    for (output, disposition, text) in [
        (
            ToolOutput::default(),
            Disposition::Empty,
            "[empty: the tool succeeded and returned no content]",
        ),
        (
            ToolOutput::text(""),
            Disposition::Empty,
            "[empty: the tool succeeded and returned no content]",
        ),
        (
            ToolOutput::text("").with_summary("no file fits"),
            Disposition::Empty,
            "no file fits",
        ),
        (
            found().with_summary("no file fits").with_nothing_to_show(),
            Disposition::Empty,
            "no file fits",
        ),
        (
            ToolOutput {
                is_empty: true,
                ..ToolOutput::text("[no lines]")
            },
            Disposition::Empty,
            "[no lines]",
        ),
        // The host does not guess of a value whether it is nothing; it is the text then.
        (found(), Disposition::Inline, r#"{"files":[]}"#),
        (ToolOutput::structured(json!([])), Disposition::Inline, "[]"),
        (
            ToolOutput {
                partial: true,
                ..ToolOutput::default()
            },
            Disposition::Empty,
            "[partial: only part of the work was done; empty: the tool succeeded and returned no content]",
        ),
    ] {
        let host = TestHost::with(MockNativeTool::named("demo.say").output(output)).await;
        let result = host.call("say", json!({})).await;
        assert_eq!(
            (result.disposition, result.model_text().as_str()),
            (disposition, text)
        );
    }
}

#[tokio::test]
async fn retry_guidance_is_true() {
    for (class, failure, safe) in [
        (EffectClass::Read, ToolFailure::new("no"), true),
        (EffectClass::Write, ToolFailure::new("no"), false),
        (EffectClass::Write, ToolFailure::new("no").untouched(), true),
        (EffectClass::Unknown, ToolFailure::new("no"), false),
    ] {
        let host = TestHost::with(
            MockNativeTool::named("demo.act")
                .class(class)
                .failing(failure),
        )
        .await;
        let result = host.call("act", json!({})).await;
        assert_eq!(result.error.unwrap().retry.safe, safe, "{class}");
        assert_eq!(
            result.disposition,
            Disposition::Inline,
            "the tool's own words"
        );
    }
}

#[tokio::test]
async fn events_end_with_the_call_even_while_its_handle_is_held() {
    let host = TestHost::with(greeter()).await;
    for tool in ["greet", "unknown"] {
        let (events, recorder) = CallEventRecorder::new(64);
        let mut request = host.request(tool, json!({ "name": "x" }));
        request.delivery.listener = Some(std::sync::Arc::new(events));
        let handle = host.host.start(request).await;
        let heard = tokio::time::timeout(std::time::Duration::from_secs(10), recorder.all()).await;
        assert!(heard.is_ok_and(|events| !events.is_empty()), "{tool}");
        handle.answer().await;
    }
}

#[tokio::test]
async fn a_tool_denied_outright_names_the_rule_and_the_way_out() {
    let tool = MockNativeTool::named("demo.act");
    for (mode, rules, reason, hint) in [
        (
            PermissionMode::Default,
            &["deny act"][..],
            "the rule `deny act` (test)",
            "the rule `deny act` in test decides this",
        ),
        (
            PermissionMode::Plan,
            &[],
            "mode `plan` denies calls of class `write`",
            "start the host with `--allow demo.act` or `--mode edits`",
        ),
    ] {
        let tool = tool.clone().class(EffectClass::Write);
        let host = TestHost::build(|b| b.tool(tool).policy(TestHost::policy(mode, rules))).await;
        let result = host.call("act", json!({})).await;
        let error = result.error.unwrap();
        assert_eq!(
            (result.outcome, error.class),
            (Outcome::Denied, ErrorClass::PolicyBlocked)
        );
        assert!(error.message.contains(reason), "{}", error.message);
        assert_eq!(error.hint.as_deref(), Some(hint));
        let body: Value = serde_json::from_str(&host.call_records().await[0].record.body).unwrap();
        assert_eq!(body["decision"]["behavior"], "deny");
    }
}
