//! Builds the MCP servers of a configuration and resolves their references. A server that is not available is reported,
//! and the others serve.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
};

use globset::{Glob, GlobSet, GlobSetBuilder};
use toolpost_config::{
    HostConfig, McpReach, McpServerConfig, McpText, McpUnresolved, McpValues, ResolvedMcpText,
};
use toolpost_core::{Host, MemoryPins, PinStore};
use toolpost_mcp_source::{
    McpNewToolPolicy, McpParts, McpProgram, McpProtocolEra, McpServer, McpSharing, McpSource,
    McpStartPolicy, McpTransport,
};
use toolpost_model::{
    BoxFuture, Declaration, EffectOrigin, SandboxProfile, Secret, SessionScope, Source,
    SourceError, SourceHealth, SourceProblem, SourceSession, SourceState, WireNaming,
};
use toolpost_processes::ChildSettings;
use toolpost_sandbox::Launcher;
use toolpost_store::{DataDir, PinFiles};

use super::native::{self, NativeError, NativeHandover};

/// Shorter values are not redacted from records and answers, because they would remove ordinary words.
const SHORTEST_SECRET: usize = 8;

/// The reason why a host does not start without an MCP server.
#[derive(Debug, thiserror::Error)]
#[error(
    "the MCP server `{name}` ({place}) is required and not available: {reason}\n\
     hint: repair it, or start the host without it: `mcp.servers.{name}.required: false`"
)]
pub struct RequiredServerError {
    /// The server's name.
    pub name: String,
    /// File and line of its entry.
    pub place: String,
    /// The problem.
    pub reason: String,
}

/// The inputs of MCP servers besides the configuration.
#[derive(Clone, Default)]
pub struct McpHandover {
    /// The resolved references of the configuration. Without them, a server with references is reported as not
    /// available.
    pub values: McpValues,
    /// Folders in which programs can cache downloads, by server name.
    pub caches: BTreeMap<String, PathBuf>,
    /// The store of pins. By default pins are kept in the data directory, or in memory without one.
    pub pins: Option<Arc<dyn PinStore>>,
}

/// The servers of a configuration, ready to start.
pub(super) struct ComposedMcpServers {
    pub(super) ready: Vec<McpServer>,
    pub(super) unusable: Vec<UnusableServer>,
    /// Secret values with their kind. They are redacted everywhere.
    pub(super) secrets: Vec<(String, String)>,
}

pub(super) fn servers(
    config: &HostConfig,
    handover: &McpHandover,
) -> Result<ComposedMcpServers, RequiredServerError> {
    let mut servers = ComposedMcpServers {
        ready: Vec::new(),
        unusable: Vec::new(),
        secrets: Vec::new(),
    };
    for server in &config.mcp.servers {
        match (McpServerSetup {
            config,
            handover,
            server,
            secrets: Vec::new(),
        })
        .server()
        {
            Ok((ready, secrets)) => {
                let kind = format!("mcp_{}", server.name.replace('-', "_").to_lowercase());
                let long = secrets
                    .into_iter()
                    .filter(|secret| secret.len() >= SHORTEST_SECRET);
                servers
                    .secrets
                    .extend(long.map(|secret| (kind.clone(), secret)));
                servers.ready.push(ready);
            }
            Err(why) if server.required => {
                let name = server.name.clone();
                let place = server.place.clone();
                return Err(RequiredServerError {
                    name,
                    place,
                    reason: why.to_string(),
                });
            }
            Err(why) => {
                servers.unusable.push(UnusableServer::new(
                    &server.name,
                    &server.place,
                    why.to_string(),
                ));
            }
        }
    }
    let named = config.mcp.unusable.iter();
    servers.unusable.extend(
        named.map(|server| UnusableServer::new(&server.name, &server.place, server.reason.clone())),
    );
    Ok(servers)
}

