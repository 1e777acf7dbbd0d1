//! The host: what faces and embedders talk to.

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

/// The host's limits. Every one that bites is named in the error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostLimits {
    /// Slots and queue.
    pub scheduler: SchedulerLimits,
    /// How callers divide what there is only so much of.
    pub shares: ShareRules,
    /// A call's deadline where nobody says otherwise.
    pub deadline: Duration,
    /// How long a hook may take that does not say otherwise.
    pub hook: Duration,
    /// The longest deadline anybody gets.
    pub deadline_ceiling: Duration,
    /// The largest text of a result that is shown whole.
    pub inline_chars: usize,
    /// The largest arguments, as text.
    pub argument_bytes: usize,
    /// Calls that wait for a person's answer. One caller gets half of it.
    pub approvals: usize,
    /// Open sessions.
    pub sessions: usize,
    /// How long a session without calls stays in memory.
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

/// How the host is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Health {
    /// Calls that run.
    pub running: usize,
    /// Calls that wait for a slot or a resource.
    pub queued: usize,
    /// Questions that wait for a person's answer.
    pub approvals: usize,
    /// Sessions in memory.
    pub sessions: usize,
    /// Tools in the catalog.
    pub tools: usize,
    /// The last append to the journal failed.
    pub journal_failing: bool,
    /// No new calls are taken.
    pub shutting_down: bool,
}

/// A tool host. Cheap to clone; all clones are one host.
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
    /// The tenants of principals that belong to one, by name.
    tenants: HashMap<PrincipalName, String>,
    pub(crate) scheduler: Arc<Scheduler>,
    pub(crate) state: HostState,
}

/// Where the tools of a host come from, and the operator's settings for them.
pub(crate) struct HostSources {
    pub(crate) list: Vec<Arc<dyn Source>>,
    /// How many calls of each source run at the same time, in the order of the sources.
    pub(crate) limits: Vec<Option<usize>>,
    /// Whether a deferred tool must be shown to a session before it is called there.
    pub(crate) require_shown: bool,
    settings: ArcSwap<Box<dyn OperatorSettings>>,
    /// One refresh at a time, so that the catalog of an older list never replaces the one of a newer list.
    refreshing: tokio::sync::Mutex<()>,
}

/// The questions to operators and the rules that their answers leave.
pub(crate) struct ApprovalServices {
    pub(crate) mode: Approvals,
    pub(crate) questions: Arc<QuestionRegistry>,
    pub(crate) rules: Arc<dyn RuleStore>,
}

/// Where calls are recorded.
pub(crate) struct HostRecord {
    pub(crate) journal: Arc<dyn Journal>,
    pub(crate) journal_room: JournalRoom,
    pub(crate) artifact_room: Arc<ArtifactRoom>,
    pub(crate) redactor: Arc<HostRedactor>,
    /// Answers every call, if the host serves a recording.
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
    /// How long before this host's start the last record was written.
    away: OnceLock<Duration>,
}

/// The tools that can be called now, and the surfaces made of them.
pub(crate) struct CatalogState {
    pub(crate) current: ArcSwap<Catalog>,
    generation: AtomicU64,
    /// The generation, for those who wait for changes.
    changes: watch::Sender<u64>,
    surfaces: Mutex<HashMap<SurfaceRequest, (u64, Arc<Surface>)>>,
    pub(crate) declared: crate::catalog::RecordedDeclarations,
    /// Apart from the host, so that waiting for it does not keep the host alive.
    refresh: Arc<Notify>,
}

/// The calls that run, and the answers that may not have been delivered.
#[derive(Default)]
struct CallsState {
    running: Mutex<HashMap<InvocationId, Arc<LiveCall>>>,
    /// Requests whose answers the last host may not have delivered.
    unheard: Mutex<HashMap<SessionId, Vec<RequestId>>>,
}

/// Notices for operators.
struct NoticesState {
    catalog: Mutex<Vec<CatalogNotice>>,
    /// Why the remembered rules are not in force.
    rules: Vec<CatalogNotice>,
    news: SourceNewsChannel,
}

/// More problems than this, and longer words about one, would only bury the others.
const PROBLEMS: usize = 256;
const PROBLEM_CHARS: usize = 2_000;
/// How long canceled calls may take to end at a shutdown.
const LAST_WORD: Duration = Duration::from_secs(10);
/// How long sources may take to close, all together.
const FAREWELL: Duration = Duration::from_secs(5);

