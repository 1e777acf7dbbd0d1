//! For tests of Amplifier modules in Rust: a tool with a fixed answer, a coordinator that keeps its mounts, and
//! a handler that keeps all events.
//!
//! ```
//! use serde_json::json;
//! use toolpost_amplifier::{Coordinator, MountError, MountReturn, ToolResult};
//! use toolpost_testkit::amplifier::{EventRecorder, MockCoordinator, MockTool};
//!
//! async fn mount(
//!     coordinator: Coordinator,
//!     config: serde_json::Map<String, serde_json::Value>,
//! ) -> Result<MountReturn, MountError> {
//!     let greeting = config.get("greeting").and_then(|text| text.as_str()).unwrap_or("hello").to_owned();
//!     coordinator.register_events("tool-greet", &["greet:said"]);
//!     Ok(MountReturn::tool(MockTool::new("greet", greeting)))
//! }
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() {
//! let events = EventRecorder::default();
//! let coordinator = MockCoordinator::new();
//! events.listen(coordinator.hooks());
//! coordinator.mount_module("tool-greet", &mount, json!({"greeting": "hi"})).await.expect("it mounts");
//! assert_eq!(coordinator.tool_names(), ["greet"]);
//!
//! let result = coordinator.call("greet", json!({})).await.expect("it answers");
//! assert_eq!(result, ToolResult::success("hi"));
//!
//! coordinator.hooks().emit("greet:said", json!({"to": "world"})).await;
//! assert_eq!(events.of("greet:said"), [json!({"to": "world"})]);
//! # }
//! ```

mod event_recorder;
mod mock_coordinator;
mod mock_tool;

pub use event_recorder::EventRecorder;
pub use mock_coordinator::MockCoordinator;
pub use mock_tool::MockTool;
