//! Putting a host together.

use std::{collections::HashMap, sync::Arc};

use arc_swap::ArcSwap;
use toolpost_model::{
    PathRulesInForce, PrincipalName, Source, SourceFeed, SourceNotice, Tool, ToolSet, ToolSettings,
};

use super::{
    ApprovalServices, CallsState, CatalogState, Host, HostInner, HostLimits, HostRecord,
    HostSources, HostState, NoticesState, PolicyHolder,
};
use crate::{
    approval::{
        Approvals, MemoryRules, QuestionRegistry, RuleStore, operator,
        remembered::{self, FoundRules},
    },
    call::recover,
    catalog::{Catalog, OperatorSettings},
    execution::credentials::{CredentialGrant, CredentialGrants},
    hooks::{
        Hook,
        witness::{Witness, WitnessList},
    },
    permission::{DecisionAuthorities, DecisionAuthority, Policy, PolicyEngine},
    record::{
        blobs::{BlobStore, MemoryBlobs},
        journal::{Journal, JournalError, MemoryJournal},
        redaction::{HostRedactor, KnownSecrets, Redactor},
        replay::{Cassette, CassetteError, CassettePlayer, ReplayOptions, ReplayScene},
        retention::{Retention, schedule},
        room::{ArtifactRoom, JournalRoom},
    },
    scheduling::Scheduler,
};

/// Puts a host together. Every port has an adapter in memory, so that `Host::builder().build()` is a whole host.
pub struct HostBuilder {
    sources: SourceParts,
    guards: GuardParts,
    record: RecordParts,
    credentials: Vec<CredentialGrant>,
    limits: HostLimits,
    tenants: HashMap<PrincipalName, String>,
}

/// The sources of a host and the settings of their tools.
struct SourceParts {
    list: Vec<Arc<dyn Source>>,
    limits: HashMap<String, usize>,
    settings: Box<dyn OperatorSettings>,
    require_shown: bool,
}

/// The parts that decide about calls or watch them.
struct GuardParts {
    policy: Arc<dyn PolicyEngine>,
    authorities: Vec<Arc<dyn DecisionAuthority>>,
    hooks: Vec<Arc<dyn Hook>>,
    witnesses: Vec<Arc<dyn Witness>>,
    approvals: Approvals,
    rules: Arc<dyn RuleStore>,
}

/// Where calls are recorded, for how long, and the recording that is replayed.
struct RecordParts {
    journal: Arc<dyn Journal>,
    blobs: Arc<dyn BlobStore>,
    redactor: Arc<dyn Redactor>,
    retention: Retention,
    replay: Option<(Cassette, ReplayOptions)>,
}

/// Why a host cannot start.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// The journal cannot be read or written.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The cassette it should replay has an answer that is none.
    #[error("the cassette cannot be replayed: {0}")]
    Cassette(#[from] CassetteError),
}

impl HostBuilder {
    pub(super) fn new() -> Self {
        Self {
            sources: SourceParts {
                list: Vec::new(),
                limits: HashMap::new(),
                settings: Box::new(HashMap::<String, ToolSettings>::new()),
                require_shown: true,
            },
            guards: GuardParts {
                policy: Arc::new(Policy::default()),
                authorities: Vec::new(),
                hooks: Vec::new(),
                witnesses: Vec::new(),
                approvals: Approvals::Nobody,
                rules: Arc::new(MemoryRules::default()),
            },
            record: RecordParts {
                journal: Arc::new(MemoryJournal::default()),
                blobs: Arc::new(MemoryBlobs::default()),
                redactor: Arc::new(KnownSecrets::default()),
                retention: Retention::default(),
                replay: None,
            },
            credentials: Vec::new(),
            limits: HostLimits::default(),
            tenants: HashMap::new(),
        }
    }

    /// Adds a source. Of two tools that want one name, the earlier source's keeps it.
    #[must_use]
    pub fn source(mut self, source: impl Source) -> Self {
        self.sources.list.push(Arc::new(source));
        self
    }

    /// Adds sources in their order, after those added before.
    #[must_use]
    pub fn sources(mut self, sources: impl IntoIterator<Item = Arc<dyn Source>>) -> Self {
        self.sources.list.extend(sources);
        self
    }

    /// Adds one tool.
    #[must_use]
    pub fn tool(self, tool: impl Tool) -> Self {
        self.source(ToolSet::of(tool))
    }

    /// Who decides.
    #[must_use]
    pub fn policy(mut self, policy: impl PolicyEngine) -> Self {
        self.guards.policy = Arc::new(policy);
        self
    }

