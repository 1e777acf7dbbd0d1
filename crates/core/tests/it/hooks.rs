//! Hooks: what each output does, what each failure means, what is on record of it.

mod failures;
mod opinions;
mod outputs;
mod redacted;
mod stopping;

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use serde_json::{Value, json};
use toolpost_core::{Hook, HookCall, HookError, HookOutput};
use toolpost_model::{BoxFuture, EffectClass, HookEvent, HookStanding, ToolResult};
use toolpost_testkit::{MockNativeTool, TestHost};

pub(crate) type Answer = Result<HookOutput, HookError>;
type Said =
    Box<dyn Fn(&HookCall<'_>, Option<&ToolResult>) -> BoxFuture<'static, Answer> + Send + Sync>;

/// A hook that says what the test wants, at the events the test wants, and remembers what it was shown.
pub(crate) struct Probe {
    name: &'static str,
    standing: HookStanding,
    limit: Option<Duration>,
    events: Vec<HookEvent>,
    said: Said,
    seen: Seen,
}

/// Event and arguments, and the outcome where there was one.
type Seen = Arc<Mutex<Vec<(HookEvent, Value, Option<String>)>>>;

impl Probe {
    pub(crate) fn at(event: HookEvent, said: impl Fn() -> Answer + Send + Sync + 'static) -> Self {
        Self::asking(event, move |_, _| Box::pin(std::future::ready(said())))
    }

    fn asking(
        event: HookEvent,
        said: impl Fn(&HookCall<'_>, Option<&ToolResult>) -> BoxFuture<'static, Answer>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        Self {
            name: "probe",
            standing: HookStanding::Ordinary,
            limit: None,
            events: vec![event],
            said: Box::new(said),
            seen: Seen::default(),
        }
    }

    /// Says nothing, at every event.
    fn silent() -> Self {
        let events = vec![HookEvent::Before, HookEvent::After, HookEvent::Failure];
        Self {
            events,
            ..Self::at(HookEvent::Before, || Ok(HookOutput::proceed()))
        }
    }

    fn named(self, name: &'static str) -> Self {
        Self { name, ..self }
    }

    pub(crate) fn standing(self, standing: HookStanding) -> Self {
        Self { standing, ..self }
    }

    fn say(&self, call: &HookCall<'_>, result: Option<&ToolResult>) -> BoxFuture<'static, Answer> {
        let outcome = result.map(|result| result.outcome.as_str().to_owned());
        self.seen.lock().unwrap().push((
            call.event,
            call.input.arguments().value().clone(),
            outcome,
        ));
        (self.said)(call, result)
    }
}

impl Hook for Probe {
    fn name(&self) -> &str {
        self.name
    }
    fn standing(&self) -> HookStanding {
        self.standing
    }
    fn time_limit(&self) -> Option<Duration> {
        self.limit
    }
    fn concerns(&self, call: &HookCall<'_>) -> bool {
        self.events.contains(&call.event)
    }
    fn before<'a>(&'a self, call: &'a HookCall<'a>) -> BoxFuture<'a, Answer> {
        self.say(call, None)
    }
    fn after<'a>(
        &'a self,
        call: &'a HookCall<'a>,
        result: &'a ToolResult,
    ) -> BoxFuture<'a, Answer> {
        self.say(call, Some(result))
    }
    fn failed<'a>(
        &'a self,
        call: &'a HookCall<'a>,
        result: &'a ToolResult,
    ) -> BoxFuture<'a, Answer> {
        self.say(call, Some(result))
    }
}

/// `demo.act`: class write, one number, says `done` and `{"n": 1}`.
fn act() -> MockNativeTool {
    let schema = json!({ "type": "object", "properties": { "n": { "type": "integer" } } });
    let output = toolpost_model::ToolOutput::text("done").with_structured(json!({ "n": 1 }));
    MockNativeTool::named("demo.act")
        .class(EffectClass::Write)
        .schema(schema)
        .output(output.with_summary("did it"))
}

/// A host in mode `bypass` with one tool and hooks in their order.
async fn host(tool: &MockNativeTool, hooks: impl IntoIterator<Item = Probe>) -> TestHost {
    TestHost::build(|builder| {
        hooks
            .into_iter()
            .fold(builder.tool(tool.clone()), |builder, hook| {
                builder.hook(hook)
            })
    })
    .await
}

/// Calls `demo.act` once with `{"n": 1}` in a host of its own.
async fn run(hooks: impl IntoIterator<Item = Probe>) -> (ToolResult, MockNativeTool, TestHost) {
    let tool = act();
    let host = host(&tool, hooks).await;
    (host.call("act", json!({ "n": 1 })).await, tool, host)
}

/// The last record's body.
async fn last(host: &TestHost) -> Value {
    serde_json::from_str(&host.records().await.last().unwrap().record.body).unwrap()
}

/// What the last record says of its hooks, without the times.
async fn runs(host: &TestHost) -> Value {
    let mut runs = last(host).await["hooks"].take();
    for run in runs.as_array_mut().into_iter().flatten() {
        for time in ["at_us", "duration_us"] {
            assert!(run[time].take().is_u64());
            run.as_object_mut().unwrap().remove(time);
        }
    }
    runs
}
