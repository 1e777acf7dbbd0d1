//! The builder of a host.

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

/// Builds a host. Each port has an adapter in memory, so `Host::builder().build()` is a complete host.
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

/// The parts that decide about calls or observe them.
struct GuardParts {
    policy: Arc<dyn PolicyEngine>,
    authorities: Vec<Arc<dyn DecisionAuthority>>,
    hooks: Vec<Arc<dyn Hook>>,
    witnesses: Vec<Arc<dyn Witness>>,
    approvals: Approvals,
    rules: Arc<dyn RuleStore>,
}

/// The parts that record calls, and the cassette to replay.
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
    /// The cassette holds an invalid result.
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

    /// Adds a source. If two tools claim the same name, the tool of the earlier source gets it.
    #[must_use]
    pub fn source(mut self, source: impl Source) -> Self {
        self.sources.list.push(Arc::new(source));
        self
    }

    /// Adds sources after the earlier ones, in the given order.
    #[must_use]
    pub fn sources(mut self, sources: impl IntoIterator<Item = Arc<dyn Source>>) -> Self {
        self.sources.list.extend(sources);
        self
    }

    /// Adds a tool as a source of its own.
    #[must_use]
    pub fn tool(self, tool: impl Tool) -> Self {
        self.source(ToolSet::of(tool))
    }

    /// Sets the policy.
    #[must_use]
    pub fn policy(mut self, policy: impl PolicyEngine) -> Self {
        self.guards.policy = Arc::new(policy);
        self
    }

    /// Adds authorities for delegating rules. A later authority replaces an earlier one of the same name.
    #[must_use]
    pub fn authorities(
        mut self,
        authorities: impl IntoIterator<Item = Arc<dyn DecisionAuthority>>,
    ) -> Self {
        self.guards.authorities.extend(authorities);
        self
    }

    /// Adds a hook. Hooks run in the order in which they were added.
    #[must_use]
    pub fn hook(mut self, hook: impl Hook) -> Self {
        self.guards.hooks.push(Arc::new(hook));
        self
    }

    /// Adds hooks after the earlier ones, in the given order.
    #[must_use]
    pub fn hooks(mut self, hooks: impl IntoIterator<Item = Arc<dyn Hook>>) -> Self {
        self.guards.hooks.extend(hooks);
        self
    }

    /// Adds a witness.
    #[must_use]
    pub fn witness(mut self, witness: Arc<dyn Witness>) -> Self {
        self.guards.witnesses.push(witness);
        self
    }

    /// Sets the journal.
    #[must_use]
    pub fn journal(mut self, journal: Arc<dyn Journal>) -> Self {
        self.record.journal = journal;
        self
    }

    /// Sets the store for results that are too large for a record.
    #[must_use]
    pub fn blobs(mut self, blobs: Arc<dyn BlobStore>) -> Self {
        self.record.blobs = blobs;
        self
    }

    /// Sets the redactor of all recorded and shown texts.
    #[must_use]
    pub fn redactor(mut self, redactor: impl Redactor) -> Self {
        self.record.redactor = Arc::new(redactor);
        self
    }

    /// Sets the credentials that arguments may refer to with `{"$cred": "name"}`. The redactor should have their values
    /// too.
    #[must_use]
    pub fn credentials(mut self, credentials: Vec<CredentialGrant>) -> Self {
        self.credentials = credentials;
        self
    }

    /// Sets the limits.
    #[must_use]
    pub fn limits(mut self, limits: HostLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets the operator's settings for tools.
    #[must_use]
    pub fn settings(mut self, settings: impl OperatorSettings) -> Self {
        self.sources.settings = Box::new(settings);
        self
    }

    /// Limits the concurrent calls of a source, by the source's name.
    #[must_use]
    pub fn source_limit(mut self, source: impl Into<String>, concurrency: usize) -> Self {
        self.sources.limits.insert(source.into(), concurrency);
        self
    }

    /// Sets whether a session must discover a deferred tool before it can call it.
    #[must_use]
    pub fn require_shown(mut self, require: bool) -> Self {
        self.sources.require_shown = require;
        self
    }

    /// Sets whether the host can ask an operator.
    #[must_use]
    pub fn approvals(mut self, approvals: Approvals) -> Self {
        self.guards.approvals = approvals.bounded();
        self
    }

    /// Sets the store of remembered rules.
    #[must_use]
    pub fn rule_store(mut self, store: Arc<dyn RuleStore>) -> Self {
        self.guards.rules = store;
        self
    }

    /// Answers each call from a cassette: its tools replace all sources, and nothing is executed. No hook, rule or
    /// operator is asked. A call that is not on the cassette fails with the code `not_recorded`.
    #[must_use]
    pub fn replay(mut self, cassette: Cassette, options: ReplayOptions) -> Self {
        self.record.replay = Some((cassette, options));
        self
    }

    /// Replaces the configured parts by those of the cassette.
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

    /// Sets the tenants of principals, by the principals' names. Surfaces of these principals have the scope `tenant`.
    #[must_use]
    pub fn tenants(mut self, tenants: HashMap<PrincipalName, String>) -> Self {
        self.tenants = tenants;
        self
    }

    /// Sets how long records are kept. The default is for ever.
    #[must_use]
    pub fn retention(mut self, retention: Retention) -> Self {
        self.record.retention = retention;
        self
    }

    /// Lists the sources, recovers the calls of the last host, and starts.
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
        // If the size cannot be measured, the journal cannot be written either, and its own error reports that.
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
            // Tracked, so that a shutdown waits for it and the journal has no user afterwards.
            inner
                .state
                .tasks
                .spawn(schedule::keep_to(self.record.retention, host, closing));
        }
        Ok(Host { inner })
    }
}

/// Subscribes to the sources. The task holds the host weakly, so that it does not keep a dropped host alive.
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
