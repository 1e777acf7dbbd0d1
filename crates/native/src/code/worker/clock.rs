//! `datetime.now()` and `date.today()`: the time in UTC, because a locked-down process cannot read time zones.
#![expect(
    clippy::disallowed_methods,
    reason = "the one place that tells code the time"
)]

use jiff::{Timestamp, ToSpan, civil::DateTime, tz::TimeZone};
use monty_types::{MontyDate, MontyDateTime, MontyObject, MontyTimeZone};

pub(super) fn today() -> MontyObject {
    let now = utc();
    MontyObject::Date(MontyDate {
        year: now.year().into(),
        month: part(now.month()),
        day: part(now.day()),
    })
}

/// The present time in the requested time zone, or without one.
pub(super) fn now(zone: Option<&MontyTimeZone>) -> MontyObject {
    let offset = zone.map_or(0, |zone| zone.offset_seconds);
    let now = utc()
        .checked_add(i64::from(offset).seconds())
        .unwrap_or_else(|_| utc());
    MontyObject::DateTime(MontyDateTime {
        year: now.year().into(),
        month: part(now.month()),
        day: part(now.day()),
        hour: part(now.hour()),
        minute: part(now.minute()),
        second: part(now.second()),
        microsecond: (now.subsec_nanosecond() / 1000).unsigned_abs(),
        offset_seconds: zone.map(|zone| zone.offset_seconds),
        timezone_name: zone.and_then(|zone| zone.name.clone()),
    })
}

fn utc() -> DateTime {
    Timestamp::now().to_zoned(TimeZone::UTC).datetime()
}

/// Converts months, hours and so on, which are never negative.
fn part(value: i8) -> u8 {
    value.unsigned_abs()
}
