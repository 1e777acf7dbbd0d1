//! Which trace a call belongs to: its caller's or its own, passed down to the calls that it makes.

use std::sync::Arc;

use serde_json::{Value, json};
use toolpost_core::{
    AppendStrength, Export, ExportFormat, Journal as _, MemoryJournal, StoredRecord,
};
use toolpost_model::{
    Declaration, NestedCall, Tool, ToolCall, ToolFailure, ToolOutput, TraceContext,
};
use toolpost_testkit::{MockNativeTool, TestHost};

const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00";

/// Gives back its own span, after a call of `demo.inner` where that is another tool.
struct Spanning(&'static str);

impl Tool for Spanning {
    fn declaration(&self) -> Declaration {
        Tool::declaration(&MockNativeTool::named(self.0))
    }

    async fn execute(&self, call: ToolCall) -> Result<ToolOutput, ToolFailure> {
        let own = call.context.trace().traceparent();
        if self.0 == "demo.inner" {
            return Ok(own.into());
        }
        let inner = call
            .context
            .call_tool(NestedCall::new("inner", json!({})))
            .await?;
        Ok(format!("{own} {}", inner.model_text()).into())
    }
}

async fn host() -> TestHost {
    TestHost::build(|builder| {
        let policy = TestHost::policy(toolpost_model::PermissionMode::Bypass, &[]);
        builder
            .tool(Spanning("demo.outer"))
            .tool(Spanning("demo.inner"))
            .policy(policy)
    })
    .await
}

fn invocations(rows: &[StoredRecord]) -> Vec<Value> {
    let mut export = Export::new(ExportFormat::AgentTool);
    let mut lines = Vec::new();
    for row in rows {
        export.take(row, &mut lines).unwrap();
    }
    export.finish(&mut lines);
    let read = |line: &String| serde_json::from_str::<Value>(line).unwrap();
    lines
        .iter()
        .map(read)
        .filter(|line| line["record"] == "invocation")
        .collect()
}

#[tokio::test]
async fn a_call_without_a_trace_begins_its_own_and_its_calls_are_children() {
    let host = host().await;
    let result = host.call("outer", json!({})).await;
    let text = result.model_text();
    let (outer, inner) = text.split_once(' ').unwrap();
    let calls = invocations(&host.records().await);
    let [of_inner, of_outer] = [
        &calls[0]["telemetry_refs"][0],
        &calls[1]["telemetry_refs"][0],
    ];
    assert_eq!(
        (&of_outer["traceparent"], &of_inner["traceparent"]),
        (&json!(outer), &json!(inner))
    );
    assert_eq!(of_outer["trace_id"], result.invocation_id.to_hex());
    assert_eq!(of_outer["parent_span_id"], Value::Null);
    assert_eq!(
        (&of_inner["trace_id"], &of_inner["parent_span_id"]),
        (&of_outer["trace_id"], &of_outer["span_id"])
    );
    assert_ne!(of_inner["span_id"], of_outer["span_id"]);
}

#[tokio::test]
async fn a_callers_trace_is_kept_and_passed_down() {
    let host = host().await;
    let mut request = host.request("outer", json!({}));
    request.identity.trace = TraceContext::parse(PARENT, Some("vendor=1")).map(Box::new);
    let answer = host.host.call(request).await;
    let text = answer.result().model_text();
    let id = answer.result().invocation_id;
    assert!(
        text.starts_with(&format!("{}{}-00 ", &PARENT[..36], &id.to_hex()[16..])),
        "{text}"
    );
    let calls = invocations(&host.records().await);
    for call in &calls {
        let told = &call["telemetry_refs"][0];
        assert_eq!(
            (&told["trace_id"], &told["tracestate"]),
            (&json!(PARENT[3..35]), &json!("vendor=1"))
        );
    }
    assert_eq!(
        calls[1]["telemetry_refs"][0]["parent_span_id"],
        PARENT[36..52]
    );
}

/// A host from before traces gave its calls none, and an export says nothing of one.
#[tokio::test]
async fn old_records_have_no_trace() {
    let host = host().await;
    host.call("inner", json!({})).await;
    let old = Arc::new(MemoryJournal::default());
    for mut row in host.records().await {
        let before = row.record.body.clone();
        row.record.body = before.replace(r#","traces":true"#, "");
        assert!(row.seq > 1 || row.record.body != before, "{before}");
        old.append(row.record, AppendStrength::Committed)
            .await
            .unwrap();
    }
    let calls = invocations(&old.read(0, usize::MAX).await.unwrap());
    assert_eq!(
        (calls.len(), &calls[0]["telemetry_refs"]),
        (1, &Value::Null)
    );
}
