//! Moments as people write them.

use jiff::{Span, SpanRelativeTo, Timestamp, civil::Date, tz::TimeZone};

use crate::environment;

/// A moment: so long ago, a day from its beginning in UTC, or a time.
pub(super) fn moment(text: &str) -> Result<Timestamp, String> {
    let not_one =
        || "write so long ago (`2h`, `30d`), a day (`2026-11-16`) or a time with its zone".to_owned();
    if let Ok(time) = text.parse::<Timestamp>() {
        return Ok(time);
    }
    if let Ok(day) = text.parse::<Date>() {
        return day.to_zoned(TimeZone::UTC).map(|start| start.timestamp()).map_err(|_| not_one());
    }
    let ago: Span = text.parse().map_err(|_| not_one())?;
    let ago = ago.to_duration(SpanRelativeTo::days_are_24_hours()).map_err(|_| not_one())?;
    environment::now().checked_sub(ago.abs()).map_err(|_| not_one())
}

#[cfg(test)]
mod tests {
    use super::moment;

    #[test]
    fn moments_are_ages_days_and_times() {
        let check = |text: &str, expected: Option<&str>| {
            assert_eq!(moment(text).ok().map(|at| at.to_string()).as_deref(), expected, "{text}");
        };
        check("2026-11-16", Some("2026-11-16T00:00:00Z"));
        check("2026-11-16T08:30:00Z", Some("2026-11-16T08:30:00Z"));
        check("2026-11-16T08:30:00+02:00", Some("2026-11-16T06:30:00Z"));
        check("yesterday", None);
        check("", None);
        assert!(moment("30d").unwrap() < moment("2h").unwrap());
    }
}