pub(super) fn sources(
    config: &HostConfig,
    data_dir: Option<&DataDir>,
    native: &NativeHandover,
    servers: ComposedMcpServers,
) -> Result<Vec<Arc<dyn Source>>, NativeError> {
    let mut sources: Vec<Arc<dyn Source>> = Vec::new();
    for server in servers.unusable {
        sources.push(Arc::new(server));
    }
    if servers.ready.is_empty() {
        return Ok(in_order(sources));
    }
    let launcher = native.program.clone().map(Launcher::new);
    let workspace = config
        .workspace
        .as_deref()
        .map(|root| native::workspace(config, root, native.own_files.clone()));
    let workspace = workspace.transpose()?.map(Arc::new);
    let children = match &workspace {
        Some(workspace) => native::children(config, workspace, data_dir),
        None => ChildSettings::default(),
    };
    let pins: Arc<dyn PinStore> = match (&native.mcp.pins, data_dir) {
        (Some(pins), _) => Arc::clone(pins),
        (None, Some(data_dir)) => Arc::new(PinFiles::new(data_dir)),
        (None, None) => Arc::new(MemoryPins::default()),
    };
    for server in servers.ready {
        sources.push(Arc::new(McpSource::new(McpParts {
            server,
            launcher: launcher.clone(),
            children: children.clone(),
            workspace: workspace.clone(),
            pins: Arc::clone(&pins),
        })));
    }
    Ok(in_order(sources))
}

/// Sorts the sources by name, so that if two tools want one name, the same one always gets it.
fn in_order(mut sources: Vec<Arc<dyn Source>>) -> Vec<Arc<dyn Source>> {
    sources.sort_by(|one, other| one.name().cmp(other.name()));
    sources
}

/// Checks that every required server is available. Called after all sources were asked for their tools.
pub(super) fn check_required(config: &HostConfig, host: &Host) -> Result<(), RequiredServerError> {
    let reports = host.sources();
    for server in config.mcp.servers.iter().filter(|server| server.required) {
        let Some(report) = reports.iter().find(|report| report.name == server.name) else {
            continue;
        };
        match report.health.state {
            SourceState::Ready | SourceState::Idle => {}
            state @ (SourceState::Starting | SourceState::Failing | SourceState::Stopped) => {
                let reason = report
                    .health
                    .message
                    .clone()
                    .unwrap_or_else(|| state.as_str().to_owned());
                return Err(RequiredServerError {
                    name: server.name.clone(),
                    place: server.place.clone(),
                    reason,
                });
            }
        }
    }
    Ok(())
}

/// The files that define the servers. Tools ask before they change one.
pub(super) fn files(config: &HostConfig) -> impl Iterator<Item = PathBuf> {
    config
        .mcp
        .servers
        .iter()
        .flat_map(|server| server.files.iter().filter(|path| !path.is_dir()).cloned())
}

/// Whether a path lies in the workspace or another root.
fn beneath_root(config: &HostConfig, path: &Path) -> bool {
    let roots = config.roots.iter().map(|root| &root.path);
    config
        .workspace
        .iter()
        .chain(roots)
        .any(|root| path.starts_with(root))
}

