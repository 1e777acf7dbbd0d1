//! What a hook may still withhold is not to be had before the hook has answered.

use std::sync::Arc;

use serde_json::json;
use tokio::sync::{Mutex, mpsc};
use toolpost_core::{Hook, HookCall, HookError, HookOutput};
use toolpost_model::{
    ArtifactError, ArtifactId, BoxFuture, Event, EventBody, HookEvent, HookStanding, InvocationId,
    Principal, Stage, ToolResult,
};
use toolpost_testkit::{CallEventRecorder, TestHost};

use super::{Keeper, Outer, Reader, text};
use crate::hooks::Probe;

/// Says which call of `keep` it is asked about, and answers when it is told what.
struct Slow {
    standing: HookStanding,
    asked: mpsc::UnboundedSender<InvocationId>,
    verdicts: Mutex<mpsc::UnboundedReceiver<HookOutput>>,
}

impl Hook for Slow {
    fn name(&self) -> &'static str {
        "slow"
    }

    fn standing(&self) -> HookStanding {
        self.standing
    }

    fn concerns(&self, call: &HookCall<'_>) -> bool {
        call.event == HookEvent::After && call.declaration.tool_id.to_string() == "demo.keep"
    }

    fn after<'a>(
        &'a self,
        call: &'a HookCall<'a>,
        _: &'a ToolResult,
    ) -> BoxFuture<'a, Result<HookOutput, HookError>> {
        Box::pin(async move {
            self.asked.send(call.invocation_id).unwrap();
            Ok(self.verdicts.lock().await.recv().await.unwrap())
        })
    }
}

/// What became of a call of `keep` on which a hook thought for a while.
struct Story {
    host: TestHost,
    id: ArtifactId,
    /// What an agent, an operator and a call of the same agent got in the meantime.
    meanwhile: [Result<String, String>; 3],
    result: ToolResult,
    events: Vec<Event>,
}

impl Story {
    async fn of(standing: HookStanding, verdict: HookOutput) -> Self {
        let ((asked, mut asks), (say, verdicts)) =
            (mpsc::unbounded_channel(), mpsc::unbounded_channel());
        let hook = Slow {
            standing,
            asked,
            verdicts: Mutex::new(verdicts),
        };
        let host = TestHost::build(|builder| builder.tool(Keeper).tool(Reader).hook(hook)).await;
        let (events, recorder) = CallEventRecorder::new(64);
        let mut request = host.request("keep", json!({ "pieces": { "a": ["secret plan"] } }));
        request.delivery.listener = Some(Arc::new(events));
        let meanwhile = async {
            let id = ArtifactId {
                invocation: asks.recv().await.unwrap(),
                place: 1,
            };
            let got = [
                open(&host, id, Principal::agent("test")).await,
                open(&host, id, Principal::operator("o")).await,
                read(&host, id).await,
            ];
            say.send(verdict).unwrap();
            (id, got)
        };
        let (answer, (id, meanwhile)) = tokio::join!(host.host.call(request), meanwhile);
        let result = answer.result().clone();
        let events = recorder.all().await;
        Self {
            host,
            id,
            meanwhile,
            result,
            events,
        }
    }

    /// The stage at which a piece was told of, for each that was.
    fn told_at(&self) -> Vec<Option<Stage>> {
        let mut at = None;
        let mut told = Vec::new();
        for event in &self.events {
            match event.body {
                EventBody::Stage { stage } => at = Some(stage),
                EventBody::Kept(_) => told.push(at),
                _ => {}
            }
        }
        told
    }
}

async fn open(host: &TestHost, id: ArtifactId, principal: Principal) -> Result<String, String> {
    match host.host.artifact(id, &principal).await {
        Ok(piece) => Ok(text(&*piece).await),
        Err(error) => Err(error.to_string()),
    }
}

async fn read(host: &TestHost, id: ArtifactId) -> Result<String, String> {
    let result = host.call("read", json!({ "id": id })).await;
    match &result.error {
        Some(error) => Err(error.message.clone()),
        None => Ok(result.model_text()),
    }
}

#[tokio::test]
async fn nobody_opens_or_hears_of_a_piece_that_is_withheld_in_the_end() {
    for standing in [HookStanding::Guard, HookStanding::Ordinary] {
        let story = Story::of(standing, HookOutput::stop("not for you")).await;
        let unknown = Err(ArtifactError::Unknown(story.id).to_string());
        assert_eq!(
            story.meanwhile,
            [unknown.clone(), unknown.clone(), unknown.clone()]
        );
        assert_eq!(story.told_at(), []);
        assert!(story.result.artifacts.is_empty());
        assert_eq!(
            open(&story.host, story.id, Principal::operator("o")).await,
            unknown
        );
    }
}

#[tokio::test]
async fn a_piece_that_is_let_through_is_told_of_and_opened_after_the_hooks() {
    let story = Story::of(HookStanding::Guard, HookOutput::proceed()).await;
    assert!(
        story.meanwhile.iter().all(Result::is_err),
        "{:?}",
        story.meanwhile
    );
    assert_eq!(story.told_at(), [Some(Stage::Persist)]);
    assert_eq!(story.result.artifacts[0].id, story.id);
    assert_eq!(
        read(&story.host, story.id).await.as_deref(),
        Ok("secret plan")
    );
}

#[tokio::test]
async fn an_observer_cannot_withhold_and_holds_nothing_back() {
    let story = Story::of(HookStanding::Observer, HookOutput::proceed()).await;
    assert!(
        story
            .meanwhile
            .iter()
            .all(|got| got.as_deref() == Ok("secret plan")),
        "{:?}",
        story.meanwhile
    );
    assert_eq!(story.told_at(), [Some(Stage::Execute)]);
}

#[tokio::test]
async fn a_running_call_reads_its_own_pieces_also_under_a_hook() {
    let probe = Probe::at(HookEvent::After, || Ok(HookOutput::proceed()));
    let host = TestHost::build(|builder| builder.tool(Keeper).tool(Outer).hook(probe)).await;
    assert_eq!(
        host.call("outer", json!({})).await.model_text(),
        "own piece, inner"
    );
}