    /// Adds authorities that rules may delegate to. Of two with one name, the later one counts.
    #[must_use]
    pub fn authorities(
        mut self,
        authorities: impl IntoIterator<Item = Arc<dyn DecisionAuthority>>,
    ) -> Self {
        self.guards.authorities.extend(authorities);
        self
    }

    /// Adds a hook; hooks see calls in the order they were added.
    #[must_use]
    pub fn hook(mut self, hook: impl Hook) -> Self {
        self.guards.hooks.push(Arc::new(hook));
        self
    }

    /// Adds hooks in their order, after those added before.
    #[must_use]
    pub fn hooks(mut self, hooks: impl IntoIterator<Item = Arc<dyn Hook>>) -> Self {
        self.guards.hooks.extend(hooks);
        self
    }

    /// Adds somebody who hears of every call.
    #[must_use]
    pub fn witness(mut self, witness: Arc<dyn Witness>) -> Self {
        self.guards.witnesses.push(witness);
        self
    }

    /// Where records go.
    #[must_use]
    pub fn journal(mut self, journal: Arc<dyn Journal>) -> Self {
        self.record.journal = journal;
        self
    }

    /// Where results go that are too large for a record.
    #[must_use]
    pub fn blobs(mut self, blobs: Arc<dyn BlobStore>) -> Self {
        self.record.blobs = blobs;
        self
    }

    /// What is taken out of everything that is written or shown.
    #[must_use]
    pub fn redactor(mut self, redactor: impl Redactor) -> Self {
        self.record.redactor = Arc::new(redactor);
        self
    }

    /// Credentials that calls may name with `{"$cred": "name"}` in their arguments. Their values should be known to the
    /// redactor.
    #[must_use]
    pub fn credentials(mut self, credentials: Vec<CredentialGrant>) -> Self {
        self.credentials = credentials;
        self
    }

    /// The limits.
    #[must_use]
    pub fn limits(mut self, limits: HostLimits) -> Self {
        self.limits = limits;
        self
    }

    /// The operator's settings for single tools.
    #[must_use]
    pub fn settings(mut self, settings: impl OperatorSettings) -> Self {
        self.sources.settings = Box::new(settings);
        self
    }

    /// How many calls of one source's tools run at the same time, by the source's name.
    #[must_use]
    pub fn source_limit(mut self, source: impl Into<String>, concurrency: usize) -> Self {
        self.sources.limits.insert(source.into(), concurrency);
        self
    }

    /// Whether a deferred tool must be shown in a session before it can be called there.
    #[must_use]
    pub fn require_shown(mut self, require: bool) -> Self {
        self.sources.require_shown = require;
        self
    }

    /// Whether a person can be asked.
    #[must_use]
    pub fn approvals(mut self, approvals: Approvals) -> Self {
        self.guards.approvals = approvals.bounded();
        self
    }

    /// Where rules are kept that a person wanted to be remembered.
    #[must_use]
    pub fn rule_store(mut self, store: Arc<dyn RuleStore>) -> Self {
        self.guards.rules = store;
        self
    }

    /// Answers every call from a recording: its tools take the place of all sources, and nothing runs. No hook, rule or
    /// person is asked. A call that was not recorded fails with the code `not_recorded`.
    #[must_use]
    pub fn replay(mut self, cassette: Cassette, options: ReplayOptions) -> Self {
        self.record.replay = Some((cassette, options));
        self
    }

    /// Puts what was recorded in the place of what was configured.
    fn take_up_recording(&mut self) -> Result<Option<CassettePlayer>, HostError> {
        let Some((mut cassette, options)) = self.record.replay.take() else {
            return Ok(None);
        };
        let ReplayScene {
            source,
            policy,
            settings,
        } = ReplayScene::of(&mut cassette);
        self.sources.list = vec![Arc::new(source)];
        self.guards.policy = Arc::new(policy);
        self.sources.settings = Box::new(settings);
        self.guards.hooks.clear();
        self.guards.authorities.clear();
        self.guards.witnesses.clear();
        self.guards.approvals = Approvals::Nobody;
        self.guards.rules = Arc::new(MemoryRules::default());
        Ok(Some(CassettePlayer::new(&cassette, options)?))
    }

    /// The tenants that principals belong to, by the principals' names. Their surfaces have the scope `tenant`.
    #[must_use]
    pub fn tenants(mut self, tenants: HashMap<PrincipalName, String>) -> Self {
        self.tenants = tenants;
        self
    }

    /// How long records stay. Without this, for ever.
    #[must_use]
    pub fn retention(mut self, retention: Retention) -> Self {
        self.record.retention = retention;
        self
    }

