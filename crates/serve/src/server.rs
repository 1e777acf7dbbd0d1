//! The server: a host with its faces, started, watched and stopped.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use tokio::{
    net::{TcpListener, UnixListener},
    task::JoinHandle,
};
use tokio_util::sync::CancellationToken;
use toolpost_config::HostConfig;
use toolpost_core::Host;
use toolpost_model::{Principal, Source, Tool, ToolSet};
use toolpost_store::{DataDir, load_or_create_token, new_token};

use crate::{
    auth::{Access, Door, KnownToken},
    compose::{HostParts, StartError, host_on, open_data_dir},
    http::{About, Gate, Shared},
    listen::{self, Listener},
};

/// A running server.
pub struct Server {
    host: Host,
    address: SocketAddr,
    token: Option<String>,
    socket: Option<PathBuf>,
    closing: CancellationToken,
    faces: Vec<JoinHandle<()>>,
    /// Held by the faces too: the lock is given back when the last of them has ended.
    data_dir: Option<Arc<DataDir>>,
    about: Arc<About>,
}

/// How long connections get to finish once the host has answered its last call.
const CONNECTION_GRACE: Duration = Duration::from_secs(2);

/// A server not yet started.
pub struct ServerBuilder {
    config: HostConfig,
    access: Access,
    parts: HostParts,
}

impl ServerBuilder {
    /// How callers on the network prove themselves.
    #[must_use]
    pub fn access(mut self, access: Access) -> Self {
        self.access = access;
        self
    }

    /// Adds a tool.
    #[must_use]
    pub fn tool(self, tool: impl Tool) -> Self {
        self.source(ToolSet::of(tool))
    }

    /// Adds a source.
    #[must_use]
    pub fn source(mut self, source: impl Source) -> Self {
        self.parts.source(source);
        self
    }

    /// Opens the host and starts to listen.
    pub async fn start(mut self) -> Result<Server, StartError> {
        let config = &self.config;
        let listen = config.http.listen;
        if matches!(self.access, Access::Open) && !listen.ip().is_loopback() {
            return Err(StartError::OpenToTheNetwork(listen));
        }
        let data_dir = open_data_dir(config)?.map(Arc::new);
        let token = match (&self.access, &data_dir) {
            (Access::Open, _) => None,
            (Access::Token(token), _) => Some(token.clone()),
            (Access::KeptToken, Some(data_dir)) => Some(load_or_create_token(data_dir)?),
            (Access::KeptToken, None) => Some(new_token()?),
        };
        if let Some(token) = &token {
            self.parts.secrets.push(("host_token".to_owned(), token.clone()));
        }
        // Before the host: a server that cannot listen must not end the calls of the last one.
        let tcp =
            TcpListener::bind(listen).await.map_err(|source| cannot_listen(&listen.to_string(), source))?;
        let address = tcp.local_addr().map_err(|source| cannot_listen(&listen.to_string(), source))?;
        let host = host_on(config, data_dir.as_deref(), std::mem::take(&mut self.parts)).await?;
        let mut server = Server {
            host,
            address,
            socket: None,
            closing: CancellationToken::new(),
            faces: Vec::new(),
            token,
            data_dir,
            about: Arc::new(About { workspace: config.workspace.clone(), mode: config.mode }),
        };
        let door = self.network_door(server.token.as_deref());
        server.open_face(Listener::Tcp(tcp), door, config.http.body_limit);
        server.open_socket(config.http.body_limit)?;
        Ok(server)
    }

    fn network_door(&self, token: Option<&str>) -> Door {
        let mut tokens: Vec<KnownToken> = self.config.tokens.iter().map(KnownToken::configured).collect();
        tokens.extend(token.map(|token| KnownToken::of(token, Principal::agent("agent"))));
        Door::Network {
            tokens,
            open: matches!(self.access, Access::Open),
            hosts: self.config.http.allowed_hosts.clone(),
            origins: self.config.http.allowed_origins.clone(),
        }
    }
}

fn cannot_listen(address: &str, source: std::io::Error) -> StartError {
    StartError::Listen { address: address.to_owned(), source }
}

impl Server {
    /// Starts a server with the native tools of the configured workspace.
    pub async fn start(config: HostConfig) -> Result<Self, StartError> {
        Self::builder(config).start().await
    }

    /// Begins a server with tools of one's own.
    pub fn builder(config: HostConfig) -> ServerBuilder {
        ServerBuilder { config, access: Access::KeptToken, parts: HostParts::default() }
    }

    fn open_face(&mut self, listener: Listener, door: Door, body_limit: usize) {
        let shared = Shared { host: self.host.clone(), body_limit, about: Arc::clone(&self.about) };
        let gate = Gate::new(shared, door);
        let (closing, data_dir) = (self.closing.clone(), self.data_dir.clone());
        self.faces.push(tokio::spawn(async move {
            listen::serve(listener, gate, closing, CONNECTION_GRACE).await;
            drop(data_dir);
        }));
    }

    /// The unix socket by which the command line finds a running host. The data directory is locked, so a
    /// socket that is there already was left behind by a host that died.
    fn open_socket(&mut self, body_limit: usize) -> Result<(), StartError> {
        let Some(data_dir) = &self.data_dir else { return Ok(()) };
        let path = data_dir.socket_path();
        let failed = |source| cannot_listen(&path.display().to_string(), source);
        data_dir.clear_socket().map_err(failed)?;
        let listener = UnixListener::bind(&path).map_err(failed)?;
        data_dir.guard_socket().map_err(failed)?;
        self.open_face(Listener::Unix(listener), Door::Socket, body_limit);
        self.socket = Some(path);
        Ok(())
    }

    /// The host behind the faces.
    pub fn host(&self) -> &Host {
        &self.host
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The token callers must send, where there is one.
    pub fn token(&self) -> Option<&str> {
        self.token.as_deref()
    }

    /// The unix socket, where there is one.
    pub fn socket(&self) -> Option<&Path> {
        self.socket.as_deref()
    }

    /// Takes no more calls, lets the running ones finish for `grace`, records every end, closes the faces and
    /// gives the data directory back.
    pub async fn shutdown(mut self, grace: Duration) {
        self.host.shutdown(grace).await;
        self.closing.cancel();
        for face in self.faces.drain(..) {
            let _ = face.await;
        }
        if let Some(data_dir) = &self.data_dir {
            let _ = data_dir.clear_socket();
        }
    }
}

impl Drop for Server {
    /// A server that is dropped without being shut down still stops to listen.
    fn drop(&mut self) {
        self.closing.cancel();
    }
}
