//! `GET /artifacts/{id}`: what a result was too large to show, whole and in ranges.

use std::{fs, path::PathBuf};

use serde_json::{Value, json};
use toolpost_model::{Declaration, PrincipalRole, Tool, ToolCall, ToolFailure, ToolOutput};
use toolpost_testkit::MockNativeTool;

use super::{
    client::Request,
    running::{Place, Running},
};

const BOB: &str = "bob-has-a-token";
const OLGA: &str = "olga-has-a-token";

fn place() -> Place {
    let place = Place::without_native_tools().with_token("bob", PrincipalRole::Agent, BOB);
    place.with_token("olga", PrincipalRole::Operator, OLGA)
}

fn long_text() -> String {
    (0..60_000).map(|n| format!("line {n}\n")).collect()
}

async fn start(place: &Place) -> Running {
    let say = MockNativeTool::named("demo.say").output(long_text());
    place.start_with(|builder| builder.tool(say)).await
}

/// Calls the tool and gives what its result says of the one piece that was kept.
async fn kept(server: &Running) -> Value {
    let result = server.call("say", json!({})).await.json();
    assert_eq!(
        (&result["disposition"], &result["outcome"]),
        (&json!("preview"), &json!("succeeded"))
    );
    assert_eq!(result["persistence"]["strategy"], "preview_and_persist");
    result["artifacts"][0].clone()
}

fn route(piece: &Value) -> String {
    format!("/artifacts/{}", piece["id"].as_str().unwrap())
}

/// The file that holds a piece.
fn file(place: &Place, piece: &Value) -> PathBuf {
    let hex = piece["digest"]
        .as_str()
        .unwrap()
        .strip_prefix("sha256:")
        .unwrap();
    place.data_dir().join("blobs").join(&hex[..2]).join(hex)
}

#[tokio::test]
async fn a_kept_result_is_served_whole_with_headers_that_keep_browsers_from_showing_it() {
    let place = place();
    let server = start(&place).await;
    let piece = kept(&server).await;
    let whole = server.send(Request::get(route(&piece))).await;
    assert_eq!(whole.status(), 200);
    assert!(whole.text() == long_text());
    let etag = format!("\"{}\"", piece["digest"].as_str().unwrap());
    for (name, value) in [
        ("content-type", "text/plain; charset=utf-8"),
        ("content-length", &long_text().len().to_string()),
        ("etag", &etag),
        ("accept-ranges", "bytes"),
        ("x-content-type-options", "nosniff"),
        ("cache-control", "private, no-cache"),
        (
            "content-disposition",
            &format!("attachment; filename=\"{}\"", piece["id"].as_str().unwrap()),
        ),
    ] {
        assert_eq!(whole.head.header(name), Some(value), "{name}");
    }
    let mut connection = server
        .begin(Request::new("HEAD", route(&piece)).header("Connection", "close"))
        .await;
    let head = connection.head().await;
    assert_eq!(
        (head.status, head.header("content-length")),
        (200, whole.head.header("content-length"))
    );
    assert!(connection.is_closed().await, "no body follows");
}

#[tokio::test]
async fn ranges_and_tags_are_heeded() {
    let place = place();
    let server = start(&place).await;
    let piece = kept(&server).await;
    let text = long_text();
    let size = long_text().len();
    let etag = format!("\"{}\"", piece["digest"].as_str().unwrap());
    for (range, from, to) in [
        ("bytes=0-9".to_owned(), 0, 10),
        (format!("bytes={}-", size - 5), size - 5, size),
        ("bytes=-7".to_owned(), size - 7, size),
        ("bytes=300000-599999".to_owned(), 300_000, size.min(600_000)),
    ] {
        let part = server
            .send(Request::get(route(&piece)).header("Range", &range))
            .await;
        assert_eq!(part.status(), 206, "{range}");
        assert!(part.text() == &text[from..to], "{range}");
        let expected = format!("bytes {from}-{}/{size}", to - 1);
        assert_eq!(part.head.header("content-range"), Some(expected.as_str()));
    }
    let beyond = server
        .send(Request::get(route(&piece)).header("Range", format!("bytes={size}-")))
        .await;
    assert_eq!(
        (beyond.status(), beyond.code().as_str()),
        (416, "range_not_satisfiable")
    );
    assert_eq!(
        beyond.head.header("content-range"),
        Some(format!("bytes */{size}").as_str())
    );

    let ask = |name: &str, value: &str| Request::get(route(&piece)).header(name, value);
    for (tags, status) in [
        (etag.as_str(), 304),
        ("*", 304),
        (&format!("\"x\", W/{etag}"), 304),
        ("\"sha256:0\"", 200),
    ] {
        assert_eq!(
            server.send(ask("If-None-Match", tags)).await.status(),
            status,
            "{tags}"
        );
    }
    for (tag, status) in [(etag.as_str(), 206), ("\"other\"", 200)] {
        let request = ask("If-Range", tag).header("Range", "bytes=0-0");
        assert_eq!(server.send(request).await.status(), status, "{tag}");
    }
}

