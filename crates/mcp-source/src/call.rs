//! One call of a server's tool, or of one of its companions.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use serde_json::{Map, Value, json};
use toolpost_model::{CallContext, ErrorClass, ToolCall, ToolFailure, ToolId, ToolOutput};

use super::{
    client::McpRequestError,
    consult,
    link::{OutdatedProgram, UpstreamLink},
    listing::McpCallTarget,
    live::{InUse, LiveUpstream},
    outcome,
    server::McpUpstream,
};

/// How often a server may ask for input before it answers.
const ROUNDS: usize = 10;
/// How often a task is polled, unless the server names an interval.
const LOOK: Duration = Duration::from_millis(500);
const SHORTEST_LOOK: Duration = Duration::from_millis(100);
const LONGEST_LOOK: Duration = Duration::from_secs(10);
/// The prefix of `_meta` keys that the protocol reserves.
const RESERVED: &str = "io.modelcontextprotocol/";

/// Runs one call to its end. If the server died since the last call, or dropped the session, this call notices it
/// first. Its request was not taken, so the host sends it once more, to the restarted server. The definitions are
/// compared before. A request that may have been taken is never sent again, because its effect could happen twice.
pub(super) async fn run(
    server: &Arc<McpUpstream>,
    link: &Arc<UpstreamLink>,
    tool: &ToolId,
    call: ToolCall,
) -> Result<ToolOutput, ToolFailure> {
    match attempt(server, link, tool, &call).await {
        McpCallAttempt::Ended(ended) => ended,
        McpCallAttempt::NeverLeft(_) => match attempt(server, link, tool, &call).await {
            McpCallAttempt::Ended(ended) => ended,
            McpCallAttempt::NeverLeft(failure) => Err(failure),
        },
    }
}

enum McpCallAttempt {
    Ended(Result<ToolOutput, ToolFailure>),
    /// The connection was dead before anything was sent, or the server refused it unread.
    NeverLeft(ToolFailure),
}

async fn attempt(
    server: &Arc<McpUpstream>,
    link: &Arc<UpstreamLink>,
    tool: &ToolId,
    call: &ToolCall,
) -> McpCallAttempt {
    let ToolCall { input, context } = call;
    let is_known = context.cautioned() || !server.must_guard(Some(context.principal()));
    let outdated = if is_known {
        OutdatedProgram::Tolerated
    } else {
        OutdatedProgram::Refused
    };
    let live = tokio::select! {
        live = link.live(outdated) => live,
        () = context.canceled() => Err(stopped().untouched()),
    };
    let live = match live {
        Ok(live) => live,
        Err(failure) => return McpCallAttempt::Ended(Err(failure)),
    };
    // A tool with a changed definition must not run before an operator accepted the change.
    let looked = tokio::select! {
        looked = server.look_again(&live) => looked,
        () = context.canceled() => Err(stopped().untouched()),
    };
    match looked {
        Ok(()) => {}
        Err(failure) if was_not_taken(&failure, &live) => {
            return McpCallAttempt::NeverLeft(failure);
        }
        Err(failure) => return McpCallAttempt::Ended(Err(failure)),
    }
    let Some(target) = server.target(tool) else {
        return McpCallAttempt::Ended(Err(held_back(server, tool)));
    };
    let asked = UpstreamCall {
        server,
        link,
        live: &live,
        context,
        heard: AtomicBool::new(false),
    };
    let answered = tokio::select! {
        answered = asked.answer(&target, input.arguments().value()) => answered,
        () = context.canceled() => {
            live.stopped_waiting();
            Err(stopped())
        }
    };
    // A call can need several requests: further rounds, polls of a task. After the first answer the server has taken
    // the call, so a later request that could not be sent must not repeat the whole call.
    let heard = asked.heard.load(Ordering::Relaxed);
    match answered {
        Err(failure) if !heard && was_not_taken(&failure, &live) => {
            McpCallAttempt::NeverLeft(failure)
        }
        answered => McpCallAttempt::Ended(ended(link, &live, answered).await),
    }
}

/// Whether the request was not taken because there was no connection.
fn was_not_taken(failure: &ToolFailure, live: &LiveUpstream) -> bool {
    failure.code.as_deref() == Some(outcome::NOT_SENT) && !live.is_open()
}

/// Updates the link after an answer, and adds the sandbox of the server's program to the outcome.
async fn ended(
    link: &UpstreamLink,
    live: &InUse,
    answered: Result<ToolOutput, ToolFailure>,
) -> Result<ToolOutput, ToolFailure> {
    // An error that the tool reports is an answer too.
    if answered
        .as_ref()
        .err()
        .is_none_or(|failure| failure.code.as_deref() == Some("tool_error"))
    {
        link.works(live).await;
    }
    match (answered, live.applied().cloned()) {
        (Ok(output), Some(applied)) => Ok(output.confined(applied)),
        (Err(failure), Some(applied)) => Err(failure.confined(applied)),
        (answered, None) => answered,
    }
}

