//! The host: the entry point for faces and embedders.

mod artifacts;
mod builder;
mod calls;
mod invocations;
mod policy;
mod recorded;
pub(crate) mod sessions;
mod sources;

use std::{
    borrow::Cow,
    collections::HashMap,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use arc_swap::ArcSwap;
use futures_util::future::join_all;
use jiff::Timestamp;
use parking_lot::{Mutex, RwLock};
use tokio::sync::{Notify, watch};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use toolpost_model::{
    Declaration, InvocationId, PrincipalName, RequestId, SessionId, ShareRules, Source,
    SourceError, SourceProblem, SurfaceRequest,
};

pub use builder::{HostBuilder, HostError};
pub(crate) use invocations::CallVisibility;
pub use invocations::{InvocationView, StatusWord};
pub(crate) use policy::{InForce, PolicyHolder};
pub use recorded::FoundCall;
pub use sessions::SessionError;
use sources::SourceNewsChannel;
pub use sources::{SourceNews, SourceReport};

use crate::{
    approval::{Approvals, QuestionRegistry, RuleStore},
    catalog::{Catalog, CatalogEntry, CatalogNotice, OperatorSettings, SourceTools, Surface},
    execution::credentials::CredentialGrants,
    hooks::{Hook, witness::WitnessList},
    invocation::LiveCall,
    port::SourceIndex,
    record::{
        journal::{AppendStrength, Journal, JournalError, Record},
        redaction::{HostRedactor, Redactor},
        replay::{CassettePlayer, ReplayReport},
        room::{ArtifactRoom, JournalRoom},
    },
    scheduling::{Scheduler, SchedulerLimits},
    session::Session,
};

/// The limits of the host. An error that a limit causes names the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostLimits {
    /// The limits of slots and queue.
    pub scheduler: SchedulerLimits,
    /// The rules by which principals share limited resources.
    pub shares: ShareRules,
    /// The default deadline of a call.
    pub deadline: Duration,
    /// The default time limit of a hook.
    pub hook: Duration,
    /// The longest deadline that a call can get.
    pub deadline_ceiling: Duration,
    /// The largest inline text of a result, in characters.
    pub inline_chars: usize,
    /// The largest arguments, in bytes of text.
    pub argument_bytes: usize,
    /// The limit of calls that wait for approval. One principal may use half of it.
    pub approvals: usize,
    /// The limit of open sessions.
    pub sessions: usize,
    /// How long an idle session stays in memory.
    pub session_idle: Duration,
}

impl Default for HostLimits {
    fn default() -> Self {
        Self {
            scheduler: SchedulerLimits {
                concurrency: 64,
                session_concurrency: 16,
                queue: 1024,
            },
            shares: ShareRules::default(),
            deadline: Duration::from_secs(60),
            hook: Duration::from_secs(5),
            deadline_ceiling: Duration::from_secs(600),
            inline_chars: 50_000,
            argument_bytes: 4 << 20,
            approvals: 256,
            sessions: 1024,
            session_idle: Duration::from_secs(24 * 3600),
        }
    }
}

/// The state of the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Health {
    /// Running calls.
    pub running: usize,
    /// Calls that wait for a slot or a lock.
    pub queued: usize,
    /// Open approval questions.
    pub approvals: usize,
    /// Sessions in memory.
    pub sessions: usize,
    /// Tools in the catalog.
    pub tools: usize,
    /// Whether the last append to the journal failed.
    pub journal_failing: bool,
    /// Whether the host refuses new calls because of a shutdown.
    pub shutting_down: bool,
}

/// A tool host. Cloning is cheap; all clones are the same host.
#[derive(Clone)]
pub struct Host {
    pub(crate) inner: Arc<HostInner>,
}

pub(crate) struct HostInner {
    pub(crate) sources: HostSources,
    pub(crate) policy: PolicyHolder,
    pub(crate) approval: ApprovalServices,
    pub(crate) hooks: Vec<Arc<dyn Hook>>,
    pub(crate) witnesses: WitnessList,
    pub(crate) record: HostRecord,
    pub(crate) credentials: CredentialGrants,
    pub(crate) limits: HostLimits,
    /// The tenants of principals, by the principals' names.
    tenants: HashMap<PrincipalName, String>,
    pub(crate) scheduler: Arc<Scheduler>,
    pub(crate) state: HostState,
}

/// The sources of a host and the operator's settings for their tools.
pub(crate) struct HostSources {
    pub(crate) list: Vec<Arc<dyn Source>>,
    /// The concurrency limit of each source, in the order of the sources.
    pub(crate) limits: Vec<Option<usize>>,
    /// Whether a session must discover a deferred tool before it can call it.
    pub(crate) require_shown: bool,
    settings: ArcSwap<Box<dyn OperatorSettings>>,
    /// Serializes refreshes, so that the catalog of an older list never replaces that of a newer one.
    refreshing: tokio::sync::Mutex<()>,
}

