//! The answer of a component as the outcome of a call.

use toolpost_amplifier::{ToolResult, into_outcome, sanitized};
use toolpost_model::{ToolFailure, ToolOutput};

/// Bytes are a result as JSON. Text is the plain message of a component that could not process the call.
pub(crate) fn outcome(answer: Result<Vec<u8>, String>) -> Result<ToolOutput, ToolFailure> {
    let bytes = answer.map_err(|text| match text.trim() {
        "" => ToolFailure::new("the component rejected the call and gave no reason"),
        text => ToolFailure::new(sanitized(text)),
    })?;
    let unfit = |fault: String| {
        let message = format!("the component's answer is not a result: {fault}");
        ToolFailure::new(message).code("wasm_invalid_result")
    };
    let text = std::str::from_utf8(&bytes).map_err(|error| unfit(error.to_string()))?;
    into_outcome(ToolResult::parse(text).map_err(|error| unfit(error.to_string()))?)
}
