//! A tool with a fixed answer.

use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use toolpost_amplifier::{Tool, ToolError, ToolResult};
use toolpost_model::BoxFuture;

/// A tool with a fixed answer that keeps its inputs. Clones share them.
#[derive(Clone, Debug)]
pub struct MockTool {
    name: String,
    description: String,
    answer: Result<ToolResult, ToolError>,
    inputs: Arc<Mutex<Vec<Value>>>,
}

impl MockTool {
    /// A tool that succeeds with an output. It takes any object.
    pub fn new(name: impl Into<String>, output: impl Into<Value>) -> Self {
        let name = name.into();
        let description = format!("Mock tool: {name}");
        Self {
            name,
            description,
            answer: Ok(ToolResult::success(output)),
            inputs: Arc::default(),
        }
    }

    /// Replaces the answer.
    #[must_use]
    pub fn answering(mut self, answer: Result<ToolResult, ToolError>) -> Self {
        self.answer = answer;
        self
    }

    /// How often it was called.
    pub fn call_count(&self) -> usize {
        self.inputs.lock().len()
    }

    /// The inputs, in order.
    pub fn inputs(&self) -> Vec<Value> {
        self.inputs.lock().clone()
    }
}

impl Tool for MockTool {
    fn name(&self) -> &str {
        &self.name
    }

    fn description(&self) -> &str {
        &self.description
    }

    fn input_schema(&self) -> Map<String, Value> {
        match json!({"type": "object", "properties": {}}) {
            Value::Object(schema) => schema,
            _ => Map::new(),
        }
    }

    fn execute(&self, input: Value) -> BoxFuture<'_, Result<ToolResult, ToolError>> {
        self.inputs.lock().push(input);
        Box::pin(std::future::ready(self.answer.clone()))
    }
}
