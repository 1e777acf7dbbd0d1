//! The sources of a host: their health, their companions and their news.

use std::{sync::Arc, time::Duration};

use futures_util::future::join_all;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::broadcast;
use toolpost_model::{
    Declaration, Lifecycle, Source, SourceCompanions, SourceError, SourceHealth, SourceNotice,
    ToolId, Visibility,
};

use super::{Host, HostInner};
use crate::{
    catalog::{CatalogEntry, Surface},
    session::Session,
};

/// The time that a source has to list its tools.
const SOURCE_PATIENCE: Duration = Duration::from_secs(30);
/// The time that a listing waits for sources to check for changes.
const FRESHEN_PATIENCE: Duration = Duration::from_secs(2);
/// The number of news items that a slow reader can fall behind before it loses the oldest.
const NEWS: usize = 256;

/// The state of a source.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SourceReport {
    /// The name of the source.
    pub name: String,
    /// The number of its tools that can be used.
    pub tools: usize,
    /// Its health.
    #[serde(flatten)]
    pub health: SourceHealth,
}

/// A notice of a source.
#[derive(Clone, Debug)]
pub struct SourceNews {
    /// The source.
    pub source: Arc<str>,
    /// The notice.
    pub notice: SourceNotice,
}

#[derive(Clone)]
pub(super) struct SourceNewsChannel(broadcast::Sender<SourceNews>);

impl Default for SourceNewsChannel {
    fn default() -> Self {
        Self(broadcast::Sender::new(NEWS))
    }
}

impl SourceNewsChannel {
    pub(super) fn tell(&self, source: &Arc<str>, notice: SourceNotice) {
        // Sending fails if there are no readers.
        let _ = self.0.send(SourceNews {
            source: Arc::clone(source),
            notice,
        });
    }
}

impl HostInner {
    /// Asks sources without change notifications whether their lists changed.
    pub(crate) async fn freshen_sources(self: &Arc<Self>) {
        let asked: Vec<_> = self
            .sources
            .list
            .iter()
            .filter_map(|source| source.freshen())
            .collect();
        if asked.is_empty() {
            return;
        }
        let asked = tokio::time::timeout(FRESHEN_PATIENCE, join_all(asked)).await;
        if asked.is_ok_and(|changed| changed.contains(&true)) {
            self.refresh().await;
        }
    }

    /// The tools of each source, in the order of the sources. A slow source delays the listing up to its time limit.
    pub(super) async fn list_sources(&self) -> Vec<Result<Vec<Declaration>, SourceError>> {
        join_all(self.sources.list.iter().map(|source| list(&**source))).await
    }
}

async fn list(source: &dyn Source) -> Result<Vec<Declaration>, SourceError> {
    tokio::time::timeout(SOURCE_PATIENCE, source.list())
        .await
        .unwrap_or_else(|_| {
            let reason = format!(
                "it did not list its tools within {} seconds",
                SOURCE_PATIENCE.as_secs()
            );
            Err(SourceError {
                origin: source.name().to_owned(),
                reason,
            })
        })
}

/// Whether a surface allows calls of a tool of this source without discovery.
fn is_callable(surface: &Surface, place: usize, tool: &ToolId) -> bool {
    surface
        .find(tool.as_str())
        .is_some_and(|(entry, visibility)| {
            let is_open = match visibility {
                Visibility::Loaded | Visibility::Unlisted => true,
                Visibility::Deferred | Visibility::Blocked(_) => false,
            };
            is_open && entry.source.0 == place
        })
}

/// The companions of a source that remain if only some of their tools can be called.
fn servable(
    companions: Arc<SourceCompanions>,
    is_callable: impl Fn(&ToolId) -> bool,
) -> Arc<SourceCompanions> {
    let open = |tool: &Option<ToolId>| tool.clone().filter(&is_callable);
    let read = open(&companions.read);
    let prompt = open(&companions.prompt);
    // News about a resource reveal that it exists.
    let of_news = |tool: &Option<ToolId>| open(tool).filter(|_| read.is_some());
    let of_resources = |list: &Vec<Value>| {
        if read.is_some() {
            list.clone()
        } else {
            Vec::new()
        }
    };
    let tools = [&companions.read, &companions.prompt, &companions.complete];
    let tools = tools
        .into_iter()
        .chain([&companions.subscribe, &companions.unsubscribe]);
    let has_resources = !companions.resources.is_empty() || !companions.templates.is_empty();
    let is_whole = tools.into_iter().flatten().all(&is_callable)
        && (read.is_some() || !has_resources)
        && (prompt.is_some() || companions.prompts.is_empty());
    if is_whole {
        return companions;
    }
    Arc::new(SourceCompanions {
        resources: of_resources(&companions.resources),
        templates: of_resources(&companions.templates),
        prompts: if prompt.is_some() {
            companions.prompts.clone()
        } else {
            Vec::new()
        },
        complete: open(&companions.complete),
        subscribe: of_news(&companions.subscribe),
        unsubscribe: of_news(&companions.unsubscribe),
        read,
        prompt,
    })
}

impl Host {
    /// The state of each source.
    pub fn sources(&self) -> Vec<SourceReport> {
        let catalog = self.catalog();
        let report = |(place, source): (usize, &Arc<dyn Source>)| {
            let mut health = source.health();
            health.message = health
                .message
                .map(|message| self.redacted(&message).into_owned());
            for kept in &mut health.quarantined {
                kept.diff = self.redacted(&kept.diff).into_owned();
            }
            let usable = |entry: &&Arc<CatalogEntry>| {
                entry.source.0 == place
                    && !matches!(entry.declaration().lifecycle, Lifecycle::RequiresSetup(_))
            };
            let tools = catalog.entries().iter().filter(usable).count();
            SourceReport {
                name: source.name().to_owned(),
                tools,
                health,
            }
        };
        self.inner
            .sources
            .list
            .iter()
            .enumerate()
            .map(report)
            .collect()
    }

    /// The companions of each source, by name: resources, prompts and completions. A session gets only those that it
    /// could also reach through the tools, so that a principal without access to the resources does not learn their
    /// names. Sources without companions are left out.
    pub fn companions(&self, session: &Session) -> Vec<(String, Arc<SourceCompanions>)> {
        let surface = self.surface(session);
        let offered = self
            .inner
            .sources
            .list
            .iter()
            .enumerate()
            .map(|(place, source)| {
                let is_callable = |tool: &ToolId| is_callable(&surface, place, tool);
                (
                    source.name().to_owned(),
                    servable(source.companions(), is_callable),
                )
            });
        offered
            .filter(|(_, companions)| **companions != SourceCompanions::default())
            .collect()
    }

    /// Accepts quarantined definitions of a source, of one tool or all. With `seen`, only the definition with this
    /// digest. The catalog is refreshed when this returns.
    pub async fn accept(
        &self,
        source: &str,
        tool: Option<&ToolId>,
        seen: Option<&str>,
    ) -> Result<Vec<ToolId>, SourceError> {
        let Some(found) = self
            .inner
            .sources
            .list
            .iter()
            .find(|known| known.name() == source)
        else {
            let reason = "no source has that name".to_owned();
            return Err(SourceError {
                origin: source.to_owned(),
                reason,
            });
        };
        let accepted = found.accept(tool, seen).await?;
        self.inner.refresh().await;
        Ok(accepted)
    }

    /// The news of the sources from now on. A slow reader loses the oldest.
    pub fn news(&self) -> broadcast::Receiver<SourceNews> {
        self.inner.state.notices.news.0.subscribe()
    }
}
