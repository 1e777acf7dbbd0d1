//! The protocol between the host and a bridge process: one JSON object per line, over the socket that the process gets
//! as its standard input. The process moves the socket to another descriptor before it imports anything.
//!
//! The first line is the [`Boot`]: the bridge's own files and what to load. From then on, every message has a
//! `type`. A message with an `id` is a request and gets one answer with the same `id`: the one named here, or
//! `failure {id, code, message, traceback}`.
//!
//! | host to bridge | answered with | |
//! |---|---|---|
//! | `mount {id, mount, session, limit_ms, capabilities, without, apart}` | `mounted {id, modules}` | mounts every module on one coordinator, except for the plan places in `without`, which have reasons; a slow one and those after it overlap, unless they are mounted `apart` |
//! | `adopt {mount, session}` | | the mount now belongs to this session |
//! | `list {id, mount}` | `listed {id, modules}` | the tools as they are now |
//! | `call {id, mount, module, tool, arguments, tool_call_id, timeout}` | `result {id, result, cut, extras}` | |
//! | `message {id, mount, module, message}` | `handled {id, message}` | hands an A2E message to a plugin; no message: the plugin has no answer |
//! | `search {id, mount, query, tags}` | `found {id, tools}` | the search of plugins, best first |
//! | `piece {id, call, at}` | `piece {id, text}` | a piece of a result that was too large for one message, from this character on; an empty text is its end |
//! | `release {call}` | | the rest of that result is not needed |
//! | `emit {id, mount, event, data, standings, limit_ms}` | `emitted {id, result, asked}` | asks the handlers of the modules that have a standing; `asked` names the modules that have handlers for the event now |
//! | `tell {mount, event, data}` | | asks all handlers without an answer |
//! | `cancel {id}` | the answer of the request it names | stops a call or an `emit`, and all that it started |
//! | `unmount {id, mount}` | `unmounted {id, problems}` | cleanups backwards, then the processes |
//! | `inspect {id, mount, request}` | `inspected {id, report}` | the report for a validator |
//! | `answer {ask, value}`, `answer {ask, error}` | | the answer to an `ask` |
//!
//! | bridge to host | |
//! |---|---|
//! | `ready {core, note}`, `refused {message}` | which `amplifier_core` is in use, or why nothing can be loaded |
//! | `ask {ask, call, what, …}` | a request of a running call: `what` is `tool` with `tool` and `arguments`, `approval` with `prompt` and `options`, or `message` with `plugin` and `message` |
//! | `output {call, stream, text}` | output of a call |
//! | `event {call, event, at, data}` | an event of a module |
//! | `plugin_event {call, kind, data}` | an A2E event of a tool of a plugin |
//! | `push {mount, message}` | an A2E message of a plugin for the agent of the session |
//! | `audit {entry}` | a line for the audit file of the A2E host |
//! | `note {call, level, message, status}` | a line that a module showed or logged |
//! | `capability {mount, name, value}` | a value that a module registered, if it is data |
//! | `mounting {mount, place}` | the module at this place of the plan is being mounted: if the process dies, this module may be the cause |
//! | `settled {mount, place}` | that module is mounted, or took too long |
//! | `stuck {module}` | a module blocks its event loop in a hook |
//! | `tools {mount}` | the tools of a mount changed |

use std::{collections::BTreeMap, path::PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, value::RawValue};
use toolpost_model::{HookStanding, TraceContext};

/// The first line.
#[derive(Debug, Serialize)]
pub(super) struct Boot<'a> {
    /// The bridge's source files, by name.
    pub(super) files: BTreeMap<&'a str, &'a str>,
    pub(super) core: crate::CoreWish,
    pub(super) modules: Vec<ModuleOrder<'a>>,
    /// The host facts for plugins of an A2E host file.
    pub(super) plugins: &'a super::PluginHost,
    /// The largest result, in bytes of JSON.
    pub(super) result_bytes: usize,
    /// The most of a larger result that is kept for fetching, in bytes.
    pub(super) kept_bytes: usize,
    /// Folders for the end of `sys.path`.
    pub(super) later_paths: &'a [PathBuf],
    /// The largest output of one call, in bytes.
    pub(super) output_bytes: usize,
    /// Whether this process's parent adopts orphans; it has no other children.
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

