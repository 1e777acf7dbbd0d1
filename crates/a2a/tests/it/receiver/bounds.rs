//! Hostile peers: nothing grows beyond its bound, and nothing panics.

use serde_json::{Value, json};
use toolpost_a2a::{Receiver, ReceiverBounds, ReceiverOptions};

fn bounded(bounds: ReceiverBounds) -> Receiver {
    Receiver::new(ReceiverOptions {
        bounds,
        ..ReceiverOptions::default()
    })
}

#[test]
fn a_stream_has_so_many_calls_and_others_have_their_own() {
    let mut receiver = bounded(ReceiverBounds {
        calls_per_stream: 3,
        calls: 5,
        ..ReceiverBounds::default()
    });
    for task in ["A", "B"] {
        for n in 0..10 {
            let event =
                json!({ "type": "tool-call", "toolCallId": n.to_string(), "toolName": "t" });
            receiver.receive_value(
                &json!({ "task": { "id": task, "artifacts": [{ "parts": [{ "data": event }] }] } }),
            );
        }
    }
    assert_eq!((receiver.held(), receiver.tally().beyond_bounds), (5, 15));
    // What is held goes on.
    let end = json!({ "type": "tool-result", "toolCallId": "0", "output": 1 });
    let changes = receiver.receive_value(
        &json!({ "artifactUpdate": { "taskId": "A", "artifact": { "parts": [{ "data": end }] } } }),
    );
    assert_eq!(changes.len(), 1);
}

#[test]
fn joined_pieces_stop_growing_where_characters_end() {
    for size in [1, 2, 5] {
        let mut receiver = bounded(ReceiverBounds {
            joined_pieces: 10,
            ..ReceiverBounds::default()
        });
        let text: Vec<char> = "{\"a\":\"äöüx\"}".chars().collect();
        for piece in text.chunks(size) {
            let piece: String = piece.iter().collect();
            receiver.receive_value(
                &json!({ "type": "tool-input-delta", "toolCallId": "c", "delta": piece }),
            );
        }
        let parts = receiver.into_parts();
        assert_eq!(
            parts[0].args.to_value(),
            json!("{\"a\":\"äö"),
            "pieces of {size}"
        );
    }
}

#[test]
fn a_value_without_room_leaves_a_record_of_its_size() {
    let mut receiver = bounded(ReceiverBounds {
        bytes: 200,
        ..ReceiverBounds::default()
    });
    let long = "x".repeat(300);
    receiver.receive_value(
        &json!({ "type": "tool-call", "toolCallId": "c", "toolName": "t", "input": 1 }),
    );
    receiver.receive_value(&json!({ "type": "tool-result", "toolCallId": "c", "output": long }));
    let part = &receiver.into_parts()[0];
    assert_eq!(
        part.result.as_ref().unwrap().to_value(),
        json!({ "truncated": true, "bytes": 302 })
    );
    assert_eq!(part.args.to_value(), json!(1));
}

#[test]
fn what_is_held_stays_within_bounds_whatever_comes() {
    let mut receiver = bounded(ReceiverBounds {
        bytes: 10_000,
        calls: 1_000,
        ..ReceiverBounds::default()
    });
    for n in 0..5_000_u32 {
        let id = format!("{}-{n}", "i".repeat(40));
        let long = "x".repeat(n as usize % 700);
        let name = ["tool-input-delta", "tool-call", "tool-result", "tool-error"][n as usize % 4];
        receiver.receive_value(&json!({ "type": name, "toolCallId": id, "toolName": long, "delta": long, "input": long, "output": long, "error": long }));
        // Records of sizes are small, but they are something.
        assert!(
            receiver.held_bytes() <= 10_000 + 60 * receiver.held(),
            "{n}: {}",
            receiver.held_bytes()
        );
    }
    assert!(receiver.tally().beyond_bounds > 0);
}

#[test]
fn nesting_and_numbers_beyond_what_a_value_can_hold_are_kept_as_text() {
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let mut receiver = Receiver::default();
    let call = format!(r#"{{"type":"tool-call","toolCallId":"c","toolName":"t","input":{deep}}}"#);
    receiver.receive(&call).unwrap();
    receiver
        .receive(r#"{"type":"tool-result","toolCallId":"c","output":1e999}"#)
        .unwrap();
    receiver.receive(&call).unwrap();
    let part = receiver.into_parts().remove(0);
    assert_eq!(part.args.as_str(), deep);
    assert_eq!(part.args.to_value(), Value::String(deep));
    assert_eq!(part.result.unwrap().as_str(), "1e999");
}

#[test]
fn containers_in_containers_are_entered_only_so_far() {
    for name in [
        "task", "message", "status", "data", "metadata", "parts", "history",
    ] {
        let nested = format!(
            "{}{{}}{}",
            format!(r#"{{"{name}":["#).repeat(2_000),
            "]}".repeat(2_000)
        );
        let _ = Receiver::default().receive(&nested);
        let nested = format!(
            "{}{{}}{}",
            format!(r#"{{"{name}":"#).repeat(2_000),
            "}".repeat(2_000)
        );
        let _ = Receiver::default().receive(&nested);
    }
}

#[test]
fn a_text_of_very_many_objects_is_looked_at_only_so_far_and_counted() {
    let last = r#"{"data":{"type":"tool-call","toolCallId":"c"}}"#;
    for (object, held, beyond) in [("{},", 1, 0), (r#"{"id":1},"#, 0, 1)] {
        let many = format!(r#"{{"parts":[{}{last}]}}"#, object.repeat(70_000));
        let mut receiver = Receiver::default();
        receiver.receive(&many).unwrap();
        assert_eq!(
            (receiver.held(), receiver.tally().beyond_bounds),
            (held, beyond),
            "{object}"
        );
    }
}

#[test]
fn broken_text_is_refused_and_changes_nothing() {
    let mut receiver = Receiver::default();
    for text in [
        "",
        " ",
        "{",
        "tool-call",
        r#"{"type":"tool-call","toolCallId":"c"} x"#,
        r#"{"type":"tool-call","toolCallId":"c",}"#,
    ] {
        assert!(receiver.receive(text).is_err(), "{text}");
    }
    assert_eq!(receiver.held(), 0);
}

#[test]
fn a_value_never_breaks_a_line() {
    let mut receiver = Receiver::default();
    receiver
        .receive("{\"type\":\"tool-call\",\"toolCallId\":\"c\",\n\"input\":{\r\n\"a\":\n\"b\\n\"}}")
        .unwrap();
    let part = receiver.into_parts().remove(0);
    assert!(!part.args.as_str().contains(['\n', '\r']));
    assert_eq!(part.args.to_value(), json!({ "a": "b\n" }));
}
