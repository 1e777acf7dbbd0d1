//! Every output at every event.

use serde_json::{Value, json};
use toolpost_core::HookOutput;
use toolpost_model::{
    Disposition, ErrorClass, EventBody, HookEvent, HookStanding, LogLevel, Outcome, ResultContent,
    ToolFailure, ToolOutput,
};
use toolpost_testkit::{CallEventRecorder, MockNativeTool, TestHost};

use super::{Probe, act, host, last, run, runs};

#[tokio::test]
async fn a_hook_with_nothing_to_say_changes_nothing_and_is_on_record() {
    let probe = Probe::silent();
    let seen = probe.seen.clone();
    let (result, _, host) = run([probe]).await;
    assert_eq!(
        (result.outcome, result.model_text().as_str()),
        (Outcome::Succeeded, "done")
    );
    let passed = |event| json!({ "name": "probe", "event": event, "standing": "ordinary" });
    assert_eq!(
        runs(&host).await,
        json!([passed("before"), passed("after")])
    );
    assert_eq!(
        *seen.lock().unwrap(),
        [
            (HookEvent::Before, json!({ "n": 1 }), None),
            (
                HookEvent::After,
                json!({ "n": 1 }),
                Some("succeeded".to_owned())
            )
        ]
    );
}

#[tokio::test]
async fn a_rewrite_is_checked_recorded_and_seen_by_the_hooks_after_it() {
    let rewrite = || {
        Ok(HookOutput::rewrite(
            json!({ "n": 2, "m": [1] }),
            "two is better",
        ))
    };
    let watcher = Probe::silent().named("watcher");
    let seen = watcher.seen.clone();
    let (result, tool, host) = run([Probe::at(HookEvent::Before, rewrite), watcher]).await;
    assert_eq!(result.outcome, Outcome::Succeeded);
    assert_eq!(tool.inputs(), [json!({ "n": 2, "m": [1] })]);
    let mut body = last(&host).await;
    assert!(body["mutations"][0]["at_us"].take().is_u64());
    body["mutations"][0]
        .as_object_mut()
        .unwrap()
        .remove("at_us");
    let first: Value = serde_json::from_str(&host.call_records().await[0].record.body).unwrap();
    assert_eq!(first["call"]["model_arguments"], json!({ "n": 1 }));
    assert_eq!(first["call"]["arguments"], json!({ "n": 2, "m": [1] }));
    assert_eq!(
        body["mutations"],
        json!([{ "source_type": "hook", "source": "probe", "changed_fields": ["m", "n"], "reason": "two is better" }])
    );
    assert_eq!(body["hooks"][0]["did"], json!(["changed_arguments"]));
    let seen = seen.lock().unwrap().clone();
    assert!(
        seen.iter()
            .all(|(_, arguments, _)| *arguments == json!({ "n": 2, "m": [1] })),
        "{seen:?}"
    );

    let same = || Ok(HookOutput::rewrite(json!({ "n": 1 }), "as it was"));
    let (_, _, host) = run([Probe::at(HookEvent::Before, same)]).await;
    assert!(last(&host).await["mutations"].is_null(), "nothing differs");
}

#[tokio::test]
async fn a_rewrite_that_the_tool_does_not_take_ends_the_call_and_names_the_hook() {
    let bad = || Ok(HookOutput::rewrite(json!({ "n": "two" }), ""));
    let (result, tool, host) = run([Probe::at(HookEvent::Before, bad)]).await;
    let error = result.error.unwrap();
    assert_eq!(
        (error.class, tool.call_count()),
        (ErrorClass::InvalidArguments, 0)
    );
    assert!(
        error
            .message
            .starts_with("after the hook `probe` changed the arguments: at /n"),
        "{}",
        error.message
    );
    assert_eq!(
        last(&host).await["mutations"][0]["changed_fields"],
        json!(["n"])
    );
}

#[tokio::test]
async fn a_hook_stops_a_call_before_it_runs_and_the_hooks_after_it_hear_of_the_end_only() {
    let stop = || {
        Ok(HookOutput::stop("not today")
            .with_message("stopped one")
            .with_context("try tomorrow"))
    };
    let watcher = Probe::silent().named("watcher");
    let seen = watcher.seen.clone();
    let (result, tool, host) = run([Probe::at(HookEvent::Before, stop), watcher]).await;
    assert_eq!(
        (result.outcome, result.error_class()),
        (Outcome::Denied, Some(ErrorClass::HookBlocked))
    );
    assert_eq!(
        result.error.as_ref().unwrap().message,
        "the hook `probe` stopped the call: not today"
    );
    assert_eq!(
        result.content,
        [ResultContent::text("[hook probe] try tomorrow")]
    );
    assert_eq!(tool.call_count(), 0);
    let seen = seen.lock().unwrap().clone();
    assert_eq!(
        seen,
        [(
            HookEvent::Failure,
            json!({ "n": 1 }),
            Some("denied".to_owned())
        )]
    );
    let recorded = runs(&host).await;
    assert_eq!(
        recorded[0]["did"],
        json!(["left_message", "added_context", "stopped"])
    );
    assert_eq!(
        (&recorded[0]["reason"], &recorded[0]["message"]),
        (&json!("not today"), &json!("stopped one"))
    );
}

