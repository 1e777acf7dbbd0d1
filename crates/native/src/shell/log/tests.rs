use cap_std::{ambient_authority, fs::Dir};

use super::{IN_MEMORY, OutputLog, RECENT};
use crate::shell::spool::SpoolDirectory;

fn log(limit: u64) -> OutputLog {
    let dir = Dir::open_ambient_dir("/tmp", ambient_authority()).unwrap();
    OutputLog::new(SpoolDirectory::from(std::os::fd::OwnedFd::from(dir)), limit)
}

/// Bytes that show their position.
fn pattern(from: usize, length: usize) -> Vec<u8> {
    (from..from + length)
        .map(|at| {
            if at % 64 == 63 {
                b'\n'
            } else {
                (at / 64 % 251) as u8 | 0x80
            }
        })
        .collect()
}

async fn filled(limit: u64, length: usize) -> OutputLog {
    let log = log(limit);
    let mut at = 0;
    while at < length {
        let step = (length - at).min(50_021);
        log.append(&pattern(at, step)).await;
        at += step;
    }
    log
}

async fn check(log: &OutputLog, offset: u64, limit: usize, from: u64, length: usize) {
    let page = log.read(offset, limit).await.unwrap();
    assert_eq!(
        (page.offset, page.bytes.len()),
        (from, length),
        "read {limit} at {offset}"
    );
    assert!(
        page.bytes == pattern(from as usize, length),
        "other bytes at {offset}"
    );
}

#[tokio::test]
async fn small_output_is_read_back_whole_and_without_a_file() {
    let log = filled(1 << 20, 100_000).await;
    assert_eq!(
        (log.total(), log.lines(), log.dropped(), log.spooled()),
        (100_000, 1563, 0, 0)
    );
    check(&log, 0, 1000, 0, 1000).await;
    check(&log, 99_990, 1000, 99_990, 10).await;
    check(&log, 100_000, 1000, 100_000, 0).await;
    check(&log, 1 << 40, 1000, 100_000, 0).await;
}

#[tokio::test]
async fn large_output_is_read_back_whole_from_the_file() {
    let length = IN_MEMORY * 3 + 17;
    let log = filled(1 << 30, length).await;
    assert_eq!(
        (log.total(), log.dropped(), log.spooled()),
        (length as u64, 0, length as u64)
    );
    for offset in [0, IN_MEMORY - 5, IN_MEMORY, IN_MEMORY * 2 + 1] {
        check(&log, offset as u64, 10_000, offset as u64, 10_000).await;
    }
    check(&log, length as u64 - 3, 10, length as u64 - 3, 3).await;
}

#[tokio::test]
async fn beyond_the_limit_the_latest_bytes_are_kept_and_the_rest_is_counted() {
    let limit = 600_000;
    let length = 2_000_000;
    let log = filled(limit, length).await;
    let recent = (length - RECENT) as u64;
    assert_eq!(
        (log.total(), log.spooled(), log.is_full()),
        (length as u64, limit, true)
    );
    assert_eq!(log.dropped(), recent - limit);
    check(&log, limit - 10, 100, limit - 10, 10).await;
    check(&log, limit, 100, recent, 100).await;
    check(&log, recent - 1, 100, recent, 100).await;
    check(&log, length as u64 - 10, 100, length as u64 - 10, 10).await;
}

#[tokio::test]
async fn readers_are_told_of_growth() {
    let log = log(1000);
    let mut watch = log.watch();
    assert_eq!(*watch.borrow_and_update(), 0);
    log.append(b"no line end").await;
    assert!(watch.has_changed().unwrap());
    assert_eq!((*watch.borrow_and_update(), log.lines()), (11, 1));
}
