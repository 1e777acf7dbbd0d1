//! The token: made once, kept private, refused where it was not.

use std::{
    fs::{self, Permissions},
    os::unix::fs::{MetadataExt, PermissionsExt, symlink},
};

use toolpost_store::{DataDir, TokenError, load_or_create_token, load_token};

#[test]
fn it_is_made_once_and_found_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data");
    let host = DataDir::open(&path).unwrap();
    let command = DataDir::at(&path).unwrap();
    assert_eq!(load_token(&command).unwrap(), None);
    assert!(matches!(
        load_or_create_token(&command).unwrap_err(),
        TokenError::NotOurs { .. }
    ));
    let token = load_or_create_token(&host).unwrap();
    assert!(token.starts_with("tp_") && token.len() == 3 + 43, "{token}");
    assert!(
        token
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'),
        "{token}"
    );
    assert_eq!(load_or_create_token(&host).unwrap(), token);
    assert_eq!(load_token(&command).unwrap(), Some(token.clone()));
    drop(host);
    assert_eq!(
        load_or_create_token(&DataDir::open(&path).unwrap()).unwrap(),
        token
    );
    assert_eq!(
        fs::metadata(path.join("token")).unwrap().mode() & 0o7777,
        0o600
    );
    let names: Vec<_> = fs::read_dir(&path)
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(names.len(), 2, "only lock and token are left: {names:?}");
    let other = DataDir::open(&folder.path().join("other")).unwrap();
    assert_ne!(load_or_create_token(&other).unwrap(), token);
}

#[test]
fn a_token_that_others_could_read_or_that_is_none_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let host = DataDir::open(&folder.path().join("data")).unwrap();
    let token = load_or_create_token(&host).unwrap();
    let check = |content: &str, mode: u32, expected: Option<fn(&TokenError) -> bool>| {
        fs::remove_file(host.token_path()).unwrap();
        fs::write(host.token_path(), content).unwrap();
        fs::set_permissions(host.token_path(), Permissions::from_mode(mode)).unwrap();
        match (load_or_create_token(&host), expected) {
            (Ok(found), None) => assert_eq!(found, token),
            (Err(error), Some(expected)) => {
                assert!(expected(&error), "{error:?}");
                assert!(error.to_string().contains("hint: delete it"), "{error}");
                assert!(
                    !format!("{error} {error:?}").contains(&token),
                    "the error tells the token"
                );
            }
            (outcome, _) => panic!("{content:?} {mode:o}: {outcome:?}"),
        }
    };
    check(
        &token,
        0o644,
        Some(|error| matches!(error, TokenError::OpenToOthers { mode: 0o644, .. })),
    );
    check(
        &token,
        0o640,
        Some(|error| matches!(error, TokenError::OpenToOthers { .. })),
    );
    check(&format!("{token}\n"), 0o600, None);
    check(&token, 0o400, None);
    for bad in [
        "",
        "tp_",
        "secret",
        &token[3..],
        &token[..40],
        &format!("{token}x"),
        &format!("{token} x"),
    ] {
        check(
            bad,
            0o600,
            Some(|error| matches!(error, TokenError::Malformed { .. })),
        );
    }
    fs::rename(host.token_path(), host.path().join("elsewhere")).unwrap();
    symlink("elsewhere", host.token_path()).unwrap();
    assert!(
        matches!(
            load_or_create_token(&host).unwrap_err(),
            TokenError::Io { .. }
        ),
        "a link"
    );
}
