//! Between a module's result and Toolpost's.

use serde_json::{Value, json};
use toolpost_amplifier::{ContentBlock, ToolError, ToolResult, into_outcome, of_result};
use toolpost_model::{
    Disposition, ErrorClass, InvocationId, Outcome, Recoverability, ResultContent, RetryGuidance,
    Timings, ToolFailure, ToolOutput,
};

fn parsed(text: &str) -> ToolResult {
    ToolResult::parse(text).unwrap()
}

/// What the host makes of a tool's end, as far as it matters here.
fn hosted(end: Result<ToolOutput, ToolFailure>) -> toolpost_model::ToolResult {
    let is_error = end.is_err();
    let (content, structured_content, error) = match end {
        Ok(output) => (output.content, output.structured, None),
        Err(failure) => {
            let error = toolpost_model::ToolError {
                class: failure.class,
                code: failure.class.as_str().into(),
                message: failure.message,
                hint: None,
                recoverability: Recoverability::Never,
                retry: RetryGuidance::UNSAFE,
                details: failure.details,
            };
            (failure.content, None, Some(error))
        }
    };
    toolpost_model::ToolResult {
        invocation_id: InvocationId::new(),
        tool_id: None,
        outcome: if is_error {
            Outcome::Failed
        } else {
            Outcome::Succeeded
        },
        disposition: Disposition::Inline,
        is_error,
        content,
        structured_content,
        summary: None,
        exit_code: None,
        truncated: None,
        artifacts: Vec::new(),
        persistence: None,
        redactions: Default::default(),
        error,
        sandbox: None,
        approval_waived: None,
        meta: None,
        timings: Timings::default(),
    }
}

