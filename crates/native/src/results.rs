//! The tools on kept results: namespace `results`, one tool per file.
//!
//! A result that is too large to be shown is stored whole, and its output names it. These tools show any part of it.
//! They read it through the host, which gives a caller only results of its own calls. Their own output is never stored
//! a second time.

mod json;
mod read_result;
mod reader;
mod search_result;

use std::sync::Arc;

use schemars::JsonSchema;
use toolpost_model::{
    ArtifactError, ArtifactId, CallContext, CallInput, CancelSupport, Declaration, DynTool,
    EffectClass, Effects, ErrorClass, InputRefusal, PersistStrategy, StoredArtifact, ToolFailure,
    ToolKind,
};
use toolpost_processes::Workspace;

use self::{read_result::ReadResultTool, search_result::SearchResult};
use super::declaration;

/// The most bytes of shown text: within the default limit of a host.
const SHOWN_BYTES: usize = 48 << 10;
/// How much is read at once.
const PIECE_BYTES: usize = 256 << 10;

/// The tools. Their work runs on the workspace's threads.
pub(super) fn tools(workspace: Arc<Workspace>) -> Vec<Arc<dyn DynTool>> {
    vec![
        Arc::new(ReadResultTool::new(Arc::clone(&workspace))),
        Arc::new(SearchResult::new(workspace)),
    ]
}

/// The common declaration.
fn declare<In: JsonSchema, Out: JsonSchema>(name: &str, description: &str) -> Declaration {
    let class = EffectClass::Read;
    let mut declaration =
        declaration::declare::<In, Out>(ToolKind::Result, "results", name, description, class);
    declaration.tags = vec!["results".to_owned(), "read".to_owned()];
    let interface = &mut declaration.interface;
    interface.execution.cancel = CancelSupport::Cooperative;
    interface.rendering.subject_argument = Some("ref".to_owned());
    interface.persistence.strategy = PersistStrategy::NeverPersist;
    declaration
}

/// They only affect results of their own caller's calls.
fn effects() -> Effects {
    Effects {
        concurrency_safe: true,
        ..Effects::of(EffectClass::Read)
    }
}

fn check_ref(input: &CallInput) -> Result<(), InputRefusal> {
    match input.arguments().str("ref").map(str::parse::<ArtifactId>) {
        Some(Err(error)) => Err(InputRefusal::invalid("/ref", error.to_string())),
        Some(Ok(_)) | None => Ok(()),
    }
}

async fn open(
    context: &CallContext,
    reference: &str,
) -> Result<Arc<dyn StoredArtifact>, ToolFailure> {
    let id: ArtifactId = reference.parse().map_err(|error| invalid(&error))?;
    context.open_artifact(id).await.map_err(failed)
}

fn invalid(error: &dyn std::error::Error) -> ToolFailure {
    ToolFailure::invalid(error.to_string())
}

#[expect(clippy::needless_pass_by_value, reason = "the shape `map_err` wants")]
fn failed(error: ArtifactError) -> ToolFailure {
    let message = error.to_string();
    match error {
        ArtifactError::Unknown(_) => ToolFailure::invalid(message)
            .code("unknown_result")
            .hint("use the `ref` of a result of your own calls, from `artifacts` in the answer"),
        ArtifactError::Gone(_) => ToolFailure::invalid(message)
            .code("result_gone")
            .hint("repeat the call of the result if it only reads"),
        ArtifactError::Damaged(_) => ToolFailure::new(message).code("result_damaged").untouched(),
        ArtifactError::Storage(_)
        | ArtifactError::Full { .. }
        | ArtifactError::Shared(_)
        | ArtifactError::TooLarge { .. } => {
            ToolFailure::of(ErrorClass::DependencyUnavailable, message).untouched()
        }
    }
}

/// Whether the beginning of a content looks like text.
fn is_text(head: &[u8]) -> bool {
    !head.contains(&0)
}
