//! Builds a running host from a configuration. Only this module decides which adapter serves which port.
//!
//! `Server` and the command line's own short-lived host both use it.

mod authorities;
mod hooks;
mod mcp;
mod modules;
mod native;
mod rules;
mod supply;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use tokio_util::sync::CancellationToken;
use toolpost_config::{
    ApprovalsConfig, HostConfig, JournalRetention, NativeReplacement, NativeToolsChoice,
    SourceConfig, TokenConfig, ToolIndex,
};
use toolpost_core::{
    Approvals, BlobStore, Cassette, Hook, Host, HostBuilder, HostError, HostLimits, KnownSecrets,
    OperatorSettings, ReplayOptions, Retention, RuleProblem, RuleStore, SchedulerLimits,
    SourceSettings, SourceTrust, Witness,
};
use toolpost_model::{Declaration, PrincipalName, ShareRules, Source, ToolPattern, ToolSettings};
use toolpost_modules::{PythonModules, RustModules};
use toolpost_store::{
    AuditLogError, BlobOptions, BlobsError, DataDir, DataDirError, DiskBlobs, JournalOpenError,
    JournalOptions, RulesFile, SqliteJournal, TokenError, load_token,
};

use crate::{
    auth::RequestAuthenticator,
    feed,
    http::{RequestGate, RequestLimits, RouteState, ServerStatus, plain_routes},
    listen,
    refusals::RefusedRequests,
    reload::ActiveConfiguration,
    streams::OpenStreams,
};
pub use authorities::AuthoritiesError;
pub use hooks::HooksError;
pub use mcp::{McpHandover, RequiredServerError};
pub use modules::{
    LoadedModules, ModuleSetupListener, ModulesError, ModulesHandover, load_modules,
};
pub use native::{NativeError, NativeHandover};
use rules::places;
pub(crate) use rules::policy;
pub use supply::module_supply;

/// The interval of the search for expired artifacts.
const CLEARED_EVERY: Duration = Duration::from_secs(3600);

