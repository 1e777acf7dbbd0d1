//! The audit log on real files: whole lines, none lost, whoever moves the file.

use std::{
    collections::BTreeSet,
    fs::{self, Permissions},
    os::unix::fs::{MetadataExt, PermissionsExt, symlink},
    path::{Path, PathBuf},
    process::Command,
    sync::mpsc,
    thread,
};

use toolpost_store::{AuditLog, AuditLogError, AuditRotation, AuditWriter};

use crate::full::SmallDisk;

const ROOMY: AuditRotation = AuditRotation {
    max_bytes: 1 << 20,
    backup_count: 5,
};

fn lines(path: &Path) -> Vec<String> {
    let text = fs::read_to_string(path).unwrap();
    assert!(
        text.is_empty() || text.ends_with('\n'),
        "{} ends within a line",
        path.display()
    );
    text.lines().map(str::to_owned).collect()
}

/// The file and what was moved aside, the oldest first.
fn all_lines(path: &Path) -> Vec<String> {
    let numbered = |number: u32| PathBuf::from(format!("{}.{number}", path.display()));
    let last = (1..)
        .take_while(|number| numbered(*number).exists())
        .last()
        .unwrap_or(0);
    let files = (1..=last).rev().map(numbered).chain([path.to_path_buf()]);
    files.flat_map(|file| lines(&file)).collect()
}

fn names(folder: &Path) -> BTreeSet<String> {
    let name = |entry: Result<fs::DirEntry, _>| entry.unwrap().file_name().into_string().unwrap();
    fs::read_dir(folder).unwrap().map(name).collect()
}

/// A line of exactly so many bytes, its end included.
fn line(number: usize, bytes: usize) -> String {
    format!("{{\"n\":{number:0width$}}}", width = bytes - 7)
}

#[test]
fn lines_are_added_to_a_private_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.jsonl");
    AuditLog::open(&path, ROOMY)
        .unwrap()
        .append("{\"a\":1}")
        .unwrap();
    let log = AuditLog::open(&path, ROOMY).unwrap();
    log.append("{\"b\":\"ü\"}").unwrap();
    assert_eq!(
        fs::read_to_string(&path).unwrap(),
        "{\"a\":1}\n{\"b\":\"ü\"}\n"
    );
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o600);
    assert_eq!(log.path(), path);
    assert!(matches!(
        log.append("{\n}").unwrap_err(),
        AuditLogError::NotALine
    ));
    assert_eq!(lines(&path).len(), 2);
}

#[test]
fn a_line_cut_short_by_a_crash_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.jsonl");
    fs::write(&path, "{\"a\":1}\n{\"b").unwrap();
    AuditLog::open(&path, ROOMY).unwrap().append("{}").unwrap();
    assert_eq!(lines(&path), ["{\"a\":1}", "{\"b", "{}"]);
}

#[test]
fn files_are_moved_aside_in_turn() {
    // Lines of 100 bytes: how many there are, and how many are in the file, in `.1`, `.2` and so on.
    let check = |max_bytes: u64, backup_count: u32, count: usize, expected: &[usize]| {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.jsonl");
        let log = AuditLog::open(
            &path,
            AuditRotation {
                max_bytes,
                backup_count,
            },
        )
        .unwrap();
        for number in 0..count {
            log.append(&line(number, 100)).unwrap();
        }
        let files = names(folder.path());
        assert_eq!(files.len(), expected.len(), "{files:?}");
        let found: Vec<usize> = (0..expected.len())
            .map(|number| match number {
                0 => lines(&path).len(),
                number => lines(&folder.path().join(format!("audit.jsonl.{number}"))).len(),
            })
            .collect();
        assert_eq!(
            found, expected,
            "{max_bytes} bytes, {backup_count} kept, {count} lines"
        );
        let left: usize = expected.iter().sum();
        let expected: Vec<String> = (count - left..count)
            .map(|number| line(number, 100))
            .collect();
        assert_eq!(all_lines(&path), expected, "the newest are there, in order");
        for name in files {
            assert_eq!(
                fs::metadata(folder.path().join(&name)).unwrap().mode() & 0o777,
                0o600,
                "{name}"
            );
        }
    };
    check(1000, 3, 10, &[10]);
    check(1000, 3, 11, &[1, 10]);
    check(1000, 3, 45, &[5, 10, 10, 10]);
    check(1099, 1, 25, &[5, 10]);
    check(1000, 0, 25, &[5]);
    // A line that is larger than a file has one of its own.
    check(50, 4, 3, &[1, 1, 1]);
}

