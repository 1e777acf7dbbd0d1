//! What the extension's text leaves open, decided: identity, order, repetition, errors, times.

use serde_json::json;
use toolpost_a2a::Receiver;

use super::{check, flying, with};

#[test]
fn the_three_canonical_events() {
    check(
        r#"{"type":"tool-call","toolCallId":"c1","toolName":"add","input":{"a":2}}"#,
        json!([flying("c1", "add", json!({ "a": 2 }))]),
    );
    check(
        r#"{"type":"tool-call","toolCallId":"c1","toolName":"add","input":{"a":2},"startedAt":"2026-05-05T10:00:00.000Z"}
           {"type":"tool-result","toolCallId":"c1","output":{"sum":5},"durationMs":12}"#,
        json!([with(
            flying("c1", "add", json!({ "a": 2 })),
            json!({ "result": { "sum": 5 }, "duration_ms": 12, "started_at": "2026-05-05T10:00:00.000Z" })
        )]),
    );
    check(
        r#"{"type":"tool-call","toolCallId":"c1","toolName":"add","input":{"a":2}}
           {"type":"tool-error","toolCallId":"c1","error":{"message":"no"}}"#,
        json!([with(
            flying("c1", "add", json!({ "a": 2 })),
            json!({ "error": { "message": "no" } })
        )]),
    );
}

