//! The tools, resources and prompts that the conformance suite calls for, as a source of a host. What they say is in
//! `fixture.json`, which the conformance server behind the host reads too.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use serde_json::{Map, Value, json};
use toolpost_model::{
    BoxFuture, ClassFact, ConsultError, ConsultKind, ConsultQuestion, Declaration, EffectClass,
    EffectOrigin, LoadingStrategy, LogLevel, ResultContent, SessionScope, Source, SourceCompanions,
    SourceError, SourceFeed, SourceNotice, SourceSession, ToolCall, ToolFailure, ToolId,
    ToolOutput, ToolProgress, WireNaming,
};

const PAUSE: Duration = Duration::from_millis(50);

/// Serves what `fixture.json` lists.
pub(crate) struct Fixture(Arc<Inner>);

struct Inner {
    listed: Value,
    feed: Mutex<Option<SourceFeed>>,
    /// One more tool, and one more prompt: so that the lists really change.
    more_tools: AtomicBool,
    more_prompts: AtomicBool,
}

impl Default for Fixture {
    fn default() -> Self {
        let listed = serde_json::from_str(include_str!("fixture.json")).unwrap();
        let (more_tools, more_prompts) = Default::default();
        Self(Arc::new(Inner {
            listed,
            feed: Mutex::default(),
            more_tools,
            more_prompts,
        }))
    }
}

fn id(name: &str) -> ToolId {
    format!("conformance.{name}").parse().unwrap()
}

fn entries<'a>(listed: &'a Value, kind: &str) -> &'a [Value] {
    listed[kind].as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// Without what only this fixture reads.
fn shown(entry: &Value) -> Value {
    let mut entry = entry.clone();
    entry.as_object_mut().unwrap().remove("does");
    entry
}

impl Source for Fixture {
    fn name(&self) -> &str {
        "conformance"
    }

    fn origin(&self) -> EffectOrigin {
        EffectOrigin::HostCode
    }

    fn naming(&self) -> WireNaming {
        WireNaming::Bare
    }

    fn list(&self) -> BoxFuture<'_, Result<Vec<Declaration>, SourceError>> {
        let declare = |name: &str, description: String, schema: Value| {
            let mut declaration = Declaration::new(id(name), description);
            declaration.input.schema = Arc::new(schema);
            declaration.interface.safety.class = ClassFact::Always(EffectClass::Read);
            declaration
        };
        let tool = |tool: &Value| {
            declare(
                &text(&tool["name"]),
                text(&tool["description"]),
                tool["inputSchema"].clone(),
            )
        };
        let companion = |name: &&str| {
            let mut declaration = declare(name, (*name).to_owned(), json!({ "type": "object" }));
            declaration.loading = LoadingStrategy::Companion;
            declaration
        };
        let mut tools: Vec<Declaration> =
            entries(&self.0.listed, "tools").iter().map(tool).collect();
        tools.extend(
            ["read", "prompt", "complete", "subscribe", "unsubscribe"]
                .iter()
                .map(companion),
        );
        if self.0.more_tools.load(Ordering::SeqCst) {
            tools.push(declare(
                "test_added",
                "Was not there before".to_owned(),
                json!({ "type": "object" }),
            ));
        }
        Box::pin(std::future::ready(Ok(tools)))
    }

    fn companions(&self) -> Arc<SourceCompanions> {
        let listed = |kind| {
            entries(&self.0.listed, kind)
                .iter()
                .map(shown)
                .collect::<Vec<_>>()
        };
        let mut prompts = listed("prompts");
        if self.0.more_prompts.load(Ordering::SeqCst) {
            prompts.push(json!({ "name": "test_added", "description": "Was not there before" }));
        }
        Arc::new(SourceCompanions {
            resources: listed("resources"),
            templates: listed("templates"),
            prompts,
            read: Some(id("read")),
            prompt: Some(id("prompt")),
            complete: Some(id("complete")),
            subscribe: Some(id("subscribe")),
            unsubscribe: Some(id("unsubscribe")),
        })
    }

    fn open<'a>(
        &'a self,
        _: &'a SessionScope,
    ) -> BoxFuture<'a, Result<Arc<dyn SourceSession>, SourceError>> {
        let session: Arc<dyn SourceSession> = Arc::new(Opened(Arc::clone(&self.0)));
        Box::pin(std::future::ready(Ok(session)))
    }

    fn connect(&self, feed: SourceFeed) {
        *self.0.feed.lock().unwrap_or_else(PoisonError::into_inner) = Some(feed);
    }
}

