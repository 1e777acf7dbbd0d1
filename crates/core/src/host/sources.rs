//! The sources of a host: how they are doing, what they offer beside tools, what they tell.

use std::{sync::Arc, time::Duration};

use futures_util::future::join_all;
use serde::{Deserialize, Serialize};
use tokio::sync::broadcast;
use toolpost_model::{
    Companions, Declaration, Lifecycle, Source, SourceError, SourceHealth, SourceNotice, ToolId,
};

use super::{Host, Inner};
use crate::catalog::Entry;

/// How long a source may take to list its tools.
const SOURCE_PATIENCE: Duration = Duration::from_secs(30);
/// News a reader may fall behind before it loses some.
const NEWS: usize = 256;

/// How one source is doing.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SourceReport {
    /// Its name.
    pub name: String,
    /// How many of its tools are in the catalog and can be used.
    pub tools: usize,
    /// How it is doing.
    #[serde(flatten)]
    pub health: SourceHealth,
}

/// Something that a source told.
#[derive(Clone, Debug)]
pub struct SourceNews {
    /// The source.
    pub source: Arc<str>,
    /// What it told.
    pub notice: SourceNotice,
}

/// Where what sources tell is passed on.
#[derive(Clone)]
pub(super) struct Newsroom(broadcast::Sender<SourceNews>);

impl Default for Newsroom {
    fn default() -> Self {
        Self(broadcast::Sender::new(NEWS))
    }
}

impl Newsroom {
    pub(super) fn tell(&self, source: &Arc<str>, notice: SourceNotice) {
        // Nobody may be listening.
        let _ = self.0.send(SourceNews { source: Arc::clone(source), notice });
    }
}

impl Inner {
    /// The tools of every source, in the order of the sources. A slow one delays the others by no more than its patience.
    pub(super) async fn list_sources(&self) -> Vec<Result<Vec<Declaration>, SourceError>> {
        join_all(self.sources.iter().map(|source| list(&**source))).await
    }
}

async fn list(source: &dyn Source) -> Result<Vec<Declaration>, SourceError> {
    tokio::time::timeout(SOURCE_PATIENCE, source.list()).await.unwrap_or_else(|_| {
        let reason = format!("it did not list its tools within {} seconds", SOURCE_PATIENCE.as_secs());
        Err(SourceError { origin: source.name().to_owned(), reason })
    })
}

impl Host {
    /// How every source is doing.
    pub fn sources(&self) -> Vec<SourceReport> {
        let catalog = self.catalog();
        let report = |(place, source): (usize, &Arc<dyn Source>)| {
            let mut health = source.health();
            health.message = health.message.map(|message| self.redacted(&message).into_owned());
            for kept in &mut health.quarantined {
                kept.diff = self.redacted(&kept.diff).into_owned();
            }
            let usable = |entry: &&Arc<Entry>| {
                entry.source.0 == place
                    && !matches!(entry.declaration().lifecycle, Lifecycle::RequiresSetup(_))
            };
            let tools = catalog.entries().iter().filter(usable).count();
            SourceReport { name: source.name().to_owned(), tools, health }
        };
        self.inner.sources.iter().enumerate().map(report).collect()
    }

    /// What the sources offer beside tools, by their names. Sources that offer nothing are left out.
    pub fn companions(&self) -> Vec<(String, Arc<Companions>)> {
        let offered = self.inner.sources.iter().map(|source| (source.name().to_owned(), source.companions()));
        offered.filter(|(_, companions)| **companions != Companions::default()).collect()
    }

    /// Takes definitions that a source keeps back, of one tool or all; with `seen`, only the definition of that digest. The
    /// catalog has them when this is done.
    pub async fn accept(
        &self,
        source: &str,
        tool: Option<&ToolId>,
        seen: Option<&str>,
    ) -> Result<Vec<ToolId>, SourceError> {
        let Some(found) = self.inner.sources.iter().find(|known| known.name() == source) else {
            let reason = "there is no source of that name".to_owned();
            return Err(SourceError { origin: source.to_owned(), reason });
        };
        let accepted = found.accept(tool, seen).await?;
        self.inner.refresh().await;
        Ok(accepted)
    }

    /// What sources tell from now on. A reader that falls behind loses the oldest.
    pub fn news(&self) -> broadcast::Receiver<SourceNews> {
        self.inner.state.news.0.subscribe()
    }
}
