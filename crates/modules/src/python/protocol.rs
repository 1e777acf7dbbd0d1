//! What the host and a bridge process tell each other: one JSON object a line, over the socket that the process is
//! started with as its standard input. The process moves it out of everybody's way before it imports anything.
//!
//! The first line is the [`Boot`]: the bridge's own files and what to load. From then on, every message has a
//! `type`. Whatever has an `id` is a request and gets one answer with the same `id`: the one named here, or
//! `failure {id, code, message, traceback}`.
//!
//! | host to bridge | answered with | |
//! |---|---|---|
//! | `mount {id, mount, session, limit_ms, capabilities, without, apart}` | `mounted {id, modules}` | mounts every module on one coordinator, but for those whose place in the plan is in `without`, with the reason; a slow one and those after it overlap, unless they are mounted `apart` |
//! | `adopt {mount, session}` | | the mount now belongs to this session |
//! | `list {id, mount}` | `listed {id, modules}` | the tools as they are now |
//! | `call {id, mount, module, tool, arguments, tool_call_id, timeout}` | `result {id, result, cut, extras}` | |
//! | `message {id, mount, module, message}` | `handled {id, message}` | hands an A2E message to a plugin; no message: the plugin has no answer |
//! | `search {id, mount, query, tags}` | `found {id, tools}` | the search of plugins, best first |
//! | `piece {id, call, at}` | `piece {id, text}` | some of a result that was too large to be sent, from this character on; an empty text is its end |
//! | `release {call}` | | nobody wants more of that result |
//! | `emit {id, mount, event, data, standings, limit_ms}` | `emitted {id, result, asked}` | asks the handlers of the modules that have a standing; `asked` names the modules that have handlers for the event now |
//! | `tell {mount, event, data}` | | asks all handlers, and nobody waits for them |
//! | `cancel {id}` | the answer of the request it names | stops a call or an `emit`, and what it started |
//! | `unmount {id, mount}` | `unmounted {id, problems}` | cleanups backwards, then the processes |
//! | `inspect {id, mount, request}` | `inspected {id, report}` | what a validator wants to know |
//! | `answer {ask, value}`, `answer {ask, error}` | | what an `ask` was about |
//!
//! | bridge to host | |
//! |---|---|
//! | `ready {core, note}`, `refused {message}` | which `amplifier_core` is in use, or why nothing can be loaded |
//! | `ask {ask, call, what, …}` | a running call wants something: `what` is `tool` with `tool` and `arguments`, `approval` with `prompt` and `options`, or `message` with `plugin` and `message` |
//! | `output {call, stream, text}` | what a call printed |
//! | `event {call, event, at, data}` | what a module emitted |
//! | `plugin_event {call, kind, data}` | an A2E event of a tool of a plugin |
//! | `push {mount, message}` | an A2E message of a plugin for the agent of the session |
//! | `audit {entry}` | a line for the audit file of the A2E host |
//! | `note {call, level, message, status}` | what a module showed or logged |
//! | `capability {mount, name, value}` | what a module registered, where it is data |
//! | `mounting {mount, place}` | the module at this place of the plan is being mounted: it may be to blame if the process dies |
//! | `settled {mount, place}` | that one is done, or is not waited for any more |
//! | `stuck {module}` | a module blocks its event loop in a hook |
//! | `tools {mount}` | the tools of a mount are not what they were |

use std::{collections::BTreeMap, path::PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, value::RawValue};
use toolpost_model::{HookStanding, TraceContext};

/// The first line.
#[derive(Debug, Serialize)]
pub(super) struct Boot<'a> {
    /// The bridge's files, by name.
    pub(super) files: BTreeMap<&'a str, &'a str>,
    pub(super) core: crate::CoreWish,
    pub(super) modules: Vec<ModuleOrder<'a>>,
    /// What plugins of an A2E host file are told of their host.
    pub(super) plugins: &'a super::PluginHost,
    /// The most that one result may have, in bytes of JSON.
    pub(super) result_bytes: usize,
    /// The most of a larger result that is kept until it is fetched, in bytes.
    pub(super) kept_bytes: usize,
    /// Folders for the end of `sys.path`.
    pub(super) later_paths: &'a [PathBuf],
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

/// Host to bridge. What has an id gets it when it is sent.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum BridgeOrder<'a> {
    Mount {
        mount: u64,
        session: &'a str,
        limit_ms: u64,
        capabilities: &'a Map<String, Value>,
        without: &'a BTreeMap<usize, String>,
        /// None begins before the one before it is done or has used up its time.
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

/// An order with the id of the request it makes, or that it is about.
#[derive(Debug, Serialize)]
pub(super) struct NumberedBridgeOrder<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) id: Option<u64>,
    #[serde(flatten)]
    pub(super) order: BridgeOrder<'a>,
}

/// What every line of the bridge has: its kind, and whose answer it is.
#[derive(Debug, Deserialize)]
pub(super) struct BridgeLineTag {
    #[serde(rename = "type")]
    pub(super) kind: String,
    #[serde(default)]
    pub(super) id: Option<u64>,
}

/// Lines of the bridge that answer nothing.
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
        /// When the module emitted it.
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

/// What a running call wants from the host.
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

/// `failure`: the answer to any request that could not be done.
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
    /// Left as it was written: the order of keys is part of what a model is given.
    pub(super) result: Box<RawValue>,
    #[serde(default)]
    pub(super) cut: Option<BridgeResultTruncation>,
    /// What the tool of a plugin has beside it.
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

/// A result that was too large to be sent whole: how many bytes of it are there.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct BridgeResultTruncation {
    pub(super) shown: u64,
    pub(super) total: u64,
    /// How many pieces beside the text were left out: they cannot be shown in part.
    pub(super) content: u64,
    /// How much of the whole waits to be fetched.
    pub(super) waiting: u64,
    /// What the whole is.
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

/// What a module brought.
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
    /// It chose to bring nothing.
    #[serde(default)]
    pub(super) declined: bool,
    #[serde(default)]
    pub(super) declined_because: Option<String>,
    /// Of an entry of an A2E host file.
    #[serde(default)]
    pub(super) plugin: Option<MountedPlugin>,
}

/// What a plugin of an A2E host file takes, and its metadata for the handshake.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct MountedPlugin {
    pub(super) messages: Vec<PluginMessageType>,
    pub(super) metadata: Map<String, Value>,
}

/// A message type of a plugin, with the fields that must be there.
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
    /// What the tool itself says it is called.
    #[serde(default)]
    pub(super) own_name: Option<String>,
    #[serde(default)]
    pub(super) description: String,
    #[serde(default)]
    pub(super) schema: Option<Map<String, Value>>,
    /// It says that it wants to be asked about.
    #[serde(default)]
    pub(super) asks: bool,
    /// The A2E definition of a plugin's tool.
    #[serde(default)]
    pub(super) definition: Option<Value>,
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
    /// It took longer than it may.
    #[serde(default)]
    pub(super) late: bool,
}