fn stopped() -> ToolFailure {
    ToolFailure::of(ErrorClass::Canceled, "the call was stopped")
}

/// The failure of a tool that was listed when the call began and is no longer offered.
fn held_back(server: &McpUpstream, tool: &ToolId) -> ToolFailure {
    let listing = server.listing();
    let failure = match listing.quarantined.iter().find(|held| held.tool == *tool) {
        Some(held) => {
            let message = format!("`{tool}` is held back: its definition is {}", held.change);
            ToolFailure::of(ErrorClass::SetupRequired, message).code("definition_kept_back").hint(format!(
                "ask the operator to review the change and accept it with `toolpost tools accept {tool}`"
            ))
        }
        None => ToolFailure::of(
            ErrorClass::UnknownTool,
            format!("the server no longer offers `{tool}`"),
        )
        .code("tool_gone"),
    };
    failure.untouched()
}

struct UpstreamCall<'a> {
    server: &'a Arc<McpUpstream>,
    link: &'a UpstreamLink,
    live: &'a InUse,
    context: &'a CallContext,
    /// The server answered a request of this call.
    heard: AtomicBool,
}

impl UpstreamCall<'_> {
    async fn answer(
        &self,
        target: &McpCallTarget,
        arguments: &Value,
    ) -> Result<ToolOutput, ToolFailure> {
        let only = |names: &[&str]| -> Map<String, Value> {
            let given = names
                .iter()
                .filter_map(|name| Some(((*name).to_owned(), arguments.get(*name)?.clone())));
            given.collect()
        };
        match target {
            McpCallTarget::Tool(native) => {
                let mut params = Map::new();
                params.insert("name".to_owned(), Value::String(native.clone()));
                params.insert("arguments".to_owned(), arguments.clone());
                let answer = self.rounds("tools/call", params).await?;
                match answer["resultType"] == "task" {
                    true => outcome::of_tool(self.task(answer).await?),
                    false => outcome::of_tool(answer),
                }
            }
            McpCallTarget::Read => {
                outcome::of_request(self.rounds("resources/read", only(&["uri"])).await?)
            }
            McpCallTarget::Prompt => outcome::of_request(
                self.rounds("prompts/get", only(&["name", "arguments"]))
                    .await?,
            ),
            McpCallTarget::Complete => {
                let params = only(&["ref", "argument", "context"]);
                outcome::of_request(self.ask("completion/complete", params).await?)
            }
            McpCallTarget::Subscribe(wanted) => {
                let uri = arguments["uri"].as_str().unwrap_or_default();
                self.subscribe(uri, *wanted).await?;
                Ok(ToolOutput::structured(json!({})))
            }
        }
    }

    /// Adds or removes a subscription of the session. Only the first and the last subscription of a resource go to the
    /// server.
    async fn subscribe(&self, uri: &str, wanted: bool) -> Result<(), ToolFailure> {
        let watched = &self.link.watched;
        let _turn = watched.turn().await;
        let (session, live): (_, &Arc<LiveUpstream>) = (self.context.session_id(), self.live);
        // The session can end while this call waits for its turn. Its subscriptions are removed then, and one that is
        // added afterwards would never be removed.
        if self.context.is_canceled() {
            return Err(stopped().untouched());
        }
        let tell = match wanted {
            true => watched.is_first(uri)?,
            false => watched.remove(session, uri),
        };
        if tell && !live.connection.facts.stateless {
            let method = if wanted {
                "resources/subscribe"
            } else {
                "resources/unsubscribe"
            };
            let params = json!({ "uri": uri })
                .as_object()
                .cloned()
                .unwrap_or_default();
            self.ask(method, params).await?;
        }
        if wanted {
            watched.add(session, uri);
        }
        if tell && live.connection.facts.stateless {
            live.want(&watched.addresses());
        }
        Ok(())
    }

    /// Sends a request, and sends it again with answers while the server asks for input. Only servers without sessions
    /// ask in this way.
    async fn rounds(&self, method: &str, params: Map<String, Value>) -> Result<Value, ToolFailure> {
        if !self.live.connection.facts.stateless {
            return self.ask(method, params).await;
        }
        let mut asked = params.clone();
        for _ in 0..ROUNDS {
            let mut answer = self.ask(method, asked).await?;
            if answer["resultType"] != "input_required" {
                return Ok(answer);
            }
            asked = params.clone();
            if let Some(Value::Object(requests)) = answer.get("inputRequests") {
                let answers = self.consult(requests).await?;
                asked.insert("inputResponses".to_owned(), json!(answers));
            }
            if let Some(state) = answer.get_mut("requestState").map(Value::take) {
                asked.insert("requestState".to_owned(), state);
            }
        }
        let message = format!("the server asked for more input {ROUNDS} times and never answered");
        Err(ToolFailure::new(message).code("too_many_rounds"))
    }

    async fn consult(
        &self,
        requests: &Map<String, Value>,
    ) -> Result<std::collections::BTreeMap<String, Value>, ToolFailure> {
        consult::ask_all(self.context, &self.server.settings.name, requests)
            .await
            .map_err(|why| {
                ToolFailure::new(format!(
                    "the tool asked a question that has no answer: {why}"
                ))
                .code("caller_cannot_answer")
            })
    }

    async fn ask(&self, method: &str, params: Map<String, Value>) -> Result<Value, ToolFailure> {
        let connection = &self.live.connection;
        let answered = connection
            .request(method, params, self.meta(), Some(self.context))
            .await;
        self.heard.fetch_or(answered.is_ok(), Ordering::Relaxed);
        answered.map_err(|error| self.failed(error))
    }

    fn failed(&self, error: McpRequestError) -> ToolFailure {
        outcome::failure(error, &self.server.settings.name)
    }

    /// The `_meta` of the caller without the keys that concern only the caller's connection to the host, and with the
    /// trace of this call.
    fn meta(&self) -> Map<String, Value> {
        let mut meta = self.context.meta().cloned().unwrap_or_default();
        meta.retain(|key, _| !key.starts_with(RESERVED) && key != "progressToken");
        let span = self.context.trace();
        meta.insert("traceparent".to_owned(), Value::String(span.traceparent()));
        if let Some(state) = span.tracestate() {
            meta.insert("tracestate".to_owned(), Value::String(state.to_owned()));
        }
        let facts = &self.live.connection.facts;
        if facts.stateless && facts.capabilities.get("logging").is_some() {
            meta.insert(
                format!("{RESERVED}logLevel"),
                Value::String("info".to_owned()),
            );
        }
        meta
    }

    /// Polls a task until it ends. A server may answer with a task although the host does not announce support for
    /// tasks.
    async fn task(&self, created: Value) -> Result<Value, ToolFailure> {
        let Some(id) = created["taskId"].as_str().map(str::to_owned) else {
            return Err(ToolFailure::new("the server created a task without an id")
                .code("unreadable_answer"));
        };
        let named = || {
            json!({ "taskId": id })
                .as_object()
                .cloned()
                .unwrap_or_default()
        };
        let mut running = McpTaskGuard {
            live: Some(Arc::clone(self.live)),
            params: named(),
        };
        let mut state = created;
        loop {
            match state["status"].as_str() {
                Some("completed") => {
                    running.live = None;
                    return Ok(state["result"].take());
                }
                Some("failed") => {
                    running.live = None;
                    let said = state["error"]["message"]
                        .as_str()
                        .unwrap_or("no reason given")
                        .to_owned();
                    return Err(
                        ToolFailure::new(format!("the task failed: {said}")).code("task_failed")
                    );
                }
                Some("cancelled") => {
                    running.live = None;
                    return Err(
                        ToolFailure::new("the server canceled the task").code("task_cancelled")
                    );
                }
                Some("input_required") => {
                    if let Some(Value::Object(requests)) = state.get("inputRequests") {
                        let mut params = named();
                        params.insert(
                            "inputResponses".to_owned(),
                            json!(self.consult(requests).await?),
                        );
                        self.ask("tasks/update", params).await?;
                    }
                }
                Some(_) | None => {}
            }
            let wait = state["pollIntervalMs"]
                .as_u64()
                .map_or(LOOK, Duration::from_millis);
            tokio::time::sleep(wait.clamp(SHORTEST_LOOK, LONGEST_LOOK)).await;
            state = self.ask("tasks/get", named()).await?;
        }
    }
}

/// A running task. If it is dropped before its end, the server gets a cancellation.
struct McpTaskGuard {
    live: Option<Arc<LiveUpstream>>,
    params: Map<String, Value>,
}

impl Drop for McpTaskGuard {
    fn drop(&mut self) {
        let (Some(live), params) = (self.live.take(), std::mem::take(&mut self.params)) else {
            return;
        };
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return;
        };
        runtime.spawn(async move {
            let asked = live
                .connection
                .request("tasks/cancel", params, Map::new(), None);
            let _ = tokio::time::timeout(LONGEST_LOOK, asked).await;
        });
    }
}