#[test]
fn a_success_is_shown_in_the_contracts_words() {
    let output = into_outcome(parsed(r#"{"output": {"b": 1, "a": 2}}"#)).unwrap();
    assert_eq!(output.content, [ResultContent::text(r#"{"b": 1, "a": 2}"#)]);
    assert_eq!(output.structured, Some(json!({"a": 2, "b": 1})));
    let output = into_outcome(parsed(r#"{"output": true}"#)).unwrap();
    assert_eq!(
        (output.content, output.structured),
        (vec![ResultContent::text("True")], None)
    );
    let output = into_outcome(parsed("{}")).unwrap();
    assert_eq!(output.content, [ResultContent::text("Success")]);
}

#[test]
fn pieces_follow_the_text_and_stand_alone_without_one() {
    let image = ContentBlock::image("image/png", b"hi").unwrap();
    let pieces = vec![ContentBlock::Text("seen".to_owned()), image];
    let shown = [
        ResultContent::text("seen"),
        ResultContent::Image {
            data: "aGk=".to_owned(),
            media_type: "image/png".to_owned(),
        },
    ];
    let output = into_outcome(ToolResult::success("x").with_content(pieces.clone())).unwrap();
    assert_eq!(output.content[0], ResultContent::text("x"));
    assert_eq!(output.content[1..], shown);
    let output = into_outcome(ToolResult::success(Value::Null).with_content(pieces)).unwrap();
    assert_eq!(output.content, shown);
}

#[test]
fn of_a_failure_nothing_is_lost() {
    let error = r#"{"message": "no such file", "type": "FileNotFoundError", "errno": 2}"#;
    let failure = into_outcome(parsed(&format!(
        r#"{{"success": false, "error": {error}}}"#
    )))
    .unwrap_err();
    assert_eq!(
        (failure.class, failure.message.as_str()),
        (ErrorClass::ExecutionFailed, "no such file")
    );
    let details: Value = serde_json::from_str(error).unwrap();
    assert_eq!(failure.details, Some(json!({"error": details})));
    assert!(failure.content.is_empty(), "the message is not told twice");

    let text = r#"{"success": false, "output": {"stdout": "x", "returncode": 1}}"#;
    let failure = into_outcome(parsed(text)).unwrap_err();
    assert_eq!(failure.message, "the tool failed and gave no reason");
    assert_eq!(
        failure.content,
        [ResultContent::text(r#"{"stdout": "x", "returncode": 1}"#)]
    );
    assert_eq!(
        failure.details,
        Some(json!({"output": {"stdout": "x", "returncode": 1}}))
    );

    let failure =
        into_outcome(parsed(r#"{"success": false, "output": "first\nsecond"}"#)).unwrap_err();
    assert_eq!(failure.message, "first");
    assert_eq!(failure.content, [ResultContent::text("first\nsecond")]);
}

#[test]
fn a_failure_without_a_message_reads_as_an_unknown_error() {
    for (text, expected) in [
        (
            r#"{"success": false, "error": {"type": "T"}}"#,
            "Error: Unknown error",
        ),
        (
            r#"{"success": false, "error": {"type": "T", "message": null}}"#,
            "Error: Unknown error",
        ),
        (
            r#"{"success": false, "error": {"message": ""}}"#,
            "Error: Unknown error",
        ),
        (
            r#"{"success": false, "output": {"a": 1}, "error": {"type": "T"}}"#,
            "Error: Unknown error",
        ),
        // Without any error these are Amplifier's own words.
        (r#"{"success": false, "error": {}}"#, "Error: Failed"),
        (r#"{"success": false}"#, "Error: Failed"),
        (r#"{"success": false, "error": {"message": 0}}"#, "0"),
    ] {
        let failure = into_outcome(parsed(text)).unwrap_err();
        assert_eq!(failure.message, expected, "{text}");
        let output = parsed(text).output().clone();
        assert_eq!(failure.content.is_empty(), output.is_null(), "{text}");
    }
}

#[test]
fn hooks_see_a_modules_result_as_the_module_gave_it() {
    for text in [
        r#"{"output": {"a": [1, 2]}}"#,
        r#"{"output": "text"}"#,
        r#"{"success": false, "error": {"message": "m", "type": "T", "extra": [1]}}"#,
        r#"{"success": false, "output": {"stdout": "x"}, "error": {"message": "m"}}"#,
    ] {
        let given = parsed(text);
        assert_eq!(
            of_result(&hosted(into_outcome(given.clone()))),
            given,
            "{text}"
        );
    }
}

#[test]
fn hooks_see_the_hosts_own_failures_with_their_class() {
    let result = of_result(&hosted(Err(ToolFailure::of(
        ErrorClass::Timeout,
        "too slow",
    ))));
    assert!(!result.is_success());
    assert_eq!(result.error().unwrap()["type"], "timeout");
    assert_eq!(result.error().unwrap()["message"], "too slow");
    // Details that merely look alike are somebody else's.
    let mut failure = ToolFailure::new("odd");
    failure.details = Some(json!({"error": {"message": "x"}, "violations": []}));
    assert_eq!(
        of_result(&hosted(Err(failure))).error().unwrap()["message"],
        "odd"
    );
}

#[test]
fn a_tool_that_could_not_even_try_fails_with_what_it_knows() {
    let error = ToolError::ExecutionFailed {
        message: "boom".to_owned(),
        stdout: Some("out".to_owned()),
        stderr: Some(String::new()),
        exit_code: Some(3),
    };
    let written = serde_json::to_value(&error).unwrap();
    assert_eq!(
        written,
        json!({"type": "execution_failed", "message": "boom", "stdout": "out", "stderr": "", "exit_code": 3})
    );
    let failure = error.into_failure();
    assert_eq!(
        (failure.message.as_str(), failure.exit_code),
        ("boom", Some(3))
    );
    assert_eq!(failure.content, [ResultContent::text("out")]);
    let failure = ToolError::NotFound {
        name: "x".to_owned(),
    }
    .into_failure();
    assert_eq!(
        (failure.class, failure.message.as_str()),
        (ErrorClass::UnknownTool, "Tool 'x' not found")
    );
    assert_eq!(failure.untouched, Some(true));
}
