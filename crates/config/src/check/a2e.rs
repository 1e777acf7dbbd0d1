//! `a2e`: the host's name for agents, and plausible sizes.

use crate::{A2eSection, ByteSize, LocatedValue, error::ConfigComplaint, snippet::printable};

use super::limits::{check_range, size};

/// The most characters of a name, so that it fits on a line beside other text.
const LONGEST_HOST_ID: usize = 64;

pub(super) fn check(a2e: &A2eSection, complaints: &mut Vec<ConfigComplaint>) {
    complaints.extend(
        a2e.host_id
            .as_ref()
            .and_then(|id| host_id_complaint("a2e.host_id", id)),
    );
    check_audit_size("a2e.audit.max_bytes", a2e.audit.max_bytes, complaints);
    check_backup_count("a2e.audit.backup_count", a2e.audit.backup_count, complaints);
}

/// The id is sent to agents and ends up in their logs.
pub(crate) fn host_id_complaint(key: &str, id: &LocatedValue<String>) -> Option<ConfigComplaint> {
    let length = id.value.chars().count();
    let message = if id.value.trim().is_empty() {
        format!("`{key}` is empty")
    } else if length > LONGEST_HOST_ID {
        format!("`{key}` has {length} characters; it can have up to {LONGEST_HOST_ID}")
    } else if id.value.chars().any(|c| printable(c) != [c]) {
        format!("`{key}` holds a character that cannot be printed")
    } else {
        return None;
    };
    Some(ConfigComplaint::new(id.at, message))
}

/// A file of less than a kibibyte would be moved aside at every other line.
pub(crate) fn check_audit_size(
    key: &str,
    written: Option<LocatedValue<ByteSize>>,
    complaints: &mut Vec<ConfigComplaint>,
) {
    check_range(key, written, size(1 << 10)..=size(1 << 40), complaints);
}

/// Each older file costs a rename whenever the log is rotated.
pub(crate) fn check_backup_count(
    key: &str,
    written: Option<LocatedValue<u32>>,
    complaints: &mut Vec<ConfigComplaint>,
) {
    check_range(key, written, 0..=1000, complaints);
}
