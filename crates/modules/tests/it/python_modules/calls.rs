//! Calls that go well: several tools a module, events, noise, asks and the way back.

use std::time::Duration;

use serde_json::{Value, json};
use toolpost_core::Approvals;
use toolpost_model::{ErrorClass, EventBody, Outcome, PermissionMode, Principal, Verdict};
use toolpost_testkit::TestHost;

use super::stage::{BOTH, Core, Stage, Wanted, logged, printed, until};

#[tokio::test(flavor = "multi_thread")]
async fn a_module_of_three_tools_reads_and_writes_where_the_session_works() {
    for core in BOTH {
        let stage = Stage::new(core, &["tool-desk"]).await;
        assert_eq!(stage.modules.core().unwrap().real, core == Core::Real);
        let tools = stage.tools();
        assert!(
            ["read_note", "write_note", "count_mounts"]
                .iter()
                .all(|name| tools.contains(&(*name).to_owned()))
        );
        let written = stage
            .call(
                "write_note",
                json!({ "file_path": "a.txt", "content": "hello" }),
            )
            .await;
        assert_eq!(written.outcome, Outcome::Succeeded, "{written:?}");
        assert_eq!(
            std::fs::read_to_string(stage.folder.path().join("a.txt")).unwrap(),
            "hello"
        );
        let (read, events) = stage
            .watched("read_note", json!({ "file_path": "a.txt" }))
            .await;
        // The keys in the module's own order: that text is what a model is given.
        assert_eq!(
            read.model_text(),
            r#"{"file_path": "a.txt", "content": "hello", "a_last": 1}"#
        );
        assert_eq!(read.structured_content.unwrap()["content"], "hello");
        let told: Vec<_> = events
            .iter()
            .filter_map(EventBody::as_module_event)
            .collect();
        assert_eq!(
            told,
            [("artifact:read", &json!({ "path": "a.txt", "bytes": 5 }))]
        );
        assert!(read.sandbox.is_some());
        let missing = stage
            .call("read_note", json!({ "file_path": "b.txt" }))
            .await;
        assert_eq!(missing.error.unwrap().message, "Path not found: b.txt");
        let wrong = stage.call("read_note", json!({ "file_path": 5 })).await;
        assert_eq!(wrong.error.unwrap().class.as_str(), "invalid_arguments");
        // The schema says nothing of this one, so the module meets it.
        let raised = stage
            .call("write_note", json!({ "file_path": 5 }))
            .await
            .error
            .unwrap();
        assert_eq!(raised.code, "raised");
        assert!(raised.message.starts_with("AttributeError: "), "{raised:?}");
        assert!(
            raised.details.unwrap()["traceback"]
                .as_str()
                .unwrap()
                .contains("in place")
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn noise_on_every_stream_disturbs_nobody_and_belongs_to_its_call() {
    let stage = Stage::new(Core::StandIn, &["tool-shell"]).await;
    let (result, events) = stage.watched("noise", json!({})).await;
    // The child that reads its standard input found the end of it, and not the channel.
    assert_eq!(result.model_text(), "child ended with 0");
    let said = printed(&events);
    for words in [
        "printed by python",
        "complained by python",
        "written past python",
        "said by a child",
    ] {
        assert!(said.contains(words), "`{words}` is missing: {said}");
    }
    let shell = stage
        .call(
            "shell",
            json!({ "command": "echo out; echo err >&2; exit 3" }),
        )
        .await;
    let text = shell.model_text();
    assert!(
        shell.is_error
            && text.contains(r#"{"stdout": "out\n", "stderr": "err\n", "returncode": 3}"#),
        "{text}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn modules_reach_the_host_for_tools_messages_and_events() {
    for core in BOTH {
        let stage = Stage::new(core, &["tool-rough", "tool-desk"]).await;
        let arguments =
            json!({ "tool": "write_note", "arguments": { "file_path": "n", "content": "x" } });
        let (called, _) = stage.watched("call", arguments).await;
        let answer = called.structured_content.unwrap();
        assert_eq!(
            (&answer["success"], &answer["output"]["file_path"]),
            (&json!(true), &json!("n"))
        );
        let nobody = json!({ "tool": "nobody", "arguments": {} });
        let refused = stage.call("call", nobody).await;
        let told = refused
            .structured_content
            .map(|value| value.to_string())
            .unwrap_or_default();
        assert!(told.contains("unknown_tool"), "{told}");
        let (shown, events) = stage.watched("show", json!({})).await;
        assert_eq!(shown.structured_content.unwrap(), json!([["rough:shown"]]));
        let lines = logged(&events);
        assert!(lines.contains(&"rough: look here".to_owned()), "{lines:?}");
        let told: Vec<_> = events
            .iter()
            .filter_map(EventBody::as_module_event)
            .collect();
        assert_eq!(told, [("rough:shown", &json!({ "n": 1 }))]);
        let custom = serde_json::to_value(&events).unwrap();
        let custom = custom
            .as_array()
            .unwrap()
            .iter()
            .find(|event| event["name"] == "module_event")
            .unwrap();
        assert!(
            custom["data"]["session_id"].is_string() && custom["data"]["timestamp"].is_string(),
            "{custom}"
        );
        let id = stage.call("dispatch", json!({})).await;
        assert_eq!(id.model_text(), id.invocation_id.to_string());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_of_a_module_is_a_question_to_the_operator() {
    let wanted = Wanted::new(Core::StandIn, &["tool-rough"]).set(|wanted| {
        wanted.host = Box::new(|builder| {
            let approvals = Approvals::Ask {
                timeout: Duration::from_secs(60),
                grant_for: Duration::ZERO,
            };
            builder.approvals(approvals).policy(TestHost::policy(
                PermissionMode::Default,
                &["allow tool-rough.*"],
            ))
        });
    });
    let stage = wanted.start().await;
    let scope = toolpost_model::ApprovalScope::default();
    let yes = Verdict::Allow {
        scope,
        rule: None,
        valid_for_seconds: None,
        arguments: None,
    };
    for (verdict, answer) in [(yes, "Allow"), (Verdict::Deny { feedback: None }, "Deny")] {
        let host = stage.test.host.clone();
        let answering = async {
            let operator = Principal::operator("me");
            until("a question", || !host.approvals().is_empty()).await;
            let question = host.approvals().remove(0);
            assert!(
                question.arguments.to_string().contains("may I?"),
                "{question:?}"
            );
            host.decide(question.ask_id, verdict, &operator)
                .await
                .unwrap();
        };
        let (result, ()) = tokio::join!(stage.call("ask", json!({})), answering);
        assert_eq!(result.model_text(), answer);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_to_ask_is_a_no() {
    let stage = Stage::new(Core::StandIn, &["tool-rough"]).await;
    assert_eq!(stage.call("ask", json!({})).await.model_text(), "Deny");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_environment_is_cleared_and_what_is_passed_on_purpose_arrives() {
    let wanted = Wanted::new(Core::StandIn, &["tool-rough"]).set(|wanted| {
        wanted
            .settings
            .environment
            .insert("COLOUR".to_owned(), "red".to_owned());
        wanted
            .settings
            .passed
            .insert("SERVICE_API_KEY".to_owned(), "k".to_owned());
    });
    let stage = wanted.start().await;
    let names = stage
        .call("environment", json!({}))
        .await
        .structured_content
        .unwrap()
        .to_string();
    assert!(
        names.contains("COLOUR") && names.contains("SERVICE_API_KEY"),
        "{names}"
    );
    assert!(!names.contains("CARGO_MANIFEST_DIR"), "{names}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_that_is_mounted_later_can_be_called() {
    let stage = Stage::new(Core::StandIn, &["tool-rough"]).await;
    assert_eq!(stage.call("grow", json!({})).await.model_text(), "grown");
    until("the new tool", || {
        stage.tools().contains(&"grown".to_owned())
    })
    .await;
    assert_eq!(
        stage.call("grown", json!({})).await.outcome,
        Outcome::Succeeded
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_of_modules_ask_while_rules_keep_paths_that_nothing_keeps_from_their_process() {
    let lines = ["allow tool-rough.*", "deny fs.read(**/.env*)"];
    for (lines, is_asked) in [(&lines[..1], false), (&lines[..], true)] {
        let policy = TestHost::policy(PermissionMode::Default, lines);
        let wanted = Wanted::new(Core::StandIn, &["tool-rough"])
            .set(|wanted| wanted.host = Box::new(|builder| builder.policy(policy)));
        let stage = wanted.start().await;
        let result = stage.call("environment", json!({})).await;
        let code = result.error.as_ref().map(|error| error.code.to_string());
        assert_eq!(
            code.as_deref() == Some("no_approver"),
            is_asked,
            "{result:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn events_of_modules_are_on_record_with_their_call_and_never_of_a_kind_of_the_hosts() {
    for core in BOTH {
        let stage = Stage::new(core, &["tool-kit"]).await;
        for name in [
            "kit:used",
            "stage",
            "result",
            "approval",
            "module_event",
            "tool:post",
        ] {
            let forged =
                json!({ "stage": "persist", "session_id": "another", "timestamp": "1999" });
            let arguments = json!({ "event": name, "data": forged });
            let (result, events) = stage.watched("emit", arguments).await;
            assert_eq!(result.model_text(), "emitted");
            let told: Vec<_> = events
                .iter()
                .filter_map(EventBody::as_module_event)
                .collect();
            let [(told_name, told_data)] = told.as_slice() else {
                panic!("{events:?}")
            };
            assert_eq!((*told_name, &told_data["stage"]), (name, &json!("persist")));
            let rows = stage.test.call_records().await;
            let of_call = rows
                .iter()
                .filter(|row| row.record.invocation_id == Some(result.invocation_id));
            let bodies =
                of_call.filter_map(|row| serde_json::from_str::<Value>(&row.record.body).ok());
            let kept: Vec<Value> = bodies
                .flat_map(|body| body["progress"].as_array().cloned().unwrap_or_default())
                .filter(|milestone| milestone["kind"] == "custom")
                .collect();
            let [event] = kept.as_slice() else {
                panic!("{rows:?}")
            };
            assert_eq!(event["name"], "module_event");
            let data = &event["data"];
            let session = stage.test.session.id().as_str();
            assert_eq!(
                (&data["event"], &data["session_id"]),
                (&json!(name), &json!(session))
            );
            let at = data["timestamp"]
                .as_str()
                .unwrap()
                .parse::<jiff::Timestamp>()
                .unwrap();
            assert!(
                jiff::Timestamp::now().duration_since(at).as_secs() < 60,
                "{event}"
            );
            // What the module itself says of them is data, and stands below.
            assert_eq!(data["data"]["session_id"], "another");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_test_kit_of_amplifier_works_under_both_cores() {
    for core in BOTH {
        let stage = Stage::new(core, &["tool-kit"]).await;
        let result = stage.call("use_kit", json!({})).await;
        let expected = json!({ "calls": 1, "output": "mock result", "mounted": ["test_tool"], "session": "test-session" });
        assert_eq!(
            result.structured_content,
            Some(expected),
            "{:?}",
            result.error
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn hooks_hear_of_tools_that_are_not_there_and_collect_what_modules_contribute() {
    for core in BOTH {
        let stage = Stage::new(core, &["tool-kit", "hooks-listen"]).await;
        let unknown = stage.call("no_such_tool", json!({})).await;
        assert_eq!(unknown.error_class(), Some(ErrorClass::UnknownTool));
        let mut told = json!(null);
        for _ in 0..100 {
            told = stage
                .call("listened", json!({}))
                .await
                .structured_content
                .unwrap();
            if told["errors"] != json!([]) {
                break;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        assert_eq!(
            told,
            json!({ "errors": ["no_such_tool"], "events": ["kit:used"] })
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_module_finds_the_span_of_its_call() {
    let stage = Stage::new(Core::StandIn, &["tool-rough"]).await;
    let result = stage
        .call("dispatch", json!({ "key": "traceparent" }))
        .await;
    let span = toolpost_model::TraceContext::of_call(result.invocation_id).traceparent();
    assert_eq!(result.model_text(), span, "{result:?}");
}