#[tokio::test]
async fn changed_output_takes_the_place_of_all_the_tool_said() {
    let change = || Ok(HookOutput::replace("blotted", "it named a customer"));
    let (result, _, host) = run([Probe::at(HookEvent::After, change)]).await;
    assert_eq!(
        (result.outcome, result.is_error),
        (Outcome::Succeeded, false)
    );
    assert_eq!(result.content, [ResultContent::text("blotted")]);
    assert_eq!(
        (result.structured_content, result.summary),
        (None, None),
        "they would still tell"
    );
    assert_eq!(
        last(&host).await["output_mutations"],
        json!([{ "source_type": "hook", "source": "probe", "changed_fields": ["content", "structured_content"],
                 "bytes_before": 11, "bytes_after": 7, "reason": "it named a customer" }])
    );

    let both = || Ok(HookOutput::replace("blotted", "").with_structured(json!({ "n": 2 })));
    let (result, ..) = run([Probe::at(HookEvent::After, both)]).await;
    assert_eq!(result.structured_content, Some(json!({ "n": 2 })));

    let structured = || Ok(HookOutput::proceed().with_structured(json!({ "n": 3 })));
    let (result, _, host) = run([Probe::at(HookEvent::After, structured)]).await;
    assert_eq!(
        (result.structured_content, result.summary.as_deref()),
        (Some(json!({ "n": 3 })), Some("did it"))
    );
    assert_eq!(result.content, [ResultContent::text("done")]);
    assert_eq!(
        last(&host).await["output_mutations"][0]["changed_fields"],
        json!(["structured_content"])
    );

    let nothing = || {
        Ok(HookOutput {
            output: Some(Vec::new()),
            ..HookOutput::proceed()
        })
    };
    let (result, ..) = run([Probe::at(HookEvent::After, nothing)]).await;
    assert_eq!(result.disposition, Disposition::Empty);
}

#[tokio::test]
async fn the_next_hook_and_the_caller_see_the_changed_output_cut_to_the_limit() {
    let long = || Ok(HookOutput::replace("x".repeat(1_000), ""));
    let watcher = Probe::asking(HookEvent::After, |_, result| {
        assert!(result.unwrap().model_text().len() < 200);
        Box::pin(std::future::ready(Ok(HookOutput::proceed())))
    });
    let tool = act().declare(|d| d.interface.persistence.max_inline_chars = Some(100));
    let host = host(
        &tool,
        [
            Probe::at(HookEvent::After, long),
            watcher.standing(HookStanding::Guard),
        ],
    )
    .await;
    let result = host.call("act", json!({})).await;
    assert_eq!(
        (result.outcome, result.disposition),
        (Outcome::Succeeded, Disposition::Preview)
    );
    assert_eq!(result.truncated.unwrap().total, Some(1_000));
}

#[tokio::test]
async fn what_a_failed_call_has_to_show_can_be_changed_and_its_error_stays() {
    let mut failure = ToolFailure::new("exit 1");
    failure.content = vec![ResultContent::text("password=hunter2")];
    let change = || Ok(HookOutput::replace("password=…", "").with_context("look again"));
    let host = host(
        &MockNativeTool::named("demo.act").failing(failure),
        [Probe::at(HookEvent::Failure, change)],
    )
    .await;
    let result = host.call("act", json!({})).await;
    assert_eq!(
        (result.outcome, result.error_class()),
        (Outcome::Failed, Some(ErrorClass::ExecutionFailed))
    );
    assert_eq!(
        result.content,
        [
            ResultContent::text("password=…"),
            ResultContent::text("[hook probe] look again")
        ]
    );
    assert_eq!(result.summary.as_deref(), Some("exit 1"));
    assert!(!last(&host).await.to_string().contains("hunter2"));
}

