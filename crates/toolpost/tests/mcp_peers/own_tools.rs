//! The suite against a host with tools of its own: the face alone.

use toolpost_config::HostConfig;
use toolpost_model::PermissionMode;
use toolpost_serve::{CallerAuthentication, Server};

use super::{fixture::Fixture, suite};

/// A host in this process that answers everybody on this machine.
async fn check(revision: &'static str) {
    let mut config = HostConfig {
        mode: PermissionMode::Bypass,
        ..HostConfig::default()
    };
    config.http.listen = "127.0.0.1:0".parse().unwrap();
    let server = Server::builder(config)
        .access(CallerAuthentication::Open)
        .source(Fixture::default())
        .start()
        .await
        .unwrap();
    let url = format!("http://{}/mcp", server.address().unwrap());
    let report = tokio::task::spawn_blocking(move || suite::run(&url, revision))
        .await
        .unwrap();
    report.judge(&format!("own tools, {revision}"), &[]);
}

#[tokio::test(flavor = "multi_thread")]
async fn with_sessions() {
    check("2025-11-25").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn stateless() {
    check("2026-07-28").await;
}