/// The reason why a server cannot be built.
#[derive(Debug, thiserror::Error)]
enum NotMade {
    #[error("its `url` is not a URL: {0}")]
    Url(#[from] url::ParseError),
    #[error("in its `{part}`, {missing}")]
    Reference {
        part: String,
        missing: McpUnresolved,
    },
    #[error("in its `pass`, {0}")]
    Passed(McpUnresolved),
    #[error("its `tools` are not valid patterns: {0}")]
    Patterns(#[from] globset::Error),
    #[error("its `reads` path `{}` {why}", .path.display())]
    Reads { path: PathBuf, why: UnreadablePath },
    #[error("its `reads` has no effect: {0}")]
    ReadsInVain(&'static str),
}

/// The reason why a path under `reads` is refused.
#[derive(Debug, thiserror::Error)]
enum UnreadablePath {
    #[error("cannot be found: {0}")]
    Missing(#[from] std::io::Error),
    #[error(
        "is outside all roots: `reads` selects files of the workspace and the other roots, `readable` adds others"
    )]
    Outside,
}

struct McpServerSetup<'a> {
    config: &'a HostConfig,
    handover: &'a McpHandover,
    server: &'a McpServerConfig,
    secrets: Vec<String>,
}

impl McpServerSetup<'_> {
    fn server(mut self) -> Result<(McpServer, Vec<String>), NotMade> {
        let server = self.server;
        let transport = match &server.reach {
            McpReach::Program {
                command,
                args,
                cwd,
                folder,
                env,
            } => {
                let program = self.program(command, args, cwd.as_ref(), folder, env)?;
                McpTransport::Stdio(Box::new(program))
            }
            McpReach::Http { .. } if server.reads.is_some() => {
                return Err(NotMade::ReadsInVain(
                    "a server behind a `url` reads files where it runs",
                ));
            }
            McpReach::Http { url, headers } => {
                let url = self.text("url", url)?;
                McpTransport::Http {
                    url: url.reveal().parse()?,
                    headers: self.values("headers", headers)?,
                }
            }
        };
        let made = McpServer {
            name: server.name.clone(),
            transport,
            era: match server.era {
                toolpost_config::McpEra::Auto => McpProtocolEra::Auto,
                toolpost_config::McpEra::Sessions => McpProtocolEra::Sessions,
                toolpost_config::McpEra::Stateless => McpProtocolEra::Stateless,
            },
            naming: match server.naming {
                toolpost_config::McpNaming::Namespaced => WireNaming::Namespaced,
                toolpost_config::McpNaming::Bare => WireNaming::Bare,
            },
            sharing: match server.share {
                toolpost_config::McpShare::Host => McpSharing::Host,
                toolpost_config::McpShare::Session => McpSharing::Session,
            },
            // A required server starts at once, so that the host notices if it fails.
            start: match server.start {
                toolpost_config::McpStart::Lazy if !server.required => McpStartPolicy::Lazy,
                toolpost_config::McpStart::Lazy | toolpost_config::McpStart::Eager => {
                    McpStartPolicy::Eager
                }
            },
            new_tools: match server.new_tools {
                toolpost_config::McpNewTools::FirstUse => McpNewToolPolicy::FirstUse,
                toolpost_config::McpNewTools::Ask => McpNewToolPolicy::Ask,
                toolpost_config::McpNewTools::Take => McpNewToolPolicy::Take,
            },
            allow: server.allow.as_deref().map(patterns).transpose()?,
            deny: patterns(&server.deny)?,
            connect_timeout: server.connect_timeout,
            call_timeout: server.timeout,
            idle_stop: server.idle_stop,
            max_message: usize::try_from(server.max_message).unwrap_or(usize::MAX),
        };
        Ok((made, self.secrets))
    }

    fn program(
        &mut self,
        command: &McpText,
        args: &[McpText],
        cwd: Option<&McpText>,
        folder: &Path,
        env: &BTreeMap<String, McpText>,
    ) -> Result<McpProgram, NotMade> {
        let server = self.server;
        let command = self.text("command", command)?.reveal().to_owned();
        let mut words = Vec::with_capacity(args.len());
        for word in args {
            words.push(self.text("args", word)?.reveal().to_owned());
        }
        let directory = match cwd {
            Some(cwd) => Some(folder.join(self.text("cwd", cwd)?.reveal())),
            None => None,
        };
        let profile = server.sandbox.unwrap_or(self.config.sandbox.profile);
        let mut environment = self.passed()?;
        let mut readable = server.readable.clone();
        let mut writable = server.writable.clone();
        if Path::new(&command).is_absolute() {
            readable.push(command.clone().into());
        }
        // A folder inside a root is the server's working data, and the settings of the root decide the access to it.
        let is_worked_on = |path: &Path| path.is_dir() && beneath_root(self.config, path);
        readable.extend(
            server
                .files
                .iter()
                .filter(|path| !is_worked_on(path))
                .cloned(),
        );
        if let Some(cache) = self.handover.caches.get(&server.name) {
            match profile {
                SandboxProfile::ReadOnly => {}
                SandboxProfile::WorkspaceWrite | SandboxProfile::Network | SandboxProfile::None => {
                    environment.extend(cache_variables(cache));
                    writable.push(cache.clone());
                }
            }
        }
        environment.extend(self.values("env", env)?);
        let reads = self.reads(profile)?;
        Ok(McpProgram {
            command,
            args: words,
            directory,
            profile,
            environment,
            readable,
            writable,
            reads,
        })
    }

    /// The only paths of the roots that the server can read, with symbolic links resolved.
    fn reads(&self, profile: SandboxProfile) -> Result<Option<Vec<PathBuf>>, NotMade> {
        let Some(reads) = &self.server.reads else {
            return Ok(None);
        };
        match profile {
            SandboxProfile::ReadOnly | SandboxProfile::WorkspaceWrite | SandboxProfile::Network => {
            }
            SandboxProfile::None => {
                return Err(NotMade::ReadsInVain(
                    "`sandbox: none` lets its program read everything",
                ));
            }
        }
        let found = |path: &PathBuf| -> Result<PathBuf, UnreadablePath> {
            let whole = path.canonicalize()?;
            let roots = self
                .config
                .roots
                .iter()
                .map(|root| &root.path)
                .chain(&self.config.workspace);
            let is_inside = |root: &PathBuf| {
                whole.starts_with(root.canonicalize().unwrap_or_else(|_| root.clone()))
            };
            if roots.into_iter().any(is_inside) {
                Ok(whole)
            } else {
                Err(UnreadablePath::Outside)
            }
        };
        let named = |path: &PathBuf| {
            found(path).map_err(|why| NotMade::Reads {
                path: path.clone(),
                why,
            })
        };
        reads.iter().map(named).collect::<Result<_, _>>().map(Some)
    }

