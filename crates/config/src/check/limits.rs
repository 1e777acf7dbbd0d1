//! `limits`: refuses zero, and numbers so large that they limit nothing.

use std::{fmt::Display, ops::RangeInclusive, time::Duration};

use crate::{
    ByteSize, ConfigDuration, LimitsSection, LocatedValue, Percentage, error::ConfigComplaint,
};

/// The largest plausible number of concurrent things.
const MANY: usize = 1_000_000;
/// The longest plausible wait.
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

pub(super) fn check(limits: &LimitsSection, complaints: &mut Vec<ConfigComplaint>) {
    let counts = [
        ("limits.concurrency", limits.concurrency),
        ("limits.session_concurrency", limits.session_concurrency),
        ("limits.queue", limits.queue),
        ("limits.sessions", limits.sessions),
        ("limits.streams", limits.streams),
        ("limits.processes", limits.processes),
    ];
    for (key, count) in counts {
        check_count(key, count, complaints);
    }
    // Agents must keep a part, and a usable one each.
    check_range(
        "limits.share",
        limits.share,
        Percentage::new(1)..=Percentage::new(100),
        complaints,
    );
    let reserve = limits.operator_reserve;
    check_range(
        "limits.operator_reserve",
        reserve,
        Percentage::new(0)..=Percentage::new(90),
        complaints,
    );
    check_chars("limits.inline_chars", limits.inline_chars, complaints);
    check_deadline("limits.deadline", limits.deadline, complaints);
    check_deadline(
        "limits.deadline_ceiling",
        limits.deadline_ceiling,
        complaints,
    );
    check_lifetime("limits.session_idle", limits.session_idle, complaints);
    check_range(
        "limits.journal",
        limits.journal,
        size(1 << 20)..=size(1 << 50),
        complaints,
    );
    check_range(
        "limits.artifacts",
        limits.artifacts,
        size(1 << 20)..=size(1 << 50),
        complaints,
    );
    check_range(
        "limits.artifact",
        limits.artifact,
        size(1 << 10)..=size(1 << 50),
        complaints,
    );
    check_range(
        "limits.argument_bytes",
        limits.argument_bytes,
        size(1 << 10)..=size(1 << 30),
        complaints,
    );
}

/// Checks a number of concurrent things.
pub(crate) fn check_count(
    key: &str,
    count: Option<LocatedValue<usize>>,
    complaints: &mut Vec<ConfigComplaint>,
) {
    check_range(key, count, 1..=MANY, complaints);
}

/// Checks a number of characters that may be shown whole.
pub(super) fn check_chars(
    key: &str,
    chars: Option<LocatedValue<usize>>,
    complaints: &mut Vec<ConfigComplaint>,
) {
    check_range(key, chars, 1..=100_000_000, complaints);
}

/// Checks the time limit of a call.
pub(super) fn check_deadline(
    key: &str,
    written: Option<LocatedValue<ConfigDuration>>,
    complaints: &mut Vec<ConfigComplaint>,
) {
    check_range(
        key,
        written,
        time(Duration::from_millis(1))..=time(DAY),
        complaints,
    );
}

/// Checks how long data is kept.
pub(super) fn check_lifetime(
    key: &str,
    written: Option<LocatedValue<ConfigDuration>>,
    complaints: &mut Vec<ConfigComplaint>,
) {
    check_range(
        key,
        written,
        time(Duration::from_secs(1))..=time(365 * DAY),
        complaints,
    );
}

/// Reports a value outside of its plausible range.
pub(super) fn check_range<T: PartialOrd + Display>(
    key: &str,
    written: Option<LocatedValue<T>>,
    range: RangeInclusive<T>,
    complaints: &mut Vec<ConfigComplaint>,
) {
    let Some(LocatedValue { value, at }) = written else {
        return;
    };
    if !range.contains(&value) {
        let message = format!(
            "`{key}` is {value}; it must be between {} and {}",
            range.start(),
            range.end()
        );
        complaints.push(ConfigComplaint::new(at, message));
    }
}

pub(super) fn size(bytes: u64) -> ByteSize {
    ByteSize::new(bytes)
}

fn time(duration: Duration) -> ConfigDuration {
    ConfigDuration::new(duration)
}
