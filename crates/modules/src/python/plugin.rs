//! Plugins of an A2E host file: their messages as calls of this host, and their own messages and audit entries.
//!
//! A message of type `memory/store/req` is the call `a2e.memory/store`: validated, decided, scheduled and recorded like
//! the call of a tool. That call dispatches as A2E hosts do, by priority, and makes one step `a2e.memory/store:NAME`
//! per plugin. The host implements none of the capabilities: the plugins define the effects of a message.

mod declaring;
mod message_class;

use std::{
    cmp::Reverse,
    collections::HashMap,
    sync::{Arc, OnceLock},
};

use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use toolpost_a2e::projection::{self, CallResponseView};
use toolpost_amplifier::{ToolResult as ModuleResult, into_outcome};
use toolpost_model::{
    CallContext, ErrorClass, EventBody, LogLevel, NestedCall, SessionId, ToolCall, ToolFailure,
    ToolId, ToolOutput, ToolProgress, ToolResult, Truncation,
};

use super::{
    call::{mounted_for, send},
    process::{NoAnswer, read},
    protocol::{BridgeOrder, HandledMessage, MountedPlugin, ResultExtras},
    seat::SessionMountKeeper,
    set::ModuleSet,
    settings::{BridgedModule, PythonPackage},
};

pub(super) use declaring::{declare_dispatch, declare_step, declare_tool};
pub use message_class::{MessageStanding, allowed_message_patterns, message_standing};

/// The namespace of capability messages.
pub(super) const NAMESPACE: &str = "a2e";
/// The type of a call of a tool.
const TOOL_CALL: &str = "tool/call/req";

/// A loaded plugin, as the handshake describes it.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadedPlugin {
    /// Its name in the file.
    pub name: String,
    /// Its capability, as the file spells it.
    pub capability: String,
    /// Its rank among the plugins for a message: the highest comes first.
    pub priority: i64,
    /// Whether it keeps a message from other plugins if it comes first.
    pub exclusive: bool,
    /// Its message types, beside those about tools.
    pub messages: Vec<String>,
    /// The metadata of its handshake.
    pub metadata: Map<String, Value>,
}

impl LoadedPlugin {
    /// `None`: the module is no plugin.
    pub(super) fn of(module: &BridgedModule, mounted: &MountedPlugin) -> Option<Self> {
        let PythonPackage::Plugin {
            capability,
            priority,
            exclusive,
            ..
        } = &module.package
        else {
            return None;
        };
        Some(Self {
            name: module.planned.id.to_string(),
            capability: capability.clone(),
            priority: *priority,
            exclusive: *exclusive,
            messages: mounted
                .messages
                .iter()
                .map(|message| message.kind.clone())
                .collect(),
            metadata: mounted.metadata.clone(),
        })
    }
}

/// Takes the plugins' own messages and audit entries.
pub trait PluginPort: Send + Sync + 'static {
    /// Sends a message to the agent of a session.
    fn push(&self, session: &SessionId, message: Value);

    /// Writes an audit entry.
    fn audit(&self, entry: Value);
}

/// The route of messages and audit entries from the processes to the port. A message goes directly from its line to
/// the port, so that a message that a plugin sends during a request is sent before the request's answer.
#[derive(Default)]
pub(super) struct PluginOutlet {
    port: OnceLock<Arc<dyn PluginPort>>,
    /// The session of each mount, for the plugins in it.
    sessions: Mutex<HashMap<u64, SessionId>>,
}

impl PluginOutlet {
    pub(super) fn set_port(&self, port: Arc<dyn PluginPort>) {
        let _ = self.port.set(port);
    }

    /// Assigns the mount to this session.
    pub(super) fn assign(&self, mount: u64, session: &SessionId) {
        self.sessions.lock().insert(mount, session.clone());
    }

    pub(super) fn forget(&self, mount: u64) {
        self.sessions.lock().remove(&mount);
    }

    pub(super) fn push(&self, mount: u64, message: Value) {
        let session = self.sessions.lock().get(&mount).cloned();
        if let (Some(port), Some(session)) = (self.port.get(), session) {
            port.push(&session, message);
        }
    }

    pub(super) fn audit(&self, entry: Value) {
        if let Some(port) = self.port.get() {
            port.audit(entry);
        }
    }
}

/// A plugin for a message type.
#[derive(Clone, Debug)]
pub(super) struct MessageTaker {
    pub(super) plugin: String,
    /// The type on the wire.
    pub(super) kind: String,
    pub(super) priority: i64,
    pub(super) exclusive: bool,
    /// The call that passes the message to this plugin.
    pub(super) step: ToolId,
}

/// Highest priority first; equal ones in the order of the file.
pub(super) fn by_priority(takers: &mut [MessageTaker]) {
    takers.sort_by_key(|taker| Reverse(taker.priority));
}

/// The name of a message type in tool ids.
pub(super) fn message_name(kind: &str) -> &str {
    kind.strip_suffix("/req").unwrap_or(kind)
}

