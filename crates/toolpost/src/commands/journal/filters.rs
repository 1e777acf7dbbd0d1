//! The filters of `tail` and `search`, and their formats of times.

use clap::Args;
use jiff::{SignedDuration, Timestamp, civil::Date, tz::TimeZone};
use toolpost_config::ConfigDuration;
use toolpost_core::{Query, ToolQueryPattern};
use toolpost_model::{Outcome, SessionId};

use crate::environment;

/// The selected calls.
#[derive(Args, Clone, Debug)]
pub(super) struct FilterArgs {
    /// Calls of a tool: its name, its id, or a pattern in which `*` matches any text
    #[arg(long, value_name = "PATTERN")]
    tool: Option<String>,
    /// Calls of one caller
    #[arg(long, value_name = "NAME")]
    principal: Option<String>,
    /// Calls with this outcome: succeeded, partial, failed, denied, rejected, canceled, timed_out, unknown
    #[arg(long, value_name = "OUTCOME", value_parser = outcome)]
    outcome: Option<Outcome>,
    /// Calls with this correlation id
    #[arg(long, value_name = "ID")]
    correlation: Option<String>,
    /// Calls of one session
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// At or after this time: an age (`2h`, `30d`), a day (`2026-11-16`) or a time (`2026-11-16T08:30:00Z`)
    #[arg(long, value_name = "WHEN", value_parser = moment)]
    since: Option<Timestamp>,
    /// Before this time, in the same forms
    #[arg(long, value_name = "WHEN", value_parser = moment)]
    until: Option<Timestamp>,
}

impl FilterArgs {
    /// Whether no filter is set.
    pub(super) fn is_empty(&self) -> bool {
        self.query(0) == Query::newest(0)
    }

    pub(super) fn query(&self, limit: usize) -> Query {
        Query {
            tool: self.tool.clone().map(ToolQueryPattern::new),
            principal: self.principal.clone(),
            outcome: self.outcome,
            correlation: self.correlation.clone(),
            session: self.session.clone().map(SessionId::new),
            since: self.since,
            until: self.until,
            before: None,
            limit,
        }
    }
}

fn outcome(word: &str) -> Result<Outcome, String> {
    serde_json::from_value(word.into()).map_err(|_| {
        "the outcomes are succeeded, partial, failed, denied, rejected, canceled, timed_out, unknown".to_owned()
    })
}

/// A point in time: an age, the start of a day in UTC, or a time.
pub(in crate::commands) fn moment(text: &str) -> Result<Timestamp, String> {
    let not_one =
        || "give an age (`2h`, `30d`), a day (`2026-11-16`) or a time with its zone".to_owned();
    if let Ok(ago) = text.parse::<ConfigDuration>() {
        let ago =
            SignedDuration::try_from(std::time::Duration::from(ago)).map_err(|_| not_one())?;
        return environment::now().checked_sub(ago).map_err(|_| not_one());
    }
    if let Ok(time) = text.parse::<Timestamp>() {
        return Ok(time);
    }
    let day = text.parse::<Date>().map_err(|_| not_one())?;
    let start = day.to_zoned(TimeZone::UTC).map_err(|_| not_one())?;
    Ok(start.timestamp())
}

#[cfg(test)]
mod tests {
    use super::moment;

    #[test]
    fn moments_are_ages_days_and_times() {
        let check = |text: &str, expected: Option<&str>| {
            assert_eq!(
                moment(text).ok().map(|at| at.to_string()).as_deref(),
                expected,
                "{text}"
            );
        };
        check("2026-11-16", Some("2026-11-16T00:00:00Z"));
        check("2026-11-16T08:30:00Z", Some("2026-11-16T08:30:00Z"));
        check("2026-11-16T08:30:00+02:00", Some("2026-11-16T06:30:00Z"));
        check("yesterday", None);
        check("", None);
        check("99999999999h", None);
        assert!(moment("2h").unwrap() < moment("1h").unwrap());
    }
}
