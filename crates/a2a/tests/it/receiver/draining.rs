//! Taking ended calls out of a long stream.

use serde_json::json;
use toolpost_a2a::{CallPartChange, CallPhase, Receiver, ReceiverBounds, ReceiverOptions};

fn call(id: &str, input: u32) -> String {
    json!({ "type": "tool-call", "toolCallId": id, "toolName": "t", "input": { "n": input } })
        .to_string()
}

fn result(id: &str, output: u32) -> String {
    json!({ "type": "tool-result", "toolCallId": id, "output": output }).to_string()
}

fn take(receiver: &mut Receiver) -> Vec<(String, String)> {
    let parts = receiver.take_ended();
    parts
        .into_iter()
        .map(|(_, part)| (part.id, part.args.to_string()))
        .collect()
}

#[test]
fn changes_tell_how_far_a_call_has_come() {
    let mut receiver = Receiver::default();
    let mut steps = Vec::new();
    for line in [
        r#"{"type":"tool-input-start","toolCallId":"a","toolName":"t"}"#,
        r#"{"type":"tool-input-delta","toolCallId":"a","inputTextDelta":"{"}"#,
        &call("a", 1),
        r#"{"type":"tool-result","toolCallId":"a","output":0,"preliminary":true}"#,
        &result("a", 1),
        &result("a", 1),
        r#"{"type":"tool-error","toolCallId":"a"}"#,
    ] {
        steps.extend(
            receiver
                .receive(line)
                .unwrap()
                .into_iter()
                .map(|CallPartChange { step, .. }| step),
        );
    }
    assert_eq!(
        steps,
        [
            CallPhase::Started,
            CallPhase::Started,
            CallPhase::Called,
            CallPhase::Progressed,
            CallPhase::Ended,
            CallPhase::Ended
        ]
    );
}

#[test]
fn ended_calls_leave_in_order_of_appearance_and_open_ones_stay() {
    let mut receiver = Receiver::default();
    for line in [
        call("a", 1),
        call("b", 2),
        call("c", 3),
        result("c", 3),
        result("a", 1),
    ] {
        receiver.receive(&line).unwrap();
    }
    assert_eq!(
        take(&mut receiver),
        [
            ("a".into(), "{\"n\":1}".into()),
            ("c".into(), "{\"n\":3}".into())
        ]
    );
    assert_eq!(take(&mut receiver), []);
    assert_eq!(receiver.held(), 1);
    receiver.receive(&result("b", 2)).unwrap();
    assert_eq!(take(&mut receiver), [("b".into(), "{\"n\":2}".into())]);
    assert_eq!((receiver.held(), receiver.held_bytes()), (0, 0));
}

#[test]
fn a_replay_does_not_bring_taken_calls_back() {
    let mut receiver = Receiver::default();
    let stream = [
        r#"{"type":"tool-input-start","toolCallId":"a","toolName":"t"}"#.to_owned(),
        call("a", 1),
        result("a", 1),
        call("a", 2),
        result("a", 2),
    ];
    for line in &stream {
        receiver.receive(line).unwrap();
    }
    assert_eq!(take(&mut receiver).len(), 2);
    for line in &stream {
        assert_eq!(receiver.receive(line).unwrap(), [], "{line}");
    }
    assert_eq!((receiver.held(), receiver.tally().late), (0, 5));
    // Another call under the id is another call still.
    receiver.receive(&call("a", 3)).unwrap();
    assert_eq!(receiver.held(), 1);
}

#[test]
fn the_call_of_a_result_that_came_first_and_was_taken_comes_too_late() {
    let mut receiver = Receiver::default();
    receiver.receive(&result("a", 1)).unwrap();
    assert_eq!(take(&mut receiver), [("a".into(), "{}".into())]);
    assert_eq!(receiver.receive(&call("a", 1)).unwrap(), []);
    assert_eq!(receiver.held(), 0);
}

#[test]
fn an_open_call_under_a_reused_id_outlives_the_taking_of_the_first() {
    let mut receiver = Receiver::default();
    for line in [call("a", 1), result("a", 1), call("a", 2)] {
        receiver.receive(&line).unwrap();
    }
    assert_eq!(take(&mut receiver), [("a".into(), "{\"n\":1}".into())]);
    receiver.receive(&result("a", 2)).unwrap();
    assert_eq!(take(&mut receiver), [("a".into(), "{\"n\":2}".into())]);
}

#[test]
fn what_is_remembered_is_bounded() {
    let bounds = ReceiverBounds {
        remembered: 2,
        ..ReceiverBounds::default()
    };
    let mut receiver = Receiver::new(ReceiverOptions {
        bounds,
        ..ReceiverOptions::default()
    });
    for id in ["a", "b", "c"] {
        receiver.receive(&call(id, 1)).unwrap();
        receiver.receive(&result(id, 1)).unwrap();
        assert_eq!(take(&mut receiver).len(), 1);
    }
    receiver.receive(&result("c", 1)).unwrap();
    assert_eq!(receiver.held(), 0, "it was taken a moment ago");
    receiver.receive(&result("a", 1)).unwrap();
    assert_eq!(receiver.held(), 1, "two others were taken since");
}

#[test]
fn a_long_stream_holds_its_open_calls_and_nothing_else() {
    let mut receiver = Receiver::default();
    let mut most = (0, 0);
    for n in 0..20_000 {
        let task = n / 50;
        let event = |event: String| {
            format!(
                r#"{{"statusUpdate":{{"taskId":"T{task}","status":{{"message":{{"parts":[{{"data":{event}}}]}}}}}}}}"#
            )
        };
        receiver.receive(&event(call(&format!("c{n}"), n))).unwrap();
        receiver
            .receive(&event(result(&format!("c{n}"), n)))
            .unwrap();
        most = (
            most.0.max(receiver.held()),
            most.1.max(receiver.held_bytes()),
        );
        receiver.take_ended();
    }
    assert_eq!(most.0, 1);
    assert!(most.1 < 64, "{most:?}");
    assert_eq!(receiver.tally().beyond_bounds, 0);
}
