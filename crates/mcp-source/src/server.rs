//! One MCP server: its accepted definitions, its current listing and its connections.

mod health;
mod stale;

use std::{
    collections::HashMap,
    sync::{
        Arc, OnceLock, Weak,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use tokio::sync::Semaphore;
use toolpost_core::PinStore;
use toolpost_model::{
    ErrorClass, SandboxProfile, SessionId, SourceError, SourceFeed, SourceNotice, SourceProblem,
    ToolFailure, ToolId,
};
use toolpost_processes::{Children, PathGuards};

use super::{
    McpParts, McpProtocolEra, McpServer, McpSharing, McpStartPolicy, McpTransport,
    definition::problem,
    desk::UpstreamNotice,
    fetch,
    link::{self, OutdatedProgram, UpstreamLink},
    listing::{McpCallTarget, UpstreamListing},
    live::{self, LiveUpstream},
    manifest::UpstreamManifest,
    outcome,
};
use stale::Stale;

/// How long change notices of a server are collected into one notice for the host.
const GATHERED: Duration = Duration::from_millis(200);

/// How long a listing waits for a server; less than the host waits for any source. The tools of a slower server are
/// added later.
const LISTED_WITHIN: Duration = Duration::from_secs(25);

/// The most connections to one server, each with a program of its own if the server is one.
const PLACES: usize = 64;

pub(super) struct McpUpstream {
    me: Weak<Self>,
    pub(super) settings: McpServer,
    pub(super) children: Option<Children>,
    pins: Arc<dyn PinStore>,
    pub(super) feed: OnceLock<SourceFeed>,
    /// The accepted definitions. `None`: not read yet.
    manifest: tokio::sync::Mutex<Option<LoadedManifest>>,
    listing: Mutex<Arc<UpstreamListing>>,
    /// The server announced a change that was not compared yet.
    stale: AtomicBool,
    /// Held during a comparison. Other calls wait and use its outcome.
    comparing: tokio::sync::Mutex<()>,
    other_resources: AtomicBool,
    other_prompts: AtomicBool,
    telling: AtomicBool,
    era: Mutex<Option<McpProtocolEra>>,
    /// The connection that sessions share; listings use it too.
    pub(super) link: Arc<UpstreamLink>,
    sessions: Mutex<HashMap<SessionId, Arc<UpstreamLink>>>,
    places: Arc<Semaphore>,
    closed: AtomicBool,
}

/// The problem code of a server that an operator must repair before it can be used.
const SETUP_REQUIRED: &str = "setup_required";

/// A manifest. `known`: one was stored before.
#[derive(Clone, Default)]
struct LoadedManifest {
    manifest: UpstreamManifest,
    known: bool,
    /// This process compared it with the running server.
    fresh: bool,
    /// The problems of the last fetch.
    problems: Vec<SourceProblem>,
    /// Why the accepted definitions cannot be read. Until an operator repairs them, the host offers no tool of the
    /// server and stores no manifest.
    unreadable: Option<String>,
}

impl McpUpstream {
    pub(super) fn new(parts: McpParts) -> Arc<Self> {
        let McpParts {
            server,
            launcher,
            children,
            workspace,
            pins,
        } = parts;
        let children = workspace.map(|workspace| Children::new(launcher, children, workspace));
        Arc::new_cyclic(|me: &Weak<Self>| Self {
            me: Weak::clone(me),
            settings: server,
            children,
            pins,
            feed: OnceLock::new(),
            manifest: tokio::sync::Mutex::default(),
            listing: Mutex::default(),
            stale: AtomicBool::new(false),
            comparing: tokio::sync::Mutex::default(),
            other_resources: AtomicBool::new(false),
            other_prompts: AtomicBool::new(false),
            telling: AtomicBool::new(false),
            era: Mutex::default(),
            link: UpstreamLink::new(Weak::clone(me)),
            sessions: Mutex::default(),
            places: Arc::new(Semaphore::new(PLACES)),
            closed: AtomicBool::new(false),
        })
    }

    pub(super) fn connect(&self, feed: SourceFeed) {
        let _ = self.feed.set(feed);
    }

    fn notify(&self, notice: SourceNotice) {
        if let Some(feed) = self.feed.get() {
            feed.notify(notice);
        }
    }

    /// Logs a line for the operator.
    pub(super) fn log(&self, line: String) {
        self.notify(SourceNotice::Log(line));
    }

    /// Asks the host to list again. Requests within [`GATHERED`] become one.
    pub(super) fn tools_changed(&self) {
        if self.telling.swap(true, Ordering::AcqRel) {
            return;
        }
        let me = Weak::clone(&self.me);
        tokio::spawn(async move {
            tokio::time::sleep(GATHERED).await;
            let Some(server) = me.upgrade() else { return };
            server.telling.store(false, Ordering::Release);
            server.notify(SourceNotice::ToolsChanged);
        });
    }

    /// Handles a notice that belongs to no call.
    pub(super) fn hear(&self, told: UpstreamNotice) {
        match told {
            UpstreamNotice::Line(line) => self.log(line),
            UpstreamNotice::Tools => {
                self.stale.store(true, Ordering::Release);
                self.tools_changed();
            }
            // `compare` forwards this notice after the new listing is in place. A client that reacted earlier would
            // read the old list.
            UpstreamNotice::Resources => {
                self.other_resources.store(true, Ordering::Release);
                self.stale.store(true, Ordering::Release);
                self.tools_changed();
            }
            UpstreamNotice::Prompts => {
                self.other_prompts.store(true, Ordering::Release);
                self.stale.store(true, Ordering::Release);
                self.tools_changed();
            }
            UpstreamNotice::Updated(uri) => self.notify(SourceNotice::ResourceUpdated(uri)),
        }
    }

    /// Connects, and compares the server's definitions with the accepted ones.
    pub(super) async fn start(
        &self,
        watched: &[String],
        guards: PathGuards,
    ) -> Result<LiveUpstream, ToolFailure> {
        self.load().await;
        if let Some(why) = self.unreadable().await {
            let failure = ToolFailure::of(ErrorClass::SetupRequired, why);
            return Err(failure.code("pins_damaged").untouched());
        }
        let Ok(place) = Arc::clone(&self.places).try_acquire_owned() else {
            return Err(crowded());
        };
        let me = Weak::clone(&self.me);
        let told: Arc<dyn Fn(UpstreamNotice) + Send + Sync> = Arc::new(move |word| {
            if let Some(server) = me.upgrade() {
                server.hear(word);
            }
        });
        let era = match self.settings.era {
            McpProtocolEra::Auto => self.era.lock().unwrap_or(McpProtocolEra::Auto),
            given => given,
        };
        let started = live::start(&self.settings, self.children.as_ref(), era, guards, &told).await;
        let live = match started {
            Ok(live) => live.at(place),
            Err(failure) => {
                // The server may have changed its revision, for example after an upgrade, so the next attempt tries
                // both.
                *self.era.lock() = None;
                return Err(failure);
            }
        };
        let found = if live.connection.facts.stateless {
            McpProtocolEra::Stateless
        } else {
            McpProtocolEra::Sessions
        };
        // Only the older revision is remembered. `Auto` tries the newer one first, so a newer server needs no memory,
        // and a server that was upgraded is recognized at its next start.
        *self.era.lock() = Some(found).filter(|era| *era == McpProtocolEra::Sessions);
        let patience = self.settings.connect_timeout;
        if !tokio::time::timeout(patience, live.introduce(watched))
            .await
            .unwrap_or(false)
        {
            self.log(
                "it did not answer the host's first requests; the host may miss some changes"
                    .to_owned(),
            );
        }
        let compared = tokio::time::timeout(patience, self.compare(&live)).await;
        let failure = match compared {
            Ok(Ok(())) => return Ok(live),
            Ok(Err(failure)) => failure,
            Err(_) => not_listed(),
        };
        live.end().await;
        Err(failure)
    }

    /// Reads the stored manifest once, and again after a failure.
    async fn load(&self) {
        let mut manifest = self.manifest.lock().await;
        // An operator may have repaired a manifest that could not be read.
        if manifest
            .as_ref()
            .is_some_and(|kept| kept.unreadable.is_none())
        {
            return;
        }
        let pins = Arc::clone(&self.pins);
        let name = self.settings.name.clone();
        let loaded = tokio::task::spawn_blocking(move || pins.load(&name)).await;
        let (kept, trouble) = match loaded {
            Ok(Ok(None)) => (None, None),
            Ok(Ok(Some(text))) => match UpstreamManifest::read(&text) {
                Ok(manifest) => (Some(manifest), None),
                Err(why) => (
                    Some(UpstreamManifest::default()),
                    Some(format!("the accepted definitions are damaged: {why}")),
                ),
            },
            // A manifest that cannot be read counts as known and empty. If it counted as unknown, the policy
            // `FirstUse` would accept every definition of the next listing, among them definitions that were held back
            // before the damage.
            Ok(Err(error)) => (Some(UpstreamManifest::default()), Some(error.to_string())),
            Err(error) => (Some(UpstreamManifest::default()), Some(error.to_string())),
        };
        let known = kept.is_some();
        let kept = kept.unwrap_or_default();
        *self.era.lock() = kept.era;
        let problems = trouble
            .clone()
            .map(|message| problem(&self.settings.name, SETUP_REQUIRED, message));
        *self.listing.lock() = Arc::new(UpstreamListing::of(
            &self.settings,
            &self.route(),
            &kept,
            problems.into_iter().collect(),
        ));
        *manifest = Some(LoadedManifest {
            manifest: kept,
            known,
            unreadable: trouble,
            ..LoadedManifest::default()
        });
    }

    async fn unreadable(&self) -> Option<String> {
        self.manifest
            .lock()
            .await
            .as_ref()
            .and_then(|kept| kept.unreadable.clone())
    }

    /// Fetches the server's definitions, stores the updated manifest and replaces the listing.
    async fn compare(&self, live: &LiveUpstream) -> Result<(), ToolFailure> {
        let mut mark = Stale::begin(&self.stale);
        let fetched = fetch::everything(&live.connection, &self.settings).await;
        let fetched =
            fetched.map_err(|error| outcome::failure(error, &self.settings.name).untouched())?;
        let mut manifest = self.manifest.lock().await;
        // The lock is held until the new manifest is stored, so that an `accept` at the same time is not overwritten.
        // The old manifest stays in place until then, because a timeout can drop this future at each await. A missing
        // manifest counts as known, for the reason in `load`.
        let kept = manifest.clone().unwrap_or(LoadedManifest {
            known: true,
            ..LoadedManifest::default()
        });
        let mut next = kept
            .manifest
            .updated(kept.known, fetched.tools, self.settings.new_tools);
        next.beside = fetched.beside;
        next.era = *self.era.lock();
        let mut problems = fetched.problems.clone();
        if !kept.known || next != kept.manifest {
            problems.extend(self.keep(&next).await);
        }
        let listing = Arc::new(UpstreamListing::of(
            &self.settings,
            &self.route(),
            &next,
            problems,
        ));
        let before = std::mem::replace(&mut *self.listing.lock(), Arc::clone(&listing));
        *manifest = Some(LoadedManifest {
            manifest: next,
            known: true,
            fresh: true,
            problems: fetched.problems,
            unreadable: None,
        });
        drop(manifest);
        mark.done();
        if kept.fresh || kept.known {
            self.tell_changes(&before, &listing);
        }
        if self.other_resources.swap(false, Ordering::AcqRel) {
            self.notify(SourceNotice::ResourcesChanged);
        }
        if self.other_prompts.swap(false, Ordering::AcqRel) {
            self.notify(SourceNotice::PromptsChanged);
        }
        Ok(())
    }

    /// Compares again if the server announced a change. Before that, a call could run a tool with a definition that no
    /// operator accepted.
    pub(super) async fn look_again(&self, live: &LiveUpstream) -> Result<(), ToolFailure> {
        if !self.stale.load(Ordering::Acquire) {
            return Ok(());
        }
        let compared = tokio::time::timeout(self.settings.connect_timeout, async {
            let _alone = self.comparing.lock().await;
            match self.stale.load(Ordering::Acquire) {
                true => self.compare(live).await,
                false => Ok(()),
            }
        });
        compared.await.unwrap_or_else(|_| Err(not_listed()))
    }

    fn tell_changes(&self, before: &UpstreamListing, now: &UpstreamListing) {
        let ids = |listing: &UpstreamListing| -> Vec<String> {
            listing
                .declarations
                .iter()
                .map(|one| serde_json::to_string(one).unwrap_or_default())
                .collect()
        };
        if before.quarantined != now.quarantined {
            for held in &now.quarantined {
                self.log(format!(
                    "`{}` is held back: its definition is {}",
                    held.tool, held.change
                ));
            }
        }
        if ids(before) != ids(now)
            || before.problems != now.problems
            || before.companions != now.companions
        {
            self.tools_changed();
        }
    }

    /// Stores a manifest. A failure becomes a problem of the source, because the next process would compare with older
    /// pins.
    async fn keep(&self, manifest: &UpstreamManifest) -> Option<SourceProblem> {
        let pins = Arc::clone(&self.pins);
        let name = self.settings.name.clone();
        let text = manifest.text();
        let kept = tokio::task::spawn_blocking(move || pins.keep(&name, &text)).await;
        let message = match kept {
            Ok(Ok(())) => return None,
            Ok(Err(error)) => error.to_string(),
            Err(error) => error.to_string(),
        };
        Some(problem(
            &self.settings.name,
            SourceProblem::REDUCED,
            message,
        ))
    }

    /// The current listing. A lazy server with known definitions is not started for it.
    pub(super) async fn list(&self) -> Result<Arc<UpstreamListing>, SourceError> {
        self.load().await;
        let failure = match self.link.tried_beside() {
            Some(failure) => failure,
            None => match tokio::time::timeout(LISTED_WITHIN, self.look()).await {
                Ok(Ok(())) => return Ok(self.listing()),
                Ok(Err(failure)) => failure,
                Err(_) => link::not_yet(),
            },
        };
        self.link.keep_trying();
        match self
            .manifest
            .lock()
            .await
            .as_ref()
            .is_some_and(|kept| kept.known)
        {
            true => Ok(self.listing()),
            false => Err(self.error(&failure)),
        }
    }

    /// Brings the listing up to date. Starts a server that this process has not listed yet if its definitions are
    /// unknown or its policy is eager.
    async fn look(&self) -> Result<(), ToolFailure> {
        // The listing carries the problem already, and another attempt would fail in the same way.
        if self.unreadable().await.is_some() {
            return Ok(());
        }
        if let Some(live) = self.link.open().await {
            if self.look_again(&live).await.is_err() {
                self.log(
                    "its tools could not be listed again; the earlier list stays in use".to_owned(),
                );
            }
            return Ok(());
        }
        let (known, fresh) = self
            .manifest
            .lock()
            .await
            .as_ref()
            .map_or((false, false), |kept| (kept.known, kept.fresh));
        if fresh
            || (known && self.settings.start == McpStartPolicy::Lazy)
            || self.closed.load(Ordering::Acquire)
        {
            return Ok(());
        }
        drop(self.link.live(OutdatedProgram::Tolerated).await?);
        if self.settings.sharing == McpSharing::Session {
            self.link.rest().await;
        }
        Ok(())
    }

    pub(super) fn error(&self, failure: &ToolFailure) -> SourceError {
        let hint = failure.hint.clone().or_else(|| self.confined());
        let hint = hint
            .map(|hint| format!("\nhint: {hint}"))
            .unwrap_or_default();
        SourceError {
            origin: self.settings.name.clone(),
            reason: format!("{}{hint}", failure.message),
        }
    }

    /// A hint for a program that ended before it answered: many such programs need the network.
    fn confined(&self) -> Option<String> {
        let McpTransport::Stdio(program) = &self.settings.transport else {
            return None;
        };
        match program.profile {
            SandboxProfile::ReadOnly | SandboxProfile::WorkspaceWrite => Some(format!(
                "if it needs the network: set `mcp.servers.{}.sandbox: network`, since its program has none",
                self.settings.name
            )),
            SandboxProfile::Network | SandboxProfile::None => None,
        }
    }

    pub(super) fn listing(&self) -> Arc<UpstreamListing> {
        Arc::clone(&self.listing.lock())
    }

    /// Accepts definitions that are held back: of one tool, or of all. `seen`: the digest of the definition that the
    /// operator read. It binds the acceptance to that text, because the server can change the definition again in the
    /// meantime.
    pub(super) async fn accept(
        &self,
        tool: Option<&ToolId>,
        seen: Option<&str>,
    ) -> Result<Vec<ToolId>, SourceError> {
        self.load().await;
        if let Some(reason) = self.unreadable().await {
            return Err(SourceError {
                origin: self.settings.name.clone(),
                reason,
            });
        }
        // Definitions that an earlier process held back are in the manifest, and `problems` showed them to the
        // operator. The server is asked only if there are none.
        let looked = self
            .manifest
            .lock()
            .await
            .as_ref()
            .is_some_and(|kept| kept.fresh || !kept.manifest.held.is_empty());
        if !looked {
            self.link
                .live(OutdatedProgram::Tolerated)
                .await
                .map_err(|failure| self.error(&failure))?;
        }
        let mut manifest = self.manifest.lock().await;
        let Some(kept) = manifest.as_mut() else {
            return Ok(Vec::new());
        };
        let namespace = super::definition::namespace(&self.settings.name);
        let mut next = kept.manifest.clone();
        let held: Vec<(ToolId, String)> = next
            .held
            .keys()
            .filter_map(|native| {
                Some((
                    super::definition::id_of(&namespace, native)?,
                    native.clone(),
                ))
            })
            .filter(|(id, _)| tool.is_none_or(|tool| tool == id))
            .collect();
        if held.is_empty() {
            let reason = match tool {
                Some(tool) => format!("`{tool}` is not held back"),
                None => "nothing of it is held back".to_owned(),
            };
            return Err(SourceError {
                origin: self.settings.name.clone(),
                reason,
            });
        }
        let is_seen = |digest: String| seen.is_none_or(|seen| seen == digest);
        for (id, native) in &held {
            if !next
                .held
                .get(native)
                .is_some_and(|definition| is_seen(definition.digest()))
            {
                let reason = format!("the definition of `{id}` changed again; review it once more");
                return Err(SourceError {
                    origin: self.settings.name.clone(),
                    reason,
                });
            }
            next.accept(native);
        }
        if let Some(problem) = self.keep(&next).await {
            return Err(SourceError {
                origin: self.settings.name.clone(),
                reason: problem.message,
            });
        }
        *self.listing.lock() = Arc::new(UpstreamListing::of(
            &self.settings,
            &self.route(),
            &next,
            kept.problems.clone(),
        ));
        kept.manifest = next;
        Ok(held.into_iter().map(|(id, _)| id).collect())
    }

    /// The connection for the calls of a session.
    pub(super) fn way(&self, session: &SessionId) -> Arc<UpstreamLink> {
        match self.settings.sharing {
            McpSharing::Host => Arc::clone(&self.link),
            McpSharing::Session => {
                let mut sessions = self.sessions.lock();
                let link = sessions
                    .entry(session.clone())
                    .or_insert_with(|| UpstreamLink::new(Weak::clone(&self.me)));
                Arc::clone(link)
            }
        }
    }

    /// Closes the connection of a session, or removes its subscriptions from the shared one.
    pub(super) fn leave(&self, session: &SessionId) {
        let own = self.sessions.lock().remove(session);
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return;
        };
        let shared = Arc::clone(&self.link);
        let session = session.clone();
        runtime.spawn(async move {
            match own {
                Some(link) => link.close().await,
                None => shared.forget(&session).await,
            }
        });
    }

    /// The request that a call of this tool becomes, according to the current listing.
    pub(super) fn target(&self, tool: &ToolId) -> Option<McpCallTarget> {
        self.listing().targets.get(tool).cloned()
    }

    /// Closes all connections.
    pub(super) async fn close(&self) {
        self.closed.store(true, Ordering::Release);
        let mut links: Vec<Arc<UpstreamLink>> =
            self.sessions.lock().drain().map(|(_, link)| link).collect();
        links.push(Arc::clone(&self.link));
        futures_util::future::join_all(links.iter().map(|link| link.close())).await;
    }
}

fn crowded() -> ToolFailure {
    let message =
        format!("{PLACES} sessions have their own connection to this server, which is the limit");
    ToolFailure::of(ErrorClass::RateLimited, message)
        .code("too_many_connections")
        .hint("close unused sessions, or let them share one connection with `share: host`")
        .untouched()
}

fn not_listed() -> ToolFailure {
    ToolFailure::of(
        ErrorClass::DependencyUnavailable,
        "it did not list its tools in time",
    )
    .untouched()
}
