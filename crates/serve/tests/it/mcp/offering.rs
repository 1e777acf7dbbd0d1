//! What a source offers beside tools, passed on: resources that are missing there, and news that nobody wants any more.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::mpsc;
use toolpost_model::{
    BoxFuture, Declaration, DynTool, EffectClass, EffectOrigin, ErrorClass, FnTool, SessionScope,
    Source, SourceCompanions, SourceError, SourceSession, ToolFailure, ToolOutput, ToolSet,
    WireNaming,
};

use super::{Era, Place, Request, Running, begin, both, ended};
use crate::client::within;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Address {
    uri: String,
}

/// A source with resources, whose server refuses some of them.
pub(super) struct Shelf {
    pub(super) tools: ToolSet,
    pub(super) offered: Arc<SourceCompanions>,
}

impl Source for Shelf {
    fn name(&self) -> &str {
        self.tools.name()
    }

    fn origin(&self) -> EffectOrigin {
        self.tools.origin()
    }

    fn naming(&self) -> WireNaming {
        self.tools.naming()
    }

    fn list(&self) -> BoxFuture<'_, Result<Vec<Declaration>, SourceError>> {
        self.tools.list()
    }

    fn companions(&self) -> Arc<SourceCompanions> {
        Arc::clone(&self.offered)
    }

    fn open<'a>(
        &'a self,
        session: &'a SessionScope,
    ) -> BoxFuture<'a, Result<Arc<dyn SourceSession>, SourceError>> {
        self.tools.open(session)
    }
}

/// What a source of MCP makes of a server's protocol error.
fn refused(code: i32, class: ErrorClass) -> ToolFailure {
    let mut failure = ToolFailure::of(
        class,
        format!("`shelf` answered with error {code}: no book"),
    );
    failure.details = Some(json!({ "mcp_code": code, "mcp_message": "no book", "mcp_data": null }));
    failure
}

pub(super) fn whole(result: Value) -> ToolOutput {
    ToolOutput {
        structured: Some(result),
        ..ToolOutput::default()
    }
}

/// The source, and the subscriptions it hears of: `+` and `-`, and the address.
fn shelf() -> (Shelf, mpsc::UnboundedReceiver<String>) {
    let (heard, hears) = mpsc::unbounded_channel();
    let read =
        FnTool::named("shelf.read").unwrap().class(EffectClass::Read).run(|address: Address, _| async move {
            match address.uri.as_str() {
                "shelf://gone" => Err(refused(-32002, ErrorClass::ExecutionFailed)),
                "shelf://odd" => Err(refused(-32602, ErrorClass::InvalidArguments)),
                "shelf://long" => Ok(whole(
                    json!({ "contents": [{ "uri": "shelf://long", "text": "a long book ".repeat(20_000) }] }),
                )),
                "shelf://broken" => Err(refused(-32603, ErrorClass::ExecutionFailed)),
                uri => Ok(whole(json!({ "contents": [{ "uri": uri, "text": "a book" }] }))),
            }
        });
    let hearing = |name: &str, sign: char| {
        let heard = heard.clone();
        FnTool::named(name)
            .unwrap()
            .class(EffectClass::Read)
            .run(move |address: Address, _| {
                heard.send(format!("{sign}{}", address.uri)).unwrap();
                async move { Ok::<_, ToolFailure>(whole(json!({}))) }
            })
    };
    let breaks = FnTool::named("shelf.breaks")
        .unwrap()
        .class(EffectClass::Read)
        .run(|_: super::Nothing, _| async move {
            Err::<ToolOutput, _>(refused(-32602, ErrorClass::InvalidArguments))
        });
    let told = hearing("shelf.subscribe", '+');
    let untold = hearing("shelf.unsubscribe", '-');
    let tools: [Arc<dyn DynTool>; 4] = [
        Arc::new(read),
        Arc::new(told),
        Arc::new(untold),
        Arc::new(breaks),
    ];
    let tools = ToolSet::new("shelf", tools);
    let id = |name: &str| Some(format!("shelf.{name}").parse().unwrap());
    let offered = SourceCompanions {
        templates: vec![json!({ "uriTemplate": "shelf://{book}", "name": "book" })],
        read: id("read"),
        subscribe: id("subscribe"),
        unsubscribe: id("unsubscribe"),
        ..SourceCompanions::default()
    };
    (
        Shelf {
            tools,
            offered: Arc::new(offered),
        },
        hears,
    )
}

#[tokio::test]
async fn what_a_server_refuses_is_told_in_the_words_of_the_clients_era() {
    let (shelf, _hears) = shelf();
    let server = Place::without_native_tools()
        .start_with(|builder| builder.source(shelf))
        .await;
    for era in both(&server).await {
        let read = async |uri: &str| {
            era.ask(&server, "resources/read", json!({ "uri": uri }))
                .await
                .json()
        };
        assert_eq!(
            read("shelf://here").await["result"]["contents"][0]["text"],
            "a book"
        );
        let missing = if matches!(era, Era::Stateless) {
            -32602
        } else {
            -32002
        };
        for uri in ["shelf://gone", "shelf://odd"] {
            let error = read(uri).await["error"].clone();
            assert_eq!(
                (&error["code"], &error["data"]["uri"]),
                (&json!(missing), &json!(uri)),
                "{era:?}"
            );
        }
        let error = read("shelf://broken").await["error"].clone();
        assert_eq!(error["code"], -32603, "{error}");
        assert!(
            error["message"].as_str().unwrap().contains("no book"),
            "{error}"
        );
        let end = era.call(&server, "breaks", json!({})).await;
        assert_eq!(end["isError"], true, "{end}");
        assert!(
            end["content"][0]["text"]
                .as_str()
                .unwrap()
                .contains("no book"),
            "{end}"
        );
    }
}

