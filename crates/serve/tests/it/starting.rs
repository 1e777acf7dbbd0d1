//! Start, stop and start again: what a server refuses, what it finishes, and what it leaves behind.

use std::{path::Path, time::Duration};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::json;
use tokio::net::{TcpListener, TcpStream, UnixStream};
use toolpost_serve::StartError;
use toolpost_store::{DataDirError, JournalReader};
use toolpost_testkit::{MockNativeTool, MockToolGate};

use super::{
    client::{Connection, Request, within},
    running::Place,
};

#[tokio::test]
async fn a_data_directory_belongs_to_one_server() {
    let place = Place::new();
    let first = place.start().await;
    let refused = place.builder().start().await.err().unwrap();
    let StartError::DataDir(DataDirError::InUse { path, pid }) = &refused else {
        panic!("{refused}")
    };
    assert_eq!((path, *pid), (&place.data_dir(), Some(std::process::id())));
    assert_eq!(
        first
            .call("echo", json!({ "message": "still here" }))
            .await
            .status(),
        200
    );
    let socket = first.server.socket().unwrap().to_owned();
    assert!(
        UnixStream::connect(&socket).await.is_ok(),
        "the refused one left the socket alone"
    );
    first.shut_down().await;
    assert!(!socket.exists());
    place.start().await;
}

#[tokio::test]
async fn a_server_that_is_dropped_takes_no_more_and_makes_room_for_the_next() {
    let place = Place::new();
    let server = place.start().await;
    let address = server.server.address().unwrap();
    drop(server);
    let mut next = place.builder().start().await;
    for _ in 0..1_000 {
        if next.is_ok() {
            break;
        }
        tokio::task::yield_now().await;
        next = place.builder().start().await;
    }
    assert!(next.is_ok(), "{:?}", next.err());
    assert!(
        TcpStream::connect(address).await.is_err(),
        "two hosts would write one record"
    );
}

#[tokio::test]
async fn a_record_inside_the_workspace_is_refused() {
    let mut place = Place::new();
    let workspace = place.workspace();
    let link = place.folder().join("link");
    std::os::unix::fs::symlink(&workspace, &link).unwrap();
    for data_dir in [
        workspace.clone(),
        workspace.join("a/b"),
        link.join("data"),
        workspace.join("../workspace/x"),
    ] {
        place.config.data_dir = Some(data_dir.clone());
        let refused = place.builder().start().await.err().unwrap();
        assert!(
            matches!(refused, StartError::DataInWorkspace { .. }),
            "{}: {refused}",
            data_dir.display()
        );
        assert!(!workspace.join("a").exists());
    }
    place.config.data_dir = Some(place.folder().join("workspace-data"));
    place.start().await;
}

#[tokio::test]
async fn a_server_that_cannot_listen_leaves_everything_as_it_was() {
    let mut place = Place::new();
    let taken = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let free = place.config.http.listen;
    place.config.http.listen = taken.local_addr().unwrap();
    let refused = place.builder().start().await.err().unwrap();
    assert!(matches!(refused, StartError::Listen { .. }), "{refused}");
    assert!(
        !place.data_dir().join("journal.db").exists(),
        "no start is on record"
    );
    place.config.http.listen = free;
    place.start().await;
}

#[tokio::test]
async fn a_server_without_a_data_directory_keeps_its_record_in_memory() {
    let mut place = Place::new();
    place.config.data_dir = None;
    let server = place.start().await;
    assert_eq!(server.server.socket(), None);
    let request = Request::call("echo", &json!({ "message": "hi" })).key("k");
    let first = server.send(request.clone()).await;
    assert_eq!(server.send(request).await.body, first.body);
    let other = place.start().await;
    assert_ne!(server.token(), other.token());
}

#[tokio::test]
async fn the_kept_token_stays_the_same_and_its_owners_own() {
    use std::os::unix::fs::PermissionsExt as _;
    let place = Place::new();
    let server = place.start().await;
    let token = server.token().to_owned();
    let file = place.data_dir().join("token");
    assert_eq!(std::fs::read_to_string(&file).unwrap().trim(), token);
    assert_eq!(
        std::fs::metadata(&file).unwrap().permissions().mode() & 0o777,
        0o600
    );
    server.shut_down().await;
    assert_eq!(place.start().await.token(), token);
}