#[test]
fn an_event_names_its_call_or_is_ignored_and_counted() {
    let cases = [
        (r#"{"type":"tool-call","id":"c1","toolName":"t"}"#, 1, 0),
        (
            r#"{"type":"tool-call","toolCallId":null,"id":"c1","toolName":"t"}"#,
            1,
            0,
        ),
        (r#"{"type":"tool-call","toolName":"t"}"#, 0, 1),
        (
            r#"{"type":"tool-call","toolCallId":"","toolName":"t"}"#,
            0,
            1,
        ),
        (
            r#"{"type":"tool-call","toolCallId":"","id":"c1","toolName":"t"}"#,
            0,
            1,
        ),
        (
            r#"{"type":"tool-call","toolCallId":7,"toolName":"t"}"#,
            0,
            1,
        ),
        (r#"{"type":"tool-call","id":7,"toolName":"t"}"#, 0, 1),
    ];
    for (line, held, ignored) in cases {
        let mut receiver = Receiver::default();
        receiver.receive(line).unwrap();
        assert_eq!(
            (receiver.held(), receiver.tally().without_id),
            (held, ignored),
            "{line}"
        );
    }
}

#[test]
fn a_name_may_come_late_and_is_never_erased() {
    for nothing in [
        r#""toolName":"","#,
        r#""toolName":null,"#,
        r#""toolName":3,"#,
        "",
    ] {
        check(
            &format!(r#"{{"type":"tool-call",{nothing}"toolCallId":"c1","input":1}}"#),
            json!([flying("c1", "unknown", json!(1))]),
        );
        check(
            &format!(
                r#"{{"type":"tool-call","toolName":"t","toolCallId":"c1","input":1}}
                   {{"type":"tool-result",{nothing}"toolCallId":"c1","output":2}}"#
            ),
            json!([with(flying("c1", "t", json!(1)), json!({ "result": 2 }))]),
        );
    }
    check(
        r#"{"type":"tool-result","toolCallId":"c1","output":2}
           {"type":"tool-result","toolCallId":"c1","toolName":"t","output":2}"#,
        json!([with(flying("c1", "t", json!({})), json!({ "result": 2 }))]),
    );
}

#[test]
fn until_the_end_the_later_name_and_input_count() {
    check(
        r#"{"type":"tool-call","toolCallId":"c1","toolName":"a","input":1}
           {"type":"tool-call","toolCallId":"c1","toolName":"b","input":null}
           {"type":"tool-call","toolCallId":"c1"}"#,
        json!([flying("c1", "b", json!(null))]),
    );
    check(
        r#"{"type":"tool-call","toolCallId":"c1","toolName":"a","input":1}
           {"type":"tool-result","toolCallId":"c1","toolName":"b","input":2,"output":3}
           {"type":"tool-result","toolCallId":"c1","toolName":"c","input":4,"output":3}"#,
        json!([with(flying("c1", "b", json!(2)), json!({ "result": 3 }))]),
    );
}

#[test]
fn the_last_end_stands_alone() {
    let call = r#"{"type":"tool-call","toolCallId":"c1","toolName":"t","input":{}}"#;
    let good = r#"{"type":"tool-result","toolCallId":"c1","output":1}"#;
    let bad = r#"{"type":"tool-error","toolCallId":"c1","error":"no"}"#;
    let part = flying("c1", "t", json!({}));
    let failed = json!([with(part.clone(), json!({ "error": { "message": "no" } }))]);
    let succeeded = json!([with(part, json!({ "result": 1 }))]);
    check(&[call, good, bad].join("\n"), failed.clone());
    check(&[call, bad, good].join("\n"), succeeded.clone());
    check(&[call, good, good, good].join("\n"), succeeded);
    check(&[call, good, bad, call, good, bad].join("\n"), failed);
}

#[test]
fn a_repetition_changes_nothing_and_says_so() {
    let lines = [
        r#"{"type":"tool-call","toolCallId":"c1","toolName":"t","input":{"a":1,"b":2}}"#,
        r#"{"type":"tool-result","toolCallId":"c1","output":1,"durationMs":2}"#,
    ];
    let mut receiver = Receiver::default();
    for line in lines {
        assert_eq!(receiver.receive(line).unwrap().len(), 1, "{line}");
    }
    let reordered =
        r#"{"type":"tool-call","toolCallId":"c1","toolName":"t","input":{ "b":2.0, "a":1 }}"#;
    for line in lines.into_iter().chain([reordered]) {
        assert_eq!(receiver.receive(line).unwrap(), [], "{line}");
    }
    assert_eq!(receiver.held(), 1);
}

#[test]
fn a_result_may_come_before_its_call() {
    check(
        r#"{"type":"tool-result","toolCallId":"c1","output":"done"}"#,
        json!([with(
            flying("c1", "unknown", json!({})),
            json!({ "result": "done" })
        )]),
    );
    check(
        r#"{"type":"tool-result","toolCallId":"c1","output":"done"}
           {"type":"tool-call","toolCallId":"c1","toolName":"t","input":{"a":1},"output":"stray"}"#,
        json!([with(
            flying("c1", "t", json!({ "a": 1 })),
            json!({ "result": "done" })
        )]),
    );
}

#[test]
fn what_a_failure_says() {
    let failed = "Tool execution failed";
    let cases = [
        (r#""error":"boom""#, "boom"),
        (r#""errorText":"boom""#, "boom"),
        (r#""error":{"message":"boom","stack":"…"}"#, "boom"),
        (r#""error":{"message":"","error":"inner"}"#, "inner"),
        (r#""error":{"errorText":"inner"}"#, "inner"),
        (r#""error":{"error":{"message":"inner"}}"#, "inner"),
        (
            r#""error":{"message":7, "code" : "E \" 1"}"#,
            r#"{"message":7,"code":"E \" 1"}"#,
        ),
        (r#""error":42"#, "42"),
        (r#""error":[ 1, 2 ]"#, "[1,2]"),
        (r#""error":{ }"#, failed),
        (r#""error":null"#, failed),
        (r#""error":"""#, failed),
        (
            r#""error":{},"errorText":"said elsewhere""#,
            "said elsewhere",
        ),
        (r#""output":"not an error""#, failed),
    ];
    for (member, message) in cases {
        check(
            &format!(r#"{{"type":"tool-error","toolCallId":"c1","toolName":"t",{member}}}"#),
            json!([with(
                flying("c1", "t", json!({})),
                json!({ "error": { "message": message } })
            )]),
        );
    }
}

#[test]
fn the_type_decides_between_output_and_error() {
    let result = |members: &str| {
        format!(r#"{{"type":"tool-result","toolCallId":"c1","toolName":"t"{members}}}"#)
    };
    let part = || flying("c1", "t", json!({}));
    check(
        &result(r#","output":1,"error":"stray""#),
        json!([with(part(), json!({ "result": 1 }))]),
    );
    check(
        &result(r#","error":"no""#),
        json!([with(part(), json!({ "error": { "message": "no" } }))]),
    );
    check(
        &result(r#","error":null"#),
        json!([with(part(), json!({ "result": null }))]),
    );
    check(
        r#"{"type":"tool-error","toolCallId":"c1","toolName":"t","output":1,"error":"no"}"#,
        json!([with(part(), json!({ "error": { "message": "no" } }))]),
    );
}

#[test]
fn an_end_without_output_is_still_an_end() {
    for output in ["", r#","output":null"#] {
        check(
            &format!(r#"{{"type":"tool-result","toolCallId":"c1","toolName":"t"{output}}}"#),
            json!([with(
                flying("c1", "t", json!({})),
                json!({ "result": null })
            )]),
        );
    }
}

#[test]
fn times_are_taken_as_they_are_or_left_out() {
    let cases = [
        (r#""durationMs":12"#, json!({ "duration_ms": 12 })),
        (r#""durationMs":12.0"#, json!({ "duration_ms": 12 })),
        (r#""durationMs":0.5"#, json!({ "duration_ms": 0.5 })),
        (
            r#""durationMs":18446744073709551615"#,
            json!({ "duration_ms": u64::MAX }),
        ),
        (r#""durationMs":-1"#, json!({})),
        (r#""durationMs":1e999"#, json!({})),
        (r#""durationMs":"12""#, json!({})),
        (r#""durationMs":null"#, json!({})),
        (
            r#""startedAt":"2026-05-05T10:00:00+02:00""#,
            json!({ "started_at": "2026-05-05T10:00:00+02:00" }),
        ),
        (
            r#""startedAt":"2026-05-05T10:00:00""#,
            json!({ "started_at": "2026-05-05T10:00:00" }),
        ),
        (
            r#""startedAt":"20260505T100000Z""#,
            json!({ "started_at": "20260505T100000Z" }),
        ),
        (r#""startedAt":"yesterday""#, json!({})),
        (r#""startedAt":1762339200"#, json!({})),
    ];
    for (member, expected) in cases {
        check(
            &format!(
                r#"{{"type":"tool-result","toolCallId":"c1","toolName":"t","output":1,{member}}}"#
            ),
            json!([with(
                with(flying("c1", "t", json!({})), json!({ "result": 1 })),
                expected
            )]),
        );
    }
}

#[test]
fn other_types_are_let_pass() {
    for name in [
        "tool_call",
        "Tool-Call",
        "tool-weather",
        "dynamic-tool",
        "text",
        "error",
        "tool-call ",
    ] {
        check(
            &format!(
                r#"{{"type":"{name}","toolCallId":"c1","toolName":"t","input":{{}},"state":"call"}}"#
            ),
            json!([]),
        );
    }
    for line in [
        "{}",
        "[]",
        "3",
        "null",
        r#""tool-call""#,
        r#"{"type":7,"toolCallId":"c1"}"#,
        "[[{}],4,\"x\"]",
    ] {
        check(line, json!([]));
    }
}

#[test]
fn a_preliminary_result_is_shown_and_ends_nothing() {
    let call = r#"{"type":"tool-call","toolCallId":"c1","toolName":"t","input":{}}"#;
    let early = r#"{"type":"tool-result","toolCallId":"c1","output":"half","preliminary":true}"#;
    let end = r#"{"type":"tool-result","toolCallId":"c1","output":"whole"}"#;
    let part = flying("c1", "t", json!({}));
    check(
        &[call, early].join("\n"),
        json!([with(part.clone(), json!({ "result": "half" }))]),
    );
    let mut receiver = Receiver::default();
    receiver.receive(call).unwrap();
    let change = receiver.receive(early).unwrap()[0];
    assert!(receiver.is_open(change.call));
    assert_eq!(receiver.take_ended(), []);
    check(
        &[call, early, end, early].join("\n"),
        json!([with(part.clone(), json!({ "result": "whole" }))]),
    );
    let error = r#"{"type":"tool-error","toolCallId":"c1","error":"no"}"#;
    check(
        &[call, early, error, early].join("\n"),
        json!([with(part, json!({ "error": { "message": "no" } }))]),
    );
}

#[test]
fn a_reused_id_is_a_second_call() {
    let first = r#"{"type":"tool-call","toolCallId":"call_0","toolName":"t","input":{"n":1}}
                   {"type":"tool-result","toolCallId":"call_0","output":1}"#;
    let second = r#"{"type":"tool-call","toolCallId":"call_0","toolName":"t","input":{"n":2}}
                    {"type":"tool-result","toolCallId":"call_0","output":2}"#;
    let both = json!([
        with(
            flying("call_0", "t", json!({ "n": 1 })),
            json!({ "result": 1 })
        ),
        with(
            flying("call_0", "t", json!({ "n": 2 })),
            json!({ "result": 2 })
        ),
    ]);
    check(&[first, second].join("\n"), both.clone());
    check(
        &[first, second, first, second, second, first].join("\n"),
        both,
    );
    // The second is still open when the first is replayed.
    let open = second.lines().next().unwrap();
    check(
        &[first, open, first, open].join("\n"),
        json!([
            with(
                flying("call_0", "t", json!({ "n": 1 })),
                json!({ "result": 1 })
            ),
            flying("call_0", "t", json!({ "n": 2 })),
        ]),
    );
    let renamed = r#"{"type":"tool-call","toolCallId":"call_0","toolName":"u","input":{"n":1}}"#;
    check(
        &[first, renamed].join("\n"),
        json!([
            with(
                flying("call_0", "t", json!({ "n": 1 })),
                json!({ "result": 1 })
            ),
            flying("call_0", "u", json!({ "n": 1 })),
        ]),
    );
}

#[test]
fn values_that_look_alike_are_other_calls() {
    let call = |input: &str| {
        format!(r#"{{"type":"tool-call","toolCallId":"c1","toolName":"t","input":{input}}}"#)
    };
    let end = r#"{"type":"tool-result","toolCallId":"c1","output":1}"#;
    for (first, second, held) in [
        (r#"{"a":1,"b":2}"#, r#"{"a":2,"b":1}"#, 2),
        (r#"{"a":[1,2]}"#, r#"{"a":[2,1]}"#, 2),
        (r#"{"a":[1],"b":[]}"#, r#"{"a":[],"b":[1]}"#, 2),
        (r#"{"a":"1"}"#, r#"{"a":1}"#, 2),
        (r#"{"a":{}}"#, r#"{"a":[]}"#, 2),
        ("9007199254740993", "9007199254740992", 2),
        (r#"{"a":null}"#, "{}", 2),
        (r#"{"a":"\u00e4","b":2}"#, r#"{"b":2.0,"a":"ä"}"#, 1),
        ("[1e2]", "[ 100 ]", 1),
    ] {
        let mut receiver = Receiver::default();
        for line in [&call(first), end, &call(second)] {
            receiver.receive(line).unwrap();
        }
        assert_eq!(receiver.held(), held, "{first} {second}");
    }
}

#[test]
fn an_ended_call_is_not_begun_anew() {
    let ended = r#"{"type":"tool-call","toolCallId":"c1","toolName":"t","input":{"a":1}}
                   {"type":"tool-result","toolCallId":"c1","output":1}"#;
    let expected = json!([with(
        flying("c1", "t", json!({ "a": 1 })),
        json!({ "result": 1 })
    )]);
    for late in [
        r#"{"type":"tool-input-start","toolCallId":"c1","toolName":"u"}"#,
        r#"{"type":"tool-input-delta","toolCallId":"c1","inputTextDelta":"{"}"#,
        r#"{"type":"tool-input-end","toolCallId":"c1"}"#,
        r#"{"type":"tool-approval-request","toolCallId":"c1","approvalId":"a"}"#,
        r#"{"type":"tool-approval-response","approvalId":"a","approved":false}"#,
    ] {
        check(&[ended, late].join("\n"), expected.clone());
    }
}

#[test]
fn input_is_what_it_is() {
    for (input, args) in [
        (r#","input":null"#, json!(null)),
        (r#","input":"{\"a\":1}""#, json!("{\"a\":1}")),
        (r#","input":[1]"#, json!([1])),
        (
            r#","input":9007199254740993"#,
            json!(9_007_199_254_740_993_u64),
        ),
        ("", json!({})),
    ] {
        check(
            &format!(r#"{{"type":"tool-call","toolCallId":"c1","toolName":"t"{input}}}"#),
            json!([flying("c1", "t", args)]),
        );
    }
}

#[test]
fn parts_stand_in_order_of_first_appearance() {
    check(
        r#"{"type":"tool-call","toolCallId":"z","toolName":"t"}
           {"type":"tool-call","toolCallId":"a","toolName":"t"}
           {"type":"tool-result","toolCallId":"a","output":1}
           {"type":"tool-call","toolCallId":"m","toolName":"t"}"#,
        json!([
            flying("z", "t", json!({})),
            with(flying("a", "t", json!({})), json!({ "result": 1 })),
            flying("m", "t", json!({})),
        ]),
    );
}
