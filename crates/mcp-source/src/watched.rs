//! The resources whose changes are wanted over one way to a server, and by which sessions.

use std::collections::{BTreeMap, HashSet};

use parking_lot::Mutex;
use toolpost_model::{ErrorClass, SessionId, ToolFailure};

/// How many addresses are watched at most.
const ADDRESSES: usize = 1_024;

/// The addresses, and who wants to hear of each. Wishes are not counted: a session wants an address or it does not, and
/// takes back nothing but its own.
#[derive(Default)]
pub(super) struct WatchedResources {
    wishes: Mutex<BTreeMap<String, HashSet<SessionId>>>,
    /// What is told to the server goes one by one: a word that overtakes another would undo it.
    telling: tokio::sync::Mutex<()>,
}

impl WatchedResources {
    /// Waits for the turn to change something.
    pub(super) async fn turn(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.telling.lock().await
    }

    /// Whether nobody wants this one yet. `Err`: there is no room for it.
    pub(super) fn is_first(&self, uri: &str) -> Result<bool, ToolFailure> {
        let wishes = self.wishes.lock();
        if wishes.contains_key(uri) {
            return Ok(false);
        }
        if wishes.len() < ADDRESSES {
            return Ok(true);
        }
        let message =
            format!("{ADDRESSES} resources of this server are watched already, and no more can be");
        Err(ToolFailure::of(ErrorClass::RateLimited, message)
            .code("too_many_subscriptions")
            .hint("unsubscribe from some first")
            .untouched())
    }

    /// A session wants it.
    pub(super) fn add(&self, session: &SessionId, uri: &str) {
        self.wishes
            .lock()
            .entry(uri.to_owned())
            .or_default()
            .insert(session.clone());
    }

    /// A session wants it no longer. Whether that was the last one that did.
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

    /// A session wants nothing any more. What nobody else wants either.
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

    /// All of them.
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
