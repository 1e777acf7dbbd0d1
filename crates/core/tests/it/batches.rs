//! Calls of one turn: dependencies, order, and what the failure of one means for the others.

use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};
use toolpost_core::{
    CallHandle, CallRequest, EventInterest, EventListener, RecordKind, RecordedResult,
};
use toolpost_model::{
    BatchOrdering, BatchPlace, Disposition, EffectClass, ErrorClass, Event, Interrupt, OnFailure,
    Outcome, PermissionMode, RequestId, ToolFailure, ToolResult,
};
use toolpost_testkit::{MockNativeTool, MockToolGate, TestHost};

fn place(index: u32, depends_on: &[u32]) -> BatchPlace {
    BatchPlace {
        id: "turn".to_owned(),
        index,
        depends_on: depends_on.to_vec(),
        on_failure: OnFailure::Ignore,
        ordering: BatchOrdering::AllowUnordered,
    }
}

fn request(host: &TestHost, tool: &str, place: BatchPlace) -> CallRequest {
    let mut request = host.request(tool, json!({}));
    request.batch = Some(place);
    request
}

async fn start(host: &TestHost, tool: &str, place: BatchPlace) -> CallHandle {
    host.host.start(request(host, tool, place)).await
}

async fn result(handle: CallHandle) -> ToolResult {
    handle.answer().await.result().clone()
}

/// `ok` succeeds, `wait` waits at the gate, `bad` fails.
async fn host(gate: &MockToolGate) -> TestHost {
    let wait = MockNativeTool::named("demo.wait")
        .class(EffectClass::Read)
        .gate(gate);
    TestHost::build(|builder| {
        builder
            .tool(MockNativeTool::named("demo.ok").class(EffectClass::Read))
            .tool(MockNativeTool::named("demo.bad").failing(ToolFailure::new("no luck")))
            .tool(wait)
    })
    .await
}

fn error(result: &ToolResult) -> (ErrorClass, &str) {
    let error = result.error.as_ref().unwrap();
    (error.class, error.code.as_ref())
}

