//! `read_result` and `search_result` on results that a real host keeps.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tempfile::TempDir;
use toolpost_core::{CallRequest, Host, Policy};
use toolpost_model::{
    CallContext, Disposition, EffectClass, FnTool, ModelInput, Outcome, PermissionMode, Principal,
    ResultContent, ToolFailure, ToolResult,
};
use toolpost_native::{NativeParts, native_source};
use toolpost_processes::Workspace;

use crate::http::{Server, listing, reply};

/// A host with the native tools, and one tool that keeps what it is told to make.
struct Bench {
    host: Host,
    _home: TempDir,
}

#[derive(Deserialize, JsonSchema)]
struct Make {
    what: String,
    #[serde(default)]
    media_type: Option<String>,
}

fn content(what: &str) -> Vec<u8> {
    match what {
        "lines" => (1..=30_000)
            .flat_map(|n| format!("line {n} of many\n").into_bytes())
            .collect(),
        "large" => (0..400_000)
            .flat_map(|n| format!("{n:07} {}\n", "x".repeat(60)).into_bytes())
            .collect(),
        "one line" => "é".repeat(100_000).into_bytes(),
        "json" => {
            let items: Vec<Value> = (0..5_000)
                .map(|n| json!({ "id": n, "name": format!("part {n}") }))
                .collect();
            json!({ "kind": "list", "items": items, "a/b": { "": [true, null] } })
                .to_string()
                .into_bytes()
        }
        "one value" => json!({ "small": 1, "large": "z".repeat(9 << 20), "after": 2 })
            .to_string()
            .into_bytes(),
        "one name" => format!("{{\"{}\":1,\"after\":2}}", "k".repeat(9 << 20)).into_bytes(),
        "bytes" => (0..=255).cycle().take(100_000).collect(),
        other => other.as_bytes().to_vec(),
    }
}

async fn make(arguments: Make, context: CallContext) -> Result<String, ToolFailure> {
    let media_type = arguments
        .media_type
        .unwrap_or_else(|| "text/plain".to_owned());
    let mut sink = context.create_artifact("made", media_type).await?;
    for piece in content(&arguments.what).chunks(70_001) {
        sink.write(piece).await?;
    }
    Ok(sink.finish().await?.id.to_string())
}

impl Bench {
    async fn new() -> Self {
        Self::beside(&[]).await
    }

    /// With servers that may be reached.
    async fn beside(servers: &[&Server]) -> Self {
        let home = TempDir::new().unwrap();
        let workspace = Arc::new(Workspace::open(home.path()).unwrap());
        let parts = NativeParts {
            network: listing(servers),
            ..NativeParts::on(workspace)
        };
        let native = native_source(parts).unwrap();
        let tool = FnTool::named("test.make")
            .unwrap()
            .describe("Makes something")
            .class(EffectClass::Read);
        let host = Host::builder()
            .policy(Policy::in_mode(PermissionMode::Bypass))
            .source(native)
            .tool(tool.run(make))
            .build()
            .await
            .unwrap();
        Self { host, _home: home }
    }

    async fn call_as(&self, who: &str, tool: &str, arguments: Value) -> ToolResult {
        let session = self.host.default_session(&Principal::agent(who));
        let input = ModelInput::text(arguments.to_string());
        self.host
            .call(CallRequest::new(session, tool, input))
            .await
            .result()
            .clone()
    }

    async fn call(&self, tool: &str, arguments: Value) -> ToolResult {
        self.call_as("me", tool, arguments).await
    }

    async fn made(&self, what: &str) -> String {
        let result = self.call("make", json!({ "what": what })).await;
        assert_eq!(result.artifacts.len(), 1, "{result:?}");
        result.model_text()
    }

    /// The text and the facts of a read that works.
    async fn read(&self, arguments: Value) -> (String, Value) {
        let result = self.call("read_result", arguments.clone()).await;
        assert_eq!(
            result.outcome,
            Outcome::Succeeded,
            "{arguments}: {result:?}"
        );
        assert!(
            result.artifacts.is_empty(),
            "what is read is not kept again: {result:?}"
        );
        let text = match &result.content[..] {
            [ResultContent::Text { text }] => text.clone(),
            [ResultContent::Binary { data, .. }] => data.clone(),
            other => panic!("{other:?}"),
        };
        (text, result.structured_content.unwrap())
    }

