//! `code.run_code`: runs Python that may call the session's tools.
//!
//! One call with a loop replaces a dozen turns of a model. The code itself can only compute: it runs in a process
//! without files, network or children ([`worker`]) and sends the host a request for everything else. Each such request
//! is a call that is decided and recorded by itself. Full CPython ([`python3`]) runs in the sandbox of commands and
//! sends the same requests.

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

/// The operator's settings of `run_code`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodeSettings {
    /// The tools that code may call: outside tools by id, compiled-in ones also by name; `*` matches anything. They
    /// must be visible to the session, and each call is decided as if the agent had made it.
    pub tools: Vec<ToolPattern>,
    /// Memory of one run, in bytes.
    pub memory_bytes: u64,
    /// The most tool calls of one run.
    pub calls: usize,
    /// Whether full CPython is available.
    pub python3: bool,
    /// Whether to keep a process ready for the first run of the next session. A host for a single call does not need
    /// it.
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

/// The tool and its processes.
#[derive(Clone)]
pub(super) struct CodeTools {
    settings: Arc<CodeSettings>,
    pool: CodeWorkerPool,
    children: Arc<Children>,
}

impl CodeTools {
    /// `program` is a binary with a `main` that calls [`code_worker_if_asked`] first. `children` starts `python3`.
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

    /// Ends the session's processes. The host calls it when the session closes.
    pub(super) fn session_closed(&self, session: &SessionId) {
        self.pool.close(session);
    }
}