/// The questions to operators and the rules that their answers wrote.
pub(crate) struct ApprovalServices {
    pub(crate) mode: Approvals,
    pub(crate) questions: Arc<QuestionRegistry>,
    pub(crate) rules: Arc<dyn RuleStore>,
}

/// The journal and the artifacts of a host.
pub(crate) struct HostRecord {
    pub(crate) journal: Arc<dyn Journal>,
    pub(crate) journal_room: JournalRoom,
    pub(crate) artifact_room: Arc<ArtifactRoom>,
    pub(crate) redactor: Arc<HostRedactor>,
    /// Answers each call, if the host replays a cassette.
    pub(crate) replay: Option<CassettePlayer>,
}

/// The state of a running host.
pub(crate) struct HostState {
    pub(crate) catalog: CatalogState,
    pub(crate) sessions: RwLock<HashMap<SessionId, Arc<Session>>>,
    calls: CallsState,
    notices: NoticesState,
    journal_failing: AtomicBool,
    pub(crate) tasks: TaskTracker,
    closing: CancellationToken,
    /// The time between the last record and this host's start.
    away: OnceLock<Duration>,
}

/// The current tools, and the surfaces made from them.
pub(crate) struct CatalogState {
    pub(crate) current: ArcSwap<Catalog>,
    generation: AtomicU64,
    /// The generation, for subscribers.
    changes: watch::Sender<u64>,
    surfaces: Mutex<HashMap<SurfaceRequest, (u64, Arc<Surface>)>>,
    pub(crate) declared: crate::catalog::RecordedDeclarations,
    /// Outside the host, so that the refreshing task does not keep the host alive.
    refresh: Arc<Notify>,
}

/// The running calls, and the requests whose answers may be undelivered.
#[derive(Default)]
struct CallsState {
    running: Mutex<HashMap<InvocationId, Arc<LiveCall>>>,
    /// Requests whose answers the last host may not have delivered.
    unheard: Mutex<HashMap<SessionId, Vec<RequestId>>>,
}

struct NoticesState {
    catalog: Mutex<Vec<CatalogNotice>>,
    /// Why some remembered rules do not count.
    rules: Vec<CatalogNotice>,
    news: SourceNewsChannel,
}

/// The limits of source problems in number and length, so that one source cannot bury the problems of others.
const PROBLEMS: usize = 256;
const PROBLEM_CHARS: usize = 2_000;
/// The time that canceled calls have to end at a shutdown.
const LAST_WORD: Duration = Duration::from_secs(10);
/// The time that all sources together have to close.
const FAREWELL: Duration = Duration::from_secs(5);

/// The number of cached surfaces. When it is reached, the cache is cleared.
const KEPT_SURFACES: usize = 256;

impl HostInner {
    /// The current surface of a session.
    pub(crate) fn surface(&self, session: &Session) -> Arc<Surface> {
        // The generation is read before the catalog and the policy. If they change in between, the surface is stored
        // under the old generation and rebuilt at its next use. In the other order an old surface could be kept under
        // the new generation. The lock order is the session's surface, then the shared surfaces.
        let generation = self.state.catalog.generation.load(Ordering::Acquire);
        session.surface(generation, || {
            let mut kept = self.state.catalog.surfaces.lock();
            if let Some((of, surface)) = kept.get(session.surface_request())
                && *of == generation
            {
                return Arc::clone(surface);
            }
            if kept.len() >= KEPT_SURFACES {
                kept.clear();
            }
            let catalog = self.state.catalog.current.load_full();
            let policy = self.policy.in_force();
            let surface = Surface::build(catalog, session.surface_request(), &*policy.engine);
            let surface = Arc::new(surface);
            kept.insert(
                session.surface_request().clone(),
                (generation, Arc::clone(&surface)),
            );
            surface
        })
    }

    /// Whether a session may call a deferred tool.
    pub(crate) fn is_shown(&self, session: &Session, entry: &CatalogEntry) -> bool {
        !self.sources.require_shown || session.has_discovered(entry.id())
    }

    pub(crate) fn journal_failing(&self) -> bool {
        self.state.journal_failing.load(Ordering::Relaxed)
    }

    /// Appends a record, and notes whether the journal works. While it fails, calls must be recorded before they run.
    pub(crate) async fn append(
        &self,
        record: Record,
        strength: AppendStrength,
    ) -> Result<(), JournalError> {
        self.append_numbered(record, strength).await.map(|_| ())
    }

