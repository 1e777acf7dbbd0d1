//! The failure table: each standing, each way to fail, before and after.

use std::time::Duration;

use serde_json::json;
use toolpost_core::{HookError, HookOutput, HostLimits};
use toolpost_model::{
    Behavior, ErrorClass, HookEvent, HookStanding, Outcome, ResultContent, ToolFailure,
};
use toolpost_testkit::{MockNativeTool, TestHost};

use super::{Probe, act, host, last, run, runs};

/// Every way to fail, with what is on record of it.
fn failing(event: HookEvent) -> Vec<(Probe, &'static str)> {
    let unfit: fn() -> HookOutput = match event {
        HookEvent::Before => || HookOutput::replace("x", ""),
        HookEvent::After | HookEvent::Failure => || HookOutput::rewrite(json!({}), ""),
    };
    let hanging = Probe::asking(event, |_, _| Box::pin(std::future::pending()));
    let panicking = Probe::asking(event, |_, _| Box::pin(async { panic!("out of ink") }));
    vec![
        (
            Probe::at(event, || Err(HookError("no paper".to_owned()))),
            "no paper",
        ),
        (
            Probe {
                limit: Some(Duration::from_millis(30)),
                ..hanging
            },
            "it did not answer within 30 ms",
        ),
        (panicking, "it panicked: out of ink"),
        (
            Probe::asking(event, |_, _| panic!("at once")),
            "it panicked: at once",
        ),
        (Probe::at(event, move || Ok(unfit())), "cannot be changed"),
    ]
}

#[tokio::test(start_paused = true)]
async fn a_guard_that_fails_before_a_call_denies_it() {
    for (probe, said) in failing(HookEvent::Before) {
        let (result, tool, host) = run([probe.standing(HookStanding::Guard)]).await;
        let error = result.error.unwrap();
        assert_eq!(
            (result.outcome, error.class),
            (Outcome::Denied, ErrorClass::HookFailed),
            "{said}"
        );
        assert!(error.message.contains(said), "{said}: {}", error.message);
        assert_eq!(tool.call_count(), 0);
        assert!(
            runs(&host).await[0]["error"]
                .as_str()
                .unwrap()
                .contains(said)
        );
    }
}

#[tokio::test(start_paused = true)]
async fn an_ordinary_hook_that_fails_before_a_call_makes_it_ask() {
    for (probe, said) in failing(HookEvent::Before) {
        let (result, tool, host) = run([probe]).await;
        let error = result.error.unwrap();
        assert_eq!(
            (error.class, &*error.code),
            (ErrorClass::PermissionDenied, "no_approver"),
            "{said}"
        );
        assert_eq!(tool.call_count(), 0);
        let body = last(&host).await;
        assert_eq!(
            (
                &body["decision"]["behavior"],
                &body["decision"]["reason"]["type"]
            ),
            (&json!("ask"), &json!("hook"))
        );
        assert!(
            body["decision"]["reason"]["text"]
                .as_str()
                .unwrap()
                .contains(said)
        );
        assert!(body["hooks"][0]["error"].as_str().unwrap().contains(said));
    }
}

#[tokio::test(start_paused = true)]
async fn an_observer_that_fails_is_noted_and_changes_nothing() {
    for event in [HookEvent::Before, HookEvent::After] {
        for (probe, said) in failing(event) {
            // What an observer may not do at all is refused before what cannot be done at the event.
            let said = if said == "cannot be changed" {
                "an observer can only leave a message"
            } else {
                said
            };
            let (result, tool, host) = run([probe.standing(HookStanding::Observer)]).await;
            assert_eq!(
                (result.outcome, tool.call_count()),
                (Outcome::Succeeded, 1),
                "{said}"
            );
            assert_eq!(result.model_text(), "done");
            assert!(
                runs(&host).await[0]["error"]
                    .as_str()
                    .unwrap()
                    .contains(said),
                "{said}"
            );
        }
    }
}

