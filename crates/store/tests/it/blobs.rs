//! The suite every blob store passes, and what only one on disk can do: be opened again, run full of old things, and be
//! left by a host that died.

use std::{
    fs::{self, File},
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use tempfile::TempDir;
use toolpost_core::{BlobError, BlobStore, KeptBlob};
use toolpost_store::{BlobFiles, BlobOptions, DataDir, DiskBlobs};
use toolpost_testkit::blob_suite;

/// What the smallest content counts for.
const BLOCK: u64 = 4 << 10;
const DAY: Duration = Duration::from_secs(24 * 3600);

fn options(total: u64) -> BlobOptions {
    BlobOptions {
        total,
        one: u64::MAX,
        age: Some(30 * DAY),
    }
}

fn data_dir(folder: &TempDir) -> DataDir {
    DataDir::open(&folder.path().join("data")).unwrap()
}

/// So many blocks of the same byte.
fn blocks(byte: u8, count: usize) -> Vec<u8> {
    vec![byte; count * BLOCK as usize]
}

async fn put(blobs: &DiskBlobs, bytes: &[u8]) -> Result<KeptBlob, BlobError> {
    let mut writer = blobs.create().await?;
    writer.write(bytes).await?;
    writer.finish().await
}

/// Every file in the folder of kept contents.
fn files(folder: &TempDir) -> Vec<PathBuf> {
    let list = |path: &Path| -> Vec<PathBuf> {
        fs::read_dir(path)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect()
    };
    list(&folder.path().join("data/blobs"))
        .iter()
        .flat_map(|shard| list(shard))
        .collect()
}

fn grow_old(path: &Path, age: Duration) {
    File::options()
        .write(true)
        .open(path)
        .unwrap()
        .set_modified(SystemTime::now() - age)
        .unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_suite_on_disk() {
    let folder = tempfile::tempdir().unwrap();
    let count = std::sync::atomic::AtomicU32::new(0);
    blob_suite(async |room| {
        let number = count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let data_dir = DataDir::open(&folder.path().join(number.to_string())).unwrap();
        DiskBlobs::open(&data_dir, options(room)).unwrap()
    })
    .await;
}

#[tokio::test]
async fn a_content_is_a_private_file_named_by_its_digest_and_counts_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let kept = {
        let blobs = DiskBlobs::open(&data_dir(&folder), options(10 * BLOCK)).unwrap();
        put(&blobs, &blocks(7, 6)).await.unwrap()
    };
    let hex = kept.digest.to_hex();
    let path = folder.path().join("data/blobs").join(&hex[..2]).join(&hex);
    assert_eq!(files(&folder), std::slice::from_ref(&path));
    assert_eq!(fs::read(&path).unwrap(), blocks(7, 6));
    assert_eq!(
        fs::metadata(&path).unwrap().permissions().mode() & 0o777,
        0o600
    );
    assert_eq!(
        fs::metadata(path.parent().unwrap())
            .unwrap()
            .permissions()
            .mode()
            & 0o777,
        0o700
    );

    let dir = data_dir(&folder);
    let again = DiskBlobs::open(&dir, options(10 * BLOCK)).unwrap();
    assert_eq!(again.used(), 6 * BLOCK);
    assert!(matches!(
        put(&again, &blocks(8, 5)).await,
        Err(BlobError::Full { limit: 40_960, .. })
    ));
    put(&again, &blocks(8, 4)).await.unwrap();
    let looked = BlobFiles::at(&dir).open(&kept.digest).unwrap().unwrap();
    assert_eq!(
        (looked.size(), looked.read(6 * BLOCK - 1, 9).unwrap()),
        (6 * BLOCK, vec![7])
    );
}

#[tokio::test]
async fn one_content_can_be_too_large_where_there_is_room_for_more() {
    let folder = tempfile::tempdir().unwrap();
    let one = BlobOptions {
        one: 300_000,
        ..options(1 << 30)
    };
    let blobs = DiskBlobs::open(&data_dir(&folder), one).unwrap();
    let refused = put(&blobs, &vec![1; 300_001]).await;
    assert_eq!(
        refused,
        Err(BlobError::TooLarge {
            limit: 300_000,
            setting: "limits.artifact"
        })
    );
    put(&blobs, &vec![1; 300_000]).await.unwrap();
    let mut writer = blobs.create().await.unwrap();
    writer.write(&vec![2; 300_000]).await.unwrap();
    assert!(
        writer.write(&[2]).await.is_err() && writer.write(&[]).await.is_err(),
        "once refused, over"
    );
    drop(writer);
    assert_eq!(blobs.used(), 300_000);
}

#[tokio::test]
async fn when_it_is_full_what_is_too_old_goes_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let blobs = DiskBlobs::open(&data_dir(&folder), options(10 * BLOCK)).unwrap();
    let old = put(&blobs, &blocks(1, 4)).await.unwrap();
    grow_old(&files(&folder)[0], 31 * DAY);
    let young = put(&blobs, &blocks(2, 4)).await.unwrap();
    assert!(
        blobs.open(old.digest).await.is_ok(),
        "there is room, so it may stay"
    );
    put(&blobs, &blocks(3, 6)).await.unwrap();
    assert_eq!(blobs.open(old.digest).await.err(), Some(BlobError::Missing));
    assert!(blobs.open(young.digest).await.is_ok());
    assert!(put(&blobs, &[4; 1]).await.is_err(), "nothing else is old");
    assert_eq!(blobs.used(), 10 * BLOCK);
}

