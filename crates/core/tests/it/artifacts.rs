//! Kept pieces of results: made by running calls, read by other calls and by whoever may see the call.

mod held_back;
mod strategies;

use std::sync::Arc;

use serde_json::json;
use toolpost_core::{HookOutput, KnownSecrets, MemoryBlobs};
use toolpost_model::{
    ArtifactError, ArtifactId, ArtifactRef, Declaration, EventBody, HookEvent, NestedCall, Outcome,
    Principal, StoredArtifact, Tool, ToolCall, ToolFailure, ToolOutput,
};
use toolpost_testkit::{CallEventRecorder, TestHost, blob_suite};

use crate::hooks::Probe;

/// Keeps each of `pieces` under its own name, and says or fails as told.
struct Keeper;

impl Tool for Keeper {
    fn declaration(&self) -> Declaration {
        Declaration::new("demo.keep".parse().unwrap(), "Keeps pieces")
    }

    async fn execute(&self, call: ToolCall) -> Result<ToolOutput, ToolFailure> {
        let arguments = call.input.arguments().value();
        for (name, writes) in arguments["pieces"].as_object().into_iter().flatten() {
            let begun = call
                .context
                .create_artifact(name.as_str(), "text/plain")
                .await;
            let mut sink = begun.map_err(|error| ToolFailure::new(error.to_string()))?;
            for write in writes.as_array().into_iter().flatten() {
                sink.write(write.as_str().unwrap_or_default().as_bytes())
                    .await
                    .map_err(failed)?;
            }
            if arguments["drop"] != true {
                sink.finish().await.map_err(failed)?;
            }
        }
        match arguments["fail"].as_str() {
            Some(why) => Err(ToolFailure::new(why)),
            None => Ok(ToolOutput::text("done")),
        }
    }
}

#[expect(clippy::needless_pass_by_value, reason = "the shape `map_err` wants")]
fn failed(error: ArtifactError) -> ToolFailure {
    ToolFailure::new(error.to_string())
}

/// Gives back what it reads of a kept piece.
struct Reader;

impl Tool for Reader {
    fn declaration(&self) -> Declaration {
        Declaration::new("demo.read".parse().unwrap(), "Reads a kept piece")
    }

    async fn execute(&self, call: ToolCall) -> Result<ToolOutput, ToolFailure> {
        let id: ArtifactId = call
            .input
            .arguments()
            .str("id")
            .unwrap_or_default()
            .parse()
            .unwrap();
        let piece = call.context.open_artifact(id).await.map_err(failed)?;
        Ok(ToolOutput::text(text(&*piece).await))
    }
}

async fn text(piece: &dyn StoredArtifact) -> String {
    let size = usize::try_from(piece.about().size).unwrap();
    String::from_utf8(piece.read(0, size).await.unwrap()).unwrap()
}

async fn host() -> TestHost {
    TestHost::build(|builder| builder.tool(Keeper).tool(Reader)).await
}

fn named<'a>(pieces: &'a [ArtifactRef], name: &str) -> &'a ArtifactRef {
    pieces.iter().find(|piece| piece.name == name).unwrap()
}

#[tokio::test]
async fn the_store_in_memory_does_what_a_store_must() {
    blob_suite(async |room| MemoryBlobs::new(room)).await;
}

#[tokio::test]
async fn a_piece_is_named_in_the_result_and_read_by_another_call_of_the_same_principal() {
    let host = host().await;
    let pieces = json!({ "a": ["one ", "two"], "b": ["three"] });
    let result = host.call("keep", json!({ "pieces": pieces })).await;
    assert_eq!(result.outcome, Outcome::Succeeded);
    let a = named(&result.artifacts, "a");
    let b = named(&result.artifacts, "b");
    assert_eq!((a.size, a.id.place, b.id.place), (7, 1, 2));
    assert_eq!(a.id.invocation, result.invocation_id);
    assert_eq!(
        host.call("read", json!({ "id": a.id })).await.model_text(),
        "one two"
    );
    assert_eq!(
        host.call("read", json!({ "id": b.id })).await.model_text(),
        "three"
    );
    let none = ArtifactId { place: 3, ..a.id };
    let failed = host.call("read", json!({ "id": none })).await;
    assert_eq!(
        failed.error.unwrap().message,
        ArtifactError::Unknown(none).to_string()
    );
}

#[tokio::test]
async fn others_do_not_see_a_piece_and_operators_do() {
    let host = host().await;
    let result = host
        .call("keep", json!({ "pieces": { "a": ["mine"] } }))
        .await;
    let id = result.artifacts[0].id;
    for (principal, sees) in [
        (Principal::agent("test"), true),
        (Principal::agent("other"), false),
        (Principal::operator("other"), true),
        // The same name in another role is somebody else, who sees it for another reason.
        (Principal::operator("test"), true),
    ] {
        let found = host.host.artifact(id, &principal).await;
        match found {
            Ok(piece) => assert!(sees && text(&*piece).await == "mine", "{principal:?}"),
            Err(error) => assert!(
                !sees && error == ArtifactError::Unknown(id),
                "{principal:?}: {error}"
            ),
        }
    }
    // An operator's tool acts on the operator's own calls alone.
    let session = host.host.default_session(&Principal::operator("other"));
    let request = toolpost_core::CallRequest {
        session,
        ..host.request("read", json!({ "id": id }))
    };
    assert_eq!(
        host.host.call(request).await.result().outcome,
        Outcome::Failed
    );
}

