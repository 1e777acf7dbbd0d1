//! What people wanted to be remembered.

use std::{fs, os::unix::fs::MetadataExt as _, os::unix::fs::PermissionsExt as _, sync::Arc};

use jiff::{SignedDuration, Timestamp};
use toolpost_core::{RememberedRule, RuleStore};
use toolpost_model::{InvocationId, PrincipalName};
use toolpost_store::{DataDir, RulesFile};

fn rule(line: &str) -> RememberedRule {
    let ask_id = InvocationId::new();
    let at = Timestamp::from_second(1_800_000_000).unwrap();
    RememberedRule {
        id: ask_id.to_string(),
        rule: line.to_owned(),
        principal: None,
        by: PrincipalName::new("ann"),
        at,
        expires: at + SignedDuration::from_hours(24),
        ask_id,
        tool_id: None,
        definition: None,
    }
}

#[test]
fn what_is_remembered_is_there_for_the_next_host_until_it_is_forgotten() {
    let folder = tempfile::tempdir().unwrap();
    let data_dir = DataDir::open(&folder.path().join("data")).unwrap();
    let store = RulesFile::new(&data_dir);
    assert_eq!(store.load().unwrap(), []);
    assert!(!store.forget("nothing").unwrap());
    assert!(!store.path().exists(), "nothing to say makes no file");

    let one = rule("allow shell(git push *)");
    let mut two = rule("allow act");
    two.principal = Some("agent-*".to_owned());
    store.remember(std::slice::from_ref(&one)).unwrap();
    store.remember(std::slice::from_ref(&two)).unwrap();
    assert_eq!(fs::metadata(store.path()).unwrap().mode() & 0o7777, 0o600);
    let mut longer = one;
    longer.expires += SignedDuration::from_hours(1);
    store.remember(std::slice::from_ref(&longer)).unwrap();
    assert_eq!(
        RulesFile::new(&data_dir).load().unwrap(),
        [two.clone(), longer.clone()]
    );

    assert!(store.forget(&two.id).unwrap());
    assert!(!store.forget(&two.id).unwrap());
    assert_eq!(RulesFile::new(&data_dir).load().unwrap(), [longer]);
    let left: Vec<_> = fs::read_dir(data_dir.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert!(
        !left
            .iter()
            .any(|name| name.to_string_lossy().starts_with(".rules")),
        "{left:?}"
    );
}

#[test]
fn a_rule_that_ran_out_makes_room() {
    let folder = tempfile::tempdir().unwrap();
    let data_dir = DataDir::open(&folder.path().join("data")).unwrap();
    let store = RulesFile::new(&data_dir);
    let mut old = rule("allow act");
    old.expires = old.at;
    store.remember(std::slice::from_ref(&old)).unwrap();
    let new = rule("allow other");
    store.remember(std::slice::from_ref(&new)).unwrap();
    assert_eq!(store.load().unwrap(), [new]);
}

#[test]
fn a_file_that_cannot_be_relied_on_counts_for_nothing_and_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let data_dir = DataDir::open(&folder.path().join("data")).unwrap();
    let store = RulesFile::new(&data_dir);
    let kept = rule("allow act");
    store.remember(std::slice::from_ref(&kept)).unwrap();
    let good = fs::read_to_string(store.path()).unwrap();
    for bad in [
        "",
        "{",
        "{}",
        "[]",
        "{\"rules\":[{}]}",
        &good.replace("\"by\"", "\"of\""),
        &good[..good.len() / 2],
    ] {
        fs::write(store.path(), bad).unwrap();
        for error in [
            store.load().unwrap_err(),
            store.remember(std::slice::from_ref(&kept)).unwrap_err(),
            store.forget(&kept.id).unwrap_err(),
        ] {
            assert!(error.to_string().contains("is damaged"), "{bad:?}: {error}");
        }
        assert_eq!(
            fs::read_to_string(store.path()).unwrap(),
            bad,
            "a person must see what happened"
        );
    }
    fs::write(store.path(), &good).unwrap();
    assert_eq!(store.load().unwrap(), std::slice::from_ref(&kept));
    for mode in [0o644, 0o660, 0o602] {
        fs::set_permissions(store.path(), fs::Permissions::from_mode(mode)).unwrap();
        assert!(
            store
                .load()
                .unwrap_err()
                .to_string()
                .contains("other users"),
            "{mode:o}"
        );
        assert!(
            store.remember(std::slice::from_ref(&kept)).is_err(),
            "{mode:o}"
        );
    }
    fs::remove_file(store.path()).unwrap();
    fs::write(folder.path().join("elsewhere"), &good).unwrap();
    std::os::unix::fs::symlink(folder.path().join("elsewhere"), store.path()).unwrap();
    assert!(
        store.load().is_err(),
        "a link leads where somebody else may write"
    );
}

#[test]
fn two_that_remember_at_once_lose_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let data_dir = Arc::new(DataDir::open(&folder.path().join("data")).unwrap());
    let threads: Vec<_> = (0..8)
        .map(|number| {
            let store = RulesFile::new(&data_dir);
            std::thread::spawn(move || {
                store
                    .remember(&[rule(&format!("allow tool{number}"))])
                    .unwrap();
            })
        })
        .collect();
    threads
        .into_iter()
        .for_each(|thread| thread.join().unwrap());
    assert_eq!(RulesFile::new(&data_dir).load().unwrap().len(), 8);
}

#[test]
fn rules_are_saved_together_with_the_definitions_that_they_allow() {
    let folder = tempfile::tempdir().unwrap();
    let data_dir = DataDir::open(&folder.path().join("data")).unwrap();
    let store = RulesFile::new(&data_dir);
    let bound = |line: &str| RememberedRule {
        definition: Some("ab".repeat(32)),
        ..rule(line)
    };
    let both = [bound("allow notes.list"), bound("allow notes.show")];
    store.remember(&both).unwrap();
    assert_eq!(store.load().unwrap(), both);
    let text = fs::read_to_string(store.path()).unwrap();
    assert_eq!(text.matches("\"definition\"").count(), 2, "{text}");

    // All or none: the last one does not fit.
    let many: Vec<RememberedRule> = (0..4_095).map(|_| bound("allow notes.more")).collect();
    assert!(store.remember(&many).is_err());
    assert_eq!(store.load().unwrap(), both);
    assert!(store.forget(&both[0].id).unwrap());
    store.remember(&many).unwrap();
    assert_eq!(store.load().unwrap().len(), 4_096);
}
