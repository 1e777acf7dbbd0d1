//! The card: who may read what.

use serde_json::{Value, json};
use toolpost_serve::CallerAuthentication;

use super::{
    super::{client::Request, running::Place},
    URI, add, result, rpc, serve,
};

const CARD: &str = "/.well-known/agent-card.json";

fn skills(card: &Value) -> Vec<&str> {
    card["skills"]
        .as_array()
        .unwrap()
        .iter()
        .map(|skill| skill["id"].as_str().unwrap())
        .collect()
}

#[tokio::test]
async fn anybody_reads_the_card_and_known_callers_read_the_tools() {
    let server = serve(&add()).await;
    let told = server.send_bare(Request::get(CARD)).await;
    assert_eq!(told.status(), 200);
    let tag = told.head.header("etag").unwrap().to_owned();
    assert_eq!(
        told.head.header("cache-control"),
        Some("public, max-age=60")
    );
    let card = told.json();
    assert_eq!(skills(&card), ["tools"]);
    assert_eq!(
        (&card["url"], &card["protocolVersion"]),
        (&json!("http://localhost/a2a"), &json!("0.3.0"))
    );
    let interfaces = card["supportedInterfaces"].as_array().unwrap();
    assert!(
        interfaces
            .iter()
            .all(|interface| interface["url"] == "http://localhost/a2a"),
        "{card}"
    );
    for extensions in [
        &card["capabilities"]["extensions"],
        &card["a2a"]["capabilities"]["extensions"],
    ] {
        assert_eq!(extensions[0]["uri"], URI, "{card}");
    }
    assert_eq!(card["supportsAuthenticatedExtendedCard"], true);
    assert!(card["securitySchemes"].is_object());
    for known in [
        tag.clone(),
        format!("W/{tag}"),
        format!("\"x\", {tag}"),
        "*".to_owned(),
    ] {
        let same = server
            .send_bare(Request::get(CARD).header("If-None-Match", &known))
            .await;
        assert_eq!((same.status(), same.body.len()), (304, 0), "{known}");
    }
    let other = server
        .send_bare(Request::get(CARD).header("If-None-Match", "W/\"x\""))
        .await;
    assert_eq!(other.status(), 200);
    let full = server.send(Request::get(CARD)).await;
    assert_eq!(
        full.head.header("cache-control"),
        Some("private, max-age=60")
    );
    let full = full.json();
    assert!(skills(&full).contains(&"add"), "{full}");
    let all = full["skills"].as_array().unwrap();
    let add = all.iter().find(|skill| skill["id"] == "add").unwrap();
    let example: Value = serde_json::from_str(add["examples"][0].as_str().unwrap()).unwrap();
    assert_eq!(
        example["input"],
        json!({ "a": 0 }),
        "what must be given is there"
    );
    for method in ["agent/getAuthenticatedExtendedCard", "GetExtendedAgentCard"] {
        assert_eq!(
            result(&server, rpc(method, &json!({}))).await,
            full,
            "{method}"
        );
    }
    assert_eq!(
        server
            .send(Request::get("/a2a/extendedAgentCard"))
            .await
            .json(),
        full
    );
    let stranger = server.send_bare(Request::get(CARD).bearer("guessed")).await;
    assert_eq!(stranger.status(), 401);
}

#[tokio::test]
async fn the_card_says_what_the_configuration_says() {
    let mut place = Place::without_native_tools();
    place.config.a2a.url = Some("https://tools.example.org/a2a".to_owned());
    place.config.a2a.name = "Workshop".to_owned();
    let server = place
        .start_with(|builder| builder.tool(add()).access(CallerAuthentication::Open))
        .await;
    let card = server.send_bare(Request::get(CARD)).await.json();
    assert_eq!(
        (&card["url"], &card["name"]),
        (&json!("https://tools.example.org/a2a"), &json!("Workshop"))
    );
    assert!(
        skills(&card).contains(&"add"),
        "an open host tells everybody"
    );
    assert!(
        card.get("securitySchemes").is_none(),
        "and asks for no token"
    );
}

#[tokio::test]
async fn a_host_that_is_no_agent_has_none_of_it() {
    let mut place = Place::without_native_tools();
    place.config.a2a.enabled = false;
    let server = place.start_with(|builder| builder.tool(add())).await;
    for request in [
        Request::get(CARD),
        rpc("GetTask", &json!({ "id": "x" })),
        Request::get("/a2a/tasks"),
        Request::post("/a2a/message:send", "{}"),
    ] {
        assert_eq!(server.send(request).await.status(), 404);
    }
}
