//! Servers that are reached over HTTP.

use std::{
    collections::BTreeMap,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{SocketAddr, TcpStream},
    process::{Child, Command, Stdio},
    sync::Arc,
    time::Duration,
};

use serde_json::{Value, json};
use tokio::net::TcpSocket;
use toolpost_core::MemoryPins;
use toolpost_mcp_source::{McpStartPolicy, McpTransport};
use toolpost_model::{ErrorClass, EventBody, PermissionMode, SandboxTier, Secret};
use toolpost_testkit::TestHost;

use crate::stage::{Stage, Wanted, fixture, server, until};

/// The server, as a process of its own.
struct Remote {
    child: Child,
    port: u16,
}

impl Drop for Remote {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Remote {
    fn start(mode: &str) -> Self {
        let mut child = Command::new("/usr/bin/python3")
            .args(["-I", "-S"])
            .arg(fixture("http_server.py"))
            .arg(mode)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        Self {
            child,
            port: line.trim().parse().unwrap(),
        }
    }

    /// Ends it. While what this gives is held, nobody answers at its port: another server could be given it, and
    /// would take the call.
    fn end(mut self) -> TcpSocket {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_reuseaddr(true).unwrap();
        socket
            .bind(SocketAddr::from(([127, 0, 0, 1], self.port)))
            .unwrap();
        socket
    }

    fn get(&self, path: &str) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        write!(
            stream,
            "GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer.split_once("\r\n\r\n").unwrap().1.to_owned()
    }

    fn seen(&self) -> Value {
        serde_json::from_str(&self.get("/seen")).unwrap()
    }

    async fn stage(&self) -> Stage {
        self.wanted().start().await
    }

