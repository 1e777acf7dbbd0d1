//! Refused requests: counted, logged at intervals, and answered with increasing delay if an address fails repeatedly.
//!
//! Only refusals are delayed. Admitted requests never reach this code, so a valid token is never delayed, even if other
//! requests from its address fail. The contents of a refused request are neither kept nor logged, not even their
//! length.

use std::{
    collections::HashMap,
    fmt,
    net::{IpAddr, Ipv6Addr},
    sync::{
        Arc, Weak,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use serde_json::{Map, Value};
use tokio::{
    sync::Semaphore,
    time::{Instant, MissedTickBehavior, interval},
};

/// The most addresses with their own entry. Further ones share an entry.
const MOST_ADDRESSES: usize = 4_096;
/// The most refusals that are delayed at the same time; further ones are answered at once.
const MOST_SLOWED: usize = 128;
/// Each address logs at most one line in this time, and all addresses together at most `MOST_LINES`.
const LOG_EVERY: Duration = Duration::from_secs(60);
const MOST_LINES: usize = 64;
/// The time without a refusal after which an address starts again without delay.
const FORGIVEN_AFTER: Duration = Duration::from_secs(300);
/// The number of refusals of an address that are answered at once. This covers typing errors, programs that were not
/// restarted yet, and the clients of one machine after their sessions ended.
const AT_ONCE: u32 = 16;
/// The first delay, and the longest. Tokens cannot be guessed at any speed; the delay keeps a client that retries in a
/// loop from using up the processor and the log.
const FIRST_DELAY: Duration = Duration::from_millis(25);
const LONGEST_DELAY: Duration = Duration::from_millis(500);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TurnedAway {
    MissingToken,
    WrongToken,
    /// The request is meant for another host, or comes from a page of another site.
    ForeignOrigin,
    /// The A2E session in the request is unknown: the session's id is the credential.
    UnknownSession,
}

impl TurnedAway {
    const ALL: [Self; 4] = [
        Self::MissingToken,
        Self::WrongToken,
        Self::ForeignOrigin,
        Self::UnknownSession,
    ];

    fn as_str(self) -> &'static str {
        match self {
            Self::MissingToken => "missing_token",
            Self::WrongToken => "wrong_token",
            Self::ForeignOrigin => "foreign_origin",
            Self::UnknownSession => "unknown_session",
        }
    }
}

/// The origin of requests. An IPv6 network counts as one origin, because a caller can use all of its addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum RemoteNetwork {
    Address(IpAddr),
    /// The first 64 bits.
    Prefix(Ipv6Addr),
    /// All addresses without their own entry.
    Others,
}

impl RemoteNetwork {
    fn of(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V6(v6) if !v6.is_loopback() => {
                Self::Prefix(Ipv6Addr::from_bits(v6.to_bits() & (u128::MAX << 64)))
            }
            other => Self::Address(other),
        }
    }
}

impl fmt::Display for RemoteNetwork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(address) => address.fmt(f),
            Self::Prefix(prefix) => write!(f, "{prefix}/64"),
            Self::Others => f.write_str("other addresses"),
        }
    }
}

struct AddressRefusals {
    /// The number of consecutive refusals, for the delay.
    streak: u32,
    last: Instant,
    untold: u64,
    latest: TurnedAway,
    told: Option<Instant>,
}

#[derive(Default)]
struct RefusalTable {
    by_network: HashMap<RemoteNetwork, AddressRefusals>,
    /// The number of log lines in the current interval.
    lines: usize,
}

/// All refusals since the host began.
pub(crate) struct RefusedRequests {
    table: Mutex<RefusalTable>,
    counts: [AtomicU64; TurnedAway::ALL.len()],
    slowed: Arc<Semaphore>,
}

#[must_use]
pub(crate) struct RefusalDelay(Option<(Duration, tokio::sync::OwnedSemaphorePermit)>);

impl RefusalDelay {
    /// Whether the refusal is answered at once.
    pub(crate) fn is_none(&self) -> bool {
        self.0.is_none()
    }

