//! `approvals`: refuses endless waits.

use std::time::Duration;

use super::limits::{check_count, check_range};
use crate::{ApprovalsSection, ConfigDuration, error::ConfigComplaint};

const WEEK: Duration = Duration::from_secs(7 * 24 * 60 * 60);

pub(super) fn check(approvals: &ApprovalsSection, complaints: &mut Vec<ConfigComplaint>) {
    let range = || ConfigDuration::new(Duration::from_millis(1))..=ConfigDuration::new(WEEK);
    check_range("approvals.timeout", approvals.timeout, range(), complaints);
    check_count("approvals.waiting", approvals.waiting, complaints);
    check_range(
        "approvals.grant_for",
        approvals.grant_for,
        range(),
        complaints,
    );
}
