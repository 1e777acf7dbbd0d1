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
mod report;
mod run_code;
mod worker;
mod worker_process;

use std::{path::PathBuf, sync::Arc};

use toolpost_model::{DynTool, SessionId};

use self::{pool::Pool, run_code::RunCode};
pub use worker::code_worker_if_asked;

/// What the operator says of code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodeSettings {
    /// The tools that code may call, by wire name or id; `*` stands for anything. They must still be visible to the
    /// session, and each call is decided as if the agent had made it.
    pub tools: Vec<String>,
    /// Memory of one run, in bytes.
    pub memory_bytes: u64,
    /// Most tool calls of one run.
    pub calls: usize,
}

impl Default for CodeSettings {
    fn default() -> Self {
        Self { tools: vec!["*".to_owned()], memory_bytes: 256 << 20, calls: 200 }
    }
}

/// The tool, and the processes it keeps.
#[derive(Clone)]
pub struct CodeTools {
    settings: Arc<CodeSettings>,
    pool: Pool,
}

impl CodeTools {
    /// `program`: a binary whose `main` calls [`code_worker_if_asked`] first, usually this one.
    pub fn new(settings: CodeSettings, program: PathBuf) -> Self {
        let pool = Pool::new(program, settings.memory_bytes);
        Self { settings: Arc::new(settings), pool }
    }

    /// The tools.
    pub fn tools(&self) -> Vec<Arc<dyn DynTool>> {
        vec![Arc::new(RunCode::new(self.clone()))]
    }

    /// Starts a process ahead of the first run, inside of a runtime. A host that only lives for one call spares
    /// itself that.
    pub fn warm_up(&self) {
        self.pool.refill();
    }

    /// Ends what a session has. To be called when it closes.
    pub fn session_closed(&self, session: &SessionId) {
        self.pool.close(session);
    }
}