    pub(crate) async fn pass(self) {
        if let Some((delay, _place)) = self.0 {
            tokio::time::sleep(delay).await;
        }
    }
}

impl RefusedRequests {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            table: Mutex::default(),
            counts: Default::default(),
            slowed: Arc::new(Semaphore::new(MOST_SLOWED)),
        })
    }

    /// Counts a refusal and returns its delay. A connection without an address comes from a process of this machine and
    /// is not delayed.
    pub(crate) fn note(&self, address: Option<IpAddr>, why: TurnedAway) -> RefusalDelay {
        if let Some(count) = self.counts.get(why as usize) {
            count.fetch_add(1, Ordering::Relaxed);
        }
        let Some(address) = address else {
            return RefusalDelay(None);
        };
        let delay = self
            .table
            .lock()
            .note(RemoteNetwork::of(address), why, Instant::now());
        let place = delay
            .and_then(|delay| Some((delay, Arc::clone(&self.slowed).try_acquire_owned().ok()?)));
        RefusalDelay(place)
    }

    /// The counts, for operators.
    pub(crate) fn counts(&self) -> Value {
        let counted = TurnedAway::ALL.iter().zip(&self.counts);
        let counts = counted.map(|(why, count)| {
            (
                why.as_str().to_owned(),
                count.load(Ordering::Relaxed).into(),
            )
        });
        Value::Object(counts.collect::<Map<_, _>>())
    }

    /// Logs the unlogged refusals, and removes the addresses without recent ones.
    fn look_after(&self) {
        self.table.lock().look_after(Instant::now());
    }
}

impl RefusalTable {
    fn note(&mut self, network: RemoteNetwork, why: TurnedAway, now: Instant) -> Option<Duration> {
        let has_room =
            self.by_network.len() < MOST_ADDRESSES || self.by_network.contains_key(&network);
        let network = if has_room {
            network
        } else {
            RemoteNetwork::Others
        };
        let refusals = self.by_network.entry(network).or_insert(AddressRefusals {
            streak: 0,
            last: now,
            untold: 0,
            latest: why,
            told: None,
        });
        if now.duration_since(refusals.last) >= FORGIVEN_AFTER {
            refusals.streak = 0;
        }
        refusals.streak = refusals.streak.saturating_add(1);
        (refusals.last, refusals.latest) = (now, why);
        refusals.untold += 1;
        if self.lines < MOST_LINES && refusals.is_due(now) {
            refusals.tell(&network, now);
            self.lines += 1;
        }
        delay_after(refusals.streak)
    }

    fn look_after(&mut self, now: Instant) {
        self.lines = 0;
        let mut unwritten = 0_u64;
        for (network, refusals) in &mut self.by_network {
            if refusals.untold == 0 || !refusals.is_due(now) {
                continue;
            }
            if self.lines < MOST_LINES {
                refusals.tell(network, now);
                self.lines += 1;
            } else {
                unwritten += std::mem::take(&mut refusals.untold);
            }
        }
        if unwritten > 0 {
            tracing::warn!(
                count = unwritten,
                "requests from many more addresses were refused"
            );
        }
        self.by_network
            .retain(|_, refusals| now.duration_since(refusals.last) < FORGIVEN_AFTER);
    }
}

impl AddressRefusals {
    fn is_due(&self, now: Instant) -> bool {
        self.told
            .is_none_or(|told| now.duration_since(told) >= LOG_EVERY)
    }

    fn tell(&mut self, network: &RemoteNetwork, now: Instant) {
        let count = std::mem::take(&mut self.untold);
        self.told = Some(now);
        tracing::warn!(address = %network, count, latest = self.latest.as_str(), "requests were refused");
    }
}

/// The delay after a number of consecutive refusals.
fn delay_after(streak: u32) -> Option<Duration> {
    let over = streak.checked_sub(AT_ONCE + 1)?;
    Some(
        FIRST_DELAY
            .saturating_mul(2_u32.saturating_pow(over))
            .min(LONGEST_DELAY),
    )
}