/// More kinds of surface than this are rebuilt instead of kept.
const KEPT_SURFACES: usize = 256;

impl HostInner {
    /// The surface a session sees now.
    pub(crate) fn surface(&self, session: &Session) -> Arc<Surface> {
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

    /// Whether a deferred tool may be called in this session.
    pub(crate) fn is_shown(&self, session: &Session, entry: &CatalogEntry) -> bool {
        !self.sources.require_shown || session.has_discovered(entry.id())
    }

    pub(crate) fn journal_failing(&self) -> bool {
        self.state.journal_failing.load(Ordering::Relaxed)
    }

    /// Appends, and remembers whether the journal works: while it does not, calls must be on record before
    /// they run.
    pub(crate) async fn append(
        &self,
        record: Record,
        strength: AppendStrength,
    ) -> Result<(), JournalError> {
        self.append_numbered(record, strength).await.map(|_| ())
    }

    /// The same, with the record's number.
    pub(crate) async fn append_numbered(
        &self,
        mut record: Record,
        strength: AppendStrength,
    ) -> Result<u64, JournalError> {
        // The last gate before the record: names, ids and reasons pass here too. A call's result was redacted
        // before, so that the answer and the record stay the same bytes.
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

    /// Lists every source and swaps the catalog in. A source that fails keeps nothing listed and harms nobody.
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
        // Where it fails, the first call that stands on it tries again, and does not run without.
        let _ = self.tell_catalog().await;
    }

    /// Declarations without the secrets that a source put into them, knowing or not: everybody reads them.
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

    /// Problems as they may be told: a source's words, cut to a length that somebody reads.
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

    /// What surfaces are made of is no longer what it was.
    pub(crate) fn moved_on(&self) {
        let generation = self
            .state
            .catalog
            .generation
            .fetch_add(1, Ordering::Release)
            + 1;
        self.state.catalog.changes.send_replace(generation);
    }

    /// Cancelled when the host takes no more calls.
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
    /// Begins a host.
    pub fn builder() -> HostBuilder {
        HostBuilder::new()
    }

    /// Every tool, whoever may see it.
    pub fn catalog(&self) -> Arc<Catalog> {
        self.inner.state.catalog.current.load_full()
    }

    /// How long the journal had been left alone when this host started on it.
    pub fn away_for(&self) -> Duration {
        self.inner.state.away.get().copied().unwrap_or_default()
    }

    /// What stands before everything this host writes or shows, for whoever writes or shows something beside it.
    pub fn redactor(&self) -> Arc<dyn Redactor> {
        Arc::clone(&self.inner.record.redactor) as Arc<dyn Redactor>
    }

    /// A text without what must not be written or shown.
    pub fn redacted<'a>(&self, text: &'a str) -> Cow<'a, str> {
        self.inner.record.redactor.text(text)
    }

    /// Resolves whenever the catalog changed.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.inner.state.catalog.changes.subscribe()
    }

    /// Takes other settings for single tools and sources, and builds the catalog anew. Calls that are under way keep
    /// the settings they began with.
    pub async fn replace_settings(&self, settings: impl OperatorSettings) {
        self.inner
            .sources
            .settings
            .store(Arc::new(Box::new(settings)));
        self.inner.refresh().await;
    }

    /// What an operator should know about the catalog.
    pub fn notices(&self) -> Vec<CatalogNotice> {
        self.inner.state.notices.catalog.lock().clone()
    }

    /// The surface a session sees now.
    pub fn surface(&self, session: &Session) -> Arc<Surface> {
        self.inner.surface(session)
    }

    /// What became of the recording that it serves, where it serves one.
    pub fn replay_report(&self) -> Option<ReplayReport> {
        self.inner
            .record
            .replay
            .as_ref()
            .map(CassettePlayer::report)
    }

    /// The limits it was built with.
    pub fn limits(&self) -> &HostLimits {
        &self.inner.limits
    }

    /// How the host is doing.
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

    /// Takes no more calls, lets the running ones finish for `grace`, cancels the rest and waits for their ends
    /// to be on record, then closes the sources. Calls that a person is being asked about do not hold it up: their
    /// questions stay open on record for the next host.
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
                    "some calls did not stop when told to; their ends are written at the next start"
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
