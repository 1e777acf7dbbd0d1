//! What a receiver makes of events.

mod bounds;
mod bridging;
mod carriers;
mod draining;
mod lines;
mod own;
mod properties;
mod rulings;
mod vocabulary;

use serde_json::{Value, json};
use toolpost_a2a::{Receiver, ReceiverOptions};

/// The parts that come of these texts, one a line.
fn parts(lines: &str) -> Value {
    parts_with(ReceiverOptions::default(), lines)
}

fn parts_with(options: ReceiverOptions, lines: &str) -> Value {
    let mut receiver = Receiver::new(options);
    for line in lines.lines().filter(|line| !line.trim().is_empty()) {
        receiver.receive(line).unwrap();
    }
    serde_json::to_value(receiver.into_parts()).unwrap()
}

/// Checks the parts that come of these texts.
#[track_caller]
fn check(lines: &str, expected: impl Into<Value>) {
    assert_eq!(parts(lines), expected.into(), "of {lines}");
}

/// A part in flight.
fn flying(id: &str, name: &str, args: impl Into<Value>) -> Value {
    json!({ "kind": "tool_call", "id": id, "name": name, "args": args.into() })
}

/// A part with more members.
fn with(mut part: Value, members: Value) -> Value {
    let Value::Object(members) = members else {
        panic!("members are an object")
    };
    part.as_object_mut().unwrap().extend(members);
    part
}
