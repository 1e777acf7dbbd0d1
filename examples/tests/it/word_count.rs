//! The example tool, called over HTTP like an agent.

use std::process::Command;

use serde_json::json;

use crate::{post::post, program::Program};

#[test]
fn the_tool_is_served_behind_the_token() {
    let mut program = Program::start(&mut Command::new(env!("CARGO_BIN_EXE_word-count")));
    let url = format!("{}/tools/word_count/call", program.says("url"));
    let token = program.says("token");
    let check =
        |token: &str, arguments: serde_json::Value, status: u16, pointer: &str, expected| {
            let (found, answer) = post(&url, token, &arguments);
            assert_eq!(
                (found, answer.pointer(pointer)),
                (status, Some(&expected)),
                "{arguments}: {answer}"
            );
        };
    let text = "one two two";
    check(
        &token,
        json!({ "text": text }),
        200,
        "/structured_content/words",
        json!(3),
    );
    check(
        &token,
        json!({ "text": text, "distinct": true }),
        200,
        "/content/0/text",
        json!("2 words"),
    );
    check(
        &token,
        json!({ "text": 5 }),
        422,
        "/error/details/violations/0/at",
        json!("/text"),
    );
    check(
        "wrong",
        json!({ "text": text }),
        401,
        "/error/code",
        json!("unauthorized"),
    );
}