#[tokio::test]
async fn a_long_resource_is_read_whole() {
    let (shelf, _hears) = shelf();
    let place = Place::without_native_tools();
    let server = place.start_with(|builder| builder.source(shelf)).await;
    for era in both(&server).await {
        let read = ended(
            &era.ask(&server, "resources/read", json!({ "uri": "shelf://long" }))
                .await,
        );
        let text = read["contents"][0]["text"].as_str();
        assert_eq!(text.map(str::len), Some(240_000), "{era:?}");
    }
}

async fn ask(era: &Era, server: &Running, method: &str, uri: &str) {
    let answer = era.ask(server, method, json!({ "uri": uri })).await.json();
    assert!(answer["result"].is_object(), "{answer}");
}

async fn leave(era: &Era, server: &Running) {
    let Era::Session(session) = era else {
        unreachable!()
    };
    let left = server
        .send(Request::new("DELETE", "/mcp").header("Mcp-Session-Id", session))
        .await;
    assert_eq!(left.status(), 204);
}

#[tokio::test]
async fn a_source_hears_what_each_session_wants_and_no_longer_wants() {
    let (shelf, mut hears) = shelf();
    let server = Place::without_native_tools()
        .start_with(|builder| builder.source(shelf))
        .await;
    let mut next = async || within(hears.recv()).await.unwrap();
    let [one, two] = [
        begin(&server, json!({}), None).await,
        begin(&server, json!({}), None).await,
    ];
    for era in [&one, &two] {
        ask(era, &server, "resources/subscribe", "shelf://a").await;
        assert_eq!(next().await, "+shelf://a");
    }
    // Asked twice, it still counts once.
    ask(&two, &server, "resources/subscribe", "shelf://a").await;
    assert_eq!(next().await, "+shelf://a");
    leave(&one, &server).await;
    assert_eq!(next().await, "-shelf://a");
    ask(&two, &server, "resources/unsubscribe", "shelf://a").await;
    assert_eq!(next().await, "-shelf://a");
    ask(&two, &server, "resources/subscribe", "shelf://c").await;
    assert_eq!(next().await, "+shelf://c");
    leave(&two, &server).await;
    assert_eq!(next().await, "-shelf://c");
}

#[tokio::test]
async fn streams_of_one_session_do_not_undo_one_another() {
    let (shelf, mut hears) = shelf();
    let server = Place::without_native_tools()
        .start_with(|builder| builder.source(shelf))
        .await;
    let mut next = async || within(hears.recv()).await.unwrap();
    let listen = async |id: u64, uris: Value| {
        let wanted = json!({ "notifications": { "resourceSubscriptions": uris } });
        let request =
            Era::Stateless.request(&json!(id), "subscriptions/listen", wanted, &json!({}));
        let mut stream = server.begin(request).await;
        assert_eq!(stream.head().await.status, 200);
        assert!(stream.frame().await.unwrap().data.contains("shelf://a"));
        stream
    };
    let first = listen(1, json!(["shelf://a", "shelf://b"])).await;
    assert_eq!(
        (next().await, next().await),
        ("+shelf://a".to_owned(), "+shelf://b".to_owned())
    );
    let second = listen(2, json!(["shelf://a"])).await;
    assert_eq!(next().await, "+shelf://a");
    drop(first);
    assert_eq!(
        next().await,
        "-shelf://b",
        "the other stream still wants the first"
    );
    drop(second);
    assert_eq!(next().await, "-shelf://a");
}

#[tokio::test]
async fn who_never_subscribed_takes_nothing_back() {
    let (shelf, mut hears) = shelf();
    let server = Place::without_native_tools()
        .start_with(|builder| builder.source(shelf))
        .await;
    let mut next = async || within(hears.recv()).await.unwrap();
    let [one, two] = [
        begin(&server, json!({}), None).await,
        begin(&server, json!({}), None).await,
    ];
    ask(&one, &server, "resources/subscribe", "shelf://a").await;
    assert_eq!(next().await, "+shelf://a");
    for uri in ["shelf://a", "shelf://never"] {
        ask(&two, &server, "resources/unsubscribe", uri).await;
    }
    // A stream that wanted something else gives back only that.
    let wanted = json!({ "notifications": { "resourceSubscriptions": ["shelf://b"] } });
    let request = Era::Stateless.request(&json!(1), "subscriptions/listen", wanted, &json!({}));
    let mut stream = server.begin(request).await;
    assert_eq!(stream.head().await.status, 200);
    assert!(stream.frame().await.is_some());
    drop(stream);
    assert_eq!(
        (next().await, next().await),
        ("+shelf://b".to_owned(), "-shelf://b".to_owned())
    );
    leave(&two, &server).await;
    ask(&one, &server, "resources/unsubscribe", "shelf://a").await;
    assert_eq!(
        next().await,
        "-shelf://a",
        "nothing else was taken back before"
    );
}
