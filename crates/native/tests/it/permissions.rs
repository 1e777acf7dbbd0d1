//! What the system forbids. The superuser is forbidden nothing, so these run without its capabilities.

use std::{fs, os::unix::fs::PermissionsExt};

use rustix::thread::{CapabilitySet, capabilities, set_capabilities};
use serde_json::json;
use toolpost_model::ErrorClass;

use crate::desk::{Desk, structured, text};

/// Runs `test` on a thread that may not override file permissions; the workers it starts inherit that.
pub(crate) fn as_ordinary_user(test: impl FnOnce(Desk) + Send) {
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut sets = capabilities(None).unwrap();
            let overriding = CapabilitySet::DAC_OVERRIDE
                | CapabilitySet::DAC_READ_SEARCH
                | CapabilitySet::FOWNER;
            sets.effective -= overriding;
            sets.permitted -= overriding;
            set_capabilities(None, sets).unwrap();
            test(Desk::new());
        });
    });
}

pub(crate) fn set_mode(desk: &Desk, name: &str, mode: u32) {
    fs::set_permissions(desk.path(name), fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn a_file_that_may_not_be_read_says_so() {
    as_ordinary_user(|desk| {
        desk.file("closed.txt", "x");
        desk.file("closed/a.txt", "x");
        set_mode(&desk, "closed.txt", 0o000);
        set_mode(&desk, "closed", 0o000);
        for path in ["closed.txt", "closed/a.txt"] {
            let failed = desk.read(path).unwrap_err();
            assert_eq!(
                (failed.class, failed.code.as_str()),
                (ErrorClass::ExecutionFailed, "permission_denied")
            );
            assert!(
                failed
                    .message
                    .starts_with(&format!("cannot open `{path}`: ")),
                "{failed:?}"
            );
        }
        let output = desk
            .call("files.list_directory", json!({ "depth": 2 }))
            .unwrap();
        assert_eq!(text(&output), "closed/ (cannot be read)\nclosed.txt\n");
        assert_eq!(structured(&output)["entries"][0]["unreadable"], true);
        set_mode(&desk, "closed", 0o700);
    });
}

#[test]
fn a_file_that_may_not_be_written_is_not_replaced_behind_its_owner_s_back() {
    as_ordinary_user(|desk| {
        desk.file("fixed.txt", "old");
        desk.file("fixed/a.txt", "old");
        set_mode(&desk, "fixed.txt", 0o444);
        set_mode(&desk, "fixed", 0o555);
        let before = desk.snapshot();
        for path in [
            "fixed.txt",
            "fixed/a.txt",
            "fixed/new.txt",
            "fixed/new/new.txt",
        ] {
            let arguments = json!({ "path": path, "content": "new", "create_directories": true });
            let failed = desk.call("files.write_file", arguments).unwrap_err();
            assert_eq!(
                (failed.code.as_str(), failed.untouched),
                ("permission_denied", true),
                "{failed:?}"
            );
        }
        assert_eq!(desk.snapshot(), before);
    });
}

#[test]
fn a_file_that_may_only_be_written_is_written() {
    as_ordinary_user(|desk| {
        desk.file("drop.txt", "old");
        set_mode(&desk, "drop.txt", 0o200);
        let output = desk.write("drop.txt", "new").unwrap();
        assert!(structured(&output).get("previous_sha256").is_none());
        set_mode(&desk, "drop.txt", 0o600);
        assert_eq!(fs::read_to_string(desk.path("drop.txt")).unwrap(), "new");
    });
}