/// Passes a message to its plugins: to the first alone if that is exclusive, else to all of them in turn.
pub(super) async fn dispatch(
    takers: &[MessageTaker],
    call: ToolCall,
) -> Result<ToolOutput, ToolFailure> {
    let ToolCall { input, context } = call;
    let takers = match takers {
        [] => {
            return Err(ToolFailure::of(
                ErrorClass::DependencyUnavailable,
                "no plugin accepts this message any more",
            ));
        }
        [first, ..] if first.exclusive => &takers[..1],
        takers => takers,
    };
    let mut responses = Vec::new();
    let mut failure = None;
    let mut has_answer = false;
    for (place, taker) in takers.iter().enumerate() {
        let step =
            NestedCall::new(taker.step.as_str(), input.arguments().value().clone()).as_step();
        let result = context.call_tool(step).await?;
        let Some(mut response) = response_of(&result) else {
            has_answer = true;
            continue;
        };
        if let Some(fields) = response.as_object_mut()
            && fields
                .get("id")
                .and_then(Value::as_str)
                .is_none_or(str::is_empty)
        {
            // The face uses the id to recognize an answer that it sent before the request ended.
            fields.insert(
                "id".to_owned(),
                format!("{}-{place}", context.invocation_id().to_hex()).into(),
            );
        }
        if takers.len() > 1 {
            // The agent gets each answer at once, so that a slow plugin does not delay the others.
            context.emit(EventBody::Message {
                message: response.clone(),
            });
        }
        responses.push(response);
        match result.error {
            Some(error) => {
                failure.get_or_insert((error.class, error.message));
            }
            None => has_answer = true,
        }
    }
    let responses = json!({ "responses": responses });
    match failure.filter(|_| !has_answer) {
        Some((class, message)) => Err(ToolFailure {
            details: Some(responses),
            ..ToolFailure::of(class, message)
        }),
        None => Ok(ToolOutput::structured(responses)),
    }
}

/// The final message of a step. `None`: the plugin has no answer.
fn response_of(result: &ToolResult) -> Option<Value> {
    match &result.error {
        None if result.structured_content.is_none() && result.persistence.is_some() => {
            let text = "the answer exceeds the operator's size limit";
            Some(error_message(ErrorClass::ResultTooLarge, None, text))
        }
        None => result.structured_content.clone(),
        Some(error) => Some(
            match error
                .details
                .as_ref()
                .and_then(|details| details.get("response"))
            {
                Some(response) => response.clone(),
                None => error_message(error.class, Some(&error.code), &error.message),
            },
        ),
    }
}

fn error_message(class: ErrorClass, code: Option<&str>, message: &str) -> Value {
    let code = match (code, class) {
        (Some("raised"), _) => "internal_error",
        (Some("invalid_message"), _) => "parse_error",
        (_, ErrorClass::ExecutionFailed | ErrorClass::DependencyUnavailable) => "runtime_error",
        (_, class) => projection::error_code(class),
    };
    json!({ "type": "error", "code": code, "message": message, "retryable": false })
}

/// One step: passes the message to one plugin and waits for its answer.
pub(super) async fn hand_over(
    set: &Arc<ModuleSet>,
    seat: &Arc<SessionMountKeeper>,
    taker: &MessageTaker,
    call: ToolCall,
) -> Result<ToolOutput, ToolFailure> {
    let ToolCall { input, context } = call;
    let mounted = mounted_for(set, seat, &context).await?;
    let mut message = Map::new();
    message.insert("type".to_owned(), Value::Null);
    message.extend(
        input
            .arguments()
            .value()
            .as_object()
            .cloned()
            .unwrap_or_default(),
    );
    // The type that the decision was about, even if the arguments name another one.
    message.insert("type".to_owned(), Value::from(taker.kind.as_str()));
    let message = Value::Object(message);
    let span = context.trace();
    let order = BridgeOrder::Message {
        mount: mounted.mount,
        module: &taker.plugin,
        message: &message,
        trace: &span,
    };
    let (_, line) = send(&mounted, order, &context, taker.step.to_string()).await;
    let applied = mounted.bridge.applied.clone();
    let handled =
        line.and_then(|line| read::<HandledMessage>(&line).map_err(NoAnswer::into_failure));
    match handled {
        Ok(HandledMessage { message }) => {
            mounted.bridge.works();
            let output = message.map_or_else(|| Ok(ToolOutput::default()), answered)?;
            Ok(output.confined(applied))
        }
        Err(failure) => Err(failure.confined(applied)),
    }
}

