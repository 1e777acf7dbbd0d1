//! The wall clock. The only module of this crate that reads it.
#![expect(
    clippy::disallowed_methods,
    reason = "the one module that reads the clock"
)]

use std::time::{SystemTime, UNIX_EPOCH};

use jiff::Timestamp;

pub(crate) fn unix_seconds() -> f64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0.0, |time| time.as_secs_f64())
}

pub(crate) fn now() -> Timestamp {
    Timestamp::now()
}
