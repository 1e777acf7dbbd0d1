//! No two kinds of end look the same, on any wire.

use serde_json::{Value, json};
use toolpost_a2e::{ToolResult as A2eResult, projection::CallResponseView};
use toolpost_model::{ErrorClass, ToolFailure, ToolResult};
use toolpost_testkit::{MockNativeTool, every_end};

use super::running::Place;

/// What is left when the texts and everything that differs from call to call is taken away.
fn bare(mut answer: Value) -> Value {
    for name in [
        "invocation_id",
        "artifacts",
        "persistence",
        "timings",
        "content",
        "data",
        "summary",
        "error",
    ] {
        let Some(part) = answer.get_mut(name) else {
            continue;
        };
        *part = match part {
            // Of an error its texts are taken away; what a program goes by stays.
            Value::Object(map) if name == "error" => {
                map.remove("message");
                continue;
            }
            Value::Array(pieces) => json!(pieces.len()),
            _ => json!("there"),
        };
    }
    if let Some(artifact) = answer.pointer_mut("/truncated/artifact") {
        *artifact = json!("there");
    }
    answer
}

fn all_differ(project: impl Fn(&ToolResult) -> Value) {
    let mut seen: Vec<(Value, &str)> = Vec::new();
    for (name, result) in every_end() {
        let shown = bare(project(&result));
        if let Some((_, other)) = seen.iter().find(|(other, _)| *other == shown) {
            panic!("`{name}` looks like `{other}`: {shown}");
        }
        seen.push((shown, name));
    }
}

#[test]
fn over_http_every_kind_of_end_is_another() {
    all_differ(|result| serde_json::to_value(result).unwrap());
}

fn over_a2e(result: &ToolResult) -> Value {
    let view = CallResponseView::of("r", "tool", result, &[], usize::MAX);
    serde_json::to_value(&view).unwrap()["data"].clone()
}

#[test]
fn over_a2e_every_kind_of_end_is_another() {
    // The late answer that is discarded is told by the text of the error alone: the protocol has no details.
    let clear = |result: &ToolResult| {
        let mut told = over_a2e(result);
        let late = result
            .error
            .as_ref()
            .and_then(|error| error.details.clone());
        told["late"] = late.unwrap_or_default();
        told
    };
    all_differ(clear);
}

#[test]
fn over_a2e_a_result_says_what_became_of_it_and_reads_back() {
    for (name, result) in every_end() {
        let told = over_a2e(&result);
        assert_eq!(told["outcome"], result.outcome.as_str(), "{name}");
        assert_eq!(told["disposition"], result.disposition.as_str(), "{name}");
        assert_eq!(told["success"], result.outcome.is_success(), "{name}");
        let read: A2eResult = serde_json::from_value(told).unwrap();
        assert_eq!(read.disposition, Some(result.disposition), "{name}");
        assert_eq!(
            (&read.artifacts, &read.redactions),
            (&result.artifacts, &result.redactions),
            "{name}"
        );
        assert_eq!(read.persistence, result.persistence, "{name}");
        assert_eq!(
            read.retry,
            result.error.as_ref().map(|error| error.retry),
            "{name}"
        );
        let in_process = CallResponseView::of("r", "tool", &result, &[], usize::MAX).to_message();
        assert_eq!(
            in_process.data, read,
            "{name}: the same in process and on the wire"
        );
    }
}

#[tokio::test]
async fn when_to_try_again_is_told_in_the_header_too() {
    let failing = |id: &str, failure: ToolFailure| MockNativeTool::named(id).failing(failure);
    let busy = ToolFailure::of(ErrorClass::RateLimited, "busy");
    let running = Place::without_native_tools()
        .start_with(|builder| {
            builder
                .tool(failing("ends.told", busy.clone().after_ms(2_500)))
                .tool(failing("ends.busy", busy))
                .tool(MockNativeTool::named("ends.empty").output(()))
        })
        .await;
    for (tool, status, after) in [
        ("told", 429, Some("3")),
        ("busy", 429, None),
        ("empty", 200, None),
    ] {
        let answer = running.call(tool, json!({})).await;
        assert_eq!(
            (answer.status(), answer.head.header("retry-after")),
            (status, after),
            "{tool}"
        );
    }
    let empty = running.call("empty", json!({})).await.json();
    assert_eq!(
        (&empty["outcome"], &empty["disposition"]),
        (&json!("succeeded"), &json!("empty"))
    );
}