    /// Lists the sources, ends what the last host left open, and starts.
    pub async fn build(mut self) -> Result<Host, HostError> {
        let replay = self.take_up_recording()?;
        let FoundRules {
            rules: remembered,
            notices: rules_notices,
        } = remembered::load(&self.guards.rules, &*self.record.journal).await;
        let SourceParts {
            list,
            limits,
            settings,
            require_shown,
        } = self.sources;
        let limit_of = |source: &Arc<dyn Source>| limits.get(source.name()).copied();
        let inner = Arc::new(HostInner {
            scheduler: Scheduler::new(self.limits.scheduler, self.limits.shares),
            sources: HostSources {
                limits: list.iter().map(limit_of).collect(),
                list,
                require_shown,
                settings: ArcSwap::from_pointee(settings),
                refreshing: Default::default(),
            },
            policy: PolicyHolder::new(
                self.guards.policy,
                remembered,
                DecisionAuthorities::new(self.guards.authorities),
            ),
            approval: ApprovalServices {
                mode: self.guards.approvals,
                questions: QuestionRegistry::new(self.limits.approvals),
                rules: self.guards.rules,
            },
            hooks: self.guards.hooks,
            witnesses: WitnessList::new(self.guards.witnesses),
            record: HostRecord {
                journal_room: JournalRoom::new(self.limits.shares, &*self.record.journal),
                journal: self.record.journal,
                artifact_room: ArtifactRoom::new(self.limits.shares, self.record.blobs),
                redactor: HostRedactor::new(self.record.redactor),
                replay,
            },
            credentials: CredentialGrants::new(self.credentials),
            limits: self.limits,
            tenants: self.tenants,
            state: HostState {
                catalog: CatalogState {
                    current: ArcSwap::from_pointee(Catalog::empty()),
                    generation: 0.into(),
                    changes: Default::default(),
                    surfaces: Default::default(),
                    declared: Default::default(),
                    refresh: Default::default(),
                },
                sessions: Default::default(),
                calls: CallsState::default(),
                notices: NoticesState {
                    catalog: Default::default(),
                    rules: rules_notices,
                    news: Default::default(),
                },
                journal_failing: false.into(),
                tasks: Default::default(),
                closing: Default::default(),
                away: Default::default(),
            },
        });
        connect(&inner);
        // Where it cannot be measured it cannot be written either, and says so itself.
        let _ = inner
            .record
            .journal_room
            .measure(&*inner.record.journal)
            .await;
        inner.refresh().await;
        tokio::spawn(operator::watch_the_clock(
            Arc::downgrade(&inner),
            inner.state.closing.clone(),
        ));
        recover::recover(&inner).await?;
        if self.record.retention.is_any() {
            let host = Arc::downgrade(&inner);
            let closing = inner.state.closing.clone();
            // A shutdown waits for it, so that the journal is nobody's when the host is gone.
            inner
                .state
                .tasks
                .spawn(schedule::keep_to(self.record.retention, host, closing));
        }
        Ok(Host { inner })
    }
}

/// Listens to the sources. The task holds the host weakly: a dropped host is really gone.
fn connect(inner: &Arc<HostInner>) {
    for source in &inner.sources.list {
        let refresh = Arc::clone(&inner.state.catalog.refresh);
        let redactor = Arc::clone(&inner.record.redactor);
        let (name, news): (Arc<str>, _) = (source.name().into(), inner.state.notices.news.clone());
        let feed = SourceFeed::new(move |notice| match notice {
            SourceNotice::ToolsChanged => refresh.notify_one(),
            SourceNotice::ResourcesChanged
            | SourceNotice::PromptsChanged
            | SourceNotice::ResourceUpdated(_) => news.tell(&name, notice),
            SourceNotice::Log(line) => tracing::info!(source = &*name, "{}", redactor.text(&line)),
        });
        let host = Arc::downgrade(inner);
        source.connect(feed.with_path_rules(move || {
            let in_force: Arc<dyn PathRulesInForce> = host.upgrade()?.policy.in_force();
            Some(in_force)
        }));
    }
    let host = Arc::downgrade(inner);
    let closing = inner.state.closing.clone();
    let refresh = Arc::clone(&inner.state.catalog.refresh);
    tokio::spawn(async move {
        loop {
            tokio::select! {
                () = closing.cancelled() => return,
                () = refresh.notified() => {
                    let Some(held) = host.upgrade() else { return };
                    held.refresh().await;
                    for notice in held.state.notices.catalog.lock().iter() {
                        tracing::warn!("{notice}");
                    }
                }
            }
        }
    });
}
