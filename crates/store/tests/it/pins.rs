//! Definitions that somebody accepted.

use std::{
    fs, os::unix::fs::MetadataExt as _, os::unix::fs::PermissionsExt as _, os::unix::fs::symlink,
};

use toolpost_core::PinStore;
use toolpost_store::{DataDir, PinFiles};

#[test]
fn what_was_accepted_is_there_for_the_next_host() {
    let folder = tempfile::tempdir().unwrap();
    let data_dir = DataDir::open(&folder.path().join("data")).unwrap();
    let pins = PinFiles::new(&data_dir);
    assert_eq!(pins.load("github").unwrap(), None);
    assert!(!pins.forget("github").unwrap());
    assert!(
        !data_dir.path().join("pins").exists(),
        "nothing to say makes no folder"
    );
    pins.keep("github", "{\"tools\":1}").unwrap();
    pins.keep("other", "ø \u{202e} \n").unwrap();
    pins.keep("github", "{\"tools\":2}").unwrap();
    let again = PinFiles::new(&data_dir);
    assert_eq!(
        again.load("github").unwrap().as_deref(),
        Some("{\"tools\":2}")
    );
    assert_eq!(
        again.load("other").unwrap().as_deref(),
        Some("ø \u{202e} \n")
    );
    let path = pins.path("github");
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o600);
    assert_eq!(
        fs::metadata(path.parent().unwrap()).unwrap().mode() & 0o7777,
        0o700
    );
    assert_eq!(
        fs::read_dir(path.parent().unwrap()).unwrap().count(),
        2,
        "nothing is left over"
    );
    assert!(pins.forget("github").unwrap());
    assert_eq!(pins.load("github").unwrap(), None);
}

#[test]
fn names_that_would_lead_elsewhere_stay_in_the_folder() {
    let folder = tempfile::tempdir().unwrap();
    let data_dir = DataDir::open(&folder.path().join("data")).unwrap();
    let pins = PinFiles::new(&data_dir);
    let long = "x".repeat(400);
    for name in [
        "../token",
        "/etc/passwd",
        "",
        ".",
        "a/b",
        "a\0b",
        "ü",
        &long,
    ] {
        assert_eq!(
            pins.path(name).parent().unwrap(),
            data_dir.path().join("pins"),
            "{name:?}"
        );
        pins.keep(name, name).unwrap();
        assert_eq!(pins.load(name).unwrap().as_deref(), Some(name));
    }
    assert_ne!(pins.path("a/b"), pins.path("a\0b"));
}

#[test]
fn a_file_that_cannot_be_relied_on_counts_for_nothing_and_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let data_dir = DataDir::open(&folder.path().join("data")).unwrap();
    let pins = PinFiles::new(&data_dir);
    pins.keep("github", "{\"tools\":[\"a\"]}").unwrap();
    let path = pins.path("github");
    let good = fs::read_to_string(&path).unwrap();
    let edited = good.replace("[\\\"a\\\"]", "[\\\"b\\\"]");
    assert_ne!(edited, good);
    for bad in [
        "",
        "{",
        "{}",
        "[]",
        &good[..good.len() / 2],
        &edited,
        &good.replace("sha256", "sha1"),
    ] {
        fs::write(&path, bad).unwrap();
        let error = pins.load("github").unwrap_err().to_string();
        assert!(
            error.contains("is damaged") && error.contains("`github`"),
            "{bad:?}: {error}"
        );
        assert_eq!(
            fs::read_to_string(&path).unwrap(),
            bad,
            "a person must see what happened"
        );
    }
    fs::write(&path, &good).unwrap();
    for mode in [0o644, 0o660, 0o602] {
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        assert!(
            pins.load("github")
                .unwrap_err()
                .to_string()
                .contains("other users"),
            "{mode:o}"
        );
    }
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    fs::rename(&path, pins.path("gitlab")).unwrap();
    assert!(
        pins.load("gitlab")
            .unwrap_err()
            .to_string()
            .contains("another source")
    );
    fs::write(folder.path().join("elsewhere"), &good).unwrap();
    symlink(folder.path().join("elsewhere"), &path).unwrap();
    assert!(
        pins.load("github").is_err(),
        "a link leads where somebody else may write"
    );
    // Keeping puts a file in the place of the link and leaves what it led to alone.
    pins.keep("github", "{}").unwrap();
    assert_eq!(pins.load("github").unwrap().as_deref(), Some("{}"));
    assert_eq!(
        fs::read_to_string(folder.path().join("elsewhere")).unwrap(),
        good
    );
}