/// Logs the last refusals of addresses that stopped. Ends with the server.
pub(crate) async fn look_after(refused: Weak<RefusedRequests>) {
    let mut minutes = interval(LOG_EVERY);
    minutes.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        minutes.tick().await;
        let Some(refused) = refused.upgrade() else {
            return;
        };
        refused.look_after();
    }
}

/// Notes the refusals of one connection.
#[derive(Clone)]
pub(crate) struct RefusalDesk {
    pub(crate) refused: Arc<RefusedRequests>,
    pub(crate) address: Option<IpAddr>,
}

impl RefusalDesk {
    pub(crate) fn note(&self, why: TurnedAway) -> RefusalDelay {
        self.refused.note(self.address, why)
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use tokio::time::Instant;

    use super::{
        FORGIVEN_AFTER, LONGEST_DELAY, MOST_ADDRESSES, MOST_SLOWED, RefusalTable, RefusedRequests,
        RemoteNetwork, TurnedAway, delay_after,
    };

    #[test]
    fn delays_grow_and_are_bounded() {
        assert!((0..=16).all(|streak| delay_after(streak).is_none()));
        let delays: Vec<_> = (17..=23)
            .map(|streak| delay_after(streak).map_or(0, |d| d.as_millis()))
            .collect();
        assert_eq!(delays, [25, 50, 100, 200, 400, 500, 500]);
        assert_eq!(delay_after(u32::MAX), Some(LONGEST_DELAY));
    }

    #[test]
    fn the_table_is_bounded_and_whoever_behaves_is_forgotten() {
        let mut table = RefusalTable::default();
        let now = Instant::now();
        for number in 0..u32::try_from(2 * MOST_ADDRESSES).unwrap() {
            let network = RemoteNetwork::of(IpAddr::V4(number.into()));
            table.note(network, TurnedAway::WrongToken, now);
        }
        assert_eq!(
            table.by_network.len(),
            MOST_ADDRESSES + 1,
            "the rest is counted together"
        );
        let known = RemoteNetwork::of(IpAddr::V4(1.into()));
        for _ in 0..24 {
            table.note(known, TurnedAway::WrongToken, now);
        }
        assert_eq!(
            table.note(known, TurnedAway::WrongToken, now),
            Some(LONGEST_DELAY)
        );
        let later = now + FORGIVEN_AFTER;
        assert_eq!(
            table.note(known, TurnedAway::WrongToken, later),
            None,
            "it begins anew"
        );
        table.look_after(later);
        assert_eq!(table.by_network.len(), 1);
    }

    #[test]
    fn addresses_of_one_network_are_one() {
        let of = |text: &str| RemoteNetwork::of(text.parse().unwrap());
        assert_eq!(of("2001:db8::1"), of("2001:db8::ffff:1"));
        assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
        assert_eq!(of("::ffff:10.0.0.1"), of("10.0.0.1"));
        assert_eq!(of("2001:db8::1").to_string(), "2001:db8::/64");
    }

    #[tokio::test]
    async fn no_more_than_a_number_are_slowed_at_a_time() {
        let refused = RefusedRequests::new();
        let address = Some(IpAddr::from([10, 0, 0, 1]));
        let delays: Vec<_> = (0..2 * MOST_SLOWED)
            .map(|_| refused.note(address, TurnedAway::WrongToken))
            .collect();
        assert_eq!(
            delays.iter().filter(|delay| !delay.is_none()).count(),
            MOST_SLOWED
        );
        drop(delays);
        let delay = refused.note(address, TurnedAway::WrongToken);
        assert!(!delay.is_none(), "the places come back");
        assert_eq!(refused.counts()["wrong_token"], 2 * MOST_SLOWED as u64 + 1);
        assert!(delay.0.is_some_and(|(delay, _)| delay == LONGEST_DELAY));
    }
}
