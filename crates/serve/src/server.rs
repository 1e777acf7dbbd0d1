//! The server: a host with its faces, from start to shutdown.

use std::{
    io::{Read, Write},
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
use toolpost_a2e::InProcessLink;
use toolpost_config::{AuditConfig, HostConfig, NativeToolsChoice, TokenConfig};
use toolpost_core::{Cassette, Hook, Host, ReplayOptions};
use toolpost_model::{Principal, PrincipalRole, Source, Tool, ToolSet};
use toolpost_modules::{LoadedPlugin, PythonModules, RustModules};
use toolpost_store::{
    AuditLog, AuditRotation, AuditWriter, DataDir, load_or_create_token, new_token,
};

use crate::{
    a2a,
    a2e::{self, A2eCapability, ToolsEntry},
    auth::{CallerAuthentication, KnownToken, RequestAuthenticator},
    compose::{
        ApprovalAudience, ComposedHost, HostParts, ModulesHandover, NativeHandover, StartError,
        host_on, open_data_dir,
    },
    feed,
    http::{ProtocolFaces, RequestGate, RequestLimits, RouteState, ServerStatus, server_routes},
    join::{HostConnection, JoinReception, JoinTicket, StartSettings, StdioFace},
    listen::{self, SocketListener},
    mcp,
    refusals::{self, RefusedRequests},
    reload::ActiveConfiguration,
    streams::OpenStreams,
};

/// A running server.
///
/// ```
/// use std::time::Duration;
/// use toolpost_config::HostConfig;
/// use toolpost_serve::Server;
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// // Without a data directory the journal is in memory; port 0 is any free one.
/// let mut config = HostConfig::default();
/// config.http.listen = "127.0.0.1:0".parse()?;
/// let server = Server::start(config).await?;
/// assert!(server.address().is_some_and(|address| address.port() != 0));
/// server.shutdown(Duration::from_secs(1)).await;
/// # Ok(()) }
/// ```
pub struct Server {
    routes: RouteState,
    protocols: ProtocolFaces,
    address: Option<SocketAddr>,
    tokens: Vec<TokenConfig>,
    token: Option<String>,
    socket: Option<PathBuf>,
    faces: Vec<JoinHandle<()>>,
    /// The faces hold it too, so that the lock is released after the last of them has ended.
    data_dir: Option<Arc<DataDir>>,
}

/// The time that connections get to finish after the last call of the host.
const CONNECTION_GRACE: Duration = Duration::from_secs(2);
/// The time that joined agents get to read their last answers.
const LAST_ANSWERS: Duration = Duration::from_secs(2);
/// The interval in which the host records that it is running. The next host learns from it when this one ended.
const ATTENDED_AT_LEAST: Duration = Duration::from_secs(10);
const ATTENDED_AT_MOST: Duration = Duration::from_millis(500);

/// A server that is not started yet.
pub struct ServerBuilder {
    config: HostConfig,
    access: CallerAuthentication,
    parts: HostParts,
    capabilities: Vec<Arc<dyn A2eCapability>>,
    tools: ToolsEntry,
}

impl ServerBuilder {
    /// Sets the authentication of callers on the network.
    #[must_use]
    pub fn access(mut self, access: CallerAuthentication) -> Self {
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

    /// Adds a set of modules in Rust. If another tool has the same name, the set's tool keeps it.
    #[must_use]
    pub fn rust_modules(mut self, modules: RustModules) -> Self {
        self.parts.rust_modules(modules);
        self
    }

    /// Adds a hook. It runs before the hooks of the configuration.
    #[must_use]
    pub fn hook(mut self, hook: impl Hook) -> Self {
        self.parts.hook(hook);
        self
    }

    /// Adds an A2E capability.
    #[must_use]
    pub fn capability(mut self, capability: impl A2eCapability) -> Self {
        self.capabilities.push(Arc::new(capability));
        self
    }

    /// Sets the entry of the built-in tools among the A2E capabilities: its name, its priority, and whether no other
    /// capability is asked for tools.
    #[must_use]
    pub fn tools_capability(
        mut self,
        plugin: impl Into<String>,
        priority: i32,
        exclusive: bool,
    ) -> Self {
        self.tools = ToolsEntry {
            plugin: plugin.into(),
            priority,
            exclusive,
        };
        self
    }

    /// Sets the inputs of native tools besides the configuration. Without them the tools start no process.
    #[must_use]
    pub fn native(mut self, handover: NativeHandover) -> Self {
        self.parts.native = handover;
        self
    }

    /// Sets the inputs of mount plan modules besides the configuration.
    #[must_use]
    pub fn modules(mut self, handover: ModulesHandover) -> Self {
        self.parts.modules = handover;
        self
    }

    /// Serves a cassette with its tools and answers. The tools of the configuration and of the embedder are ignored.
    #[must_use]
    pub fn replay(mut self, cassette: Cassette, options: ReplayOptions) -> Self {
        self.parts.replay = Some((cassette, options));
        self
    }

    /// Opens the host and listens on the network, and on the unix socket if there is a data directory.
    pub async fn start(mut self) -> Result<Server, StartError> {
        let listen = self.config.http.listen;
        if matches!(self.access, CallerAuthentication::Open) && !listen.ip().is_loopback() {
            return Err(StartError::OpenToTheNetwork(listen));
        }
        let data_dir = open_data_dir(&self.config)?.map(Arc::new);
        let token = match (&self.access, &data_dir) {
            (CallerAuthentication::Open, _) => None,
            (CallerAuthentication::Token(token), _) => Some(token.clone()),
            (CallerAuthentication::KeptToken, Some(data_dir)) => {
                Some(load_or_create_token(data_dir)?)
            }
            (CallerAuthentication::KeptToken, None) => Some(new_token()?),
        };
        if let Some(token) = &token {
            self.parts
                .secrets
                .push(("host_token".to_owned(), token.clone()));
        }
        // The address is bound before the host is opened, because opening the host ends the open calls of the previous
        // one. A server that cannot listen must not do that.
        let tcp = TcpListener::bind(listen)
            .await
            .map_err(|source| cannot_listen(&listen.to_string(), source))?;
        let address = tcp
            .local_addr()
            .map_err(|source| cannot_listen(&listen.to_string(), source))?;
        let door = self.network_door(token.as_deref());
        let mut server = self.open(data_dir, Some(address)).await?;
        server.token = token;
        server.open_face(SocketListener::Tcp(tcp), door);
        server.open_socket()?;
        Ok(server)
    }

    /// Opens the host without listening on the network, only on the unix socket for the command line. For a host that
    /// its agent started and reaches over pipes, see [`Server::converse`].
    ///
    /// The process that starts or embeds the host needs no token, unless [`access`](Self::access) names one.
    pub async fn start_offline(mut self) -> Result<Server, StartError> {
        let data_dir = open_data_dir(&self.config)?.map(Arc::new);
        let token = self.stdio_token();
        if let Some(token) = &token {
            self.parts
                .secrets
                .push(("host_token".to_owned(), token.clone()));
        }
        let mut server = self.open(data_dir, None).await?;
        server.token = token;
        server.open_socket()?;
        Ok(server)
    }

    async fn open(
        mut self,
        data_dir: Option<Arc<DataDir>>,
        address: Option<SocketAddr>,
    ) -> Result<Server, StartError> {
        let config = &self.config;
        let audit = audit_writer(&config.a2e.audit)?;
        let started_with = self.start_settings();
        let stdio_token = self.stdio_token();
        let mut parts = std::mem::take(&mut self.parts);
        parts.asked = ApprovalAudience::Operators;
        let streams = OpenStreams::new(config.limits.shares.divide(config.limits.streams as u64));
        let feed = Arc::new(feed::FeedHub::new(streams.clone()));
        parts.witness(Arc::clone(&feed));
        let ComposedHost { host, python } = host_on(config, data_dir.as_deref(), parts).await?;
        let settings = a2e::A2eFaceSettings {
            host_id: config.a2e.host_id.clone(),
            require_negotiated: config.a2e.require_negotiated,
            max_parallel: config.limits.session_concurrency,
            message_limit: config.http.body_limit,
            audit: a2e::A2eAuditFile::to(audit),
            unattended: data_dir.as_ref().and_then(|data_dir| data_dir.unattended()),
            tools: tools_entry(config, self.tools),
            plugins: python
                .as_ref()
                .map(PythonModules::plugins)
                .unwrap_or_default(),
            streams: Some(streams.clone()),
        };
        let a2e = a2e::A2eServerFace::new(host.clone(), settings, self.capabilities);
        if let Some(python) = &python {
            python.set_plugin_port(Arc::new(a2e::FacePluginPort::new(&a2e, host.clone())));
        }
        tokio::spawn(a2e::tend(Arc::downgrade(&a2e)));
        let closing = CancellationToken::new();
        let a2a = a2a::A2aServerFace::new(
            host.clone(),
            config.a2a.clone(),
            config.http.body_limit,
            streams.clone(),
            closing.clone(),
        );
        let settings = mcp::McpFaceSettings {
            message_limit: config.http.body_limit,
            approval_wait: config.mcp.approval_wait,
        };
        let mcp = mcp::McpServerFace::new(host.clone(), settings, streams, closing.clone());
        tokio::spawn(mcp::tend(Arc::downgrade(&mcp)));
        let refused = RefusedRequests::new();
        tokio::spawn(refusals::look_after(Arc::downgrade(&refused)));
        let attending = data_dir.clone().map(|data_dir| {
            let every = (config.limits.session_idle / 4).clamp(ATTENDED_AT_MOST, ATTENDED_AT_LEAST);
            tokio::spawn(attend(data_dir, every, closing.clone()))
        });
        let about = Arc::new(ServerStatus {
            workspace: config.workspace.clone(),
            address,
            loaded: ActiveConfiguration::of(config.clone()),
            refused,
        });
        let joining = JoinReception::new(
            Arc::clone(&a2e),
            Arc::clone(&mcp),
            Arc::clone(&about),
            started_with,
            config.tokens.clone(),
            stdio_token,
        );
        Ok(Server {
            routes: RouteState {
                host,
                limits: RequestLimits {
                    body: config.http.body_limit,
                    patience: config.http.patience,
                },
                about,
                feed,
                closing,
            },
            protocols: ProtocolFaces {
                a2e,
                a2a,
                mcp,
                joining,
            },
            address,
            tokens: config.tokens.clone(),
            token: None,
            socket: None,
            faces: attending.into_iter().collect(),
            data_dir,
        })
    }

    /// The request of this process if it joins the host that holds its data directory.
    pub fn join_ticket(&self, face: StdioFace, role: PrincipalRole) -> JoinTicket {
        JoinTicket::new(
            face,
            role,
            self.stdio_token().as_deref(),
            &self.start_settings(),
            &self.config,
        )
    }

    /// The token that an agent over stdio must show.
    fn stdio_token(&self) -> Option<String> {
        match &self.access {
            CallerAuthentication::Token(token) => Some(token.clone()),
            CallerAuthentication::KeptToken | CallerAuthentication::Open => None,
        }
    }

    fn start_settings(&self) -> StartSettings {
        let ToolsEntry {
            plugin,
            priority,
            exclusive,
        } = &self.tools;
        let own = self.parts.sources.len();
        let capabilities = self.capabilities.len();
        let is_replay = self.parts.replay.is_some();
        let own_parts = (plugin, priority, exclusive, own, capabilities, is_replay);
        StartSettings::new(&self.parts.native, &own_parts)
    }

    fn network_door(&self, token: Option<&str>) -> RequestAuthenticator {
        let mut tokens: Vec<KnownToken> = self
            .config
            .tokens
            .iter()
            .map(KnownToken::configured)
            .collect();
        tokens.extend(token.map(|token| KnownToken::of(token, Principal::agent("agent"))));
        RequestAuthenticator::Network {
            tokens,
            open: matches!(self.access, CallerAuthentication::Open),
            hosts: self.config.http.allowed_hosts.clone(),
            origins: self.config.http.allowed_origins.clone(),
        }
    }
}

/// Records at intervals that the host is running, so that the next host knows how long no host was.
async fn attend(data_dir: Arc<DataDir>, every: Duration, closing: CancellationToken) {
    while closing
        .run_until_cancelled(tokio::time::sleep(every))
        .await
        .is_some()
    {
        data_dir.mark_attended();
    }
    data_dir.mark_attended();
}

fn audit_writer(config: &AuditConfig) -> Result<Option<AuditWriter>, StartError> {
    let Some(path) = &config.path else {
        return Ok(None);
    };
    let rotation = AuditRotation {
        max_bytes: config.max_bytes,
        backup_count: config.backup_count,
    };
    let log = AuditLog::open(path, rotation)?;
    let writer = AuditWriter::start(log, |lost| format!(r#"{{"lost_entries":{lost}}}"#));
    Ok(Some(writer.map_err(StartError::Thread)?))
}

fn cannot_listen(address: &str, source: std::io::Error) -> StartError {
    StartError::Listen {
        address: address.to_owned(),
        source,
    }
}

/// The entry of the host's own tools in an A2E handshake, from the A2E host file or from the embedder.
fn tools_entry(config: &HostConfig, own: ToolsEntry) -> Option<ToolsEntry> {
    match &config.native_tools {
        NativeToolsChoice::Served => Some(own),
        NativeToolsChoice::Entry {
            name,
            priority,
            exclusive,
        } => {
            let bound = if *priority < 0 { i32::MIN } else { i32::MAX };
            let priority = i32::try_from(*priority).unwrap_or(bound);
            Some(ToolsEntry {
                plugin: name.clone(),
                priority,
                exclusive: *exclusive,
            })
        }
        NativeToolsChoice::LeftOut => None,
    }
}

impl Server {
    /// Starts a server with the native tools of the configured workspace.
    pub async fn start(config: HostConfig) -> Result<Self, StartError> {
        Self::builder(config).start().await
    }

    /// Configures a server, for adding the embedder's own tools.
    pub fn builder(config: HostConfig) -> ServerBuilder {
        ServerBuilder {
            config,
            access: CallerAuthentication::KeptToken,
            parts: HostParts::default(),
            capabilities: Vec::new(),
            tools: ToolsEntry::default(),
        }
    }

    /// The loaded plugins of an A2E host file, in the order of the file.
    pub fn plugins(&self) -> &[LoadedPlugin] {
        self.protocols.a2e.plugins()
    }

    fn open_face(&mut self, listener: SocketListener, door: RequestAuthenticator) {
        let routes = server_routes(self.routes.clone(), &self.protocols);
        let refused = Arc::clone(&self.routes.about.refused);
        let gate = RequestGate::new(routes, refused, door);
        let closing = self.routes.closing.clone();
        let data_dir = self.data_dir.clone();
        self.faces.push(tokio::spawn(async move {
            listen::serve(listener, gate, closing, CONNECTION_GRACE).await;
            drop(data_dir);
        }));
    }

    /// Opens the unix socket, on which the command line finds a running host. The data directory is locked, so an
    /// existing socket belongs to a host that died.
    fn open_socket(&mut self) -> Result<(), StartError> {
        let Some(data_dir) = &self.data_dir else {
            return Ok(());
        };
        let path = data_dir.socket_path();
        let failed = |source| cannot_listen(&path.display().to_string(), source);
        data_dir.clear_socket().map_err(failed)?;
        let listener = UnixListener::bind(&path).map_err(failed)?;
        data_dir.guard_socket().map_err(failed)?;
        self.open_face(SocketListener::Unix(listener), RequestAuthenticator::Socket);
        self.socket = Some(path);
        Ok(())
    }

    pub(crate) fn loaded(&self) -> &ActiveConfiguration {
        &self.routes.about.loaded
    }

    /// The host behind the faces.
    pub fn host(&self) -> &Host {
        &self.routes.host
    }

    /// The address on the network, if the server listens there.
    pub fn address(&self) -> Option<SocketAddr> {
        self.address
    }

    /// Connects an agent in this process, as the agent `embedded` or as the principal of its token: typed A2E messages,
    /// no JSON.
    pub fn connect(&self) -> InProcessLink {
        a2e::link(
            &self.protocols.a2e,
            self.tokens.iter().map(KnownToken::configured).collect(),
        )
    }

    /// Serves A2E to an agent over two pipes, as the agent `stdio` or as the principal of its token. Returns when the
    /// agent has left, within the three seconds that the agent waits.
    pub async fn converse(
        &self,
        input: impl Read + Send + 'static,
        output: impl Write + Send + 'static,
    ) {
        let door = Arc::new(RequestAuthenticator::of_stdio(
            &self.tokens,
            self.token.as_deref(),
        ));
        a2e::converse(&self.protocols.a2e, &door, input, output).await;
    }

    /// Serves MCP to a client over two pipes, as the agent `stdio`, or as the operator `stdio`, whose client may be
    /// asked to approve calls. Returns when the client has left.
    pub async fn converse_mcp(
        &self,
        role: PrincipalRole,
        input: impl Read + Send + 'static,
        output: impl Write + Send + 'static,
    ) {
        let principal = match role {
            PrincipalRole::Agent => Principal::agent("stdio"),
            PrincipalRole::Operator => Principal::operator("stdio"),
        };
        mcp::converse(&self.protocols.mcp, principal, input, output).await;
    }

    /// Connects the agent of this process in the same way as joining processes. `session` is its A2E session with an
    /// earlier host, if there is one.
    pub fn connect_stdio(
        &self,
        face: StdioFace,
        role: PrincipalRole,
        session: Option<String>,
    ) -> HostConnection {
        self.protocols.joining.connect(face, role, session)
    }

    /// The number of agents whose processes joined.
    pub fn joined_agents(&self) -> usize {
        self.protocols.joining.joined()
    }

    /// The token that callers must send, if there is one.
    pub fn token(&self) -> Option<&str> {
        self.token.as_deref()
    }

    /// The path of the unix socket, if there is one.
    pub fn socket(&self) -> Option<&Path> {
        self.socket.as_deref()
    }

    /// Refuses new calls, lets running ones finish for `grace`, records every end, closes the faces and releases the
    /// data directory.
    pub async fn shutdown(mut self, grace: Duration) {
        self.protocols.joining.leave();
        // Agents that joined stop sending first. Then the host answers and records its calls while all faces are open,
        // because callers read their last answers through them. Only then do the streams end and the listeners close.
        // The socket is removed last, while the data directory is still locked, so that it cannot be the socket of the
        // next host.
        self.routes.host.shutdown(grace).await;
        self.protocols.joining.left(LAST_ANSWERS).await;
        self.protocols.a2e.close();
        self.protocols.mcp.close();
        self.routes.closing.cancel();
        for face in self.faces.drain(..) {
            let _ = face.await;
        }
        if let Some(data_dir) = &self.data_dir {
            let _ = data_dir.clear_socket();
        }
    }
}

impl Drop for Server {
    /// Stops listening if the server is dropped without a shutdown.
    fn drop(&mut self) {
        self.protocols.joining.leave();
        self.routes.closing.cancel();
    }
}
