//! The search tools: namespace `search`, one tool per file.
//!
//! Both walk a tree beneath a directory that the workspace's path rules found, on threads of the call's own, and keep
//! only the newest hits. [`walk`] covers the tree, [`newest`] the order, [`watch`] the clock.

mod error;
mod glob;
mod grep;
mod newest;
mod pattern;
mod start;
mod text;
mod walk;
mod watch;

use std::sync::Arc;

use schemars::JsonSchema;
use toolpost_model::{
    AccessKind, CancelSupport, Declaration, DynTool, EffectClass, ExecutionKind, InputRefusal,
    ToolKind,
};
use toolpost_processes::Workspace;

use self::newest::SearchHit;
pub(super) use self::{
    grep::{GrepLine, listing},
    text::{TextSearch, search_text},
};
use super::{declaration, workspace_tool::on_workspace};

/// The limit on `offset` and `limit` together: that many hits are held to find the newest.
const REACH: usize = 50_000;
/// The most bytes of paths on one page.
const PAGE_BYTES: usize = 1 << 20;

/// The search tools on one workspace.
pub(super) fn tools(workspace: &Arc<Workspace>) -> Vec<Arc<dyn DynTool>> {
    vec![
        on_workspace::<glob::GlobTool>(workspace),
        on_workspace::<grep::Grep>(workspace),
    ]
}

/// The common declaration. `In` and `Out` give the schemas.
fn declare<In: JsonSchema, Out: JsonSchema>(name: &str, description: &str) -> Declaration {
    let class = EffectClass::Read;
    let mut declaration =
        declaration::declare::<In, Out>(ToolKind::File, "search", name, description, class);
    declaration.tags = vec!["search".to_owned(), "files".to_owned(), "read".to_owned()];
    let interface = &mut declaration.interface;
    interface.execution.kind = ExecutionKind::EmbeddedRuntime;
    interface.execution.cancel = CancelSupport::Cooperative;
    interface.rendering.subject_argument = Some("pattern".to_owned());
    interface.permission.access = vec![AccessKind::FileRead];
    declaration
}

/// The requested part of the hits.
#[derive(Clone, Copy)]
struct SearchPageRange {
    offset: usize,
    limit: usize,
}

impl SearchPageRange {
    /// How many hits must be held to show it.
    fn reach(self) -> usize {
        self.offset + self.limit
    }

    /// `max_limit` is the tool's own limit.
    fn check(self, max_limit: usize) -> Result<(), InputRefusal> {
        if !(1..=max_limit).contains(&self.limit) {
            let message = format!(
                "`{}` is out of range, 1 to {max_limit} can be shown at once",
                self.limit
            );
            return Err(InputRefusal::invalid("/limit", message));
        }
        if self.offset > REACH - self.limit {
            let message = format!(
                "`{}` is out of range, the first {REACH} hits can be reached; narrow the search instead",
                self.offset
            );
            return Err(InputRefusal::invalid("/offset", message));
        }
        Ok(())
    }
}

/// The hits of a page: those after `offset`, as long as their paths have no more than [`PAGE_BYTES`] together. At least
/// one is shown, so that the next page makes progress.
fn page_of(hits: &[SearchHit], offset: usize) -> impl Iterator<Item = &SearchHit> {
    let mut bytes = 0;
    hits.iter().skip(offset).take_while(move |hit| {
        let before = bytes;
        bytes += hit.place.as_os_str().len();
        before == 0 || bytes <= PAGE_BYTES
    })
}

/// "1 file", "2 files".
fn counted(count: u64, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}
