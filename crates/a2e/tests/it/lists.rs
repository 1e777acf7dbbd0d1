//! Lists of tools, and how long they are kept.

use serde_json::{Value, json};
use toolpost_a2e::{
    Body, Client, ConnectOptions, HostTransport, InProcessLink, ListOptions, Message, ToolApi,
};

use crate::peer::Peer;

#[tokio::test]
async fn what_is_asked_for() {
    let (mut peer, api, events) = Peer::with_api().await;
    let cases = [
        (ListOptions::all(), json!({})),
        (
            ListOptions::search("git"),
            json!({ "query": "git", "include_deferred": true }),
        ),
        (
            ListOptions {
                tags: vec!["net".to_owned()],
                kind: "mcp".to_owned(),
                limit: 5,
                ..ListOptions::all()
            },
            json!({ "filter_tags": ["net"], "filter_kind": "mcp", "limit": 5 }),
        ),
    ];
    for (options, expected) in cases {
        let host = async {
            let mut request = peer.message("tool/list/req").await;
            let tools = json!([{ "name": "t", "description": "d", "input_parameters": [
                { "name": "p", "type": "string", "description": "" }
            ], "of_a_later_version": 1 }]);
            events
                .say(&json!({ "type": "tool/list/resp", "req_id": request["id"], "tools": tools }))
                .await;
            for envelope in ["type", "id", "version"] {
                request.as_object_mut().unwrap().remove(envelope);
            }
            request
        };
        let (tools, request) = tokio::join!(api.list(&options), host);
        assert_eq!(request, expected);
        let tools = tools.unwrap();
        assert_eq!(
            (&*tools[0].name, &*tools[0].input_parameters[0].kind),
            ("t", "string")
        );
    }
}

/// A host in the same process that counts how often it is asked for its list, and says so in the list.
async fn counting_host(mut link: InProcessLink) {
    let mut asked = 0;
    while let Some(message) = link.receiver.recv().await {
        let answer = match message.body {
            Body::HandshakeRequest(_) => json!({ "type": "handshake/resp" }),
            Body::ToolListRequest(_) => {
                asked += 1;
                json!({ "type": "tool/list/resp", "tools": [{ "name": asked.to_string(), "description": "" }] })
            }
            Body::Ping(_) => {
                // The test's sign that the list has changed.
                let _ = link
                    .sender
                    .send(Message::unnamed(Body::tool_list_changed()))
                    .await;
                json!({ "type": "pong" })
            }
            _ => continue,
        };
        let mut answer = message_of(&answer);
        answer.body.answer_to(&message.id);
        let _ = link.sender.send(answer).await;
    }
}

fn message_of(value: &Value) -> Message {
    toolpost_a2e::codec::decode(
        value.to_string().as_bytes(),
        toolpost_a2e::codec::ReaderSide::Agent,
    )
    .unwrap()
}

#[tokio::test]
async fn lists_are_kept_until_they_change() {
    let (here, there) = InProcessLink::pair(8);
    let host = tokio::spawn(counting_host(there));
    let client = Client::connect(HostTransport::Link(here), ConnectOptions::new("tester"))
        .await
        .unwrap();
    let api = ToolApi::new(&client);
    let number = async |options: &ListOptions| api.list(options).await.unwrap()[0].name.clone();
    let all = ListOptions::all();
    let search = ListOptions::search("x");
    assert_eq!(number(&all).await, "1");
    assert_eq!(number(&all).await, "1");
    assert_eq!(number(&search).await, "2");
    assert_eq!(number(&all).await, "1");
    assert_eq!(api.clone().list(&all).await.unwrap()[0].name, "1");
    client.ping().await.unwrap();
    assert_eq!(number(&all).await, "3");
    assert_eq!(number(&all).await, "3");
    api.refresh();
    assert_eq!(number(&all).await, "4");
    client.close().await;
    drop((client, api));
    host.await.unwrap();
}
