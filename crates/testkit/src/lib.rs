//! Helpers for tests of tools and of hosts.
//!
//! [`TestHost`] is a whole host in memory, and [`TestHost::replay`] one that answers from a recording;
//! [`MockNativeTool`] is a tool that keeps its calls; [`CallEventRecorder`] keeps the events of a call. [`amplifier`]
//! has the like for modules of Amplifier.
//!
//! ```
//! use toolpost_testkit::{MockNativeTool, TestHost};
//! # #[tokio::main(flavor = "current_thread")] async fn main() {
//! let tool = MockNativeTool::named("demo.greet").output("hello");
//! let host = TestHost::with(tool.clone()).await;
//! let result = host.call("greet", serde_json::json!({})).await;
//! assert_eq!(result.model_text(), "hello");
//! assert_eq!(tool.call_count(), 1);
//! # }
//! ```
#![warn(missing_docs)]
#![expect(
    clippy::expect_used,
    reason = "a test that cannot set itself up should stop with the reason"
)]

pub mod amplifier;
mod blob_suite;
mod cassette_file;
mod event_recorder;
mod every_end;
mod journal_suite;
mod mock_tool;
mod test_host;

pub use blob_suite::blob_suite;
pub use event_recorder::CallEventRecorder;
pub use every_end::every_end;
pub use journal_suite::journal_suite;
pub use mock_tool::{MockNativeTool, MockToolGate};
pub use test_host::TestHost;
