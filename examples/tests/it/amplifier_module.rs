//! The modules in Rust, called over HTTP like an agent.

use std::process::Command;

use serde_json::{Value, json};

use crate::{post::post, program::Program};

#[test]
fn the_modules_tools_are_served_and_their_hook_is_asked() {
    let mut program = Program::start(&mut Command::new(env!("CARGO_BIN_EXE_amplifier-module")));
    let url = program.says("url");
    let token = program.says("token");
    let check = |tool: &str, arguments: Value, status: u16, pointer: &str, expected: Value| {
        let (found, answer) = post(&format!("{url}/tools/{tool}/call"), &token, &arguments);
        assert_eq!(
            (found, answer.pointer(pointer)),
            (status, Some(&expected)),
            "{arguments}: {answer}"
        );
    };
    check(
        "add_note",
        json!({ "text": " milk " }),
        200,
        "/content/0/text",
        json!(r#"{"notes": 1}"#),
    );
    check(
        "add_note",
        json!({}),
        422,
        "/error/class",
        json!("invalid_arguments"),
    );
    check(
        "add_note",
        json!({ "text": "a password" }),
        403,
        "/error/class",
        json!("hook_blocked"),
    );
    check(
        "list_notes",
        json!({}),
        200,
        "/structured_content",
        json!(["milk"]),
    );
}