#[test]
fn a_gap_among_the_old_files_is_filled() {
    let folder = tempfile::tempdir().unwrap();
    let at = |number: u32| folder.path().join(format!("audit.jsonl.{number}"));
    for number in [1, 2, 4] {
        fs::write(at(number), format!("{number}\n")).unwrap();
    }
    let path = folder.path().join("audit.jsonl");
    fs::write(&path, "0\n").unwrap();
    let log = AuditLog::open(
        &path,
        AuditRotation {
            max_bytes: 2,
            backup_count: 9,
        },
    )
    .unwrap();
    log.append("x").unwrap();
    assert_eq!(all_lines(&path), ["4", "2", "1", "0", "x"]);
}

#[test]
fn a_full_file_of_an_earlier_run_is_moved_aside() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.jsonl");
    fs::write(&path, "x\n".repeat(600)).unwrap();
    let rotation = AuditRotation {
        max_bytes: 1024,
        backup_count: 2,
    };
    AuditLog::open(&path, rotation)
        .unwrap()
        .append("{}")
        .unwrap();
    assert_eq!(lines(&path), ["{}"]);
    assert_eq!(lines(&folder.path().join("audit.jsonl.1")).len(), 600);
}

#[test]
fn what_cannot_be_moved_aside_grows_on() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.jsonl");
    fs::create_dir_all(folder.path().join("audit.jsonl.1/x")).unwrap();
    let log = AuditLog::open(
        &path,
        AuditRotation {
            max_bytes: 1000,
            backup_count: 1,
        },
    )
    .unwrap();
    for number in 0..30 {
        log.append(&line(number, 100)).unwrap();
    }
    assert_eq!(lines(&path).len(), 30);
}

/// Four threads on each of the logs, which stand for as many processes.
fn write_from_many(logs: &[AuditLog]) -> BTreeSet<String> {
    let text = |writer: usize, number: usize| format!("{{\"writer\":{writer},\"n\":{number}}}");
    thread::scope(|scope| {
        for (index, log) in logs.iter().enumerate() {
            for writer in (index * 4)..(index * 4 + 4) {
                scope.spawn(move || {
                    (0..500).for_each(|number| log.append(&text(writer, number)).unwrap());
                });
            }
        }
    });
    (0..logs.len() * 4)
        .flat_map(|writer| (0..500).map(move |number| text(writer, number)))
        .collect()
}

#[test]
fn nothing_is_lost_or_split_when_many_write_and_the_file_is_moved() {
    for processes in [1, 3] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.jsonl");
        let rotation = AuditRotation {
            max_bytes: 2000,
            backup_count: 1000,
        };
        let logs: Vec<AuditLog> = (0..processes)
            .map(|_| AuditLog::open(&path, rotation).unwrap())
            .collect();
        let expected = write_from_many(&logs);
        let found = all_lines(&path);
        assert_eq!(found.len(), expected.len(), "{processes} processes");
        assert_eq!(
            found.into_iter().collect::<BTreeSet<_>>(),
            expected,
            "{processes} processes"
        );
        let files = names(folder.path()).len();
        assert!(files > 10, "{files} files of {processes} processes");
    }
}

/// Appends until the file is back, which takes a second at most. Gives back how often.
fn append_until_it_is_there(log: &AuditLog, path: &Path) -> usize {
    let mut count = 0;
    while !path.exists() {
        log.append("{\"after\":true}").unwrap();
        count += 1;
        assert!(count < 10_000_000, "nobody looks for the file");
    }
    count
}

#[test]
fn somebody_else_may_move_or_delete_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.jsonl");
    let log = AuditLog::open(
        &path,
        AuditRotation {
            max_bytes: 1 << 40,
            backup_count: 5,
        },
    )
    .unwrap();
    log.append("{\"before\":true}").unwrap();
    let moved = folder.path().join("audit-2026.jsonl");
    fs::rename(&path, &moved).unwrap();
    let count = append_until_it_is_there(&log, &path);
    assert_eq!(
        (lines(&path).len(), lines(&moved).len()),
        (1, count),
        "the others are where it was moved to"
    );
    fs::remove_file(&path).unwrap();
    append_until_it_is_there(&log, &path);
    assert_eq!(lines(&path).len(), 1);
    // One that another program has put in its place is taken as it is.
    fs::remove_file(&path).unwrap();
    fs::write(&path, "{\"theirs\":true}\n").unwrap();
    while lines(&path).len() < 2 {
        log.append("{\"after\":true}").unwrap();
    }
    assert_eq!(lines(&path), ["{\"theirs\":true}", "{\"after\":true}"]);
    assert_eq!(names(folder.path()).len(), 2, "it was not moved aside");
}