/// Host to bridge. A request gets its id when it is sent.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum BridgeOrder<'a> {
    Mount {
        mount: u64,
        session: &'a str,
        limit_ms: u64,
        capabilities: &'a Map<String, Value>,
        without: &'a BTreeMap<usize, String>,
        /// Whether each module waits until the one before it is done or out of time.
        apart: bool,
    },
    Adopt {
        mount: u64,
        session: &'a str,
    },
    List {
        mount: u64,
    },
    Call {
        mount: u64,
        module: &'a str,
        tool: &'a str,
        arguments: &'a Value,
        tool_call_id: &'a str,
        /// The seconds until the deadline.
        timeout: u64,
        #[serde(flatten)]
        trace: &'a TraceContext,
    },
    Message {
        mount: u64,
        module: &'a str,
        message: &'a Value,
        #[serde(flatten)]
        trace: &'a TraceContext,
    },
    Search {
        mount: u64,
        query: &'a str,
        tags: &'a [String],
    },
    Piece {
        call: u64,
        at: usize,
    },
    Release {
        call: u64,
    },
    Emit {
        mount: u64,
        event: &'a str,
        data: &'a Value,
        standings: &'a BTreeMap<String, HookStanding>,
        limit_ms: u64,
    },
    Tell {
        mount: u64,
        event: &'a str,
        data: &'a Value,
    },
    Cancel,
    Unmount {
        mount: u64,
    },
    Inspect {
        mount: u64,
        request: &'a Value,
    },
    Answer {
        ask: u64,
        value: Value,
    },
    #[serde(rename = "answer")]
    Refuse {
        ask: u64,
        error: String,
    },
}

/// An order with the id of its request.
#[derive(Debug, Serialize)]
pub(super) struct NumberedBridgeOrder<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) id: Option<u64>,
    #[serde(flatten)]
    pub(super) order: BridgeOrder<'a>,
}

/// The members of every line of the bridge: its kind, and the id that it answers.
#[derive(Debug, Deserialize)]
pub(super) struct BridgeLineTag {
    #[serde(rename = "type")]
    pub(super) kind: String,
    #[serde(default)]
    pub(super) id: Option<u64>,
}

/// Lines of the bridge that are no answers.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum UnsolicitedBridgeLine {
    Ready {
        core: super::CoreInUse,
        #[serde(default)]
        note: Option<String>,
    },
    Refused {
        message: String,
    },
    Ask {
        ask: u64,
        call: u64,
        #[serde(flatten)]
        what: BridgeRequest,
    },
    Output {
        call: u64,
        stream: BridgeOutputStream,
        text: String,
    },
    Event {
        call: u64,
        event: String,
        /// The time of the event in the module.
        #[serde(default)]
        at: Option<String>,
        data: Value,
    },
    PluginEvent {
        call: u64,
        kind: String,
        #[serde(default)]
        data: Value,
    },
    Push {
        mount: u64,
        message: Value,
    },
    Audit {
        entry: Value,
    },
    Note {
        #[serde(default)]
        call: Option<u64>,
        level: String,
        message: String,
        #[serde(default)]
        status: bool,
    },
    Capability {
        mount: u64,
        name: String,
        value: Value,
    },
    Mounting {
        mount: u64,
        place: usize,
    },
    Settled {
        mount: u64,
        place: usize,
    },
    Stuck {
        module: String,
    },
    Tools {
        mount: u64,
    },
}

/// A request of a running call to the host.
#[derive(Debug, Deserialize)]
#[serde(tag = "what", rename_all = "snake_case")]
pub(super) enum BridgeRequest {
    Tool {
        tool: String,
        arguments: Value,
    },
    Approval {
        prompt: String,
        #[serde(default)]
        options: Vec<String>,
    },
    Message {
        plugin: String,
        message: Map<String, Value>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum BridgeOutputStream {
    Stdout,
    Stderr,
}

/// `failure`: the answer to a request that failed.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct BridgeFailureReply {
    pub(super) code: String,
    pub(super) message: String,
    #[serde(default)]
    pub(super) traceback: Option<String>,
}

/// `result`.
#[derive(Debug, Deserialize)]
pub(super) struct BridgeCallReply {
    /// Kept as it was written: the order of keys is part of the model's input.
    pub(super) result: Box<RawValue>,
    #[serde(default)]
    pub(super) cut: Option<BridgeResultTruncation>,
    /// The extra members of a plugin tool's result.
    #[serde(default)]
    pub(super) extras: Option<ResultExtras>,
}

/// The fields of an A2E result that a module's result does not have.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ResultExtras {
    pub(super) summary: Option<Value>,
    pub(super) truncated: bool,
    pub(super) exit_code: Option<i32>,
    pub(super) events: Vec<ResultEvent>,
}

