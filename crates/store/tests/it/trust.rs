//! The list of trusted files.

use std::{
    fs::{self, Permissions},
    os::unix::fs::{MetadataExt, PermissionsExt, symlink},
    path::Path,
};

use toolpost_store::{DataDir, TrustEntry, TrustError, TrustStore};

#[test]
fn a_file_is_trusted_with_its_content_until_forgotten() {
    let folder = tempfile::tempdir().unwrap();
    let folder_path = folder.path().canonicalize().unwrap();
    let data_dir = DataDir::open(&folder_path.join("data")).unwrap();
    let one = folder_path.join("toolpost.yaml");
    let other = folder_path.join("other.yaml");
    fs::write(&one, "").unwrap();
    let store = TrustStore::open(&data_dir).unwrap();
    assert!(!store.is_trusted(&one, &[1; 32]));
    store.trust(&one, &[1; 32]).unwrap();
    store.trust(&other, &[7; 32]).unwrap();
    assert!(store.is_trusted(&one, &[1; 32]));
    assert!(!store.is_trusted(&one, &[2; 32]), "other content");
    assert!(!store.is_trusted(&other, &[1; 32]), "another file");
    symlink(&one, folder_path.join("link")).unwrap();
    assert!(
        store.is_trusted(&folder_path.join("link"), &[1; 32]),
        "the same file by another name"
    );
    assert!(store.is_trusted(&folder_path.join("data/../toolpost.yaml"), &[1; 32]));
    store.trust(&one, &[2; 32]).unwrap();
    assert!(
        !store.is_trusted(&one, &[1; 32]),
        "the new content takes the old one's place"
    );

    let again = TrustStore::open(&DataDir::at(data_dir.path()).unwrap()).unwrap();
    let expected = [(&other, 7), (&one, 2)].map(|(path, byte)| TrustEntry {
        path: path.clone(),
        digest: [byte; 32],
    });
    assert_eq!(again.list().unwrap(), expected);
    assert!(again.forget(&one).unwrap());
    assert!(!again.forget(&one).unwrap());
    assert!(
        !store.is_trusted(&one, &[2; 32]),
        "a store opened before sees it too"
    );
    assert_eq!(
        fs::metadata(data_dir.path().join("trust.json"))
            .unwrap()
            .mode()
            & 0o7777,
        0o600
    );
}

#[test]
fn a_list_that_cannot_be_relied_on_trusts_nothing_and_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let data_dir = DataDir::open(&folder.path().join("data")).unwrap();
    let file = folder.path().join("toolpost.yaml");
    let store = TrustStore::open(&data_dir).unwrap();
    store.trust(&file, &[1; 32]).unwrap();
    let list = data_dir.path().join("trust.json");
    let good = fs::read_to_string(&list).unwrap();
    let check = |text: &str, mode: u32, expected: fn(&TrustError) -> bool| {
        fs::write(&list, text).unwrap();
        fs::set_permissions(&list, Permissions::from_mode(mode)).unwrap();
        assert!(!store.is_trusted(&file, &[1; 32]), "{text:?}");
        let errors = [
            store.list().err(),
            store.trust(&file, &[1; 32]).err(),
            store.forget(&file).err(),
            TrustStore::open(&data_dir).err(),
        ];
        for error in errors {
            let error = error.unwrap_or_else(|| panic!("{text:?} was taken"));
            assert!(expected(&error), "{error:?}");
            assert!(error.to_string().contains("nothing is trusted"), "{error}");
        }
        assert_eq!(
            fs::read_to_string(&list).unwrap(),
            text,
            "a damaged list was written over"
        );
    };
    let damaged = |error: &TrustError| matches!(error, TrustError::Damaged { .. });
    for text in [
        "",
        "{",
        "[]",
        "{}",
        &good[..good.len() / 2],
        &good.replace("01", "0g"),
        &good.replacen("01", "", 1),
    ] {
        check(text, 0o600, damaged);
    }
    check(&good.replace("\"files\"", "\"fyles\""), 0o600, damaged);
    check(&good, 0o622, |error| {
        matches!(error, TrustError::NotPrivate { .. })
    });
    fs::set_permissions(&list, Permissions::from_mode(0o600)).unwrap();
    assert!(store.is_trusted(&file, &[1; 32]));
}

#[test]
fn a_path_that_json_cannot_carry_is_refused() {
    use std::os::unix::ffi::OsStrExt;
    let folder = tempfile::tempdir().unwrap();
    let store = TrustStore::open(&DataDir::open(&folder.path().join("data")).unwrap()).unwrap();
    let odd = folder
        .path()
        .join(Path::new(std::ffi::OsStr::from_bytes(b"\xff.yaml")));
    assert!(matches!(
        store.trust(&odd, &[1; 32]).unwrap_err(),
        TrustError::Path { .. }
    ));
    assert!(!store.is_trusted(&odd, &[1; 32]));
}

#[test]
fn commands_that_trust_at_once_lose_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let data_dir = DataDir::open(&folder.path().join("data")).unwrap();
    std::thread::scope(|scope| {
        for number in 0..8 {
            let data_dir = &data_dir;
            let folder = folder.path();
            scope.spawn(move || {
                let store = TrustStore::open(data_dir).unwrap();
                store
                    .trust(&folder.join(number.to_string()), &[number; 32])
                    .unwrap();
            });
        }
    });
    assert_eq!(
        TrustStore::open(&data_dir).unwrap().list().unwrap().len(),
        8
    );
}