#[tokio::test]
async fn pieces_of_a_failed_call_stay_and_unfinished_ones_do_not() {
    let host = host().await;
    let result = host
        .call(
            "keep",
            json!({ "pieces": { "log": ["so far"] }, "fail": "it broke" }),
        )
        .await;
    assert_eq!(
        (result.outcome, result.artifacts.len()),
        (Outcome::Failed, 1)
    );
    assert_eq!(
        host.call("read", json!({ "id": result.artifacts[0].id }))
            .await
            .model_text(),
        "so far"
    );
    let dropped = host
        .call(
            "keep",
            json!({ "pieces": { "log": ["so far"] }, "drop": true }),
        )
        .await;
    assert!(dropped.artifacts.is_empty());
}

#[tokio::test]
async fn whoever_listens_hears_of_a_piece_once_it_can_be_read() {
    let host = host().await;
    let (events, recorder) = CallEventRecorder::new(64);
    let mut request = host.request("keep", json!({ "pieces": { "a": ["x"] } }));
    request.delivery.listener = Some(Arc::new(events));
    let answer = host.host.call(request).await;
    let heard: Vec<ArtifactRef> = recorder
        .all()
        .await
        .into_iter()
        .filter_map(|event| match event.body {
            EventBody::Kept(piece) => Some(piece),
            _ => None,
        })
        .collect();
    assert_eq!(heard, answer.result().artifacts);
}

#[tokio::test]
async fn secrets_do_not_reach_the_store_also_when_they_come_in_two_writes() {
    let secrets = KnownSecrets::new([("token", "tp_0123456789abcdef")]);
    let host = TestHost::build(|builder| builder.tool(Keeper).tool(Reader).redactor(secrets)).await;
    let writes = json!(["a tp_0123456", "789abcdef b\n", "tp_0123456789abcdef"]);
    let result = host
        .call(
            "keep",
            json!({ "pieces": { "tp_0123456789abcdef": writes } }),
        )
        .await;
    let piece = &result.artifacts[0];
    assert_eq!(piece.name, "[redacted:token]");
    let kept = host
        .host
        .artifact(piece.id, &Principal::agent("test"))
        .await
        .unwrap();
    assert_eq!(text(&*kept).await, "a [redacted:token] b\n[redacted:token]");
}

#[tokio::test]
async fn a_hook_that_withholds_a_result_withholds_its_pieces() {
    let stop = || Ok(HookOutput::stop("no"));
    let probe = Probe::at(HookEvent::After, stop);
    let host = TestHost::build(|builder| builder.tool(Keeper).hook(probe)).await;
    let result = host.call("keep", json!({ "pieces": { "a": ["x"] } })).await;
    assert!(result.artifacts.is_empty());
    let id = ArtifactId {
        invocation: result.invocation_id,
        place: 1,
    };
    let found = host.host.artifact(id, &Principal::operator("o")).await;
    assert_eq!(found.err(), Some(ArtifactError::Unknown(id)));
}

/// Calls `keep` and reads what that call kept while it runs itself.
struct Outer;

impl Tool for Outer {
    fn declaration(&self) -> Declaration {
        Declaration::new("demo.outer".parse().unwrap(), "Calls and reads")
    }

    async fn execute(&self, call: ToolCall) -> Result<ToolOutput, ToolFailure> {
        let mut sink = call
            .context
            .create_artifact("own", "text/plain")
            .await
            .map_err(failed)?;
        sink.write(b"own piece").await.map_err(failed)?;
        let own = sink.finish().await.map_err(failed)?;
        let nested = NestedCall::new("keep", json!({ "pieces": { "a": ["inner"] } }));
        let result = call.context.call_tool(nested).await?;
        let mut read = Vec::new();
        for id in [own.id, result.artifacts[0].id] {
            let piece = call.context.open_artifact(id).await.map_err(failed)?;
            read.push(text(&*piece).await);
        }
        Ok(ToolOutput::text(read.join(", ")))
    }
}

#[tokio::test]
async fn a_running_call_reads_its_own_pieces_and_those_of_the_calls_it_made() {
    let host = TestHost::build(|builder| builder.tool(Keeper).tool(Outer)).await;
    let result = host.call("outer", json!({})).await;
    assert_eq!(result.model_text(), "own piece, inner");
    assert_eq!(
        result.artifacts.len(),
        1,
        "the inner call's are the inner call's"
    );
}
