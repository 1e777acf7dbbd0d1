//! The resource subscriptions of the sessions on one link.

use std::collections::{BTreeMap, HashSet};

use parking_lot::Mutex;
use toolpost_model::{ErrorClass, SessionId, ToolFailure};

/// The most watched addresses.
const ADDRESSES: usize = 1_024;

/// The watched addresses with their sessions. Subscriptions are not counted: a session has one for an address or it
/// has none, and it can remove only its own.
#[derive(Default)]
pub(super) struct WatchedResources {
    wishes: Mutex<BTreeMap<String, HashSet<SessionId>>>,
    /// Subscription requests go to the server one at a time. If two overtook each other, the server's state would
    /// differ from this map.
    telling: tokio::sync::Mutex<()>,
}

impl WatchedResources {
    /// Waits for the turn to change subscriptions.
    pub(super) async fn turn(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.telling.lock().await
    }

    /// Whether no session watches this address yet. `Err`: the limit is reached.
    pub(super) fn is_first(&self, uri: &str) -> Result<bool, ToolFailure> {
        let wishes = self.wishes.lock();
        if wishes.contains_key(uri) {
            return Ok(false);
        }
        if wishes.len() < ADDRESSES {
            return Ok(true);
        }
        let message =
            format!("{ADDRESSES} resources of this server are watched already, which is the limit");
        Err(ToolFailure::of(ErrorClass::RateLimited, message)
            .code("too_many_subscriptions")
            .hint("unsubscribe from some first")
            .untouched())
    }

    /// Adds a subscription of a session.
    pub(super) fn add(&self, session: &SessionId, uri: &str) {
        self.wishes
            .lock()
            .entry(uri.to_owned())
            .or_default()
            .insert(session.clone());
    }

    /// Removes a subscription of a session. Returns whether it was the last one for the address.
    pub(super) fn remove(&self, session: &SessionId, uri: &str) -> bool {
        let mut wishes = self.wishes.lock();
        let Some(wanting) = wishes.get_mut(uri) else {
            return false;
        };
        let last = wanting.remove(session) && wanting.is_empty();
        if last {
            wishes.remove(uri);
        }
        last
    }

    /// Removes all subscriptions of a session. Returns the addresses that no other session watches.
    pub(super) fn forget(&self, session: &SessionId) -> Vec<String> {
        let mut unwanted = Vec::new();
        self.wishes.lock().retain(|uri, wanting| {
            let last = wanting.remove(session) && wanting.is_empty();
            if last {
                unwanted.push(uri.clone());
            }
            !last
        });
        unwanted
    }

    pub(super) fn is_empty(&self) -> bool {
        self.wishes.lock().is_empty()
    }

    pub(super) fn addresses(&self) -> Vec<String> {
        self.wishes.lock().keys().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use toolpost_model::SessionId;

    use super::{ADDRESSES, WatchedResources};

    #[test]
    fn addresses_are_bounded() {
        let watched = WatchedResources::default();
        let session = SessionId::new("a");
        for at in 0..ADDRESSES {
            let uri = format!("x://{at}");
            assert!(watched.is_first(&uri).unwrap());
            watched.add(&session, &uri);
        }
        assert_eq!(
            watched.is_first("x://more").unwrap_err().code.as_deref(),
            Some("too_many_subscriptions")
        );
        assert!(!watched.is_first("x://7").unwrap());
        assert!(watched.remove(&session, "x://7"));
        assert!(watched.is_first("x://more").unwrap());
    }

    #[test]
    fn a_session_takes_back_only_what_is_its_own() {
        let (watched, [a, b]) = (WatchedResources::default(), ["a", "b"].map(SessionId::new));
        for (session, uri) in [(&a, "x://1"), (&a, "x://1"), (&b, "x://1"), (&b, "x://2")] {
            watched.add(session, uri);
        }
        assert!(!watched.remove(&a, "x://2"));
        assert!(!watched.remove(&a, "x://1"));
        assert!(!watched.remove(&a, "x://1"));
        assert_eq!(watched.addresses(), ["x://1", "x://2"]);
        assert!(watched.forget(&a).is_empty());
        assert_eq!(watched.forget(&b), ["x://1", "x://2"]);
        assert!(watched.addresses().is_empty());
    }
}