    fn wanted(&self) -> Wanted {
        let url = format!("http://127.0.0.1:{}/mcp", self.port)
            .parse()
            .unwrap();
        let headers = BTreeMap::from([("authorization".to_owned(), Secret::new("Bearer sesame"))]);
        let mut server = server(McpTransport::Http { url, headers });
        server.connect_timeout = Duration::from_secs(10);
        let folder = tempfile::tempdir().unwrap();
        Wanted {
            server,
            pins: Arc::new(MemoryPins::default()),
            folder,
            tier: SandboxTier::A,
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn tools_are_called_with_the_operators_headers() {
    let remote = Remote::start("good");
    let stage = remote.stage().await;
    let result = stage.call("fix__echo", json!({ "text": "hello" })).await;
    assert_eq!(
        result.model_text(),
        "hello",
        "{result:?} {:?}",
        stage.problems()
    );
    assert_eq!(remote.seen()["authorization"], "Bearer sesame");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_forgot_the_session_is_compared_before_it_is_called_again() {
    // Whether it answered a call before or not.
    for calls in [1, 0] {
        let remote = Remote::start("good");
        let stage = remote.stage().await;
        for _ in 0..calls {
            stage.call("fix__echo", json!({ "text": "one" })).await;
        }
        remote.get("/redeploy");
        let error = stage
            .call("fix__echo", json!({ "text": "two" }))
            .await
            .error
            .unwrap();
        assert_eq!(&*error.code, "definition_kept_back", "{error:?}");
        assert_eq!(remote.seen()["calls"], calls);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_forgot_the_session_is_noticed_by_its_stream_too() {
    let remote = Remote::start("streams");
    let stage = remote
        .wanted()
        .set(|server| server.start = McpStartPolicy::Eager)
        .start()
        .await;
    until("the stream", || remote.seen()["listens"] == 1).await;
    remote.get("/redeploy");
    until("the new list", || stage.tools().is_empty()).await;
    let held = stage.health().quarantined;
    assert_eq!(
        (held.len(), held[0].tool.as_str()),
        (1, "fix.echo"),
        "{held:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_that_find_their_session_expired_together_all_go_on() {
    let remote = Remote::start("good");
    let stage = remote.stage().await;
    stage.call("fix__echo", json!({ "text": "one" })).await;
    remote.get("/expire");
    let calls = (0..8).map(|at| stage.call("fix__echo", json!({ "text": at.to_string() })));
    for (at, result) in futures_util::future::join_all(calls)
        .await
        .into_iter()
        .enumerate()
    {
        assert_eq!(result.model_text(), at.to_string(), "{result:?}");
    }
    assert_eq!(remote.seen()["calls"], 9);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_expired_is_made_anew_without_losing_the_call() {
    let remote = Remote::start("good");
    let stage = remote.stage().await;
    stage.call("fix__echo", json!({ "text": "one" })).await;
    remote.get("/expire");
    let result = stage.call("fix__echo", json!({ "text": "two" })).await;
    assert_eq!(result.model_text(), "two", "{result:?}");
    let seen = remote.seen();
    assert_eq!(
        (&seen["calls"], &seen["initialized"]),
        (&json!(2), &json!(2))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_revision_without_sessions_is_spoken_over_http() {
    let remote = Remote::start("modern");
    let stage = remote.stage().await;
    let (result, events) = stage.watched("fix__echo", json!({ "text": "hello" })).await;
    assert_eq!(
        result.model_text(),
        "hello",
        "{result:?} {:?}",
        stage.problems()
    );
    let half = |event: &EventBody| matches!(event, EventBody::Progress(progress) if progress.percent == Some(50.0));
    assert!(events.iter().any(half), "{events:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_is_cut_is_opened_anew_and_what_was_missed_is_looked_at() {
    let remote = Remote::start("modern");
    let stage = remote.stage().await;
    until("the first stream", || remote.seen()["listens"] == 1).await;
    remote.get("/redeploy");
    until("the second stream", || remote.seen()["listens"] == 2).await;
    until("the new list", || stage.tools().is_empty()).await;
    let held = stage.health().quarantined;
    assert_eq!(
        (held.len(), held[0].tool.as_str()),
        (1, "fix.echo"),
        "{held:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn failures_say_whether_anything_was_done() {
    let remote = Remote::start("good");
    let stage = remote.stage().await;
    let busy = stage
        .call("fix__echo", json!({ "text": "busy" }))
        .await
        .error
        .unwrap();
    assert_eq!(
        (busy.class, busy.retry.safe, busy.retry.after_ms),
        (ErrorClass::RateLimited, true, Some(2000)),
        "{busy:?}"
    );
    let broken = stage
        .call("fix__echo", json!({ "text": "break" }))
        .await
        .error
        .unwrap();
    assert_eq!(
        (&*broken.code, broken.retry.safe),
        ("connection_lost", false),
        "{broken:?}"
    );
    let refused = stage
        .call("fix__echo", json!({ "text": "refuse" }))
        .await
        .error
        .unwrap();
    assert_eq!(
        (&*refused.code, refused.retry.safe),
        ("unreadable_answer", false),
        "{refused:?}"
    );
    assert!(refused.message.contains("HTTP 422"), "{refused:?}");
    let other = stage
        .call("fix__echo", json!({ "text": "other" }))
        .await
        .error
        .unwrap();
    assert_eq!(
        (&*other.code, other.retry.safe),
        ("unreadable_answer", false),
        "{other:?}"
    );
    let large = stage
        .call("fix__echo", json!({ "text": "large" }))
        .await
        .error
        .unwrap();
    assert!(
        large.message.contains("more than 2097152 bytes"),
        "{large:?}"
    );
    assert_eq!(
        stage
            .call("fix__echo", json!({ "text": "still" }))
            .await
            .model_text(),
        "still"
    );
    let _port = remote.end();
    // A request on a connection whose end has not arrived yet may have been read: that one is not called safe.
    let mut gone = stage
        .call("fix__echo", json!({ "text": "x" }))
        .await
        .error
        .unwrap();
    if gone.code == "connection_lost" {
        gone = stage
            .call("fix__echo", json!({ "text": "x" }))
            .await
            .error
            .unwrap();
    }
    assert!(gone.retry.safe, "{gone:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redirect_or_a_refusal_is_told() {
    for (mode, words) in [("redirects", "HTTP 307"), ("closed", "401")] {
        let remote = Remote::start(mode);
        let told = remote.stage().await.problems().join("\n");
        assert!(told.contains(words), "{mode}: {told}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn explain_tells_that_path_rules_do_not_bind_a_server_behind_a_url() {
    let remote = Remote::start("good");
    for (rules, tells) in [
        (&["deny fs.read(**/.env*)"][..], true),
        (&["deny http"][..], false),
    ] {
        let policy = TestHost::policy(PermissionMode::Bypass, rules);
        let stage = remote
            .wanted()
            .start_in(|builder| builder.policy(policy))
            .await;
        let explained = stage
            .test
            .host
            .explain(stage.test.request("fix__echo", json!({})))
            .await;
        assert!(explained.would_run, "{explained:?}");
        let told = explained.layers.execution.unwrap().unbound_paths;
        assert_eq!(
            told.is_some_and(|told| told.contains("`fix`") && told.contains("URL")),
            tells,
            "{rules:?}"
        );
    }
}