struct Opened(Arc<Inner>);

impl SourceSession for Opened {
    fn execute<'a>(
        &'a self,
        tool: &'a ToolId,
        call: ToolCall,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolFailure>> {
        let arguments = call.input.arguments().value().clone();
        Box::pin(async move {
            match tool.name() {
                "read" => self.0.read(&text(&arguments["uri"])),
                "prompt" => self.0.prompt(&call, &arguments).await,
                "complete" => self.0.complete(&arguments),
                "subscribe" | "unsubscribe" => Ok(ToolOutput::structured(json!({}))),
                name => self.0.call(name, &call, &arguments).await,
            }
        })
    }
}

impl Inner {
    fn find(&self, kind: &str, name: &str) -> Option<&Value> {
        entries(&self.listed, kind)
            .iter()
            .find(|entry| entry["name"] == name)
    }

    fn read(&self, uri: &str) -> Result<ToolOutput, ToolFailure> {
        let template = uri
            .strip_prefix("test://template/")
            .and_then(|rest| rest.strip_suffix("/data"));
        let mut contents = match (self.listed["contents"].get(uri), template) {
            (Some(contents), _) => contents.clone(),
            (None, Some(part)) => {
                let data = json!({ "id": part, "templateTest": true, "data": format!("Data for ID: {part}") });
                json!({ "mimeType": "application/json", "text": data.to_string() })
            }
            (None, None) => return Err(ToolFailure::invalid(format!("nothing is at `{uri}`"))),
        };
        contents["uri"] = uri.into();
        Ok(ToolOutput::structured(json!({ "contents": [contents] })))
    }

    fn complete(&self, arguments: &Value) -> Result<ToolOutput, ToolFailure> {
        let begun = text(&arguments["argument"]["value"]);
        let known = entries(&self.listed, "completions")
            .iter()
            .filter_map(Value::as_str);
        let values: Vec<&str> = known.filter(|value| value.starts_with(&begun)).collect();
        let completion = json!({ "total": values.len(), "values": values, "hasMore": false });
        Ok(ToolOutput::structured(json!({ "completion": completion })))
    }

    async fn prompt(&self, call: &ToolCall, arguments: &Value) -> Result<ToolOutput, ToolFailure> {
        let name = text(&arguments["name"]);
        let prompt = self.find("prompts", &name);
        let prompt =
            prompt.ok_or_else(|| ToolFailure::invalid(format!("there is no prompt `{name}`")))?;
        let given = &arguments["arguments"];
        ask(call, &prompt["does"], given).await?;
        let message =
            |content: &Value| json!({ "role": "user", "content": filled(content, given) });
        let messages: Vec<Value> = entries(&prompt["does"], "messages")
            .iter()
            .map(message)
            .collect();
        Ok(ToolOutput::structured(json!({ "messages": messages })))
    }

    async fn call(
        &self,
        name: &str,
        call: &ToolCall,
        given: &Value,
    ) -> Result<ToolOutput, ToolFailure> {
        let Some(tool) = self.find("tools", name) else {
            return Ok(ToolOutput::text("added"));
        };
        let does = &tool["does"];
        if let Some(error) = does["error"].as_str() {
            return Err(ToolFailure::new(error));
        }
        let answers = ask(call, does, given).await?;
        for line in entries(does, "logs") {
            call.context.log(LogLevel::Info, text(line));
            tokio::time::sleep(PAUSE).await;
        }
        for done in entries(does, "progress") {
            let done = done.as_u64();
            let total = Some(100);
            call.context.progress(ToolProgress {
                message: String::new(),
                percent: None,
                done,
                total,
            });
            tokio::time::sleep(PAUSE).await;
        }
        self.change(does["changes"].as_str());
        let content = entries(does, "content")
            .iter()
            .map(content)
            .collect::<Vec<_>>();
        match content.is_empty() {
            true => Ok(ToolOutput::text(format!(
                "{} {}",
                text(&does["says"]),
                Value::from(answers)
            ))),
            false => Ok(ToolOutput {
                content,
                ..ToolOutput::default()
            }),
        }
    }