/// The reason why a host or server cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The native tools cannot be built.
    #[error(transparent)]
    Native(#[from] NativeError),
    /// The hooks cannot be built.
    #[error(transparent)]
    Hooks(#[from] HooksError),
    /// The authorities that rules delegate to cannot be built.
    #[error(transparent)]
    Authorities(#[from] AuthoritiesError),
    /// The modules of mount plans cannot be built.
    #[error(transparent)]
    Modules(#[from] ModulesError),
    /// A required MCP server is not available.
    #[error(transparent)]
    RequiredServer(#[from] RequiredServerError),
    /// The data directory cannot be used.
    #[error(transparent)]
    DataDir(#[from] DataDirError),
    /// The data directory lies inside a root, so an agent could change its own record.
    #[error(
        "the data directory `{data}` lies inside of `{workspace}`, where tools work\n\
         hint: choose a narrower folder, or a `--data-dir` outside of it"
    )]
    DataInWorkspace {
        /// The data directory.
        data: PathBuf,
        /// The workspace or another root.
        workspace: PathBuf,
    },
    /// The cache lies inside a root, so an agent could change the modules that run.
    #[error(
        "the cache `{cache}` lies inside of `{workspace}`, where tools work\n\
         hint: choose a `--cache-dir` outside of it"
    )]
    CacheInWorkspace {
        /// The cache.
        cache: PathBuf,
        /// The workspace or another root.
        workspace: PathBuf,
    },
    /// Rules that are invalid or fail their own tests.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Rules(Vec<RuleProblem>),
    /// The journal cannot be opened.
    #[error(transparent)]
    Journal(#[from] JournalOpenError),
    /// The artifact store cannot be used.
    #[error(transparent)]
    Blobs(#[from] BlobsError),
    /// The host cannot start.
    #[error(transparent)]
    Host(#[from] HostError),
    /// The token cannot be read or generated.
    #[error(transparent)]
    Token(#[from] TokenError),
    /// A network face without a token.
    #[error(
        "`{0}` can be reached from other machines, so a token is required there\n\
         hint: leave `--no-token` out, or listen on 127.0.0.1"
    )]
    OpenToTheNetwork(std::net::SocketAddr),
    /// The audit file cannot be written.
    #[error(transparent)]
    Audit(#[from] AuditLogError),
    /// The system cannot start a thread.
    #[error("a thread cannot be started: {0}")]
    Thread(#[source] std::io::Error),
    /// The address is in use or not allowed.
    #[error("cannot listen on `{address}`: {source}\nhint: choose another address with `--http`")]
    Listen {
        /// The address or socket.
        address: String,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
}

/// The parts of a host besides its configuration.
#[derive(Default)]
pub struct HostParts {
    /// The embedder's own sources and hooks.
    pub sources: Vec<Box<dyn FnOnce(HostBuilder) -> HostBuilder + Send>>,
    /// Secret values with their kind. They are redacted everywhere.
    pub secrets: Vec<(String, String)>,
    /// The inputs of native tools besides the configuration.
    pub native: NativeHandover,
    /// The inputs of mount plan modules besides the configuration.
    pub modules: ModulesHandover,
    /// The audience of approval questions.
    pub asked: ApprovalAudience,
    /// The store of remembered rules. By default they are kept in the data directory, or in memory without one.
    pub rules: Option<Arc<dyn RuleStore>>,
    /// The artifact store for hosts without a data directory. By default artifacts are kept in memory.
    pub blobs: Option<Arc<dyn BlobStore>>,
    /// A cassette to replay. Tools, hooks and rules of the configuration and the embedder are then ignored.
    pub replay: Option<(Cassette, ReplayOptions)>,
}

/// The audience of approval questions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ApprovalAudience {
    /// No operator is present, so calls that need approval are denied.
    #[default]
    Nobody,
    /// Operators, who answer through [`Host::decide`]. The configuration limits how long questions wait.
    Operators,
}

impl HostParts {
    /// Adds a source.
    pub fn source(&mut self, source: impl Source) {
        self.sources
            .push(Box::new(|builder| builder.source(source)));
    }

    /// Adds a set of modules in Rust: tools, hooks and event handlers.
    pub fn rust_modules(&mut self, modules: RustModules) {
        self.sources
            .push(Box::new(move |builder| modules.join(builder)));
    }

    /// Adds a hook. It runs before the hooks of the configuration.
    pub fn hook(&mut self, hook: impl Hook) {
        self.sources.push(Box::new(|builder| builder.hook(hook)));
    }
}

impl HostParts {
    pub(crate) fn witness(&mut self, witness: Arc<impl Witness>) {
        self.sources
            .push(Box::new(|builder| builder.witness(witness)));
    }
}

/// A host and its data directory.
pub struct OpenedHost {
    /// The host.
    pub host: Host,
    /// The data directory, locked while this value exists. `None`: the journal is in memory.
    pub data_dir: Option<DataDir>,
    about: Arc<ServerStatus>,
}

impl OpenedHost {
    /// Connects the command line that opened this host to the same routes as on a host's unix socket, as the same
    /// operator.
    pub fn connect(&self) -> listen::InProcessConnection {
        let places = OpenStreams::new(ShareRules::default().divide(1));
        let routes = plain_routes(RouteState {
            host: self.host.clone(),
            // The caller is this process; the host's own limit for arguments remains.
            limits: RequestLimits {
                body: usize::MAX,
                patience: Duration::MAX,
            },
            about: Arc::clone(&self.about),
            feed: Arc::new(feed::FeedHub::new(places)),
            closing: CancellationToken::new(),
        });
        let refused = Arc::clone(&self.about.refused);
        listen::serve_in_memory(RequestGate::new(
            routes,
            refused,
            RequestAuthenticator::CommandLine,
        ))
    }
}

/// Checks that tools can neither write nor read the record.
pub fn check_places(config: &HostConfig) -> Result<(), StartError> {
    let within = |path: &Path| {
        let mut roots = config
            .workspace
            .iter()
            .chain(config.roots.iter().map(|root| &root.path));
        roots.find(|root| is_beneath(path, root)).cloned()
    };
    if let Some(data) = &config.data_dir
        && let Some(workspace) = within(data)
    {
        return Err(StartError::DataInWorkspace {
            data: data.clone(),
            workspace,
        });
    }
    // The cache is used only for modules and servers.
    let used = !config.modules.is_empty() || !config.mcp.servers.is_empty();
    if let Some(cache) = config.cache_dir.as_ref().filter(|_| used)
        && let Some(workspace) = within(cache)
    {
        return Err(StartError::CacheInWorkspace {
            cache: cache.clone(),
            workspace,
        });
    }
    Ok(())
}

/// Locks the data directory of a configuration, if it has one.
pub(crate) fn open_data_dir(config: &HostConfig) -> Result<Option<DataDir>, StartError> {
    check_places(config)?;
    Ok(config.data_dir.as_deref().map(DataDir::open).transpose()?)
}

/// Whether a path lies inside a root. Symbolic links are resolved for the longest part of `path` that exists.
fn is_beneath(path: &Path, root: &Path) -> bool {
    // No part of a relative path that does not exist can be resolved.
    let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let real = |path: &Path| {
        absolute(path)
            .ancestors()
            .find_map(|part| part.canonicalize().ok())
    };
    match (real(path), real(root)) {
        (Some(path), Some(root)) => path.starts_with(root),
        _ => path.starts_with(root),
    }
}

/// Opens a host with its journal in `data_dir` or in memory, the native tools in the workspace if there is one, and
/// `parts`.
pub async fn open_host(config: &HostConfig, parts: HostParts) -> Result<OpenedHost, StartError> {
    let data_dir = open_data_dir(config)?;
    let ComposedHost { host, .. } = host_on(config, data_dir.as_ref(), parts).await?;
    let about = Arc::new(ServerStatus {
        workspace: config.workspace.clone(),
        address: None,
        loaded: ActiveConfiguration::of(config.clone()),
        refused: RefusedRequests::new(),
    });
    Ok(OpenedHost {
        host,
        data_dir,
        about,
    })
}

pub(crate) struct ComposedHost {
    pub(crate) host: Host,
    pub(crate) python: Option<PythonModules>,
}

pub(crate) async fn host_on(
    config: &HostConfig,
    data_dir: Option<&DataDir>,
    parts: HostParts,
) -> Result<ComposedHost, StartError> {
    let mut parts = parts;
    // The kept token is a secret to every host on this data directory, including hosts without a network face.
    if let Some(token) = data_dir.map(load_token).transpose()?.flatten() {
        parts.secrets.push(("host_token".to_owned(), token));
    }
    for (name, value) in &parts.native.credentials {
        parts
            .secrets
            .push((format!("credential_{name}"), value.reveal().to_owned()));
    }
    let grants = native::grants(&config.network.credentials, &parts.native.credentials);
    let of_environment = parts.native.secrets.drain(..);
    parts
        .secrets
        .extend(of_environment.map(|(kind, value)| (kind, value.reveal().to_owned())));
    let servers = mcp::servers(config, &parts.native.mcp)?;
    parts.secrets.extend(servers.secrets.iter().cloned());
    let mut builder = Host::builder()
        .policy(policy(config)?)
        .limits(limits(config))
        .settings(ToolConfiguration::of(config))
        .require_shown(config.discovery.require_shown)
        .tenants(tenants(&config.tokens))
        .credentials(grants)
        .redactor(KnownSecrets::new(
            parts
                .secrets
                .iter()
                .map(|(kind, value)| (kind.as_str(), value.as_str())),
        ));
    if parts.asked == ApprovalAudience::Operators {
        let ApprovalsConfig {
            timeout, grant_for, ..
        } = config.approvals;
        builder = builder.approvals(Approvals::Ask { timeout, grant_for });
    }
    if let Some(rules) = parts.rules {
        builder = builder.rule_store(rules);
    } else if let Some(data_dir) = data_dir {
        builder = builder.rule_store(Arc::new(RulesFile::new(data_dir)));
    }
    if let Some(data_dir) = data_dir {
        let options = JournalOptions {
            max_bytes: config.limits.journal,
        };
        builder = builder.journal(Arc::new(SqliteJournal::open(
            &data_dir.journal_path(),
            options,
        )?));
        builder = builder.blobs(Arc::new(blobs(config, data_dir)?));
        let JournalRetention { age, size } = config.retention.journal;
        builder = builder.retention(Retention { age, size });
    } else if let Some(blobs) = parts.blobs {
        builder = builder.blobs(blobs);
    }
    if let Some((cassette, options)) = parts.replay {
        return Ok(ComposedHost {
            host: builder.replay(cassette, options).build().await?,
            python: None,
        });
    }
    // The embedder's sources come first: if two tools have the same name, the embedder's tool keeps it.
    for add in parts.sources {
        builder = add(builder);
    }
    let program = parts.native.program.as_deref();
    builder = builder.hooks(hooks::hooks(config, data_dir, program)?);
    let credentials = &parts.native.credentials;
    builder = builder.authorities(authorities::authorities(
        config,
        data_dir,
        program,
        credentials,
    )?);
    // The programs that decide about calls are protected before modules, MCP servers and tools start, because none of
    // them may change such a program.
    let deciding = hooks::files(config)
        .into_iter()
        .chain(authorities::files(config));
    parts
        .native
        .own_files
        .extend(deciding.chain(mcp::files(config)));
    let handover = (parts.native.own_files.clone(), parts.modules);
    let modules = modules::modules(config, data_dir, program, handover).await?;
    let python = modules.python;
    builder = builder.sources(modules.sources).hooks(modules.hooks);
    builder = modules
        .witnesses
        .into_iter()
        .fold(builder, HostBuilder::witness);
    builder = builder.sources(mcp::sources(config, data_dir, &parts.native, servers)?);
    if let Some(workspace) = config
        .workspace
        .as_ref()
        .filter(|_| serves_native_tools(config))
    {
        builder = builder.source(native::tools(config, workspace, data_dir, parts.native)?);
    }
    let host = builder.build().await?;
    if let Err(error) = mcp::check_required(config, &host) {
        host.shutdown(Duration::ZERO).await;
        return Err(error.into());
    }
    Ok(ComposedHost { host, python })
}

/// Whether the host's own tools are served. An A2E host file may replace them.
fn serves_native_tools(config: &HostConfig) -> bool {
    let hidden_by = |priority: i64| {
        let mut plugins = config
            .plugins
            .iter()
            .filter(|plugin| plugin.capability == TOOLS_CAPABILITY);
        plugins.any(|plugin| plugin.exclusive && plugin.priority > priority)
    };
    match config.native_tools {
        NativeToolsChoice::Served => true,
        NativeToolsChoice::Entry { priority, .. } => !hidden_by(priority),
        NativeToolsChoice::LeftOut => false,
    }
}

/// The A2E capability that provides tools.
pub(crate) const TOOLS_CAPABILITY: &str = "tools";

/// The artifact store. Expired artifacts are removed now, and regularly while the store exists.
fn blobs(config: &HostConfig, data_dir: &DataDir) -> Result<DiskBlobs, BlobsError> {
    let options = BlobOptions {
        total: config.limits.artifacts,
        one: config.limits.artifact,
        age: Some(config.retention.artifacts),
    };
    let blobs = DiskBlobs::open(data_dir, options)?;
    let watched = blobs.downgrade();
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(CLEARED_EVERY).await;
            let Some(blobs) = watched.upgrade() else {
                return;
            };
            if let Err(error) = blobs.clear_away().await {
                tracing::warn!(%error, "kept results that are too old cannot be removed");
            }
        }
    });
    Ok(blobs)
}

/// The tenants of callers whose tokens name one.
fn tenants(tokens: &[TokenConfig]) -> HashMap<PrincipalName, String> {
    let named = tokens
        .iter()
        .filter_map(|token| Some((token, token.tenant.clone()?)));
    named
        .map(|(token, tenant)| (PrincipalName::new(token.name.as_str()), tenant))
        .collect()
}

fn limits(config: &HostConfig) -> HostLimits {
    let limits = &config.limits;
    HostLimits {
        scheduler: SchedulerLimits {
            concurrency: limits.concurrency,
            session_concurrency: limits.session_concurrency,
            queue: limits.queue,
        },
        shares: limits.shares,
        deadline: limits.deadline,
        deadline_ceiling: limits.deadline_ceiling,
        approvals: config.approvals.waiting,
        inline_chars: limits.inline_chars,
        argument_bytes: limits.argument_bytes,
        sessions: limits.sessions,
        session_idle: limits.session_idle,
        ..HostLimits::default()
    }
}

/// The configuration of `tools` and `sources`.
pub(crate) struct ToolConfiguration {
    index: ToolIndex,
    names: Vec<String>,
    loosening_names: Vec<String>,
    /// The patterns of `code.tools` and of credentials, each with its key.
    grants: Vec<(String, ToolPattern)>,
    replace_native: NativeReplacement,
    sources: BTreeMap<String, SourceConfig>,
}

impl ToolConfiguration {
    pub(crate) fn of(config: &HostConfig) -> Self {
        let tables = [
            &config.tools,
            &config.policy_tools,
            &config.restricted_tools,
        ];
        let names: BTreeSet<&String> = tables.into_iter().flat_map(|table| table.keys()).collect();
        let code = config
            .code
            .tools
            .iter()
            .map(|pattern| ("code.tools".to_owned(), pattern.clone()));
        let credentials = config.network.credentials.iter().flat_map(|credential| {
            let key = format!("network.credentials.{}.tools", credential.name);
            credential
                .tools
                .iter()
                .map(move |pattern| (key.clone(), pattern.clone()))
        });
        Self {
            index: config.tool_index(),
            names: names.into_iter().cloned().collect(),
            loosening_names: config.loosening_tool_keys().into_iter().cloned().collect(),
            grants: code.chain(credentials).collect(),
            replace_native: config.amplifier.replace_native.clone(),
            sources: config.sources.clone(),
        }
    }
}

impl OperatorSettings for ToolConfiguration {
    fn of(&self, tool: &Declaration, source: &str) -> Option<ToolSettings> {
        Some(self.index.of(tool, source))
    }

    fn names(&self) -> Vec<String> {
        self.names.clone()
    }

    fn loosening_names(&self) -> Vec<String> {
        self.loosening_names.clone()
    }

    fn grants(&self) -> Vec<(String, ToolPattern)> {
        self.grants.clone()
    }

    fn replaces_native(&self, name: &str) -> bool {
        self.replace_native.covers(name)
    }

    fn replaced_names(&self) -> Vec<String> {
        self.replace_native.names().to_vec()
    }

    fn source(&self, name: &str) -> SourceSettings {
        let Some(set) = self.sources.get(name) else {
            return SourceSettings::default();
        };
        SourceSettings {
            trust: set.trust.map(|trust| match trust {
                toolpost_config::SourceTrustLevel::None => SourceTrust::None,
                toolpost_config::SourceTrustLevel::Claims => SourceTrust::Claims,
                toolpost_config::SourceTrustLevel::Full => SourceTrust::Full,
            }),
            concurrency: set.concurrency,
        }
    }

    fn source_names(&self) -> Vec<String> {
        self.sources.keys().cloned().collect()
    }
}
