//! What becomes of results that are too large to be shown.

use std::{collections::HashMap, sync::Arc};

use serde_json::{Value, json};
use toolpost_core::{HookOutput, Host, HostLimits, MemoryBlobs};
use toolpost_model::{
    ArtifactId, Disposition, HookEvent, Outcome, PersistStrategy, Principal, ResultContent,
    SurfaceRequest, ToolFailure, ToolOutput, ToolPersistenceSettings, ToolResult, ToolSettings,
};
use toolpost_testkit::{MockNativeTool, TestHost};

use super::{Keeper, Reader, text};
use crate::hooks::Probe;

const LIMIT: usize = 1_000;

fn limits() -> HostLimits {
    HostLimits {
        inline_chars: LIMIT,
        ..HostLimits::default()
    }
}

fn keeping(strategy: PersistStrategy) -> HashMap<String, ToolSettings> {
    HashMap::from([(
        "say".to_owned(),
        ToolSettings {
            persistence: ToolPersistenceSettings {
                keep: Some(strategy),
                ..ToolPersistenceSettings::default()
            },
            ..ToolSettings::default()
        },
    )])
}

async fn say(strategy: PersistStrategy, output: ToolOutput) -> (ToolResult, TestHost) {
    let tool = MockNativeTool::named("demo.say").output(output);
    let host = TestHost::build(|b| b.tool(tool).limits(limits()).settings(keeping(strategy))).await;
    (host.call("say", json!({})).await, host)
}

async fn kept(host: &Host, id: ArtifactId) -> String {
    text(&*host.artifact(id, &Principal::agent("test")).await.unwrap()).await
}

fn lines(count: usize) -> String {
    (0..count).map(|n| format!("line {n}\n")).collect()
}

#[tokio::test]
async fn each_strategy_does_what_it_says_with_a_long_text() {
    use Disposition as D;
    use PersistStrategy as S;
    // Strategy, disposition, whether it is kept, whether anything of it is shown.
    for (strategy, disposition, is_kept, is_shown) in [
        (S::Inline, D::Inline, false, true),
        (S::PreviewAndPersist, D::Preview, true, true),
        (S::RefOnly, D::RefOnly, true, false),
        (S::Redact, D::Redacted, false, false),
        (S::DropWithReason, D::Dropped, false, true),
        (S::NeverPersist, D::Preview, false, true),
    ] {
        let whole = lines(1_000);
        let (result, host) = say(strategy, ToolOutput::text(whole.as_str())).await;
        assert_eq!(
            (result.outcome, result.disposition),
            (Outcome::Succeeded, disposition),
            "{strategy:?}"
        );
        assert_eq!(result.artifacts.len(), usize::from(is_kept), "{strategy:?}");
        let shown = result.model_text();
        assert_eq!(
            shown.contains("line 0\n"),
            is_shown,
            "{strategy:?}: {shown}"
        );
        assert_eq!(
            shown.contains("line 999\n"),
            is_shown,
            "{strategy:?}: {shown}"
        );
        assert_eq!(shown == whole, strategy == S::Inline, "{strategy:?}");
        let Some(done) = &result.persistence else {
            assert_eq!(strategy, S::Inline);
            continue;
        };
        assert_eq!(
            (done.strategy, done.threshold, done.original),
            (strategy, 1_000, whole.len() as u64)
        );
        assert_eq!(
            done.artifact,
            result.artifacts.first().map(|piece| piece.id)
        );
        assert_eq!(
            done.reason.is_some(),
            matches!(strategy, S::Redact | S::DropWithReason),
            "{strategy:?}"
        );
        if let Some(piece) = result.artifacts.first() {
            assert_eq!(
                (piece.name.as_str(), piece.size),
                ("result", whole.len() as u64)
            );
            assert_eq!(piece.media_type, "text/plain; charset=utf-8");
            assert!(shown.contains(&piece.id.to_string()), "{shown}");
            assert_eq!(result.truncated.as_ref().unwrap().artifact, Some(piece.id));
            assert_eq!(kept(&host.host, piece.id).await, whole);
        }
        let end = host.records().await.pop().unwrap().record.body;
        assert!(
            !end.contains("line 500"),
            "{strategy:?}: the record has what the answer has"
        );
    }
}

