//! `code.run_code`: runs a piece of Python that may call the session's tools.
//!
//! One call with a loop in it replaces a dozen turns of a model. The code itself can do nothing: it runs in a
//! process without files, network or children ([`worker`]), and whatever it wants from outside it asks for. Each
//! such call is decided and recorded by itself. Full CPython ([`python3`]) runs in the sandbox that commands run
//! in, and asks the same way.

mod conversation;
mod frame;
mod grants;
mod inner_calls;
mod pool;
mod python3;
mod report;
mod run_code;
mod worker;
mod worker_process;

use std::{path::PathBuf, sync::Arc};

use toolpost_model::{DynTool, SessionId, ToolPattern};
use toolpost_processes::Children;

pub use self::worker::code_worker_if_asked;
use self::{
    pool::{CodeWorkerPool, SpareWorker},
    run_code::RunCode,
};

/// What the operator says of code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodeSettings {
    /// The tools that code may call: outside tools by id, compiled-in ones also by name; `*` stands for anything. They
    /// must still be visible to the session, and each call is decided as if the agent had made it.
    pub tools: Vec<ToolPattern>,
    /// Memory of one run, in bytes.
    pub memory_bytes: u64,
    /// Most tool calls of one run.
    pub calls: usize,
    /// Whether full CPython may be asked for.
    pub python3: bool,
    /// Keep a process ready for the next session's first run. Not worth it for a host that lives for one call.
    pub spare: bool,
}

impl Default for CodeSettings {
    fn default() -> Self {
        Self {
            tools: vec![ToolPattern::every_id()],
            memory_bytes: 256 << 20,
            calls: 200,
            python3: true,
            spare: true,
        }
    }
}

/// The tool, and the processes it keeps.
#[derive(Clone)]
pub(super) struct CodeTools {
    settings: Arc<CodeSettings>,
    pool: CodeWorkerPool,
    children: Arc<Children>,
}

impl CodeTools {
    /// `program`: a binary whose `main` calls [`code_worker_if_asked`] first. `children`: what starts `python3`.
    pub(super) fn new(settings: CodeSettings, program: PathBuf, children: Arc<Children>) -> Self {
        let spare = if settings.spare {
            SpareWorker::Ready
        } else {
            SpareWorker::None
        };
        let pool = CodeWorkerPool::new(program, settings.memory_bytes, spare);
        Self {
            settings: Arc::new(settings),
            pool,
            children,
        }
    }

    pub(super) fn tools(&self) -> Vec<Arc<dyn DynTool>> {
        vec![Arc::new(RunCode::new(self.clone()))]
    }

    /// Ends what a session has. To be called when it closes.
    pub(super) fn session_closed(&self, session: &SessionId) {
        self.pool.close(session);
    }
}
