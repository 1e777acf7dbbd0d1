//! `host.echo`: the smallest tool, to try out a host, a face or a client.

use schemars::JsonSchema;
use serde::Deserialize;
use toolpost_model::{EffectClass, FnTool, RiskLevel, Tool, ToolFailure};

use super::literal;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The text to give back.
    message: String,
}

/// Builds the tool.
pub(super) fn tool() -> impl Tool {
    literal(FnTool::named("host.echo"))
        .describe("Gives the message back. Use it to check that the connection works.")
        .class(EffectClass::Read)
        .declare(|declaration| {
            declaration.title = Some("Echo".to_owned());
            declaration.search_hint = "ping test hello".to_owned();
            declaration.tags = vec!["host".to_owned(), "read".to_owned()];
            declaration.interface.permission.risk = RiskLevel::Low;
            declaration.interface.execution.idempotent = true;
            declaration.interface.rendering.subject_argument = Some("message".to_owned());
        })
        .run(|arguments: Arguments, _| async move { Ok::<_, ToolFailure>(arguments.message) })
}