#[tokio::test]
async fn a_stop_after_the_call_withholds_the_result_and_says_that_it_was_done() {
    let stop = || Ok(HookOutput::stop("it holds a key").with_context("never seen"));
    let early = Probe::at(HookEvent::Before, || {
        Ok(HookOutput::proceed().with_context("mind the gap"))
    });
    let later = Probe::silent().named("later");
    let watcher = Probe::silent().named("watcher");
    let seen = [later.seen.clone(), watcher.seen.clone()];
    let hooks = [
        early,
        Probe::at(HookEvent::After, stop),
        later,
        watcher.standing(HookStanding::Observer),
    ];
    let (result, tool, host) = run(hooks).await;
    assert_eq!(
        (result.outcome, tool.call_count(), result.is_error),
        (Outcome::Succeeded, 1, true)
    );
    let error = result.error.clone().unwrap();
    assert_eq!(
        (error.class, &*error.code),
        (ErrorClass::HookBlocked, "result_withheld")
    );
    assert!(!error.retry.safe, "it was done");
    let whole = serde_json::to_string(&result).unwrap();
    assert!(
        !whole.contains("\"done\"") && !whole.contains("never seen") && !whole.contains("did it"),
        "{whole}"
    );
    assert!(
        whole.contains("the call ran") && whole.contains("mind the gap"),
        "{whole}"
    );
    assert_eq!(result.structured_content, None);
    let after = seen.map(|seen| {
        seen.lock()
            .unwrap()
            .iter()
            .filter(|(event, ..)| *event == HookEvent::After)
            .count()
    });
    assert_eq!(after, [0, 1], "only observers are still told");
    assert_eq!(
        runs(&host).await[3]["did"],
        json!(["added_context", "withheld"])
    );
}

#[tokio::test]
async fn context_of_all_hooks_comes_after_the_output_in_their_order() {
    let say = |event, text: &'static str| {
        Probe::at(event, move || Ok(HookOutput::proceed().with_context(text)))
    };
    let blot = Probe::at(HookEvent::After, || Ok(HookOutput::replace("blotted", "")));
    let before = HookEvent::Before;
    let after = HookEvent::After;
    let (result, ..) = run([
        say(after, "c").named("third"),
        say(before, "a").named("first"),
        blot,
    ])
    .await;
    assert_eq!(
        result.model_text(),
        "blotted\n[hook first] a\n[hook third] c"
    );

    let only_structured = act().output(ToolOutput::structured(json!({ "n": 1 })));
    let host = host(&only_structured, [say(before, "a")]).await;
    let result = host.call("act", json!({})).await;
    assert_eq!(
        result.model_text(),
        "{\"n\":1}\n[hook probe] a",
        "a reader of text still gets the value"
    );
    assert_eq!(result.structured_content, Some(json!({ "n": 1 })));
}

#[tokio::test]
async fn a_message_is_an_event_and_on_record() {
    let say = || Ok(HookOutput::proceed().with_message("saw one"));
    let host = host(
        &act(),
        [Probe::at(HookEvent::Before, say).standing(HookStanding::Observer)],
    )
    .await;
    let (events, recorder) = CallEventRecorder::new(64);
    let mut request = host.request("act", json!({}));
    request.delivery.listener = Some(std::sync::Arc::new(events));
    host.host.call(request).await;
    let events = recorder.all().await;
    let line = events.iter().find_map(|event| match &event.body {
        EventBody::Log { level, message } => Some((*level, message.as_str())),
        _ => None,
    });
    assert_eq!(line, Some((LogLevel::Info, "probe: saw one")));
    assert_eq!(runs(&host).await[0]["message"], "saw one");
}

#[tokio::test]
async fn a_hook_that_a_call_does_not_concern_is_not_asked() {
    let stop = Probe::at(HookEvent::Before, || Ok(HookOutput::stop("")));
    let (result, _, host) = run([Probe {
        events: Vec::new(),
        ..stop
    }])
    .await;
    assert_eq!(result.outcome, Outcome::Succeeded);
    assert!(last(&host).await["hooks"].is_null());
}

#[tokio::test]
async fn a_dry_run_asks_what_would_decide_and_tells_of_it() {
    let stop = Probe::asking(HookEvent::Before, |call, _| {
        let stop = if call.is_dry_run {
            HookOutput::stop("not today")
        } else {
            HookOutput::proceed()
        };
        Box::pin(std::future::ready(Ok(stop)))
    });
    let watcher = Probe::silent().standing(HookStanding::Observer);
    let seen = watcher.seen.clone();
    let host: TestHost = host(&act(), [watcher, stop]).await;
    let explained = host
        .host
        .explain(host.request("act", json!({ "n": 1 })))
        .await;
    assert_eq!((explained.would_run, explained.hooks.len()), (false, 1));
    assert_eq!(explained.error.unwrap().class, ErrorClass::HookBlocked);
    assert!(
        seen.lock().unwrap().is_empty(),
        "there is nothing to observe"
    );
    assert_eq!(
        host.call("act", json!({ "n": 1 })).await.outcome,
        Outcome::Succeeded
    );
}