#[tokio::test]
async fn a_small_result_is_left_alone_unless_only_its_name_may_be_shown() {
    for (strategy, disposition) in [
        (PersistStrategy::PreviewAndPersist, Disposition::Inline),
        (PersistStrategy::DropWithReason, Disposition::Inline),
        (PersistStrategy::RefOnly, Disposition::RefOnly),
        (PersistStrategy::Redact, Disposition::Redacted),
    ] {
        let output = ToolOutput::text("small").with_structured(json!({ "n": "word" }));
        let (result, _) = say(strategy, output).await;
        assert_eq!(result.disposition, disposition, "{strategy:?}");
        let told = serde_json::to_string(&result).unwrap();
        let is_shown = disposition == Disposition::Inline;
        assert_eq!(
            (told.contains("\"small\""), told.contains("word")),
            (is_shown, is_shown),
            "{told}"
        );
        assert_eq!(
            result.artifacts.len(),
            if strategy == PersistStrategy::RefOnly {
                2
            } else {
                0
            }
        );
        let (empty, _) = say(strategy, ToolOutput::text("")).await;
        assert_eq!(
            (empty.disposition, empty.artifacts.len()),
            (Disposition::Empty, 0),
            "{strategy:?}"
        );
    }
}

#[tokio::test]
async fn structured_content_is_shown_by_its_shape_and_kept_as_json() {
    let rows: Vec<Value> = (0..2_000)
        .map(|n| json!({ "id": n, "name": format!("row {n}") }))
        .collect();
    let value = json!({ "rows": rows, "total": 2_000 });
    let (result, host) = say(
        PersistStrategy::PreviewAndPersist,
        ToolOutput::structured(value.clone()),
    )
    .await;
    assert_eq!(
        (result.disposition, &result.structured_content),
        (Disposition::Preview, &None)
    );
    let piece = &result.artifacts[0];
    assert_eq!(
        (piece.name.as_str(), piece.media_type.as_str()),
        ("structured", "application/json")
    );
    assert_eq!(
        serde_json::from_str::<Value>(&kept(&host.host, piece.id).await).unwrap(),
        value
    );
    let ResultContent::Text { text: shape } = &result.content[0] else {
        panic!("text")
    };
    let shape: Value = serde_json::from_str(shape).unwrap();
    assert_eq!(
        (&shape["total"], &shape["rows"][0]),
        (&json!(2_000), &json!({ "id": 0, "name": "row 0" }))
    );

    // A text that is JSON is shown like it, and is a text still.
    let (result, host) = say(
        PersistStrategy::PreviewAndPersist,
        ToolOutput::text(value.to_string()),
    )
    .await;
    assert_eq!(
        (result.artifacts.len(), result.artifacts[0].name.as_str()),
        (1, "result")
    );
    assert_eq!(result.artifacts[0].media_type, "application/json");
    assert_eq!(
        kept(&host.host, result.artifacts[0].id).await,
        value.to_string()
    );

    // A tool that tells the same twice has the text shown and both kept.
    let both = ToolOutput::text(lines(1_000)).with_structured(value);
    let (result, _) = say(PersistStrategy::PreviewAndPersist, both).await;
    let names: Vec<&str> = result
        .artifacts
        .iter()
        .map(|piece| piece.name.as_str())
        .collect();
    assert_eq!(names, ["result", "structured"]);
    assert_eq!(
        result.truncated.unwrap().artifact,
        Some(result.artifacts[0].id)
    );
}