#[test]
fn a_full_file_that_was_moved_is_not_moved_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.jsonl");
    let log = AuditLog::open(
        &path,
        AuditRotation {
            max_bytes: 1000,
            backup_count: 5,
        },
    )
    .unwrap();
    (0..10).for_each(|number| log.append(&line(number, 100)).unwrap());
    fs::rename(&path, folder.path().join("elsewhere")).unwrap();
    log.append("{}").unwrap();
    assert_eq!(lines(&path), ["{}"]);
    assert_eq!(names(folder.path()).len(), 2);
}

#[test]
fn a_link_put_in_the_place_of_the_file_is_not_followed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.jsonl");
    let victim = folder.path().join("victim");
    fs::write(&victim, "").unwrap();
    let log = AuditLog::open(
        &path,
        AuditRotation {
            max_bytes: 1 << 40,
            backup_count: 5,
        },
    )
    .unwrap();
    fs::remove_file(&path).unwrap();
    symlink(&victim, &path).unwrap();
    let error = loop {
        if let Err(error) = log.append("{}") {
            break error;
        }
    };
    assert!(matches!(error, AuditLogError::Link { .. }), "{error:?}");
    assert_eq!(fs::read_to_string(&victim).unwrap(), "");
    fs::remove_file(&path).unwrap();
    log.append("{}").unwrap();
    assert_eq!(lines(&path), ["{}"]);
}

#[test]
fn files_that_cannot_be_an_audit_log() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("file"), "").unwrap();
    fs::create_dir(at("folder")).unwrap();
    symlink(at("file"), at("link")).unwrap();
    symlink(at("nothing"), at("dangling")).unwrap();
    assert!(
        Command::new("mkfifo")
            .arg(at("pipe"))
            .status()
            .unwrap()
            .success()
    );
    for (name, mode) in [("shared", 0o664), ("open", 0o602)] {
        fs::write(at(name), "").unwrap();
        fs::set_permissions(at(name), Permissions::from_mode(mode)).unwrap();
    }
    let check = |name: &str, fits: fn(&AuditLogError) -> bool| {
        let error = AuditLog::open(&at(name), ROOMY).err().unwrap();
        assert!(fits(&error), "{name}: {error:?}");
        let shown = error.to_string();
        assert!(
            shown.contains(name) && shown.contains("\nhint: "),
            "{shown}"
        );
    };
    check("file/audit.jsonl", |error| {
        matches!(error, AuditLogError::NoFolder { .. })
    });
    check("folder", |error| {
        matches!(error, AuditLogError::NotAFile { .. })
    });
    check("link", |error| matches!(error, AuditLogError::Link { .. }));
    check("dangling", |error| {
        matches!(error, AuditLogError::Link { .. })
    });
    check("pipe", |error| {
        matches!(error, AuditLogError::NotAFile { .. })
    });
    check("shared", |error| {
        matches!(error, AuditLogError::WritableByOthers { mode: 0o664, .. })
    });
    check("open", |error| {
        matches!(error, AuditLogError::WritableByOthers { mode: 0o602, .. })
    });
    assert!(!at("nothing").exists());
    // A folder that is missing is made, for its owner alone; never through a link that leads nowhere.
    AuditLog::open(&at("missing/deeper/audit.jsonl"), ROOMY).unwrap();
    for folder in ["missing", "missing/deeper"] {
        assert_eq!(
            fs::metadata(at(folder)).unwrap().permissions().mode() & 0o777,
            0o700
        );
    }
    let error = AuditLog::open(&at("dangling/audit.jsonl"), ROOMY)
        .err()
        .unwrap();
    assert!(matches!(error, AuditLogError::Link { .. }), "{error:?}");
    // Somebody who is meant to read it may.
    fs::set_permissions(at("file"), Permissions::from_mode(0o640)).unwrap();
    AuditLog::open(&at("file"), ROOMY).unwrap();
}