    /// Appends a record and returns its number.
    pub(crate) async fn append_numbered(
        &self,
        mut record: Record,
        strength: AppendStrength,
    ) -> Result<u64, JournalError> {
        // The last redaction before the journal. It covers names, ids and reasons. The result of a call was redacted
        // earlier, because the answer and the record must be the same bytes.
        if let Cow::Owned(clean) = self.record.redactor.json(&record.body) {
            record.body = clean;
        }
        if let Some(facets) = &mut record.facets {
            facets.clean(&*self.record.redactor);
        }
        let writer = self.principal_of(record.session_id.as_ref());
        let text = record.body.len();
        let appended = self.record.journal.append(record, strength).await;
        if appended.is_ok() {
            self.record
                .journal_room
                .note(&*self.record.journal, writer.as_ref(), text)
                .await;
        }
        let failing = match &appended {
            Ok(_) | Err(JournalError::TooLong { .. }) => false,
            Err(JournalError::Full(_) | JournalError::Broken(_) | JournalError::Closed) => true,
        };
        let was_failing = self.state.journal_failing.swap(failing, Ordering::Relaxed);
        match &appended {
            Err(error) if failing && !was_failing => {
                tracing::error!(%error, "the journal cannot be written; calls are refused");
            }
            Ok(_) if was_failing => tracing::info!("the journal can be written again"),
            _ => {}
        }
        appended
    }

    /// Lists all sources and replaces the catalog. A failing source has no tools in it; the others are not affected.
    pub(crate) async fn refresh(&self) {
        let _turn = self.sources.refreshing.lock().await;
        let mut listed = Vec::new();
        let mut notices = Vec::new();
        let mut unavailable = Vec::new();
        for (place, (source, tools)) in self
            .sources
            .list
            .iter()
            .zip(self.list_sources().await)
            .enumerate()
        {
            let declarations = match tools {
                Ok(declarations) => self.speakable(source.name(), declarations, &mut notices),
                Err(SourceError { origin, reason }) => {
                    let code = "source_unavailable".to_owned();
                    unavailable.push(SourceProblem {
                        part: origin,
                        origin: None,
                        code,
                        message: reason,
                    });
                    continue;
                }
            };
            unavailable.extend(source.problems());
            listed.push(SourceTools {
                source: SourceIndex(place),
                name: source.name().into(),
                naming: source.naming(),
                provenance: source.provenance(),
                origin: source.origin(),
                declarations,
            });
        }
        let settings = self.sources.settings.load_full();
        let (catalog, more) = Catalog::build(
            listed,
            self.tellable(unavailable),
            &**settings,
            &self.credentials,
            &*self.record.redactor,
        );
        notices.extend(more);
        let declarations: Vec<&Declaration> = catalog
            .entries()
            .iter()
            .map(|entry| entry.declaration())
            .collect();
        notices.extend(self.policy.notices(&declarations));
        let there = |name: &String| self.sources.list.iter().any(|source| source.name() == name);
        let absent = settings
            .source_names()
            .into_iter()
            .filter(|name| !there(name));
        notices.extend(absent.map(|name| CatalogNotice::UnusedSource { name }));
        notices.extend(self.state.notices.rules.iter().cloned());
        *self.state.notices.catalog.lock() = notices;
        self.state.catalog.current.store(Arc::new(catalog));
        self.moved_on();
        // If this fails, the first call that needs the record of the catalog tries again, and does not run without it.
        let _ = self.tell_catalog().await;
    }

    /// Redacts the declarations of a source, because agents and operators read them. A declaration whose name holds a
    /// secret is left out.
    fn speakable(
        &self,
        source: &str,
        mut declarations: Vec<Declaration>,
        notices: &mut Vec<CatalogNotice>,
    ) -> Vec<Declaration> {
        let before = declarations.len();
        declarations.retain_mut(|declaration| self.record.redactor.declaration(declaration));
        let lost = before - declarations.len();
        if lost > 0 {
            let told = format!(
                "{lost} of the tools of `{source}` are left out: their names hold a secret"
            );
            notices.push(CatalogNotice::Source(told));
        }
        declarations
    }

    /// Redacts and shortens the problems of sources.
    fn tellable(&self, problems: Vec<SourceProblem>) -> Vec<SourceProblem> {
        let told = |text: String| -> String {
            self.record
                .redactor
                .text(&text)
                .chars()
                .take(PROBLEM_CHARS)
                .collect()
        };
        let tell = |problem: SourceProblem| SourceProblem {
            part: told(problem.part),
            origin: problem.origin.map(told),
            code: told(problem.code),
            message: told(problem.message),
        };
        problems.into_iter().take(PROBLEMS).map(tell).collect()
    }