#[tokio::test]
async fn bytes_are_told_by_what_they_are_and_pictures_stay_pictures() {
    let data = "AAAA".repeat(1_000);
    let binary = ResultContent::Binary {
        data: data.clone(),
        media_type: "application/zip".into(),
        size: 3_000,
    };
    let image = ResultContent::Image {
        data,
        media_type: "image/png".into(),
    };
    let output = ToolOutput {
        content: vec![binary, image.clone()],
        ..ToolOutput::default()
    };
    let (result, host) = say(PersistStrategy::PreviewAndPersist, output).await;
    assert_eq!(result.content[1], image);
    let piece = &result.artifacts[0];
    assert_eq!(
        (
            piece.size,
            piece.media_type.as_str(),
            result.artifacts.len()
        ),
        (3_000, "application/zip", 1)
    );
    assert!(
        result.model_text().contains("application/zip, 3000 bytes"),
        "{}",
        result.model_text()
    );
    let bytes = host
        .host
        .artifact(piece.id, &Principal::agent("test"))
        .await
        .unwrap()
        .read(0, 9_999)
        .await;
    assert_eq!(bytes.unwrap(), [0; 3_000]);
}

#[tokio::test]
async fn a_failed_call_keeps_what_it_had_to_show() {
    let mut failure = ToolFailure::new("exit 1");
    failure.content = vec![ResultContent::text(lines(1_000))];
    let tool = MockNativeTool::named("demo.say").failing(failure);
    let host = TestHost::build(|b| b.tool(tool).limits(limits())).await;
    let result = host.call("say", json!({})).await;
    assert_eq!(
        (result.outcome, result.disposition),
        (Outcome::Failed, Disposition::Preview)
    );
    assert_eq!(kept(&host.host, result.artifacts[0].id).await, lines(1_000));
}

#[tokio::test]
async fn where_there_is_no_room_the_call_succeeds_and_says_what_is_lost() {
    for strategy in [PersistStrategy::PreviewAndPersist, PersistStrategy::RefOnly] {
        let tool = MockNativeTool::named("demo.say").output(lines(1_000));
        let host = TestHost::build(|b| {
            let b = b.tool(tool).limits(limits()).settings(keeping(strategy));
            b.blobs(Arc::new(MemoryBlobs::new(5_000)))
        })
        .await;
        let result = host.call("say", json!({})).await;
        assert_eq!(
            (result.outcome, result.disposition),
            (Outcome::Succeeded, Disposition::Dropped)
        );
        let done = result.persistence.as_ref().unwrap();
        assert_eq!(
            (done.strategy, done.artifact),
            (PersistStrategy::DropWithReason, None)
        );
        assert!(
            done.reason.as_ref().unwrap().contains("5000 bytes"),
            "{done:?}"
        );
        let told = serde_json::to_string(&result).unwrap();
        assert!(
            told.contains("could not be kept") && !told.contains("art_"),
            "{told}"
        );
        assert_eq!(result.truncated.unwrap().artifact, None);
    }
}

#[tokio::test]
async fn the_operator_stands_before_the_host_and_tool_and_session_only_ask_for_less() {
    for (operator, declared, session, expected) in [
        (None, None, None, LIMIT),
        (None, Some(500), None, 500),
        (None, Some(5_000), None, LIMIT),
        (Some(5_000), Some(500), None, 5_000),
        (Some(300), None, None, 300),
        (None, None, Some(400), 400),
        (None, None, Some(9_000), LIMIT),
        (Some(5_000), None, Some(400), 400),
    ] {
        let tool = MockNativeTool::named("demo.say")
            .output("x".repeat(20_000))
            .declare(|d| d.interface.persistence.max_inline_chars = declared);
        let set = ToolSettings {
            persistence: ToolPersistenceSettings {
                max_inline_chars: operator,
                ..ToolPersistenceSettings::default()
            },
            ..ToolSettings::default()
        };
        let settings = HashMap::from([("say".to_owned(), set)]);
        let mut host = TestHost::build(|b| b.tool(tool).limits(limits()).settings(settings)).await;
        let request = SurfaceRequest {
            inline_chars: session,
            ..SurfaceRequest::default()
        };
        host.session = host
            .host
            .open_session(Principal::agent("test"), request)
            .await
            .unwrap();
        let result = host.call("say", json!({})).await;
        let threshold = result.persistence.unwrap().threshold;
        assert_eq!(
            threshold, expected as u64,
            "{operator:?} {declared:?} {session:?}"
        );
        // Also when it comes back from the record.
        let again = TestHost::on(Arc::clone(&host.journal), |b| b).await;
        let back = again
            .host
            .session(host.session.id(), &Principal::agent("test"))
            .await
            .unwrap();
        assert_eq!(back.inline_chars(), session);
    }
}