#[tokio::test]
async fn an_observer_that_wants_anything_but_a_message_has_failed() {
    let outputs = [
        HookOutput::stop("no"),
        HookOutput::rewrite(json!({ "n": 2 }), ""),
        HookOutput::opinion(Behavior::Deny, "no"),
        HookOutput::proceed().with_context("psst"),
    ];
    for output in outputs {
        let wanted = output.clone();
        let probe = Probe::at(HookEvent::Before, move || Ok(wanted.clone()));
        let (result, tool, host) = run([probe.standing(HookStanding::Observer)]).await;
        assert_eq!(
            (result.model_text().as_str(), tool.inputs()),
            ("done", vec![json!({ "n": 1 })]),
            "{output:?}"
        );
        assert_eq!(
            runs(&host).await[0]["error"],
            "an observer can only leave a message"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_guard_that_fails_after_a_call_withholds_the_result_and_tells_that_it_was_done() {
    for (probe, said) in failing(HookEvent::After) {
        let (result, tool, host) = run([probe.standing(HookStanding::Guard)]).await;
        assert_eq!(
            (result.outcome, tool.call_count(), result.is_error),
            (Outcome::Succeeded, 1, true),
            "{said}"
        );
        let error = result.error.clone().unwrap();
        assert_eq!(
            (error.class, &*error.code, error.retry.safe),
            (ErrorClass::HookFailed, "result_withheld", false)
        );
        assert!(
            error.message.starts_with("the call ran") && error.message.contains(said),
            "{}",
            error.message
        );
        let body = last(&host).await;
        assert_eq!(body["result"]["content"].as_array().unwrap().len(), 1);
        assert!(
            !body["result"].to_string().contains("\"done\"")
                && body["result"]["structured_content"].is_null()
        );
        assert_eq!(body["hooks"][0]["did"], json!(["withheld"]));
    }
}

#[tokio::test(start_paused = true)]
async fn an_ordinary_hook_that_fails_after_a_call_is_noted_and_the_result_stands() {
    for (probe, said) in failing(HookEvent::After) {
        let (result, _, host) = run([probe]).await;
        assert_eq!(
            (result.outcome, result.model_text().as_str()),
            (Outcome::Succeeded, "done"),
            "{said}"
        );
        assert!(
            runs(&host).await[0]["error"]
                .as_str()
                .unwrap()
                .contains(said)
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_guard_that_fails_after_a_failure_withholds_what_the_tool_said_of_it() {
    for (probe, said) in failing(HookEvent::Failure) {
        let mut failure = ToolFailure::new("password hunter2 is wrong");
        failure.content = vec![ResultContent::text("hunter2")];
        let tool = MockNativeTool::named("demo.act").failing(failure);
        let host = host(&tool, [probe.standing(HookStanding::Guard)]).await;
        let result = host.call("act", json!({})).await;
        assert_eq!(
            (result.outcome, result.error_class()),
            (Outcome::Failed, Some(ErrorClass::HookFailed)),
            "{said}"
        );
        assert!(!last(&host).await.to_string().contains("hunter2"));
    }
}

#[tokio::test]
async fn a_denial_keeps_its_reason_when_a_guard_fails_on_it() {
    let probe = Probe::at(HookEvent::Failure, || Err(HookError("broken".to_owned())));
    let host = TestHost::build(|builder| {
        let policy = TestHost::policy(toolpost_model::PermissionMode::Bypass, &["ask act"]);
        builder
            .tool(act())
            .hook(probe.standing(HookStanding::Guard))
            .policy(policy)
    })
    .await;
    let result = host.call("act", json!({})).await;
    assert_eq!(
        (result.outcome, result.error_class()),
        (Outcome::Denied, Some(ErrorClass::PermissionDenied))
    );
    assert_eq!(runs(&host).await[0]["error"], "broken");
}

#[tokio::test(start_paused = true)]
async fn the_hosts_limit_counts_where_a_hook_names_none() {
    let limits = HostLimits {
        hook: Duration::from_millis(70),
        ..HostLimits::default()
    };
    let hanging = Probe::asking(HookEvent::Before, |_, _| Box::pin(std::future::pending()));
    let host = TestHost::build(|b| {
        b.tool(act())
            .hook(hanging.standing(HookStanding::Guard))
            .limits(limits)
    })
    .await;
    let result = host.call("act", json!({})).await;
    assert!(result.error.unwrap().message.contains("70 ms"));
}

#[tokio::test]
async fn a_rewrite_over_the_limit_or_of_another_kind_is_the_hooks_failure() {
    let limits = HostLimits {
        argument_bytes: 100,
        ..HostLimits::default()
    };
    for (arguments, said) in [
        (json!({ "text": "x".repeat(200) }), "the limit is 100"),
        (json!([1]), "must be a JSON object"),
        (json!("text"), "must be a JSON object"),
    ] {
        let wanted = arguments.clone();
        let probe = Probe::at(HookEvent::Before, move || {
            Ok(HookOutput::rewrite(wanted.clone(), ""))
        });
        let host = TestHost::build(|b| {
            b.tool(act())
                .hook(probe.standing(HookStanding::Guard))
                .limits(limits)
        })
        .await;
        let error = host.call("act", json!({})).await.error.unwrap();
        assert_eq!(error.class, ErrorClass::HookFailed);
        assert!(error.message.contains(said), "{}", error.message);
    }
}