    /// Invalidates all surfaces, because the catalog or the policy changed.
    pub(crate) fn moved_on(&self) {
        let generation = self
            .state
            .catalog
            .generation
            .fetch_add(1, Ordering::Release)
            + 1;
        self.state.catalog.changes.send_replace(generation);
    }

    /// Canceled when the host stops accepting calls.
    pub(crate) fn closing(&self) -> &CancellationToken {
        &self.state.closing
    }

    pub(crate) fn note_last_record(&self, at: Timestamp) {
        let away = crate::port::now().duration_since(at).unsigned_abs();
        let _ = self.state.away.set(away);
    }

    pub(crate) fn keep_unheard(&self, unheard: HashMap<SessionId, Vec<RequestId>>) {
        *self.state.calls.unheard.lock() = unheard;
    }
}

impl Host {
    /// Starts building a host.
    pub fn builder() -> HostBuilder {
        HostBuilder::new()
    }

    /// All tools, regardless of visibility.
    pub fn catalog(&self) -> Arc<Catalog> {
        self.inner.state.catalog.current.load_full()
    }

    /// The time between the last record and this host's start.
    pub fn away_for(&self) -> Duration {
        self.inner.state.away.get().copied().unwrap_or_default()
    }

    /// The redactor that the host uses, for code that writes or shows other texts.
    pub fn redactor(&self) -> Arc<dyn Redactor> {
        Arc::clone(&self.inner.record.redactor) as Arc<dyn Redactor>
    }

    /// Redacts a text.
    pub fn redacted<'a>(&self, text: &'a str) -> Cow<'a, str> {
        self.inner.record.redactor.text(text)
    }

    /// Changes whenever the catalog changes.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.inner.state.catalog.changes.subscribe()
    }

    /// Replaces the settings of tools and sources, and rebuilds the catalog. Calls under way keep the settings that
    /// they were resolved with.
    pub async fn replace_settings(&self, settings: impl OperatorSettings) {
        self.inner
            .sources
            .settings
            .store(Arc::new(Box::new(settings)));
        self.inner.refresh().await;
    }

    /// The notices for operators about the catalog.
    pub fn notices(&self) -> Vec<CatalogNotice> {
        self.inner.state.notices.catalog.lock().clone()
    }

    /// The current surface of a session.
    pub fn surface(&self, session: &Session) -> Arc<Surface> {
        self.inner.surface(session)
    }

    /// The report on the replayed cassette, if the host replays one.
    pub fn replay_report(&self) -> Option<ReplayReport> {
        self.inner
            .record
            .replay
            .as_ref()
            .map(CassettePlayer::report)
    }

    /// The limits of the host.
    pub fn limits(&self) -> &HostLimits {
        &self.inner.limits
    }

    /// The state of the host.
    pub fn health(&self) -> Health {
        let (running, queued) = self.inner.scheduler.load();
        let state = &self.inner.state;
        Health {
            running,
            queued,
            approvals: self.inner.approval.questions.count(),
            sessions: state.sessions.read().len(),
            tools: state.catalog.current.load().entries().len(),
            journal_failing: self.inner.journal_failing(),
            shutting_down: state.closing.is_cancelled(),
        }
    }

    /// Shuts the host down. It stops accepting calls, waits for running calls up to `grace`, cancels the rest, waits
    /// until their ends are recorded, and closes the sources. Calls that wait for approval do not delay this: their
    /// questions stay open on record for the next host.
    ///
    /// Sources are closed last, because a running call needs its source until its end is recorded. A call that ignores
    /// its cancellation cannot hold up the shutdown for ever; the next host ends it on record.
    pub async fn shutdown(&self, grace: Duration) {
        let state = &self.inner.state;
        state.closing.cancel();
        state.tasks.close();
        if tokio::time::timeout(grace, state.tasks.wait())
            .await
            .is_err()
        {
            let running: Vec<Arc<LiveCall>> =
                state.calls.running.lock().values().cloned().collect();
            for call in running {
                call.cancel(crate::CancelReason::Shutdown, None);
            }
            if tokio::time::timeout(LAST_WORD, state.tasks.wait())
                .await
                .is_err()
            {
                tracing::error!(
                    "some calls did not stop after their cancellation; their ends are recorded at the next start"
                );
            }
        }
        let sessions: Vec<Arc<Session>> = state
            .sessions
            .write()
            .drain()
            .map(|(_, session)| session)
            .collect();
        sessions
            .iter()
            .for_each(|session| self.inner.let_go(session));
        let closed = join_all(self.inner.sources.list.iter().map(|source| source.close()));
        if tokio::time::timeout(FAREWELL, closed).await.is_err() {
            tracing::warn!("some sources took too long to close");
        }
    }
}
