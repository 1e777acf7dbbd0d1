//! Results against a table measured on the real package, byte for byte. `crates/toolpost/tests/amplifier/test_results.py`
//! holds the same table against the package that is installed there, so that the table cannot go stale unseen.

use serde::Deserialize;
use serde_json::{Map, Value, json};
use toolpost_amplifier::{ContentBlock, ResultError, ToolCall, ToolResult, ToolSpec, VerbatimJson};

/// One row: what a tool gave, and what the package makes of it. What the package itself cannot write is not there.
#[derive(Deserialize)]
struct Row {
    given: String,
    #[serde(default)]
    refused: bool,
    text: Option<String>,
    str: Option<String>,
    dump: Option<String>,
}

fn check(row: &Row) -> Result<(), String> {
    let Row {
        given,
        refused,
        text,
        str,
        dump,
    } = row;
    let result = match (ToolResult::parse(given), refused) {
        (Err(_), true) => return Ok(()),
        (Ok(result), true) => return Err(format!("{given}\n  taken as {result:?}")),
        (Err(error), false) => return Err(format!("{given}\n  refused: {error}")),
        (Ok(result), false) => result,
    };
    let pairs = [
        ("text", text, result.text_for_model()),
        ("str", str, result.text_for_people()),
        ("dump", dump, serde_json::to_string(&result).unwrap()),
    ];
    for (what, expected, ours) in pairs {
        if expected.as_ref().is_some_and(|expected| *expected != ours) {
            return Err(format!("{given}\n  {what}: {expected:?}\n  ours: {ours:?}"));
        }
    }
    Ok(())
}

#[test]
fn results_read_as_in_the_reference() {
    let rows: Vec<Row> = serde_json::from_str(include_str!("results.json")).unwrap();
    assert!(rows.len() > 250, "the table has only {} rows", rows.len());
    let wrong: Vec<String> = rows.iter().filter_map(|row| check(row).err()).collect();
    assert!(
        wrong.is_empty(),
        "{} of {} differ:\n{}",
        wrong.len(),
        rows.len(),
        wrong.join("\n")
    );
}

#[test]
fn a_result_made_in_rust_reads_like_one_that_was_sent() {
    let made = ToolResult::success(json!({"b": [1.0, true], "a": "é"}));
    assert_eq!(
        made.text_for_model(),
        r#"{"b": [1.0, true], "a": "\u00e9"}"#
    );
    assert_eq!(made.text_for_people(), "{'b': [1.0, True], 'a': 'é'}");
    assert_eq!(
        ToolResult::parse(&serde_json::to_string(&made).unwrap()).unwrap(),
        made
    );
    assert_eq!(ToolResult::success(Value::Null).text_for_model(), "Success");
    assert_eq!(
        ToolResult::failure("no such file").text_for_model(),
        "no such file"
    );
    assert_eq!(ToolResult::failure("no such file").output(), "no such file");
    assert_eq!(
        ToolResult::failure_of(Map::new()).text_for_model(),
        "Error: Failed"
    );
    let shown = ToolResult::failure("exit 1").with_output(json!({"stdout": "x"}));
    assert_eq!(shown.text_for_model(), r#"{"stdout": "x"}"#);
}

#[test]
fn what_is_no_result_says_what_is_wrong() {
    let refused = |text: &str| ToolResult::parse(text).unwrap_err().to_string();
    assert!(
        refused("{").starts_with("the result is not JSON"),
        "{}",
        refused("{")
    );
    assert!(refused("[]").contains("not a list"));
    assert_eq!(
        refused(r#"{"success": "maybe"}"#),
        r#"`success` must be a boolean, not "maybe""#
    );
    assert_eq!(
        refused(r#"{"error": "x"}"#),
        "`error` must be an object or null, not a text"
    );
    assert_eq!(
        refused(r#"{"content": ["x"]}"#),
        "invalid tool result content"
    );
    assert!(matches!(
        ToolResult::read(&json!(5)),
        Err(ResultError::Shape { given: "a number" })
    ));
}

#[test]
fn events_are_not_given_images() {
    let picture = ContentBlock::image("image/png", b"hi").unwrap();
    let result =
        ToolResult::success("x").with_content(vec![ContentBlock::Text("t".to_owned()), picture]);
    let told = result.for_events();
    assert_eq!(told["content"][0]["text"], "t");
    assert_eq!(
        told["content"][1],
        json!({"type": "text", "text": "[Image omitted from tool event; original retained for model request if unmodified.]"})
    );
    assert_eq!(result.to_value()["content"][1]["source"]["data"], "aGk=");
}

#[test]
fn calls_and_specs_keep_what_they_do_not_know() {
    let call: ToolCall =
        serde_json::from_value(json!({"id": "1", "name": "t", "arguments": {"a": 1}, "x": 2}))
            .unwrap();
    assert_eq!(
        (call.arguments["a"].clone(), call.extra["x"].clone()),
        (json!(1), json!(2))
    );
    assert_eq!(serde_json::to_value(&call).unwrap()["x"], 2);
    for odd in [
        json!({"id": 1, "name": "t", "arguments": {}}),
        json!({"id": "1", "name": "t", "arguments": "{}"}),
    ] {
        assert!(
            serde_json::from_value::<ToolCall>(odd.clone()).is_err(),
            "{odd}"
        );
    }
    let spec: ToolSpec =
        serde_json::from_value(json!({"name": "t", "parameters": {}, "strict": true})).unwrap();
    assert_eq!(
        (spec.description.as_deref(), spec.extra["strict"].clone()),
        (None, json!(true))
    );
}

#[test]
fn json_remembers_how_it_was_written() {
    let json =
        VerbatimJson::parse(r#" {"b": 123456789012345678901234567890, "a": "\ud800"} "#).unwrap();
    let text = r#"{"b": 123456789012345678901234567890, "a": "\ud800"}"#;
    assert_eq!(toolpost_amplifier::python_json(&json), text);
    assert_eq!(json.value()["a"], "");
}