    fn change(&self, what: Option<&str>) {
        let (switch, notice) = match what {
            Some("tools") => (&self.more_tools, SourceNotice::ToolsChanged),
            Some("prompts") => (&self.more_prompts, SourceNotice::PromptsChanged),
            _ => return,
        };
        switch.fetch_xor(true, Ordering::SeqCst);
        if let Some(feed) = &*self.feed.lock().unwrap_or_else(PoisonError::into_inner) {
            feed.notify(notice);
        }
    }
}

/// Asks one round after another, and gives all answers by their keys.
async fn ask(
    call: &ToolCall,
    does: &Value,
    given: &Value,
) -> Result<Map<String, Value>, ToolFailure> {
    let mut answers = Map::new();
    for round in entries(does, "asks") {
        let questions = round
            .as_object()
            .unwrap()
            .iter()
            .map(|(key, question)| ConsultQuestion {
                key: key.clone(),
                kind: match question["method"].as_str() {
                    Some("elicitation/create") => ConsultKind::Elicitation,
                    Some("sampling/createMessage") => ConsultKind::Sampling,
                    _ => ConsultKind::Roots,
                },
                params: filled(&question["params"], given),
            });
        let askable = |question: &ConsultQuestion| {
            does["leaves_out"] != json!(true) || call.context.consultable().includes(question.kind)
        };
        let replies = call
            .context
            .consult(questions.filter(askable).collect())
            .await;
        let replies = replies.map_err(|error| unanswered(&error, does))?;
        answers.extend(replies.into_iter().map(|reply| (reply.key, reply.value)));
    }
    Ok(answers)
}

/// The failure that faces tell as what the client lacks.
fn unanswered(error: &ConsultError, does: &Value) -> ToolFailure {
    let failure = ToolFailure::new(format!("nobody answered: {error}"));
    let lacking = match error {
        ConsultError::Unsupported(kind) => kind.as_str(),
        // The first question tells what a caller would need who can be asked nothing at all.
        ConsultError::Nobody => match does["asks"][0]
            .to_string()
            .contains("sampling/createMessage")
        {
            true => ConsultKind::Sampling.as_str(),
            false => ConsultKind::Elicitation.as_str(),
        },
        ConsultError::Canceled | ConsultError::TimedOut | ConsultError::Refused(_) => {
            return failure;
        }
    };
    ToolFailure {
        details: Some(json!({ "kind": lacking })),
        ..failure.code("caller_cannot_answer")
    }
}

/// The value with `${name}` replaced by the argument of that name.
fn filled(value: &Value, given: &Value) -> Value {
    match value {
        Value::Object(map) => map
            .iter()
            .map(|(key, inner)| (key.clone(), filled(inner, given)))
            .collect(),
        Value::Array(list) => list.iter().map(|inner| filled(inner, given)).collect(),
        Value::String(text) => {
            let given = given.as_object().into_iter().flatten();
            let insert = |text: String, (name, value): (&String, &Value)| {
                text.replace(&format!("${{{name}}}"), value.as_str().unwrap_or_default())
            };
            Value::String(given.fold(text.clone(), insert))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

/// MCP's content as the host has it.
fn content(piece: &Value) -> ResultContent {
    let data = text(&piece["data"]);
    let media_type = text(&piece["mimeType"]);
    match piece["type"].as_str() {
        Some("image") => ResultContent::Image { data, media_type },
        Some("audio") => ResultContent::Audio { data, media_type },
        Some("resource") => ResultContent::Resource {
            uri: text(&piece["resource"]["uri"]),
            media_type: piece["resource"]["mimeType"].as_str().map(str::to_owned),
            text: piece["resource"]["text"].as_str().map(str::to_owned),
            data: None,
        },
        _ => ResultContent::text(text(&piece["text"])),
    }
}
