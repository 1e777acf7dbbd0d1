//! The resources whose changes are wanted over one way to a server, and how often.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use toolpost_model::{ErrorClass, ToolFailure};

/// How many addresses are watched at most.
const ADDRESSES: usize = 1_024;

/// The addresses, and how many want to hear of each.
#[derive(Default)]
pub(super) struct Watched {
    counts: Mutex<BTreeMap<String, usize>>,
    /// What is told to the server goes one by one: a word that overtakes another would undo it.
    telling: tokio::sync::Mutex<()>,
}

impl Watched {
    /// Waits for the turn to change something.
    pub(super) async fn turn(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.telling.lock().await
    }

    fn counts(&self) -> MutexGuard<'_, BTreeMap<String, usize>> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether nobody wants this one yet. `Err`: there is no room for it.
    pub(super) fn is_first(&self, uri: &str) -> Result<bool, ToolFailure> {
        let counts = self.counts();
        if counts.contains_key(uri) {
            return Ok(false);
        }
        if counts.len() < ADDRESSES {
            return Ok(true);
        }
        let message = format!("{ADDRESSES} resources of this server are watched already, and no more can be");
        Err(ToolFailure::of(ErrorClass::RateLimited, message)
            .code("too_many_subscriptions")
            .hint("unsubscribe from some first")
            .untouched())
    }

    /// One more wants it.
    pub(super) fn add(&self, uri: &str) {
        *self.counts().entry(uri.to_owned()).or_default() += 1;
    }

    /// One less wants it. Whether that was the last.
    pub(super) fn remove(&self, uri: &str) -> bool {
        let mut counts = self.counts();
        let Some(count) = counts.get_mut(uri) else { return false };
        *count = count.saturating_sub(1);
        let last = *count == 0;
        if last {
            counts.remove(uri);
        }
        last
    }

    /// All of them.
    pub(super) fn addresses(&self) -> Vec<String> {
        self.counts().keys().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::{ADDRESSES, Watched};

    #[test]
    fn addresses_are_counted_and_bounded() {
        let watched = Watched::default();
        for at in 0..ADDRESSES {
            let uri = format!("x://{at}");
            assert!(watched.is_first(&uri).unwrap());
            watched.add(&uri);
        }
        assert_eq!(watched.is_first("x://more").unwrap_err().code.as_deref(), Some("too_many_subscriptions"));
        assert!(!watched.is_first("x://7").unwrap());
        watched.add("x://7");
        assert!(!watched.remove("x://7"));
        assert!(watched.remove("x://7"));
        assert!(!watched.remove("x://7"));
        assert!(watched.is_first("x://more").unwrap());
    }
}
