//! `audit` and `audit_log_path`: the file with a line per request.

use std::path::PathBuf;

use crate::{
    AuditSection, ByteSize, LocatedValue,
    check::{
        a2e::{check_audit_size, check_backup_count},
        path_complaint,
    },
};

use crate::reading::{ConfigTable, ConfigTreeReader};

pub(super) fn read(root: &mut ConfigTable, reading: &mut ConfigTreeReader<'_>) -> AuditSection {
    let elsewhere = path(root, "audit_log_path", reading);
    let Some(mut audit) = reading.table(root, "audit") else {
        return AuditSection {
            path: taken(elsewhere, reading),
            ..AuditSection::default()
        };
    };
    let enabled = reading.flag(&mut audit, "enabled");
    let own = path(&mut audit, "path", reading);
    let rotation = rotation(&mut audit, reading);
    // Audit lines always have the id of the session; this key cannot change it.
    audit.take_entry("session_id_source");
    reading.name_the_rest(
        &audit,
        "A2E",
        &["enabled", "path", "rotate", "session_id_source"],
    );
    let path = match (enabled.map(|enabled| enabled.value), own, elsewhere) {
        (Some(true), Some(own), elsewhere) => {
            unused(
                elsewhere,
                "audit_log_path",
                "`audit.path` overrides it",
                reading,
            );
            Some(own)
        }
        // The file does not disable the audit, and names a place for it.
        (Some(true) | None, None, Some(elsewhere)) => taken(Some(elsewhere), reading),
        (Some(true), None, None) => {
            unused(enabled, "audit.enabled", "`audit.path` is missing", reading);
            None
        }
        (Some(false) | None, own, elsewhere) => {
            unused(own, "audit.path", "`audit.enabled` is not true", reading);
            unused(
                elsewhere,
                "audit_log_path",
                "`audit.enabled` is not true",
                reading,
            );
            None
        }
    };
    AuditSection { path, ..rotation }
}

/// The size at which the file is moved aside. In other hosts zero means never.
fn rotation(audit: &mut ConfigTable, reading: &mut ConfigTreeReader<'_>) -> AuditSection {
    let Some(mut rotate) = reading.table(audit, "rotate") else {
        return AuditSection::default();
    };
    let max_bytes = reading.whole::<u64>(&mut rotate, "max_bytes");
    let max_bytes = max_bytes.map(|LocatedValue { value, at }| LocatedValue {
        value: ByteSize::new(value),
        at,
    });
    check_audit_size("audit.rotate.max_bytes", max_bytes, &mut reading.complaints);
    let backup_count = reading.whole::<u32>(&mut rotate, "backup_count");
    check_backup_count(
        "audit.rotate.backup_count",
        backup_count,
        &mut reading.complaints,
    );
    if let Some(LocatedValue { value: 0, at }) = backup_count {
        let message = "`audit.rotate.backup_count` is 0: a full audit file is emptied, and its \
                       lines are lost";
        reading.notice(
            at,
            "audit.rotate.backup_count".to_owned(),
            message.to_owned(),
        );
    }
    reading.name_the_rest(&rotate, "A2E", &["max_bytes", "backup_count"]);
    AuditSection {
        path: None,
        max_bytes,
        backup_count,
    }
}

fn path(
    table: &mut ConfigTable,
    key: &str,
    reading: &mut ConfigTreeReader<'_>,
) -> Option<LocatedValue<PathBuf>> {
    let LocatedValue { value, at } = reading.text(table, key)?;
    let path = LocatedValue {
        value: PathBuf::from(value),
        at,
    };
    let complaint = path_complaint(&table.path_of(key), &path);
    reading.complain_if(complaint).then_some(path)
}

/// The path in the key that other hosts declare but do not read.
fn taken(
    elsewhere: Option<LocatedValue<PathBuf>>,
    reading: &mut ConfigTreeReader<'_>,
) -> Option<LocatedValue<PathBuf>> {
    if let Some(path) = &elsewhere {
        let message = "`audit_log_path` is used as `audit.path`, and the audit is enabled";
        reading.notice(path.at, "audit_log_path".to_owned(), message.to_owned());
    }
    elsewhere
}

fn unused<T>(
    written: Option<LocatedValue<T>>,
    key: &str,
    why: &str,
    reading: &mut ConfigTreeReader<'_>,
) {
    if let Some(written) = written {
        reading.ignored(written.at, key.to_owned(), why);
    }
}