#[test]
fn a_full_disk_leaves_whole_lines() {
    let folder = tempfile::tempdir().unwrap();
    let Some(disk) = SmallDisk::mount(folder.path()) else {
        return;
    };
    let path = disk.0.join("audit.jsonl");
    let ballast = disk.0.join("ballast");
    fs::write(&ballast, vec![1; 2 << 20]).unwrap();
    let log = AuditLog::open(
        &path,
        AuditRotation {
            max_bytes: 1 << 40,
            backup_count: 5,
        },
    )
    .unwrap();
    let mut count = 0;
    while log.append(&line(count, 3001)).is_ok() {
        count += 1;
    }
    assert!(log.append(&line(count, 3001)).is_err());
    assert_eq!(lines(&path).len(), count);
    fs::remove_file(&ballast).unwrap();
    log.append(&line(count, 3001)).unwrap();
    let expected: Vec<String> = (0..=count).map(|number| line(number, 3001)).collect();
    assert!(lines(&path) == expected);
}

fn loss_line(lost: u64) -> String {
    format!("{{\"lost\":{lost}}}")
}

#[test]
fn a_writer_keeps_the_order_and_writes_everything_before_it_goes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.jsonl");
    let log = AuditLog::open(
        &path,
        AuditRotation {
            max_bytes: 2000,
            backup_count: 100,
        },
    )
    .unwrap();
    let writer = AuditWriter::start(log, loss_line).unwrap();
    (0..1000).for_each(|number| writer.send(line(number, 60)));
    drop(writer);
    assert_eq!(
        all_lines(&path),
        (0..1000).map(|number| line(number, 60)).collect::<Vec<_>>()
    );
}

#[test]
fn a_writer_never_waits_and_tells_what_was_lost() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.jsonl");
    let (reached, at_the_loss) = mpsc::channel();
    let (go_on, may_go_on) = mpsc::channel::<()>();
    let writer = AuditWriter::start(AuditLog::open(&path, ROOMY).unwrap(), move |lost| {
        reached.send(lost).unwrap();
        may_go_on.recv().ok();
        loss_line(lost)
    })
    .unwrap();
    // What is no line cannot be written, so it counts as lost, and the thread comes to the closure above.
    writer.send("not\na line".to_owned());
    assert_eq!(at_the_loss.recv().unwrap(), 1);
    (0..1024 + 50).for_each(|number| writer.send(line(number, 60)));
    drop(go_on);
    assert_eq!(at_the_loss.recv().unwrap(), 50);
    writer.send("{}".to_owned());
    drop(writer);
    let mut expected = vec![loss_line(1)];
    expected.extend((0..1024).map(|number| line(number, 60)));
    expected.extend([loss_line(50), "{}".to_owned()]);
    assert_eq!(lines(&path), expected);
}

#[test]
fn a_writer_goes_on_when_the_file_can_be_written_again() {
    let folder = tempfile::tempdir().unwrap();
    let Some(disk) = SmallDisk::mount(folder.path()) else {
        return;
    };
    let path = disk.0.join("audit.jsonl");
    let ballast = disk.0.join("ballast");
    let log = AuditLog::open(&path, ROOMY).unwrap();
    log.append("{\"first\":true}").unwrap();
    // Fills the disk to its last page, of which the log has the rest.
    let _ = fs::write(&ballast, vec![1; 5 << 20]);
    let (told, losses) = mpsc::channel();
    let writer = AuditWriter::start(log, move |lost| {
        told.send(lost).unwrap();
        loss_line(lost)
    })
    .unwrap();
    writer.send(line(1, 5000));
    assert_eq!(losses.recv().unwrap(), 1);
    fs::remove_file(&ballast).unwrap();
    writer.send(line(2, 5000));
    drop(writer);
    let found = lines(&path);
    let lost: u64 = found
        .iter()
        .filter_map(|line| {
            line.strip_prefix("{\"lost\":")?
                .strip_suffix('}')?
                .parse::<u64>()
                .ok()
        })
        .sum();
    assert_eq!(
        (found[0].as_str(), lost),
        ("{\"first\":true}", 1),
        "{found:?}"
    );
    assert_eq!(found.last(), Some(&line(2, 5000)));
}