async fn until_queued(host: &TestHost, count: usize) {
    while host.host.health().queued < count {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_call_runs_after_those_it_depends_on_whatever_order_they_come_in() {
    let gate = MockToolGate::new();
    let host = host(&gate).await;
    let last = start(&host, "ok", place(2, &[0, 1])).await;
    until_queued(&host, 1).await;
    let first = start(&host, "wait", place(0, &[])).await;
    let second = start(&host, "wait", place(1, &[])).await;
    gate.entered(2).await;
    assert_eq!(host.host.health().queued, 1, "it waits for both");
    gate.let_through(1);
    tokio::task::yield_now().await;
    assert_eq!(host.host.health().queued, 1, "one is not enough");
    gate.let_through(1);
    for handle in [first, second, last] {
        assert_eq!(result(handle).await.outcome, Outcome::Succeeded);
    }
    let bodies: Vec<Value> = host
        .records()
        .await
        .iter()
        .filter(|row| row.record.kind == RecordKind::Ended)
        .map(|row| serde_json::from_str(&row.record.body).unwrap())
        .collect();
    assert_eq!(
        bodies.last().unwrap()["call"]["batch"]["depends_on"],
        json!([0, 1]),
        "on record, and last"
    );
}

#[tokio::test]
async fn what_depends_on_a_failure_is_given_up_with_a_synthetic_result_and_so_is_what_depends_on_that()
 {
    let host = host(&MockToolGate::new()).await;
    let third = start(&host, "ok", place(2, &[1])).await;
    let second = start(&host, "ok", place(1, &[0])).await;
    let other = start(&host, "ok", place(3, &[])).await;
    let first = start(&host, "bad", place(0, &[])).await;
    assert_eq!(result(first).await.outcome, Outcome::Failed);
    assert_eq!(
        result(other).await.outcome,
        Outcome::Succeeded,
        "nothing to do with it"
    );
    for (handle, because_of) in [(second, 0), (third, 1)] {
        let result = result(handle).await;
        assert_eq!(
            (result.outcome, result.disposition),
            (Outcome::Canceled, Disposition::Synthetic)
        );
        assert_eq!(error(&result).0, ErrorClass::SiblingCanceled);
        let details = result.error.unwrap().details.unwrap();
        assert_eq!(
            details,
            json!({ "abort_reason": "sibling_failed", "place": because_of })
        );
    }
}

#[tokio::test]
async fn a_failure_can_give_up_the_batch_and_running_calls_stop_only_where_their_tool_allows() {
    let gate = MockToolGate::new();
    let stubborn = MockToolGate::new();
    let interrupt = |how| {
        move |declaration: &mut toolpost_model::Declaration| {
            declaration.interface.execution.interrupt = how;
        }
    };
    let host = TestHost::build(|builder| {
        builder
            .tool(MockNativeTool::named("demo.ok"))
            .tool(MockNativeTool::named("demo.bad").failing(ToolFailure::new("no luck")))
            .tool(
                MockNativeTool::named("demo.soft")
                    .gate(&gate)
                    .declare(interrupt(Interrupt::Cancel)),
            )
            .tool(
                MockNativeTool::named("demo.hard")
                    .gate(&stubborn)
                    .declare(interrupt(Interrupt::Block)),
            )
    })
    .await;
    let soft = start(&host, "soft", place(0, &[])).await;
    let hard = start(&host, "hard", place(1, &[])).await;
    let waiting = start(&host, "ok", place(2, &[1])).await;
    gate.entered(1).await;
    stubborn.entered(1).await;
    until_queued(&host, 1).await;
    let failing = BatchPlace {
        on_failure: OnFailure::CancelSiblings,
        ..place(3, &[])
    };
    assert_eq!(
        result(start(&host, "bad", failing).await).await.outcome,
        Outcome::Failed
    );
    assert_eq!(error(&result(soft).await).0, ErrorClass::SiblingCanceled);
    assert_eq!(error(&result(waiting).await).0, ErrorClass::SiblingCanceled);
    let late = result(start(&host, "ok", place(4, &[])).await).await;
    assert_eq!(
        error(&late).0,
        ErrorClass::SiblingCanceled,
        "whoever comes later is given up too"
    );
    stubborn.let_through(1);
    assert_eq!(result(hard).await.outcome, Outcome::Succeeded);
    let elsewhere = BatchPlace {
        id: "another".to_owned(),
        ..place(0, &[])
    };
    assert_eq!(
        result(start(&host, "ok", elsewhere).await).await.outcome,
        Outcome::Succeeded
    );
}

#[tokio::test]
async fn a_failure_can_stop_those_that_depend_on_it_while_they_still_wait_for_another() {
    let gate = MockToolGate::new();
    let host = host(&gate).await;
    let slow = start(&host, "wait", place(0, &[])).await;
    let both = start(&host, "ok", place(2, &[0, 1])).await;
    let after = start(&host, "ok", place(3, &[2])).await;
    until_queued(&host, 2).await;
    let failing = BatchPlace {
        on_failure: OnFailure::CancelDependent,
        ..place(1, &[])
    };
    let failed = start(&host, "bad", failing).await;
    assert_eq!(result(failed).await.outcome, Outcome::Failed);
    assert_eq!(error(&result(both).await).0, ErrorClass::SiblingCanceled);
    assert_eq!(error(&result(after).await).0, ErrorClass::SiblingCanceled);
    gate.let_through(1);
    assert_eq!(result(slow).await.outcome, Outcome::Succeeded);
}

/// Hears of ends, in order.
struct Ends(
    std::sync::Mutex<tokio::sync::mpsc::UnboundedSender<u32>>,
    u32,
);

impl EventListener for Ends {
    fn wants(&self) -> EventInterest {
        EventInterest::Nothing
    }
    fn hear(&self, _: Event) -> toolpost_core::EventDelivery {
        toolpost_core::EventDelivery::Taken
    }
    fn ended(&self, _: &Arc<RecordedResult>) {
        self.0.lock().unwrap().send(self.1).unwrap();
    }
}

#[tokio::test]
async fn answers_come_in_the_batchs_order_while_the_record_has_each_end_at_once() {
    let gate = MockToolGate::new();
    let host = host(&gate).await;
    let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
    let mut handles = Vec::new();
    for index in 0..4 {
        let ordered = BatchPlace {
            ordering: BatchOrdering::PreserveTerminalOrder,
            ..place(index, &[])
        };
        let mut request = request(&host, if index == 1 { "wait" } else { "ok" }, ordered);
        request.delivery.listener =
            Some(Arc::new(Ends(std::sync::Mutex::new(tell.clone()), index)));
        request.identity.request_id = Some(RequestId::new(format!("r{index}")));
        handles.push(host.host.start(request).await);
    }
    gate.entered(1).await;
    let ends = || async {
        host.records()
            .await
            .iter()
            .filter(|row| row.record.kind == RecordKind::Ended)
            .count()
    };
    while ends().await < 3 {
        tokio::task::yield_now().await;
    }
    assert_eq!(told.recv().await, Some(0));
    assert!(told.try_recv().is_err(), "2 and 3 are done and wait for 1");
    // A repeat of the request waits along, and gets the same bytes.
    let mut again = request(&host, "ok", place(2, &[]));
    again.identity.request_id = Some(RequestId::new("r2"));
    let again = host.host.start(again).await;
    assert!(matches!(
        again.standing(),
        toolpost_core::CallHandleState::Joined
    ));
    gate.let_through(1);
    for expected in 1..4 {
        assert_eq!(told.recv().await, Some(expected));
    }
    let third = handles.remove(2).answer().await;
    let again = again.answer().await;
    assert_eq!(third.json(), again.json());
    assert_eq!(host.host.health().queued, 0);
}

#[tokio::test(start_paused = true)]
async fn whoever_cancels_or_has_no_more_time_gets_the_answer_out_of_order() {
    let gate = MockToolGate::new();
    let host = host(&gate).await;
    let ordered = |index| BatchPlace {
        ordering: BatchOrdering::PreserveTerminalOrder,
        ..place(index, &[])
    };
    let first = start(&host, "wait", ordered(0)).await;
    gate.entered(1).await;
    let canceled = start(&host, "ok", ordered(1)).await;
    let mut impatient = request(&host, "ok", ordered(2));
    impatient.times.patience = Some(toolpost_core::Patience::Turn(Duration::from_secs(1)));
    let impatient = host.host.call(impatient).await;
    assert_eq!(
        impatient.result().outcome,
        Outcome::Succeeded,
        "it was done in time"
    );
    host.host
        .cancel(canceled.invocation_id(), host.session.principal());
    assert_eq!(
        result(canceled).await.outcome,
        Outcome::Succeeded,
        "it was done before it was canceled"
    );
    gate.let_through(1);
    assert_eq!(result(first).await.outcome, Outcome::Succeeded);
}

#[tokio::test(start_paused = true)]
async fn serial_calls_run_one_after_the_other_and_a_gap_costs_a_moment() {
    let gate = MockToolGate::new();
    let host = host(&gate).await;
    let serial = |index| BatchPlace {
        ordering: BatchOrdering::Serial,
        ..place(index, &[])
    };
    let second = start(&host, "wait", serial(1)).await;
    let first = start(&host, "wait", serial(0)).await;
    gate.entered(1).await;
    assert_eq!(host.host.health().queued, 1);
    gate.let_through(1);
    assert_eq!(result(first).await.outcome, Outcome::Succeeded);
    gate.entered(1).await;
    // Nobody is at 2; 3 waits for 1, which runs, and then not much longer.
    let fourth = start(&host, "wait", serial(3)).await;
    gate.let_through(1);
    assert_eq!(result(second).await.outcome, Outcome::Succeeded);
    gate.entered(1).await;
    // One that comes late does not run beside a later one.
    let third = start(&host, "ok", serial(2)).await;
    until_queued(&host, 1).await;
    gate.let_through(1);
    assert_eq!(result(fourth).await.outcome, Outcome::Succeeded);
    assert_eq!(result(third).await.outcome, Outcome::Succeeded);
}

#[tokio::test(start_paused = true)]
async fn what_never_comes_is_not_waited_for_for_ever() {
    let host = host(&MockToolGate::new()).await;
    for patience in [None, Some(Duration::from_millis(10))] {
        let name = format!("{patience:?}");
        let mut request = request(
            &host,
            "ok",
            BatchPlace {
                id: name,
                ..place(1, &[0])
            },
        );
        request.times.patience = patience.map(toolpost_core::Patience::Turn);
        let result = host.host.call(request).await.result().clone();
        assert_eq!(
            error(&result),
            (ErrorClass::SiblingCanceled, "dependency_missing"),
            "{patience:?}"
        );
    }
    assert_eq!(host.host.health().queued, 0);
}

#[tokio::test]
async fn nonsense_is_refused_and_nobody_waits_for_it() {
    let host = host(&MockToolGate::new()).await;
    let named = |id: &str, index, depends_on: &[u32]| BatchPlace {
        id: id.to_owned(),
        ..place(index, depends_on)
    };
    for (nonsense, code) in [
        (named("a", 256, &[]), "batch_place"),
        (named("b", u32::MAX, &[]), "batch_place"),
        (named("c", 0, &[u32::MAX]), "batch_place"),
        (named("d", 0, &[0]), "batch_cycle"),
        (named(&"x".repeat(1_000), 0, &[]), "batch_id"),
    ] {
        let result = result(start(&host, "ok", nonsense).await).await;
        assert_eq!(error(&result), (ErrorClass::InvalidArguments, code));
        let retry = result.error.as_ref().unwrap().retry;
        assert!(
            !retry.change_arguments,
            "other arguments would be refused as well"
        );
    }
    // The one that closes a circle is refused, and those in it are given up at once.
    let one = start(&host, "ok", named("e", 0, &[2])).await;
    let two = start(&host, "ok", named("e", 1, &[0])).await;
    let closing = result(start(&host, "ok", named("e", 2, &[1])).await).await;
    assert_eq!(error(&closing).1, "batch_cycle");
    for handle in [one, two] {
        assert_eq!(error(&result(handle).await).0, ErrorClass::SiblingCanceled);
    }
    // So is one whose circle is made by the serial order.
    let serial = BatchPlace {
        ordering: BatchOrdering::Serial,
        ..named("f", 1, &[])
    };
    let waits = start(&host, "ok", serial).await;
    let closing = result(start(&host, "ok", named("f", 0, &[1])).await).await;
    assert_eq!(error(&closing).1, "batch_cycle");
    assert_eq!(
        result(waits).await.outcome,
        Outcome::Succeeded,
        "the order asks for an end, not for success"
    );
    // A place is taken once.
    assert_eq!(
        result(start(&host, "ok", named("g", 0, &[])).await)
            .await
            .outcome,
        Outcome::Succeeded
    );
    let twice = result(start(&host, "ok", named("g", 0, &[])).await).await;
    assert_eq!(error(&twice).1, "batch_place_taken");
    let after = result(start(&host, "ok", named("g", 1, &[0])).await).await;
    assert_eq!(
        after.outcome,
        Outcome::Succeeded,
        "the first call still stands for the place"
    );
}

#[tokio::test]
async fn a_place_whose_call_was_not_taken_can_be_taken_again() {
    let gate = MockToolGate::new();
    let host = host(&gate).await;
    let mut hurried = request(&host, "ok", place(1, &[0]));
    let blocker = start(&host, "wait", place(0, &[])).await;
    gate.entered(1).await;
    hurried.times.patience = Some(toolpost_core::Patience::Turn(Duration::ZERO));
    hurried.identity.request_id = Some(RequestId::new("r"));
    assert_eq!(
        host.host.call(hurried).await.result().outcome,
        Outcome::Rejected
    );
    gate.let_through(1);
    assert_eq!(result(blocker).await.outcome, Outcome::Succeeded);
    let mut again = request(&host, "ok", place(1, &[0]));
    again.identity.request_id = Some(RequestId::new("r"));
    assert_eq!(
        host.host.call(again).await.result().outcome,
        Outcome::Succeeded
    );
}

#[tokio::test]
async fn a_denied_call_fails_its_batch_like_any_other() {
    let host = TestHost::build(|builder| {
        builder
            .tool(MockNativeTool::named("demo.ok"))
            .tool(MockNativeTool::named("demo.secret"))
            .policy(TestHost::policy(PermissionMode::Bypass, &["deny secret"]))
    })
    .await;
    let after = start(&host, "ok", place(1, &[0])).await;
    let denied = start(&host, "secret", place(0, &[])).await;
    assert_eq!(result(denied).await.outcome, Outcome::Denied);
    assert_eq!(error(&result(after).await).0, ErrorClass::SiblingCanceled);
}

#[tokio::test]
async fn batches_do_not_grow_without_bound_and_finished_ones_make_room() {
    let gate = MockToolGate::new();
    let host = host(&gate).await;
    let named = |number: usize, index, depends_on: &[u32]| BatchPlace {
        id: format!("b{number}"),
        ..place(index, depends_on)
    };
    for number in 0..200 {
        assert_eq!(
            result(start(&host, "ok", named(number, 0, &[])).await)
                .await
                .outcome,
            Outcome::Succeeded
        );
    }
    let mut open = Vec::new();
    for number in 1_000..1_064 {
        open.push(start(&host, "ok", named(number, 1, &[0])).await);
    }
    let refused = result(start(&host, "ok", named(2_000, 0, &[])).await).await;
    assert_eq!(
        error(&refused),
        (ErrorClass::RateLimited, "too_many_batches")
    );
    for number in 1_000..1_064 {
        start(&host, "ok", named(number, 0, &[])).await.detach();
    }
    for handle in open {
        assert_eq!(result(handle).await.outcome, Outcome::Succeeded);
    }
    assert_eq!(
        result(start(&host, "ok", named(2_000, 0, &[])).await)
            .await
            .outcome,
        Outcome::Succeeded
    );
}
