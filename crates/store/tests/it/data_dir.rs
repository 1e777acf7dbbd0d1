//! The data directory: made private, refused otherwise, one holder at a time.

use std::{
    fs::{self, Permissions},
    os::unix::{
        fs::{MetadataExt, PermissionsExt, chown, symlink},
        net::{UnixListener, UnixStream},
    },
    path::Path,
};

use toolpost_store::{DataDir, DataDirError};

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o7777
}

#[test]
fn it_is_made_with_its_parents_for_us_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state/toolpost/abc");
    let data_dir = DataDir::open(&path).unwrap();
    for made in ["state", "state/toolpost", "state/toolpost/abc"] {
        assert_eq!(mode(&folder.path().join(made)), 0o700, "{made}");
    }
    assert_eq!(mode(&path.join("lock")), 0o600);
    assert_eq!(data_dir.path(), path);
    assert_eq!(data_dir.journal_path(), path.join("journal.db"));
    assert_eq!(data_dir.token_path(), path.join("token"));
    assert_eq!(data_dir.socket_path(), path.join("socket"));
    let view = DataDir::at(&path).unwrap();
    assert_eq!(
        (view.journal_path(), view.socket_path()),
        (data_dir.journal_path(), data_dir.socket_path())
    );
    assert!(data_dir.is_locked() && !view.is_locked());
}

#[test]
fn the_journal_in_it_is_private_too() {
    let folder = tempfile::tempdir().unwrap();
    let data_dir = DataDir::open(&folder.path().join("data")).unwrap();
    let journal = super::open(&data_dir.journal_path());
    for suffix in ["", "-wal", "-shm"] {
        let file = format!("{}{suffix}", data_dir.journal_path().display());
        assert_eq!(mode(Path::new(&file)), 0o600, "{file}");
    }
    drop(journal);
}

#[test]
fn a_second_holder_is_refused_and_told_of_the_first() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data");
    assert_eq!(DataDir::running_pid(&path), None, "nothing is there");
    let first = DataDir::open(&path).unwrap();
    let own = std::process::id();
    let refused = DataDir::open(&path).err().unwrap();
    assert!(
        matches!(refused, DataDirError::InUse { pid: Some(pid), .. } if pid == own),
        "{refused:?}"
    );
    assert!(refused.to_string().contains(&own.to_string()), "{refused}");
    assert_eq!(DataDir::running_pid(&path), Some(own));
    drop(first);
    assert_eq!(DataDir::running_pid(&path), None);
    fs::write(path.join("lock"), "4294967").unwrap();
    assert_eq!(
        DataDir::running_pid(&path),
        None,
        "a number without a lock is a dead host's"
    );
    DataDir::open(&path).unwrap();
}

#[test]
fn asking_who_runs_does_not_keep_a_host_from_starting() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data");
    drop(DataDir::open(&path).unwrap());
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                DataDir::running_pid(&path);
            }
        });
        let outcomes: Vec<bool> = (0..50).map(|_| DataDir::open(&path).is_ok()).collect();
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        assert!(outcomes.into_iter().all(|opened| opened));
    });
}

#[test]
fn what_is_not_ours_alone_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let check =
        |name: &str, prepare: &dyn Fn(&Path), expected: fn(&DataDirError) -> bool, words: &str| {
            let path = folder.path().join(name);
            prepare(&path);
            for error in [
                DataDir::open(&path).err().unwrap(),
                DataDir::at(&path).err().unwrap(),
            ] {
                assert!(expected(&error), "{name}: {error:?}");
                assert!(error.to_string().contains(words), "{name}: {error}");
            }
        };
    let directory = |mode: u32| {
        move |path: &Path| {
            fs::create_dir(path).unwrap();
            fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
        }
    };
    let open = |error: &DataDirError| matches!(error, DataDirError::OpenToOthers { .. });
    check("readable", &directory(0o755), open, "hint: chmod 700");
    check("group", &directory(0o710), open, "mode 710");
    let real = folder.path().join("real");
    drop(DataDir::open(&real).unwrap());
    let link = |error: &DataDirError| matches!(error, DataDirError::Link { .. });
    check(
        "link",
        &|path| symlink(&real, path).unwrap(),
        link,
        "symbolic link",
    );
    check(
        "slash/",
        &|_| symlink(&real, folder.path().join("slash")).unwrap(),
        link,
        "symbolic link",
    );
    check(
        "dangling",
        &|path| symlink("/nowhere", path).unwrap(),
        link,
        "symbolic link",
    );
    let file = |error: &DataDirError| matches!(error, DataDirError::NotADirectory { .. });
    check(
        "file",
        &|path| fs::write(path, "").unwrap(),
        file,
        "not a directory",
    );
    let probe = folder.path().join("probe");
    directory(0o700)(&probe);
    let somebody = fs::metadata(&probe).unwrap().uid() + 1;
    if let Err(error) = chown(&probe, Some(somebody), None) {
        eprintln!("another user's directory is not tried: {error}");
        return;
    }
    let theirs = |path: &Path| {
        directory(0o700)(path);
        chown(path, Some(somebody), None).unwrap();
    };
    let owner = |error: &DataDirError| matches!(error, DataDirError::OtherOwner { .. });
    check("theirs", &theirs, owner, &format!("user {somebody}"));
}

#[test]
fn looking_makes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data");
    assert!(matches!(
        DataDir::at(&path).err().unwrap(),
        DataDirError::Missing { .. }
    ));
    assert!(!path.exists());
}

#[test]
fn a_socket_in_a_deep_directory_can_be_bound_and_reached() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("d".repeat(90)).join("e".repeat(90));
    let host = DataDir::open(&path).unwrap();
    assert!(host.socket_path().as_os_str().len() < 108);
    let _listener = UnixListener::bind(host.socket_path()).unwrap();
    assert!(
        path.join("socket").exists(),
        "it lies in the directory all the same"
    );
    let command = DataDir::at(&path).unwrap();
    UnixStream::connect(command.socket_path()).unwrap();
    fs::remove_file(command.socket_path()).unwrap();
    assert!(!path.join("socket").exists());
}