/// A plugin's answer as the end of the step. An `error` message is a failure, and is sent as the plugin wrote it.
fn answered(message: Map<String, Value>) -> Result<ToolOutput, ToolFailure> {
    if message.get("type").and_then(Value::as_str) != Some("error") {
        return Ok(ToolOutput::structured(Value::Object(message)));
    }
    let text = |key: &str| {
        message
            .get(key)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    Err(ToolFailure {
        code: Some(text("code").into()),
        details: Some(json!({ "response": message })),
        ..ToolFailure::new(text("message"))
    })
}

/// The call that a plugin makes by sending a message to another plugin.
pub(super) fn nested_call(plugin: &str, message: &Map<String, Value>) -> NestedCall {
    let text = |key: &str| message.get(key).and_then(Value::as_str).unwrap_or_default();
    if text("type") == TOOL_CALL {
        let arguments = message
            .get("arguments")
            .cloned()
            .unwrap_or_else(|| json!({}));
        return NestedCall::new(format!("{plugin}.{}", text("tool_name")), arguments);
    }
    let fields = message
        .iter()
        .filter(|(key, _)| !matches!(key.as_str(), "type" | "ts" | "version"));
    let fields = fields
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    let name = message_name(text("type"));
    NestedCall::new(
        format!("{NAMESPACE}.{name}:{plugin}"),
        Value::Object(fields),
    )
}

/// The result of that call as the message that the plugin waits for.
pub(super) fn nested_answer(message: &Map<String, Value>, result: &ToolResult) -> Value {
    let text = |key: &str| message.get(key).and_then(Value::as_str).unwrap_or_default();
    let mut answer = if text("type") == TOOL_CALL {
        let view =
            CallResponseView::of_plugin(text("id"), text("tool_name"), result, &[], usize::MAX);
        let mut answer = serde_json::to_value(view).unwrap_or_default();
        answer["type"] = Value::from("tool/call/resp");
        answer
    } else {
        response_of(result).unwrap_or_else(|| json!({ "type": "" }))
    };
    if answer
        .get("req_id")
        .and_then(Value::as_str)
        .unwrap_or_default()
        .is_empty()
    {
        answer["req_id"] = Value::from(text("id"));
    }
    answer
}

/// An A2E event of a tool. Kinds and members that this host does not define are passed on unchanged.
pub(super) fn event_body(kind: String, data: Value) -> EventBody {
    let fields = data.as_object();
    let has_only = |known: &[&str]| {
        fields.is_some_and(|all| all.keys().all(|key| known.contains(&key.as_str())))
    };
    let text = |key: &str| data.get(key).and_then(Value::as_str).map(str::to_owned);
    match (kind.as_str(), text("message")) {
        ("progress", message) if has_only(&["pct", "message"]) => {
            let percent = data.get("pct").and_then(Value::as_f64);
            EventBody::Progress(ToolProgress {
                message: message.unwrap_or_default(),
                percent,
                done: None,
                total: None,
            })
        }
        ("status", Some(message)) if has_only(&["message"]) => EventBody::Status { message },
        ("log", Some(message)) if has_only(&["level", "message"]) => EventBody::Log {
            level: level_of(text("level").as_deref()),
            message,
        },
        // Events of that kind carry facts of the host, so a plugin's event becomes a custom one.
        (EventBody::MODULE_EVENT, _) => EventBody::Custom {
            name: format!("plugin:{kind}"),
            data,
        },
        _ => EventBody::Custom { name: kind, data },
    }
}

fn level_of(word: Option<&str>) -> LogLevel {
    match word {
        Some("debug") => LogLevel::Debug,
        Some("warning" | "warn") => LogLevel::Warn,
        Some("error" | "critical") => LogLevel::Error,
        Some(_) | None => LogLevel::Info,
    }
}

/// Adds A2E's extra members to the result of a plugin's tool. The data is the plugin's own, without a second form as
/// text.
pub(super) fn with_extras(
    result: ModuleResult,
    extras: ResultExtras,
    context: &CallContext,
) -> Result<ToolOutput, ToolFailure> {
    let ResultExtras {
        summary,
        truncated,
        exit_code,
        events,
    } = extras;
    let scalar = Some(result.output().clone()).filter(|data| data.is_number() || data.is_boolean());
    for event in events {
        context.emit(event_body(event.kind, event.data));
    }
    let summary = match summary {
        None | Some(Value::Null) => None,
        Some(Value::String(text)) => Some(text),
        Some(other) => Some(other.to_string()),
    };
    match into_outcome(result) {
        Ok(mut output) => {
            output.structured = output.structured.or(scalar);
            if output.structured.as_ref().is_some_and(Value::is_object) {
                output.content.clear();
            }
            let shown = output
                .structured
                .as_ref()
                .map_or(0, |value| value.to_string().len() as u64);
            let cut = truncated.then(|| Truncation {
                shown,
                total: None,
                unit: "bytes".to_owned(),
                hint: Some("the tool truncated its own result".to_owned()),
                artifact: None,
            });
            Ok(ToolOutput {
                summary: summary.or(output.summary),
                exit_code: exit_code.or(output.exit_code),
                truncated: output.truncated.or(cut),
                ..output
            })
        }
        Err(mut failure) => {
            let code = |details: &Value| details.pointer("/error/type").cloned();
            if let Some(details) = failure.details.as_mut()
                && let Some(code) = code(details)
            {
                details[projection::ERROR_CODE] = code;
                if let Some(summary) = summary {
                    details[projection::SUMMARY] = Value::from(summary);
                }
                if truncated {
                    details[projection::TRUNCATED] = Value::from(true);
                }
            }
            Err(ToolFailure {
                exit_code: exit_code.or(failure.exit_code),
                ..failure
            })
        }
    }
}
