//! Channels that modules contribute to, collected on request.

use std::{future::Future, sync::Arc};

use parking_lot::Mutex;
use serde_json::Value;
use toolpost_model::BoxFuture;

use crate::MountError;

type ContributionCallback =
    Arc<dyn Fn() -> BoxFuture<'static, Result<Value, MountError>> + Send + Sync>;

#[derive(Clone)]
struct ContributionSource {
    channel: String,
    name: String,
    callback: ContributionCallback,
}

#[derive(Default)]
pub(super) struct ContributionTable(Mutex<Vec<ContributionSource>>);

impl ContributionTable {
    pub(super) fn add<F, Fut>(&self, channel: String, name: String, callback: F)
    where
        F: Fn() -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Value, MountError>> + Send + 'static,
    {
        let callback: ContributionCallback = Arc::new(move || Box::pin(callback()));
        let contributor = ContributionSource {
            channel,
            name,
            callback,
        };
        self.0.lock().push(contributor);
    }

    pub(super) async fn collect(&self, channel: &str) -> (Vec<Value>, Vec<String>) {
        let mut values = Vec::new();
        let mut failures = Vec::new();
        for contributor in self.of(channel) {
            match (contributor.callback)().await {
                Ok(Value::Null) => {}
                Ok(value) => values.push(value),
                Err(error) => failures.push(format!("`{}`: {error}", contributor.name)),
            }
        }
        (values, failures)
    }

    fn of(&self, channel: &str) -> Vec<ContributionSource> {
        let all = self.0.lock();
        all.iter()
            .filter(|contributor| contributor.channel == channel)
            .cloned()
            .collect()
    }

    pub(super) fn channels(&self) -> Vec<String> {
        let all = self.0.lock();
        let mut names: Vec<String> = all
            .iter()
            .map(|contributor| contributor.channel.clone())
            .collect();
        names.sort_unstable();
        names.dedup();
        names
    }
}
