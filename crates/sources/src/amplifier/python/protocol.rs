//! What the host and a bridge process tell each other: one JSON object a line, over the socket that the process is
//! started with as its standard input. The process moves it out of everybody's way before it imports anything.
//!
//! The first line is the [`Boot`]: the bridge's own files and what to load. From then on, every message has a
//! `type`. Whatever has an `id` is a request and gets one answer with the same `id`.
//!
//! | host to bridge | answered with | |
//! |---|---|---|
//! | `mount {id, mount, session, limit_ms, capabilities}` | `mounted {id, modules}` | loads every module once and mounts it on a coordinator of its own |
//! | `adopt {mount, session}` | | the mount now belongs to this session |
//! | `list {id, mount}` | `listed {id, modules}` | the tools as they are now |
//! | `call {id, mount, module, tool, arguments, tool_call_id}` | `result {id, result}` or `failure {id, code, message, traceback}` | |
//! | `emit {id, mount, event, data, modules}` | `emitted {id, result, errors}` | asks the handlers of these modules |
//! | `tell {mount, event, data}` | | the same, and nobody waits for it |
//! | `cancel {id}` | the answer of the request it names | stops a call or an `emit`, and what it started |
//! | `unmount {id, mount}` | `unmounted {id, problems}` | cleanups in reverse order, then the processes |
//! | `inspect {id, mount, ...}` | `inspected {id, report}` | what a validator wants to know |
//! | `answer {ask, value}` or `answer {ask, error}` | | what an `ask` was about |
//!
//! | bridge to host | |
//! |---|---|
//! | `ready {core, version, python}` | which `amplifier_core` is in use |
//! | `ask {ask, call, what, ...}` | a running call wants something: `what` is `tool {tool, arguments}` or `approval {prompt, options, timeout}` |
//! | `output {call, stream, text}` | what a call printed |
//! | `event {mount, call, module, event, data}` | what a module emitted |
//! | `note {call, level, message}` | what a module showed or logged |
//! | `tools {mount}` | the tools of a mount are not what they were |

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The first line.
#[derive(Debug, Serialize)]
pub(super) struct Boot<'a> {
    /// The bridge's files, by name.
    pub(super) files: BTreeMap<&'a str, &'a str>,
    pub(super) core: super::CoreChoice,
    pub(super) modules: Vec<ModuleOrder<'a>>,
    /// The most that one result may have, in bytes of JSON.
    pub(super) result_bytes: usize,
    /// The most that one call may print, in bytes.
    pub(super) output_bytes: usize,
    /// Orphans are adopted by this process's parent, which has no other children.
    pub(super) parent_adopts: bool,
}

/// A module to load.
#[derive(Debug, Serialize)]
pub(super) struct ModuleOrder<'a> {
    pub(super) id: &'a str,
    pub(super) kind: toolpost_amplifier::ModuleKind,
    #[serde(flatten)]
    pub(super) package: &'a super::PythonPackage,
    pub(super) config: &'a Map<String, Value>,
}

/// Host to bridge.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Order<'a> {
    Mount {
        id: u64,
        mount: u64,
        session: &'a str,
        limit_ms: u64,
        capabilities: &'a Map<String, Value>,
    },
    Adopt {
        mount: u64,
        session: &'a str,
    },
    List {
        id: u64,
        mount: u64,
    },
    Call(CallOrder<'a>),
    Emit {
        id: u64,
        mount: u64,
        event: &'a str,
        data: &'a Value,
        modules: &'a [&'a str],
    },
    Tell {
        mount: u64,
        event: &'a str,
        data: &'a Value,
    },
    Cancel {
        id: u64,
    },
    Unmount {
        id: u64,
        mount: u64,
    },
    Inspect {
        id: u64,
        mount: u64,
        request: &'a Value,
    },
    Answer {
        ask: u64,
        #[serde(flatten)]
        answer: Answer,
    },
}

/// One call.
#[derive(Debug, Serialize)]
pub(super) struct CallOrder<'a> {
    pub(super) id: u64,
    pub(super) mount: u64,
    pub(super) module: &'a str,
    pub(super) tool: &'a str,
    pub(super) arguments: &'a Map<String, Value>,
    pub(super) tool_call_id: &'a str,
}

/// What becomes of an ask.
#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Answer {
    Value(Value),
    Error(String),
}

/// Bridge to host.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Word {
    Ready {
        core: super::CoreInUse,
    },
    Mounted {
        id: u64,
        modules: Vec<MountedModule>,
    },
    Listed {
        id: u64,
        modules: Vec<MountedModule>,
    },
    Result {
        id: u64,
        result: Value,
        #[serde(default)]
        cut: Option<Cut>,
    },
    Failure {
        id: u64,
        code: String,
        message: String,
        #[serde(default)]
        traceback: Option<String>,
    },
    Emitted {
        id: u64,
        result: Value,
        #[serde(default)]
        errors: Vec<HandlerError>,
    },
    Unmounted {
        id: u64,
        #[serde(default)]
        problems: Vec<String>,
    },
    Inspected {
        id: u64,
        report: Value,
    },
    Ask {
        ask: u64,
        call: u64,
        #[serde(flatten)]
        what: Ask,
    },
    Output {
        call: u64,
        stream: Stream,
        text: String,
    },
    Event {
        #[serde(default)]
        call: Option<u64>,
        event: String,
        data: Value,
    },
    Note {
        #[serde(default)]
        call: Option<u64>,
        level: String,
        message: String,
    },
    Tools {
        mount: u64,
    },
}

/// What a running call wants from the host.
#[derive(Debug, Deserialize)]
#[serde(tag = "what", rename_all = "snake_case")]
pub(super) enum Ask {
    Tool {
        tool: String,
        arguments: Value,
    },
    Approval {
        prompt: String,
        #[serde(default)]
        options: Vec<String>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Stream {
    Stdout,
    Stderr,
}

/// A result that was too large to be sent whole.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(super) struct Cut {
    pub(super) shown: u64,
    pub(super) total: u64,
}

/// A hook handler that broke.
#[derive(Debug, Deserialize)]
pub(super) struct HandlerError {
    pub(super) name: String,
    pub(super) message: String,
}

/// What a module brought.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct MountedModule {
    pub(super) module: String,
    #[serde(default)]
    pub(super) tools: Vec<MountedTool>,
    /// The events that it has handlers for.
    #[serde(default)]
    pub(super) events: Vec<String>,
    #[serde(default)]
    pub(super) problems: Vec<ModuleProblem>,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct MountedTool {
    pub(super) name: String,
    #[serde(default)]
    pub(super) description: String,
    #[serde(default)]
    pub(super) schema: Value,
}

/// Something of a module that is not there.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct ModuleProblem {
    /// A [`LoadReason`](toolpost_amplifier::LoadReason), as its word.
    pub(super) reason: String,
    pub(super) message: String,
    /// The module as a whole is missing, and not just a part of it.
    #[serde(default)]
    pub(super) fatal: bool,
}
