//! A host in the same process. Nothing here waits for a socket, so that time can be made to pass.

use std::{sync::Arc, time::Duration};

use serde_json::json;
use tokio::{sync::Mutex, task::JoinHandle, time::Instant};
use toolpost_a2e::{
    Body, CallError, CallOptions, Client, ConnectError, ConnectOptions, HandshakeResponse,
    HostDeparture, HostTransport, InProcessLink, Message, ToolApi, ToolCallResponse, ToolResult,
};

/// What a host heard, apart from the handshake.
type Heard = Arc<Mutex<Vec<Message>>>;

/// A host that answers calls of `echo`, and no others.
fn host(mut link: InProcessLink) -> (Heard, JoinHandle<()>) {
    let heard = Heard::default();
    let list = heard.clone();
    let task = tokio::spawn(async move {
        while let Some(message) = link.receiver.recv().await {
            let id = message.id.clone();
            let mut answer = match &message.body {
                Body::HandshakeRequest(_) => Body::HandshakeResponse(welcome()),
                Body::ToolCallRequest(request) if request.tool_name == "echo" => {
                    Body::ToolCallResponse(ToolCallResponse {
                        req_id: String::new(),
                        created_at: 0.0,
                        data: serde_json::from_value::<ToolResult>(
                            json!({ "success": true, "tool_name": "echo", "duration_ms": 0 }),
                        )
                        .unwrap(),
                    })
                }
                _ => {
                    list.lock().await.push(message);
                    continue;
                }
            };
            list.lock().await.push(message);
            answer.answer_to(&id);
            if link.sender.send(Message::new(answer)).await.is_err() {
                return;
            }
        }
    });
    (heard, task)
}

fn welcome() -> HandshakeResponse {
    serde_json::from_value(json!({
        "accepted_caps": [{ "capability": "tools", "metadata": { "extensions": ["tool/cancel"] } }]
    }))
    .unwrap()
}

async fn connect(options: ConnectOptions) -> (ToolApi, Heard, JoinHandle<()>) {
    let (here, there) = InProcessLink::pair(16);
    let (heard, task) = host(there);
    let client = Client::connect(HostTransport::Link(here), options)
        .await
        .unwrap();
    (ToolApi::new(&client), heard, task)
}

fn options() -> ConnectOptions {
    ConnectOptions::new("tester")
}

async fn kinds(heard: &Heard) -> Vec<String> {
    heard
        .lock()
        .await
        .iter()
        .map(|message| message.body.kind().to_owned())
        .collect()
}

#[tokio::test]
async fn calls_and_leaving() {
    let (api, heard, task) = connect(options()).await;
    for _ in 0..100 {
        assert!(api.call("echo", json!({ "a": 1 })).await.unwrap().success);
    }
    api.client().close().await;
    drop(api);
    task.await.unwrap();
    let kinds = kinds(&heard).await;
    assert_eq!(
        (kinds.len(), kinds.last().map(String::as_str)),
        (102, Some("shutdown"))
    );
}

#[tokio::test(start_paused = true)]
async fn a_call_waits_for_its_time_and_the_grace() {
    let (api, heard, _task) = connect(options()).await;
    let began = Instant::now();
    let error = api.call("sleep", json!({})).await.unwrap_err();
    assert_eq!(
        error,
        CallError::Timeout {
            after: Duration::from_secs(65),
            taken: true
        }
    );
    assert_eq!(began.elapsed().as_secs(), 65);
    // Nobody waits any more, so the host may stop.
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert_eq!(
        kinds(&heard).await,
        ["handshake/req", "tool/call/req", "tool/cancel/req"]
    );
}

#[tokio::test(start_paused = true)]
async fn events_end_with_the_time_too() {
    let (api, _heard, _task) = connect(options()).await;
    let options = CallOptions::new("sleep", json!({}))
        .timeout(Duration::from_secs(1))
        .streaming();
    let mut call = api.start(options).await.unwrap();
    assert_eq!(call.next_event().await, None);
    let error = call.result().await.unwrap_err();
    assert_eq!(
        error,
        CallError::Timeout {
            after: Duration::from_secs(6),
            taken: true
        }
    );
}

#[tokio::test]
async fn a_host_that_goes_away() {
    let (here, mut there) = InProcessLink::pair(16);
    let connecting = tokio::spawn(Client::connect(HostTransport::Link(here), options()));
    let mut answer = Body::HandshakeResponse(welcome());
    answer.answer_to(&there.receiver.recv().await.unwrap().id);
    there.sender.send(Message::new(answer)).await.unwrap();
    let api = ToolApi::new(&connecting.await.unwrap().unwrap());
    let call = api
        .start(CallOptions::new("sleep", json!({})))
        .await
        .unwrap();
    drop(there);
    let gone = CallError::HostGone(HostDeparture::Ended);
    assert_eq!(call.result().await.unwrap_err(), gone);
    assert_eq!(api.call("echo", json!({})).await.unwrap_err(), gone);
    assert!(!api.client().is_open());

    let (here, there) = InProcessLink::pair(1);
    drop(there);
    let error = Client::connect(HostTransport::Link(here), options())
        .await
        .unwrap_err();
    assert!(
        matches!(error, ConnectError::HostGone(HostDeparture::Ended)),
        "{error:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn further_calls_wait_for_a_place() {
    let (api, heard, _task) = connect(options().in_flight(1)).await;
    let first = api
        .start(CallOptions::new("sleep", json!({})))
        .await
        .unwrap();
    let second = CallOptions::new("echo", json!({})).timeout(Duration::from_secs(1));
    let error = api.start(second.clone()).await.unwrap_err();
    assert_eq!(
        error,
        CallError::Timeout {
            after: Duration::from_secs(6),
            taken: false
        }
    );
    drop(first);
    assert!(
        api.start(second)
            .await
            .unwrap()
            .result()
            .await
            .unwrap()
            .success
    );
    let kinds = kinds(&heard).await;
    assert_eq!(
        kinds,
        [
            "handshake/req",
            "tool/call/req",
            "tool/cancel/req",
            "tool/call/req"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_full_link_makes_callers_wait() {
    let (here, there) = InProcessLink::pair(1);
    let error = Client::connect(HostTransport::Link(here), options())
        .await
        .unwrap_err();
    assert!(matches!(error, ConnectError::Timeout { .. }), "{error:?}");
    drop(there);
}

#[tokio::test]
async fn a_dropped_client_leaves_nothing_behind() {
    let (api, heard, task) = connect(options()).await;
    let tasks = tokio::runtime::Handle::current().metrics();
    drop(api);
    // The host sees the end of the link.
    task.await.unwrap();
    assert_eq!(kinds(&heard).await, ["handshake/req", "shutdown"]);
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    assert_eq!(tasks.num_alive_tasks(), 0);
}

#[tokio::test(start_paused = true)]
async fn closing_waits_no_longer_than_it_said() {
    let (api, _heard, _task) = connect(options()).await;
    let call = api
        .start(CallOptions::new("sleep", json!({})))
        .await
        .unwrap();
    let began = Instant::now();
    api.client().close_within(Duration::from_secs(3)).await;
    assert_eq!(began.elapsed().as_secs(), 5);
    assert_eq!(call.result().await.unwrap_err(), CallError::Closed);
}
