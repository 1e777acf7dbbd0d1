//! A real server on a port of its own, with a workspace and a data directory that vanish with the test.

use std::{
    path::{Path, PathBuf},
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use serde_json::Value;
use tempfile::TempDir;
use toolpost_config::{HostConfig, HttpConfig, TokenConfig};
use toolpost_model::{PermissionMode, PrincipalRole};
use toolpost_serve::{Server, ServerBuilder};

use super::client::{Connection, Request, Response};

/// Long enough for what was let through to finish.
const GRACE: Duration = Duration::from_secs(30);

/// Where servers of one test live, one after another.
pub(crate) struct Place {
    folder: TempDir,
    pub(crate) config: HostConfig,
}

impl Place {
    /// A workspace with native tools, a data directory beside it, mode `bypass`.
    pub(crate) fn new() -> Self {
        let mut place = Self::without_native_tools();
        let workspace = place.folder.path().join("workspace");
        std::fs::create_dir(&workspace).unwrap();
        place.config.workspace = Some(workspace);
        place
    }

    /// The same without a workspace: only the test's own tools are there.
    pub(crate) fn without_native_tools() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let config = HostConfig {
            mode: PermissionMode::Bypass,
            data_dir: Some(folder.path().join("data")),
            http: HttpConfig {
                listen: ([127, 0, 0, 1], 0).into(),
                ..HttpConfig::default()
            },
            ..HostConfig::default()
        };
        Self { folder, config }
    }

    /// Names a token that callers may come with, known by its hash only.
    pub(crate) fn with_token(mut self, name: &str, role: PrincipalRole, token: &str) -> Self {
        use sha2::{Digest as _, Sha256};
        let sha256 = Sha256::digest(token.as_bytes()).into();
        self.config.tokens.push(TokenConfig {
            name: name.to_owned(),
            role,
            tenant: None,
            sha256,
        });
        self
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn workspace(&self) -> PathBuf {
        self.config.workspace.clone().unwrap()
    }

    pub(crate) fn data_dir(&self) -> PathBuf {
        self.config.data_dir.clone().unwrap()
    }

    pub(crate) fn builder(&self) -> ServerBuilder {
        Server::builder(self.config.clone())
    }

    pub(crate) async fn start(&self) -> Running {
        self.start_with(|builder| builder).await
    }

    pub(crate) async fn start_with(
        &self,
        change: impl FnOnce(ServerBuilder) -> ServerBuilder,
    ) -> Running {
        let server = change(self.builder())
            .start()
            .await
            .expect("the server starts");
        Running { server }
    }
}

/// A server that takes requests.
pub(crate) struct Running {
    pub(crate) server: Server,
}

impl Running {
    pub(crate) fn token(&self) -> &str {
        self.server.token().expect("this server wants a token")
    }

    pub(crate) async fn connect(&self) -> Connection {
        Connection::tcp(self.server.address().unwrap()).await
    }

    /// Adds the server's token unless the request brings one or goes without on purpose.
    pub(crate) fn dressed(&self, request: Request) -> Request {
        match self.server.token() {
            Some(token) => request.or_header("Authorization", &format!("Bearer {token}")),
            None => request,
        }
    }

    /// Sends a request with the server's token, on a connection of its own.
    pub(crate) async fn send(&self, request: Request) -> Response {
        self.send_bare(self.dressed(request)).await
    }

    /// Sends a request exactly as it is, from an address that nobody sent from before: tests send many requests that are
    /// refused, and the refusals of one address are slowed down.
    pub(crate) async fn send_bare(&self, request: Request) -> Response {
        static SOURCES: AtomicU32 = AtomicU32::new(0x7f01_0001);
        let source = SOURCES.fetch_add(1, Ordering::Relaxed).into();
        let mut connection = Connection::tcp_from(source, self.server.address().unwrap()).await;
        connection.send(&request).await;
        connection.receive().await
    }

    /// Sends a request and leaves the answer to whoever holds the connection.
    pub(crate) async fn begin(&self, request: Request) -> Connection {
        let mut connection = self.connect().await;
        connection.send(&self.dressed(request)).await;
        connection
    }

    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> Response {
        self.send(Request::call(tool, &arguments)).await
    }

    /// Opens a session and gives its id.
    pub(crate) async fn open_session(&self, request: Request) -> String {
        let opened = self.send(request).await;
        assert_eq!(opened.status(), 201, "{opened:?}");
        opened.json()["session_id"].as_str().unwrap().to_owned()
    }

    /// Asks until the call has ended, and gives what is told of it.
    pub(crate) async fn ended(&self, id: &str) -> Response {
        self.ended_for(Request::get(format!("/invocations/{id}")))
            .await
    }

    pub(crate) async fn ended_for(&self, request: Request) -> Response {
        for _ in 0..10_000 {
            let told = self.send(request.clone()).await;
            if told.status() == 200 && told.json()["status"] == "ended" {
                return told;
            }
        }
        panic!("the call never ended");
    }

    pub(crate) async fn shut_down(self) {
        self.server.shutdown(GRACE).await;
    }
}