/// An event that the result itself carries.
#[derive(Debug, Deserialize)]
pub(super) struct ResultEvent {
    #[serde(default)]
    pub(super) kind: String,
    #[serde(default)]
    pub(super) data: Value,
}

/// `handled`.
#[derive(Debug, Deserialize)]
pub(super) struct HandledMessage {
    #[serde(default)]
    pub(super) message: Option<Map<String, Value>>,
}

/// `found`.
#[derive(Debug, Deserialize)]
pub(super) struct FoundTools {
    pub(super) tools: Vec<FoundTool>,
}

/// A tool that the search of a plugin named.
#[derive(Debug, Deserialize)]
pub(super) struct FoundTool {
    pub(super) module: String,
    pub(super) tool: String,
}

/// A result that was too large to be sent whole, with its size in bytes.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct BridgeResultTruncation {
    pub(super) shown: u64,
    pub(super) total: u64,
    /// The number of left-out blocks beside the text: they cannot be shown in part.
    pub(super) content: u64,
    /// The size of the part that can be fetched.
    pub(super) waiting: u64,
    /// The media type of the whole.
    pub(super) media_type: String,
}

/// `piece`.
#[derive(Debug, Deserialize)]
pub(super) struct BridgePieceReply {
    pub(super) text: String,
}

/// `emitted`.
#[derive(Debug, Deserialize)]
pub(super) struct BridgeEmitReply {
    pub(super) result: Value,
    /// The modules that have handlers for the event now.
    pub(super) asked: Vec<String>,
}

/// `unmounted`.
#[derive(Debug, Deserialize)]
pub(super) struct BridgeUnmountReply {
    #[serde(default)]
    pub(super) problems: Vec<String>,
}

/// `inspected`.
#[derive(Debug, Deserialize)]
pub(super) struct BridgeInspectReply {
    pub(super) report: Value,
}

/// `mounted` and `listed`.
#[derive(Debug, Deserialize)]
pub(super) struct BridgeMountReply {
    pub(super) modules: Vec<MountedModule>,
}

/// The contributions of a module.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct MountedModule {
    pub(super) module: String,
    #[serde(default)]
    pub(super) tools: Vec<BridgeTool>,
    /// The events that it has handlers for, as it subscribed to them.
    #[serde(default)]
    pub(super) events: Vec<String>,
    #[serde(default)]
    pub(super) problems: Vec<ModuleProblem>,
    /// It declined.
    #[serde(default)]
    pub(super) declined: bool,
    #[serde(default)]
    pub(super) declined_because: Option<String>,
    /// For an entry of an A2E host file.
    #[serde(default)]
    pub(super) plugin: Option<MountedPlugin>,
}

/// The message types of a plugin of an A2E host file, and its metadata for the handshake.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct MountedPlugin {
    pub(super) messages: Vec<PluginMessageType>,
    pub(super) metadata: Map<String, Value>,
}

/// A message type of a plugin, with its required members.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct PluginMessageType {
    #[serde(rename = "type")]
    pub(super) kind: String,
    #[serde(default)]
    pub(super) required: Vec<String>,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct BridgeTool {
    pub(super) name: String,
    /// The tool's own name.
    #[serde(default)]
    pub(super) own_name: Option<String>,
    #[serde(default)]
    pub(super) description: String,
    #[serde(default)]
    pub(super) schema: Option<Map<String, Value>>,
    /// The tool requests an approval for each call.
    #[serde(default)]
    pub(super) asks: bool,
    /// The A2E definition of a plugin's tool.
    #[serde(default)]
    pub(super) definition: Option<Value>,
}

/// A problem of a module that failed, as a whole or in part.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct ModuleProblem {
    /// The word of a [`LoadReason`](toolpost_amplifier::LoadReason).
    pub(super) reason: String,
    pub(super) message: String,
    /// The whole module failed, not only a part of it.
    #[serde(default)]
    pub(super) fatal: bool,
    /// It exceeded its time limit.
    #[serde(default)]
    pub(super) late: bool,
}