    async fn fails(&self, tool: &str, arguments: Value, parts: &[&str]) {
        let result = self.call(tool, arguments.clone()).await;
        assert_eq!(result.outcome, Outcome::Failed, "{arguments}: {result:?}");
        let told = result.model_text();
        for part in parts {
            assert!(told.contains(part), "{arguments}: {told}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lines_come_page_by_page_and_from_the_end() {
    let bench = Bench::new().await;
    let id = bench.made("lines").await;
    let (text, facts) = bench.read(json!({ "ref": id, "limit": 3 })).await;
    assert_eq!(text, "line 1 of many\nline 2 of many\nline 3 of many\n");
    assert_eq!(
        (&facts["next_offset"], &facts["unit"]),
        (&json!(4), &json!("lines"))
    );
    let (text, _) = bench
        .read(json!({ "ref": id, "offset": 29_999, "limit": 50 }))
        .await;
    assert_eq!(text, "line 29999 of many\nline 30000 of many\n");
    let (text, facts) = bench.read(json!({ "ref": id, "offset": -2 })).await;
    assert_eq!(text, "line 29999 of many\nline 30000 of many\n");
    assert_eq!(facts["shown"], 2);
    // Read on as the answers say, to the end.
    let mut offset = Some(1);
    let mut whole = String::new();
    let mut pages = 0;
    while let Some(next) = offset {
        let (text, facts) = bench
            .read(json!({ "ref": id, "offset": next, "limit": 100_000 }))
            .await;
        whole.push_str(&text);
        offset = facts["next_offset"].as_u64();
        pages += 1;
    }
    assert!(
        whole.as_bytes() == content("lines") && pages > 5,
        "{pages} pages, {} bytes",
        whole.len()
    );
    bench
        .fails(
            "read_result",
            json!({ "ref": id, "offset": 30_001 }),
            &["no line 30001", "30000"],
        )
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bytes_come_as_text_where_they_are_that() {
    let bench = Bench::new().await;
    let id = bench.made("one line").await;
    let mut offset = Some(0);
    let mut whole = String::new();
    while let Some(next) = offset {
        let (text, facts) = bench.read(json!({ "ref": id, "byte_offset": next })).await;
        whole.push_str(&text);
        offset = facts["next_offset"].as_u64();
    }
    assert!(
        whole.as_bytes() == content("one line"),
        "{} bytes",
        whole.len()
    );
    let id = bench.made("bytes").await;
    let result = bench.call("read_result", json!({ "ref": id })).await;
    let [ResultContent::Binary { size, .. }] = &result.content[..] else {
        panic!("{result:?}")
    };
    assert_eq!(*size, 100_000);
    bench
        .fails(
            "read_result",
            json!({ "ref": id, "byte_offset": 100_001 }),
            &["no byte 100001"],
        )
        .await;
    let id = bench.made("").await;
    let result = bench.call("read_result", json!({ "ref": id })).await;
    assert_eq!(
        (result.outcome, result.disposition),
        (Outcome::Succeeded, Disposition::Empty),
        "{result:?}"
    );
    assert_eq!(Some(result.model_text()), result.summary);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn values_are_found_by_pointer() {
    let bench = Bench::new().await;
    let id = bench.made("json").await;
    let (text, facts) = bench
        .read(json!({ "ref": id, "pointer": "/items/4999/name" }))
        .await;
    assert_eq!(
        (text.as_str(), &facts["type"]),
        ("\"part 4999\"", &json!("string"))
    );
    let (text, facts) = bench
        .read(json!({ "ref": id, "pointer": "/items", "offset": 11, "limit": 2 }))
        .await;
    let shown: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        shown,
        json!([{ "id": 10, "name": "part 10" }, { "id": 11, "name": "part 11" }])
    );
    assert_eq!(
        (&facts["total"], &facts["next_offset"]),
        (&json!(5_000), &json!(13))
    );
    let (text, facts) = bench.read(json!({ "ref": id, "pointer": "/a~1b/" })).await;
    assert_eq!(
        (
            text.replace(char::is_whitespace, "").as_str(),
            &facts["total"]
        ),
        ("[true,null]", &json!(2))
    );
    bench
        .fails(
            "read_result",
            json!({ "ref": id, "pointer": "/nothing" }),
            &["no `nothing`", "`items`"],
        )
        .await;
    bench
        .fails(
            "read_result",
            json!({ "ref": id, "pointer": "items" }),
            &["not a JSON pointer"],
        )
        .await;
    let text = bench.made("lines").await;
    bench
        .fails(
            "read_result",
            json!({ "ref": text, "pointer": "/a" }),
            &["not JSON"],
        )
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lines_are_found_in_a_large_result() {
    let bench = Bench::new().await;
    let id = bench.made("large").await;
    let found = |result: &ToolResult| result.structured_content.clone().unwrap();
    let result = bench
        .call(
            "search_result",
            json!({ "ref": id, "pattern": "^0399998 ", "context": 1 }),
        )
        .await;
    let lines: Vec<u64> = found(&result)["lines"]
        .as_array()
        .unwrap()
        .iter()
        .map(|line| line["line"].as_u64().unwrap())
        .collect();
    assert_eq!(lines, [399_998, 399_999, 400_000], "{result:?}");
    let (text, _) = bench
        .read(json!({ "ref": id, "offset": 399_999, "limit": 1 }))
        .await;
    assert!(text.starts_with("0399998 "), "{text}");
    let page = bench
        .call(
            "search_result",
            json!({ "ref": id, "pattern": "00 x", "limit": 5, "offset": 10 }),
        )
        .await;
    assert_eq!(
        (&found(&page)["matches"], &found(&page)["next_offset"]),
        (&json!(5), &json!(15))
    );
    assert!(
        page.model_text().starts_with("1001:0001000 x"),
        "{}",
        page.model_text()
    );
    let none = bench
        .call("search_result", json!({ "ref": id, "pattern": "absent" }))
        .await;
    assert!(
        none.outcome == Outcome::Succeeded && none.model_text().contains("nothing"),
        "{none:?}"
    );
    bench
        .fails(
            "search_result",
            json!({ "ref": id, "pattern": "(" }),
            &["unclosed group"],
        )
        .await;
    bench
        .fails(
            "search_result",
            json!({ "ref": id, "pattern": "x", "limit": 0 }),
            &["limit"],
        )
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_reads_what_others_kept() {
    let bench = Bench::new().await;
    let id = bench.made("private words").await;
    for tool in ["read_result", "search_result"] {
        let arguments = json!({ "ref": id, "pattern": "." });
        let arguments = if tool == "read_result" {
            json!({ "ref": id })
        } else {
            arguments
        };
        let result = bench.call_as("somebody else", tool, arguments).await;
        assert_eq!(result.outcome, Outcome::Failed, "{result:?}");
        assert!(
            !format!("{result:?}").contains("private words"),
            "{result:?}"
        );
        assert!(
            result.model_text().contains("the kept result"),
            "{result:?}"
        );
    }
    let wrong = [
        "art_019f3c00112270008000000000000001_1",
        "art_1",
        "../blobs/00",
        "",
    ];
    for id in wrong {
        bench
            .fails("read_result", json!({ "ref": id }), &[id])
            .await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_that_is_not_shown_whole_is_kept() {
    let server = Server::start(|seen| match seen.path.as_str() {
        "/text" => reply("200 OK", &["Content-Type: text/plain"], content("lines")),
        "/more" => reply("200 OK", &["Content-Type: text/plain"], content("large")),
        _ => reply(
            "200 OK",
            &["Content-Type: application/zip"],
            content("bytes"),
        ),
    });
    let bench = Bench::beside(&[&server]).await;
    for (path, what, media_type) in [
        ("/more", "large", "text/plain"),
        ("/text", "lines", "text/plain"),
        ("/zip", "bytes", "application/zip"),
    ] {
        let result = bench
            .call("http_request", json!({ "url": server.url(path) }))
            .await;
        let [kept] = &result.artifacts[..] else {
            panic!("{path}: {result:?}")
        };
        assert_eq!(
            (kept.size, kept.media_type.as_str()),
            (content(what).len() as u64, media_type),
            "{path}"
        );
        let truncated = result.truncated.as_ref().unwrap();
        assert_eq!(truncated.artifact, Some(kept.id), "{path}");
        assert!(
            truncated.hint.as_ref().unwrap().contains("read_result"),
            "{truncated:?}"
        );
    }
    // Whoever says how much is wanted gets that and no more.
    let result = bench
        .call(
            "http_request",
            json!({ "url": server.url("/text"), "max_bytes": 100 }),
        )
        .await;
    assert!(
        result.artifacts.is_empty() && result.truncated.is_some(),
        "{result:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_value_too_large_to_be_held_is_passed_over_or_refused() {
    let bench = Bench::new().await;
    let id = bench.made("one value").await;
    assert_eq!(
        bench
            .read(json!({ "ref": id, "pointer": "/after" }))
            .await
            .0,
        "2"
    );
    for pointer in ["/large", "", "/large/deeper"] {
        bench
            .fails(
                "read_result",
                json!({ "ref": id, "pointer": pointer }),
                &["larger than 4 MiB", "by bytes"],
            )
            .await;
    }
    let id = bench.made("one name").await;
    bench
        .fails(
            "read_result",
            json!({ "ref": id, "pointer": "/after" }),
            &["larger than 4 MiB"],
        )
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_that_breaks_off_is_shown_as_far_as_it_came() {
    let server = Server::writing(|_, stream| {
        use std::io::Write;
        let _ = stream.write_all(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 900000\r\n\r\n",
        );
        let _ = stream.write_all(&content("lines"));
    });
    let bench = Bench::beside(&[&server]).await;
    let result = bench
        .call("http_request", json!({ "url": server.url("/") }))
        .await;
    assert_eq!(
        (result.outcome, result.artifacts.len()),
        (Outcome::Succeeded, 0),
        "{result:?}"
    );
    assert!(result.model_text().contains("line 1 of many"), "{result:?}");
}