#[tokio::test]
async fn keeping_it_again_makes_it_young_again() {
    let folder = tempfile::tempdir().unwrap();
    let blobs = DiskBlobs::open(&data_dir(&folder), options(10 * BLOCK)).unwrap();
    let first = put(&blobs, &blocks(1, 4)).await.unwrap();
    grow_old(&files(&folder)[0], 31 * DAY);
    assert_eq!(put(&blobs, &blocks(1, 4)).await.unwrap(), first);
    assert_eq!(
        (blobs.clear_away().await.unwrap(), blobs.used()),
        (0, 4 * BLOCK)
    );
    grow_old(&files(&folder)[0], 31 * DAY);
    assert_eq!(
        (blobs.clear_away().await.unwrap(), blobs.used()),
        (4 * BLOCK, 0)
    );
    assert_eq!(files(&folder), Vec::<PathBuf>::new());
}

#[tokio::test]
async fn what_is_open_can_be_read_when_it_goes() {
    let folder = tempfile::tempdir().unwrap();
    let blobs = DiskBlobs::open(&data_dir(&folder), options(10 * BLOCK)).unwrap();
    let kept = put(&blobs, &blocks(1, 4)).await.unwrap();
    let open = blobs.open(kept.digest).await.unwrap();
    grow_old(&files(&folder)[0], 31 * DAY);
    blobs.clear_away().await.unwrap();
    assert_eq!(open.read(0, 1 << 20).await.unwrap(), blocks(1, 4));
}

#[tokio::test]
async fn what_a_dead_host_left_half_written_is_removed() {
    let folder = tempfile::tempdir().unwrap();
    {
        let blobs = DiskBlobs::open(&data_dir(&folder), options(10 * BLOCK)).unwrap();
        put(&blobs, &blocks(1, 1)).await.unwrap();
        grow_old(&files(&folder)[0], 31 * DAY);
    }
    fs::write(
        folder.path().join("data/blobs/tmp/0123456789abcdef"),
        [0; 999],
    )
    .unwrap();
    let blobs = DiskBlobs::open(&data_dir(&folder), options(10 * BLOCK)).unwrap();
    assert_eq!((files(&folder), blobs.used()), (Vec::new(), 0));
}

#[tokio::test]
async fn a_file_that_was_cut_short_is_mended_by_the_same_content() {
    let folder = tempfile::tempdir().unwrap();
    let blobs = DiskBlobs::open(&data_dir(&folder), options(10 * BLOCK)).unwrap();
    put(&blobs, &blocks(5, 5)).await.unwrap();
    File::options()
        .write(true)
        .open(&files(&folder)[0])
        .unwrap()
        .set_len(10)
        .unwrap();
    drop(blobs);
    let blobs = DiskBlobs::open(&data_dir(&folder), options(10 * BLOCK)).unwrap();
    assert_eq!(blobs.used(), BLOCK);
    let kept = put(&blobs, &blocks(5, 5)).await.unwrap();
    assert_eq!(
        blobs
            .open(kept.digest)
            .await
            .unwrap()
            .read(0, 1 << 20)
            .await
            .unwrap(),
        blocks(5, 5)
    );
    assert_eq!(blobs.used(), 5 * BLOCK);
}

#[tokio::test]
async fn a_file_that_was_changed_in_place_is_mended_by_the_same_content() {
    let folder = tempfile::tempdir().unwrap();
    let blobs = DiskBlobs::open(&data_dir(&folder), options(10 * BLOCK)).unwrap();
    put(&blobs, &blocks(5, 5)).await.unwrap();
    fs::write(&files(&folder)[0], blocks(6, 5)).unwrap();
    let kept = put(&blobs, &blocks(5, 5)).await.unwrap();
    assert_eq!(
        blobs
            .open(kept.digest)
            .await
            .unwrap()
            .read(0, 1 << 20)
            .await
            .unwrap(),
        blocks(5, 5)
    );
    assert_eq!((files(&folder).len(), blobs.used()), (1, 5 * BLOCK));
}

#[tokio::test]
async fn the_smallest_contents_take_a_block_each() {
    let folder = tempfile::tempdir().unwrap();
    let blobs = DiskBlobs::open(&data_dir(&folder), options(3 * BLOCK)).unwrap();
    for content in [&b""[..], b"a", b"bc"] {
        put(&blobs, content).await.unwrap();
    }
    assert_eq!(blobs.used(), 3 * BLOCK);
    assert!(matches!(
        put(&blobs, b"d").await,
        Err(BlobError::Full { .. })
    ));
    assert!(matches!(
        blobs.create().await.unwrap().finish().await,
        Err(BlobError::Full { .. })
    ));
    drop(blobs);
    let again = DiskBlobs::open(&data_dir(&folder), options(3 * BLOCK)).unwrap();
    assert_eq!(again.used(), 3 * BLOCK, "also after a restart");
    files(&folder)
        .iter()
        .for_each(|path| grow_old(path, 31 * DAY));
    put(&again, b"d").await.unwrap();
    assert_eq!(again.used(), BLOCK, "the old ones gave back what they took");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writers_of_equal_contents_at_the_same_time_leave_one_file() {
    let folder = tempfile::tempdir().unwrap();
    let blobs = DiskBlobs::open(&data_dir(&folder), options(64 << 20)).unwrap();
    let tasks: Vec<_> = (0..8)
        .map(|_| {
            let blobs = blobs.clone();
            tokio::spawn(async move { put(&blobs, &vec![9; 700_000]).await.unwrap() })
        })
        .collect();
    for task in tasks {
        assert_eq!(task.await.unwrap().size, 700_000);
    }
    assert_eq!((files(&folder).len(), blobs.used()), (1, 700_000));
}
