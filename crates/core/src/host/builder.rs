//! Putting a host together.

use std::{collections::HashMap, sync::Arc};

use arc_swap::ArcSwap;
use toolpost_model::{
    PathRulesInForce, PrincipalName, Source, SourceFeed, SourceNotice, Tool, ToolSet, ToolSettings,
};

use super::{Host, HostInner, HostLimits, HostState, PolicyHolder};
use crate::{
    approval::{
        Approvals, MemoryRules, Questions, RuleStore, operator,
        remembered::{self, FoundRules},
    },
    call::recover,
    catalog::{Catalog, OperatorSettings},
    execution::credentials::{CredentialGrant, Credentials},
    hooks::{
        Hook,
        witness::{Witness, Witnesses},
    },
    permission::{Authorities, DecisionAuthority, Policy, PolicyEngine},
    record::{
        blobs::{BlobStore, MemoryBlobs},
        journal::{Journal, JournalError, MemoryJournal},
        redaction::{HostRedactor, KnownSecrets, Redactor},
        replay::{Cassette, CassetteError, Player, ReplayOptions, ReplayScene},
        retention::{Retention, schedule},
        room::{ArtifactRoom, JournalRoom},
    },
    scheduling::Scheduler,
};

/// Puts a host together. Every port has an adapter in memory, so that `Host::builder().build()` is a whole host.
pub struct HostBuilder {
    sources: Vec<Arc<dyn Source>>,
    policy: Arc<dyn PolicyEngine>,
    authorities: Vec<Arc<dyn DecisionAuthority>>,
    hooks: Vec<Arc<dyn Hook>>,
    witnesses: Vec<Arc<dyn Witness>>,
    journal: Arc<dyn Journal>,
    blobs: Arc<dyn BlobStore>,
    redactor: Arc<dyn Redactor>,
    credentials: Vec<CredentialGrant>,
    limits: HostLimits,
    settings: Box<dyn OperatorSettings>,
    source_limits: HashMap<String, usize>,
    require_shown: bool,
    tenants: HashMap<PrincipalName, String>,
    approvals: Approvals,
    rules: Arc<dyn RuleStore>,
    replay: Option<(Cassette, ReplayOptions)>,
    retention: Retention,
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
            sources: Vec::new(),
            policy: Arc::new(Policy::default()),
            authorities: Vec::new(),
            hooks: Vec::new(),
            witnesses: Vec::new(),
            journal: Arc::new(MemoryJournal::default()),
            blobs: Arc::new(MemoryBlobs::default()),
            redactor: Arc::new(KnownSecrets::default()),
            credentials: Vec::new(),
            limits: HostLimits::default(),
            settings: Box::new(HashMap::<String, ToolSettings>::new()),
            source_limits: HashMap::new(),
            require_shown: true,
            tenants: HashMap::new(),
            approvals: Approvals::Nobody,
            rules: Arc::new(MemoryRules::default()),
            replay: None,
            retention: Retention::default(),
        }
    }

    /// Adds a source. Of two tools that want one name, the earlier source's keeps it.
    #[must_use]
    pub fn source(mut self, source: impl Source) -> Self {
        self.sources.push(Arc::new(source));
        self
    }

    /// Adds sources in their order, after those added before.
    #[must_use]
    pub fn sources(mut self, sources: impl IntoIterator<Item = Arc<dyn Source>>) -> Self {
        self.sources.extend(sources);
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
        self.policy = Arc::new(policy);
        self
    }

    /// Adds authorities that rules may delegate to. Of two with one name, the later one counts.
    #[must_use]
    pub fn authorities(
        mut self,
        authorities: impl IntoIterator<Item = Arc<dyn DecisionAuthority>>,
    ) -> Self {
        self.authorities.extend(authorities);
        self
    }

    /// Adds a hook; hooks see calls in the order they were added.
    #[must_use]
    pub fn hook(mut self, hook: impl Hook) -> Self {
        self.hooks.push(Arc::new(hook));
        self
    }

    /// Adds hooks in their order, after those added before.
    #[must_use]
    pub fn hooks(mut self, hooks: impl IntoIterator<Item = Arc<dyn Hook>>) -> Self {
        self.hooks.extend(hooks);
        self
    }

    /// Adds somebody who hears of every call.
    #[must_use]
    pub fn witness(mut self, witness: Arc<dyn Witness>) -> Self {
        self.witnesses.push(witness);
        self
    }

    /// Where records go.
    #[must_use]
    pub fn journal(mut self, journal: Arc<dyn Journal>) -> Self {
        self.journal = journal;
        self
    }

    /// Where results go that are too large for a record.
    #[must_use]
    pub fn blobs(mut self, blobs: Arc<dyn BlobStore>) -> Self {
        self.blobs = blobs;
        self
    }

    /// What is taken out of everything that is written or shown.
    #[must_use]
    pub fn redactor(mut self, redactor: impl Redactor) -> Self {
        self.redactor = Arc::new(redactor);
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
        self.settings = Box::new(settings);
        self
    }

    /// How many calls of one source's tools run at the same time, by the source's name.
    #[must_use]
    pub fn source_limit(mut self, source: impl Into<String>, concurrency: usize) -> Self {
        self.source_limits.insert(source.into(), concurrency);
        self
    }

    /// Whether a deferred tool must be shown in a session before it can be called there.
    #[must_use]
    pub fn require_shown(mut self, require: bool) -> Self {
        self.require_shown = require;
        self
    }

    /// Whether a person can be asked.
    #[must_use]
    pub fn approvals(mut self, approvals: Approvals) -> Self {
        self.approvals = approvals.bounded();
        self
    }

    /// Where rules are kept that a person wanted to be remembered.
    #[must_use]
    pub fn rule_store(mut self, store: Arc<dyn RuleStore>) -> Self {
        self.rules = store;
        self
    }

    /// Answers every call from a recording: its tools take the place of all sources, and nothing runs. No hook, rule or
    /// person is asked. A call that was not recorded fails with the code `not_recorded`.
    #[must_use]
    pub fn replay(mut self, cassette: Cassette, options: ReplayOptions) -> Self {
        self.replay = Some((cassette, options));
        self
    }

    /// Puts what was recorded in the place of what was configured.
    fn take_up_recording(&mut self) -> Result<Option<Player>, HostError> {
        let Some((mut cassette, options)) = self.replay.take() else {
            return Ok(None);
        };
        let ReplayScene {
            source,
            policy,
            settings,
        } = ReplayScene::of(&mut cassette);
        self.sources = vec![Arc::new(source)];
        self.policy = Arc::new(policy);
        self.settings = Box::new(settings);
        self.hooks.clear();
        self.authorities.clear();
        self.witnesses.clear();
        self.approvals = Approvals::Nobody;
        self.rules = Arc::new(MemoryRules::default());
        Ok(Some(Player::new(&cassette, options)?))
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
        self.retention = retention;
        self
    }

    /// Lists the sources, ends what the last host left open, and starts.
    pub async fn build(mut self) -> Result<Host, HostError> {
        let replay = self.take_up_recording()?;
        let FoundRules {
            rules: remembered,
            notices: rules_notices,
        } = remembered::load(&self.rules, &*self.journal).await;
        let limit_of = |source: &Arc<dyn Source>| self.source_limits.get(source.name()).copied();
        let inner = Arc::new(HostInner {
            source_limits: self.sources.iter().map(limit_of).collect(),
            scheduler: Scheduler::new(self.limits.scheduler, self.limits.shares),
            sources: self.sources,
            policy: PolicyHolder::new(self.policy, remembered, Authorities::new(self.authorities)),
            approvals: self.approvals,
            questions: Questions::new(self.limits.approvals),
            rules: self.rules,
            hooks: self.hooks,
            witnesses: Witnesses::new(self.witnesses),
            replay,
            journal_room: JournalRoom::new(self.limits.shares, &*self.journal),
            journal: self.journal,
            artifact_room: ArtifactRoom::new(self.limits.shares, self.blobs),
            redactor: HostRedactor::new(self.redactor),
            credentials: Credentials::new(self.credentials),
            limits: self.limits,
            require_shown: self.require_shown,
            tenants: self.tenants,
            settings: ArcSwap::from_pointee(self.settings),
            refreshing: Default::default(),
            state: HostState {
                catalog: ArcSwap::from_pointee(Catalog::empty()),
                generation: 0.into(),
                changes: Default::default(),
                unheard: Default::default(),
                notices: Default::default(),
                rules_notices,
                surfaces: Default::default(),
                declared: Default::default(),
                sessions: Default::default(),
                running: Default::default(),
                journal_failing: false.into(),
                tasks: Default::default(),
                closing: Default::default(),
                away: Default::default(),
                refresh: Default::default(),
                news: Default::default(),
            },
        });
        connect(&inner);
        // Where it cannot be measured it cannot be written either, and says so itself.
        let _ = inner.journal_room.measure(&*inner.journal).await;
        inner.refresh().await;
        tokio::spawn(operator::watch_the_clock(
            Arc::downgrade(&inner),
            inner.state.closing.clone(),
        ));
        recover::recover(&inner).await?;
        if self.retention.is_any() {
            let host = Arc::downgrade(&inner);
            let closing = inner.state.closing.clone();
            // A shutdown waits for it, so that the journal is nobody's when the host is gone.
            inner
                .state
                .tasks
                .spawn(schedule::keep_to(self.retention, host, closing));
        }
        Ok(Host { inner })
    }
}

/// Listens to the sources. The task holds the host weakly: a dropped host is really gone.
fn connect(inner: &Arc<HostInner>) {
    for source in &inner.sources {
        let refresh = Arc::clone(&inner.state.refresh);
        let redactor = Arc::clone(&inner.redactor);
        let (name, news): (Arc<str>, _) = (source.name().into(), inner.state.news.clone());
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
    let refresh = Arc::clone(&inner.state.refresh);
    tokio::spawn(async move {
        loop {
            tokio::select! {
                () = closing.cancelled() => return,
                () = refresh.notified() => {
                    let Some(held) = host.upgrade() else { return };
                    held.refresh().await;
                    for notice in held.state.notices.lock().iter() {
                        tracing::warn!("{notice}");
                    }
                }
            }
        }
    });
}