#[tokio::test]
async fn who_may_not_see_the_call_is_told_that_there_is_nothing() {
    let place = place();
    let server = start(&place).await;
    let piece = kept(&server).await;
    let stranger = server.send(Request::get(route(&piece)).bearer(BOB)).await;
    assert_eq!(
        (stranger.status(), stranger.code().as_str()),
        (404, "unknown_artifact")
    );
    assert_eq!(
        server
            .send(Request::get(route(&piece)).bearer(OLGA))
            .await
            .status(),
        200,
        "an operator"
    );
    assert_eq!(
        server.send_bare(Request::get(route(&piece))).await.status(),
        401
    );
    let other = route(&piece).replace("_1", "_2");
    assert_eq!(
        server.send(Request::get(other)).await.code(),
        "unknown_artifact"
    );
    for bad in [
        "x",
        "art_1",
        "..%2f..%2ftoken",
        "art_019f3c00112270008000000000000001_01",
    ] {
        let refused = server.send(Request::get(format!("/artifacts/{bad}"))).await;
        assert_eq!(
            (refused.status(), refused.code().as_str()),
            (400, "bad_id"),
            "{bad}"
        );
    }
    // The same after a restart: the record alone tells whose it is.
    server.shut_down().await;
    let server = start(&place).await;
    assert_eq!(server.send(Request::get(route(&piece))).await.status(), 200);
    assert_eq!(
        server
            .send(Request::get(route(&piece)).bearer(BOB))
            .await
            .status(),
        404
    );
}

#[tokio::test]
async fn what_is_gone_or_damaged_is_told_apart() {
    let place = place();
    let server = start(&place).await;
    let piece = kept(&server).await;
    let path = file(&place, &piece);
    fs::write(&path, "short").unwrap();
    let damaged = server.send(Request::get(route(&piece))).await;
    assert_eq!(
        (damaged.status(), damaged.code().as_str()),
        (500, "artifact_damaged")
    );
    fs::remove_file(&path).unwrap();
    let gone = server.send(Request::get(route(&piece))).await;
    assert_eq!(
        (gone.status(), gone.code().as_str()),
        (410, "artifact_gone")
    );
    // The same call again brings it back.
    let again = kept(&server).await;
    assert_eq!(again["digest"], piece["digest"]);
    assert_eq!(server.send(Request::get(route(&piece))).await.status(), 200);
}

#[tokio::test]
async fn a_full_store_and_a_sessions_own_limit_are_told_in_the_result() {
    let mut place = place();
    place.config.limits.artifacts = 1_000;
    let server = start(&place).await;
    let result = server.call("say", json!({})).await.json();
    assert_eq!(
        (&result["outcome"], &result["disposition"]),
        (&json!("succeeded"), &json!("dropped"))
    );
    assert_eq!(result["persistence"]["strategy"], "drop_with_reason");
    let reason = result["persistence"]["reason"].as_str().unwrap();
    assert!(reason.contains("limits.artifacts"), "{reason}");
    let session = server
        .open_session(Request::post("/sessions", r#"{"inline_chars":50}"#))
        .await;
    let told = server
        .send(Request::get(format!("/sessions/{session}")))
        .await
        .json();
    assert_eq!(told["surface"]["inline_chars"], 50);
    let result = server
        .send(Request::call("say", &json!({})).session(&session))
        .await
        .json();
    assert_eq!(result["persistence"]["threshold"], 50);
}

/// Keeps a page that would run in a browser.
struct Page;

impl Tool for Page {
    fn declaration(&self) -> Declaration {
        Declaration::new("demo.page".parse().unwrap(), "Keeps a page")
    }

    async fn execute(&self, call: ToolCall) -> Result<ToolOutput, ToolFailure> {
        let begun = call
            .context
            .create_artifact("page\r\nSet-Cookie: a=b", "text/html\r\nX: y")
            .await;
        let mut sink = begun.map_err(|error| ToolFailure::new(error.to_string()))?;
        sink.write(b"<script>")
            .await
            .map_err(|error| ToolFailure::new(error.to_string()))?;
        sink.finish()
            .await
            .map_err(|error| ToolFailure::new(error.to_string()))?;
        Ok(ToolOutput::text("done"))
    }
}

#[tokio::test]
async fn labels_of_a_tools_own_making_put_nothing_into_the_answer() {
    let place = place();
    let server = place.start_with(|builder| builder.tool(Page)).await;
    let mut stream = server
        .begin(Request::call("page", &json!({})).streamed())
        .await;
    assert_eq!(stream.head().await.status, 200);
    let frames = stream.frames().await;
    let event = frames.iter().find(|frame| frame.event == "kept").unwrap();
    let piece: Value = serde_json::from_str(&event.data).unwrap();
    assert_eq!(piece["name"], "pageSet-Cookie: a=b");
    let answer = server.send(Request::get(route(&piece))).await;
    assert_eq!(
        answer.head.header("content-type"),
        Some("application/octet-stream")
    );
    assert_eq!(
        (answer.head.header("set-cookie"), answer.head.header("x")),
        (None, None)
    );
    assert_eq!(answer.text(), "<script>");
}