#[tokio::test]
async fn what_a_hook_replaces_is_kept_nowhere() {
    let change = || Ok(HookOutput::replace("clean", "it held a name"));
    let tool = MockNativeTool::named("demo.say").output(lines(1_000));
    let probe = Probe::at(HookEvent::After, change);
    let host = TestHost::build(|b| b.tool(tool).tool(Keeper).limits(limits()).hook(probe)).await;
    for (tool, arguments) in [
        ("say", json!({})),
        ("keep", json!({ "pieces": { "a": ["x"] } })),
    ] {
        let result = host.call(tool, arguments).await;
        assert_eq!(
            (result.model_text().as_str(), result.artifacts.len()),
            ("clean", 0)
        );
        assert!(result.persistence.is_none());
        let id = ArtifactId {
            invocation: result.invocation_id,
            place: 1,
        };
        assert!(
            host.host
                .artifact(id, &Principal::operator("o"))
                .await
                .is_err()
        );
    }
    // And what it puts in its place is kept like any other.
    let change = || Ok(HookOutput::replace(lines(2_000), ""));
    let probe = Probe::at(HookEvent::After, change);
    let tool = MockNativeTool::named("demo.say").output(lines(1_000));
    let host = TestHost::build(|b| b.tool(tool).limits(limits()).hook(probe)).await;
    let result = host.call("say", json!({})).await;
    assert_eq!(result.artifacts.len(), 1);
    assert_eq!(kept(&host.host, result.artifacts[0].id).await, lines(2_000));
}

#[tokio::test]
async fn tools_that_read_on_are_named_only_where_the_caller_has_them() {
    let (without, _) = say(
        PersistStrategy::PreviewAndPersist,
        ToolOutput::text(lines(1_000)),
    )
    .await;
    assert!(!without.model_text().contains("read_result"));
    let tool = MockNativeTool::named("demo.say").output(lines(1_000));
    let reader = MockNativeTool::named("results.read_result");
    let host = TestHost::build(|b| b.tool(tool).tool(reader).limits(limits())).await;
    let result = host.call("say", json!({})).await;
    assert!(
        result.model_text().contains("`read_result` reads on"),
        "{}",
        result.model_text()
    );
    assert!(!result.model_text().contains("search_result"));
}

#[tokio::test]
async fn a_tool_of_which_nothing_may_be_kept_cannot_keep_anything() {
    for strategy in [
        PersistStrategy::Redact,
        PersistStrategy::DropWithReason,
        PersistStrategy::NeverPersist,
    ] {
        let set = ToolSettings {
            persistence: ToolPersistenceSettings {
                keep: Some(strategy),
                ..ToolPersistenceSettings::default()
            },
            ..ToolSettings::default()
        };
        let settings = HashMap::from([("keep".to_owned(), set)]);
        let host = TestHost::build(|b| b.tool(Keeper).tool(Reader).settings(settings)).await;
        let result = host.call("keep", json!({ "pieces": { "a": ["x"] } })).await;
        assert_eq!(
            (result.outcome, result.artifacts.len()),
            (Outcome::Failed, 0),
            "{strategy:?}"
        );
    }
}