    /// The variables of the host's environment that the server gets.
    fn passed(&mut self) -> Result<BTreeMap<String, Secret>, NotMade> {
        let mut passed = BTreeMap::new();
        for name in &self.server.pass {
            let value = self.config.environment.variables.get(name);
            let missing = || NotMade::Passed(McpUnresolved::Variable(name.clone()));
            passed.insert(name.clone(), Secret::new(value.ok_or_else(missing)?));
        }
        Ok(passed)
    }

    fn values(
        &mut self,
        part: &str,
        texts: &BTreeMap<String, McpText>,
    ) -> Result<BTreeMap<String, Secret>, NotMade> {
        let mut values = BTreeMap::new();
        for (name, text) in texts {
            self.secrets
                .extend(text.plain_secret(name).map(ToOwned::to_owned));
            let ResolvedMcpText { text, secrets } =
                self.resolved(&format!("{part}.{name}"), text)?;
            self.secrets
                .extend(secrets.iter().map(|secret| secret.reveal().to_owned()));
            values.insert(name.clone(), text);
        }
        Ok(values)
    }

    fn text(&self, part: &str, text: &McpText) -> Result<Secret, NotMade> {
        Ok(self.resolved(part, text)?.text)
    }

    fn resolved(&self, part: &str, text: &McpText) -> Result<ResolvedMcpText, NotMade> {
        text.resolve(&self.handover.values)
            .map_err(|missing| NotMade::Reference {
                part: part.to_owned(),
                missing,
            })
    }
}

/// Programs that download the code they run keep it in the server's own folder, and not among the user's files.
fn cache_variables(cache: &Path) -> [(String, Secret); 3] {
    let of = |path: PathBuf| Secret::new(path.to_string_lossy());
    [
        ("XDG_CACHE_HOME".to_owned(), of(cache.to_owned())),
        ("npm_config_cache".to_owned(), of(cache.join("npm"))),
        ("UV_CACHE_DIR".to_owned(), of(cache.join("uv"))),
    ]
}

fn patterns(list: &[String]) -> Result<GlobSet, NotMade> {
    let mut set = GlobSetBuilder::new();
    for pattern in list {
        set.add(Glob::new(pattern)?);
    }
    Ok(set.build()?)
}

/// A server that is not available, as a source without tools, so that it appears in the reports on sources.
pub(super) struct UnusableServer {
    name: String,
    place: String,
    reason: String,
}

impl UnusableServer {
    fn new(name: &str, place: &str, reason: String) -> Self {
        Self {
            name: name.to_owned(),
            place: place.to_owned(),
            reason,
        }
    }
}

impl Source for UnusableServer {
    fn name(&self) -> &str {
        &self.name
    }

    fn origin(&self) -> EffectOrigin {
        EffectOrigin::Claimed
    }

    fn naming(&self) -> WireNaming {
        WireNaming::Namespaced
    }

    fn list(&self) -> BoxFuture<'_, Result<Vec<Declaration>, SourceError>> {
        Box::pin(std::future::ready(Ok(Vec::new())))
    }

    fn problems(&self) -> Vec<SourceProblem> {
        vec![SourceProblem {
            part: self.name.clone(),
            origin: Some(self.place.clone()),
            code: "setup_required".to_owned(),
            message: self.reason.clone(),
        }]
    }

    fn health(&self) -> SourceHealth {
        SourceHealth {
            state: SourceState::Failing,
            message: Some(self.reason.clone()),
            ..SourceHealth::default()
        }
    }

    fn open<'a>(
        &'a self,
        _: &'a SessionScope,
    ) -> BoxFuture<'a, Result<Arc<dyn SourceSession>, SourceError>> {
        let error = SourceError {
            origin: self.name.clone(),
            reason: self.reason.clone(),
        };
        Box::pin(std::future::ready(Err(error)))
    }
}
