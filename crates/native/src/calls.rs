//! Tools on other calls of the same caller, for calls that were started in the background on any face.
//!
//! They need no exclusive turn: a call that runs alone in its session can be looked at and stopped while it runs.

mod call_cancel;
mod call_result;

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;
use toolpost_model::{
    ArtifactRef, CallInput, CallReport, Declaration, Disposition, DynTool, EffectClass, Effects,
    InputRefusal, InvocationId, LoadingStrategy, Redactions, ResultContent, ToolError, ToolFailure,
    ToolKind, ToolOutput,
};

use self::{call_cancel::CallCancel, call_result::CallResultTool};
use super::declaration;

pub(super) fn tools() -> Vec<Arc<dyn DynTool>> {
    vec![Arc::new(CallResultTool), Arc::new(CallCancel)]
}

/// The declaration of both. It is deferred, because only agents with background calls need it.
fn declare<In: JsonSchema>(name: &str, description: &str) -> Declaration {
    let class = EffectClass::Read;
    let mut declaration = declaration::declare::<In, CallStatusResult>(
        ToolKind::Result,
        "calls",
        name,
        description,
        class,
    );
    declaration.loading = LoadingStrategy::Deferred;
    declaration.tags = vec!["calls".to_owned(), "background".to_owned()];
    declaration.interface.rendering.subject_argument = Some("invocation_id".to_owned());
    declaration
}

/// Both only affect calls of their own caller.
fn effects() -> Effects {
    Effects {
        unscheduled: true,
        ..Effects::of(EffectClass::Read)
    }
}

fn call_named(text: &str) -> Result<InvocationId, String> {
    text.parse()
        .map_err(|_| format!("`{}` is not the id of a call", text.escape_debug()))
}

fn check_id(input: &CallInput) -> Result<(), InputRefusal> {
    match input.arguments().str("invocation_id").map(call_named) {
        Some(Err(message)) => Err(InputRefusal::invalid("/invocation_id", message)),
        Some(Ok(_)) | None => Ok(()),
    }
}

fn id_of(text: &str) -> Result<InvocationId, ToolFailure> {
    call_named(text).map_err(ToolFailure::invalid)
}

/// Where a call stands.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Standing")]
struct CallStatusResult {
    /// The call.
    invocation_id: String,
    /// Its tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    tool: Option<String>,
    /// Whether it has ended.
    status: BackgroundCallStatus,
    /// How far it is, while it is under way.
    #[serde(skip_serializing_if = "Option::is_none")]
    stage: Option<&'static str>,
    /// How it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    outcome: Option<&'static str>,
    /// What became of its content.
    #[serde(skip_serializing_if = "Option::is_none")]
    disposition: Option<Disposition>,
    /// What is kept of it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    artifacts: Vec<ArtifactRef>,
    /// Secrets that were taken out of it, by kind.
    #[serde(skip_serializing_if = "Redactions::is_empty")]
    #[schemars(default)]
    redactions: Redactions,
    /// Why it did not succeed.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<ToolError>,
    /// Its structured content.
    #[serde(skip_serializing_if = "Option::is_none")]
    structured_content: Option<serde_json::Value>,
    /// The exit code of the process it ran.
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<i32>,
}

/// Whether a call has ended.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "Status")]
enum BackgroundCallStatus {
    /// It is under way.
    Running,
    /// It is over.
    Ended,
    /// It began, and its end could not be recorded.
    Unknown,
}

/// A report as output: the state of the call, then its own content.
fn told(report: CallReport) -> Result<ToolOutput, ToolFailure> {
    let CallReport {
        invocation_id,
        tool,
        stage,
        result,
    } = report;
    let name = tool.as_deref().unwrap_or("the call").to_owned();
    let mut standing = CallStatusResult {
        invocation_id: invocation_id.to_string(),
        tool,
        status: if stage.is_some() {
            BackgroundCallStatus::Running
        } else {
            BackgroundCallStatus::Unknown
        },
        stage: stage.map(|stage| stage.as_str()),
        outcome: None,
        disposition: None,
        artifacts: Vec::new(),
        redactions: Redactions::default(),
        error: None,
        structured_content: None,
        exit_code: None,
    };
    let (line, content) = match (result, stage) {
        (Some(mut result), _) => {
            standing.status = BackgroundCallStatus::Ended;
            standing.outcome = Some(result.outcome.as_str());
            let mut line = format!("`{name}` has ended: {}", result.outcome.as_str());
            if let Some(error) = &result.error {
                line = format!("{line}: {}", error.message);
            }
            for remark in result.remarks() {
                line.push_str(&format!("\n[{remark}]"));
            }
            standing.disposition = Some(result.disposition);
            standing.artifacts = std::mem::take(&mut result.artifacts);
            standing.redactions = std::mem::take(&mut result.redactions);
            standing.error = result.error.take();
            standing.structured_content = result.structured_content.take();
            standing.exit_code = result.exit_code;
            (line, result.content)
        }
        (None, Some(stage)) => (
            format!("`{name}` has not ended; it is at stage {stage}"),
            Vec::new(),
        ),
        (None, None) => (
            format!("`{name}` started, but its end was not recorded; it may have taken effect"),
            Vec::new(),
        ),
    };
    let mut output =
        ToolOutput::structured(serde_json::to_value(&standing)?).with_summary(line.clone());
    output.content = std::iter::once(ResultContent::text(line))
        .chain(content)
        .collect();
    Ok(output)
}
