//! The last good text of configuration files.

use std::{fs, os::unix::fs::PermissionsExt, path::Path};

use toolpost_store::{DataDir, LastGood, LastGoodError};

#[test]
fn texts_are_kept_per_file_and_forgotten_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let data_dir = DataDir::open(&folder.path().join("d")).unwrap();
    let one = Path::new("/w/toolpost.yaml");
    let two = Path::new("/h/toolpost.yaml");
    let kept = LastGood::of(&data_dir);
    assert_eq!(kept.text(one).unwrap(), None);
    kept.keep([(one, "mode: plan\n"), (two, "")]).unwrap();
    assert_eq!(kept.text(one).unwrap().as_deref(), Some("mode: plan\n"));
    assert_eq!(
        LastGood::of(&data_dir).text(two).unwrap().as_deref(),
        Some("")
    );
    kept.keep([(two, "mode: edits\n")]).unwrap();
    assert_eq!(
        (kept.text(one).unwrap(), kept.text(two).unwrap().as_deref()),
        (None, Some("mode: edits\n"))
    );
    let mode = fs::metadata(folder.path().join("d/last-good.json"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn a_damaged_list_is_told_of_and_can_be_written_anew() {
    let folder = tempfile::tempdir().unwrap();
    let data_dir = DataDir::open(&folder.path().join("d")).unwrap();
    let kept = LastGood::of(&data_dir);
    let file = Path::new("/w/toolpost.yaml");
    kept.keep([(file, "x")]).unwrap();
    let path = folder.path().join("d/last-good.json");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();
    assert!(
        matches!(kept.text(file), Err(LastGoodError::Damaged { .. })),
        "others could have written it"
    );
    fs::remove_file(&path).unwrap();
    fs::write(&path, "{").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    assert!(matches!(
        kept.text(file),
        Err(LastGoodError::Damaged { .. })
    ));
    kept.keep([(file, "y")]).unwrap();
    assert_eq!(kept.text(file).unwrap().as_deref(), Some("y"));
}