#[tokio::test]
async fn a_shutdown_lets_running_calls_finish_and_takes_no_new_ones() {
    let gate = MockToolGate::new();
    let tool = MockNativeTool::named("demo.wait")
        .gate(&gate)
        .output("through");
    let place = Place::new();
    let server = place.start_with(|builder| builder.tool(tool.clone())).await;
    let address = server.server.address().unwrap();
    let socket = server.server.socket().unwrap().to_owned();
    let host = server.server.host().clone();
    let mut plain = server.begin(Request::call("wait", &json!({}))).await;
    let mut streamed = server
        .begin(Request::call("wait", &json!({})).streamed())
        .await;
    let mut idle = server.connect().await;
    gate.entered(2).await;
    let late = server.dressed(Request::call("wait", &json!({})));
    let closing = tokio::spawn(server.shut_down());
    while !host.health().shutting_down {
        tokio::task::yield_now().await;
    }
    for _ in 0..20 {
        idle.send(&late).await;
        let refused = idle.receive().await;
        assert_eq!(
            (refused.json()["outcome"].clone(), refused.code().as_str()),
            (json!("rejected"), "shutdown")
        );
        assert_eq!(
            (refused.status(), refused.head.header("retry-after")),
            (503, Some("1"))
        );
    }
    gate.let_through(2);
    assert_eq!(
        plain.receive().await.json()["content"][0]["text"],
        "through"
    );
    assert_eq!(streamed.head().await.status, 200);
    assert_eq!(streamed.frames().await.last().unwrap().event, "result");
    within(closing).await.unwrap();
    assert_eq!(tool.call_count(), 2);
    assert!(
        TcpStream::connect(address).await.is_err(),
        "nobody listens any more"
    );
    assert!(!socket.exists());
    for connection in [&mut plain, &mut streamed, &mut idle] {
        assert!(connection.is_closed().await);
    }
    assert_clean(&place.data_dir());
}

#[tokio::test]
async fn a_shutdown_ends_what_does_not_finish_in_time() {
    let gate = MockToolGate::new();
    let tool = MockNativeTool::named("demo.wait").gate(&gate);
    let place = Place::new();
    let server = place.start_with(|builder| builder.tool(tool)).await;
    let mut connection = server.begin(Request::call("wait", &json!({}))).await;
    gate.entered(1).await;
    server.server.shutdown(Duration::ZERO).await;
    let result = connection.receive().await.json();
    assert_eq!(result["outcome"], "canceled");
    assert_eq!(
        result["error"]["message"],
        "the call was stopped while it ran: the host is shutting down"
    );
    assert_clean(&place.data_dir());
}

#[tokio::test]
async fn a_shutdown_does_not_wait_for_connections_that_say_nothing() {
    // As many as one listener takes at a time: then it waits for a place, and must hear of the end all the same.
    const ALL: usize = 1_024;
    let limit = getrlimit(Resource::Nofile);
    setrlimit(
        Resource::Nofile,
        Rlimit {
            current: limit.maximum,
            ..limit
        },
    )
    .unwrap();
    let place = Place::new();
    let server = place.start().await;
    let mut idle: Vec<Connection> = Vec::with_capacity(ALL);
    for _ in 0..ALL {
        let mut connection = server.connect().await;
        connection.send(&Request::get("/health")).await;
        assert_eq!(connection.receive().await.status(), 200);
        idle.push(connection);
    }
    // The guard is shorter than the time after which the server gives up on a silent connection by itself.
    let closed = tokio::time::timeout(Duration::from_secs(20), server.shut_down()).await;
    assert!(
        closed.is_ok(),
        "the shutdown waits for connections that say nothing"
    );
    drop(idle);
    place.start().await;
}

fn assert_clean(data_dir: &Path) {
    let report = JournalReader::open(&data_dir.join("journal.db"))
        .unwrap()
        .verify(|_, _| {})
        .unwrap();
    assert!(report.is_clean(), "{:?}", report.problems);
    assert!(
        report.open_invocations.is_empty(),
        "{:?}",
        report.open_invocations
    );
}
