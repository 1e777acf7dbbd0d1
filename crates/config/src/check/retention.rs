//! `retention`: refuses times so short that data would be removed before an operator could read it.

use std::time::Duration;

use super::limits::{check_range, size};
use crate::{ConfigDuration, RetentionSection, error::ConfigComplaint};

const MINUTE: Duration = Duration::from_secs(60);
const TEN_YEARS: Duration = Duration::from_secs(3650 * 24 * 60 * 60);

pub(super) fn check(retention: &RetentionSection, complaints: &mut Vec<ConfigComplaint>) {
    let range = || ConfigDuration::new(MINUTE)..=ConfigDuration::new(TEN_YEARS);
    check_range(
        "retention.artifacts",
        retention.artifacts,
        range(),
        complaints,
    );
    check_range(
        "retention.journal.age",
        retention.journal.age,
        range(),
        complaints,
    );
    check_range(
        "retention.journal.size",
        retention.journal.size,
        size(1 << 20)..=size(1 << 50),
        complaints,
    );
}
