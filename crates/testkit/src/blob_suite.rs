//! The checks that every blob store must pass. The store in memory and the one on disk share them.

use std::sync::Arc;

use toolpost_core::{Blob, BlobError, BlobStore, KeptBlob};
use toolpost_model::ContentDigest;

/// Runs every check, each on a store of its own that `make` hands over empty, with room for the given number of bytes.
///
/// Needs a tokio runtime. Panics at the first check that fails.
pub async fn blob_suite<S: BlobStore>(make: impl AsyncFn(u64) -> S) {
    what_was_written_is_read_whole_and_in_parts(&make(ROOM).await).await;
    a_content_is_named_by_its_bytes_however_they_were_cut(&make(ROOM).await).await;
    an_empty_content_is_a_content(&make(ROOM).await).await;
    what_was_never_written_is_missing(&make(ROOM).await).await;
    a_writer_that_is_dropped_leaves_nothing(&make(ROOM).await).await;
    beyond_its_limit_it_refuses_and_says_which(&make(1_000 * BLOCK).await).await;
    equal_contents_take_room_once(&make(1_000 * BLOCK).await).await;
    writers_at_the_same_time_share_the_room(&make(1_000 * BLOCK).await).await;
}

const ROOM: u64 = 16 << 20;
/// A store may count every blob in whole blocks, at least one.
const BLOCK: u64 = 4 << 10;

/// Bytes that repeat only after a long while.
fn bytes(count: usize) -> Vec<u8> {
    (0..count as u64)
        .map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8)
        .collect()
}

fn blocks(count: usize) -> Vec<u8> {
    bytes(count * usize::try_from(BLOCK).expect("small"))
}

async fn put(store: &impl BlobStore, pieces: &[&[u8]]) -> Result<KeptBlob, BlobError> {
    let mut writer = store.create().await?;
    for piece in pieces {
        writer.write(piece).await?;
    }
    writer.finish().await
}

async fn all(blob: &Arc<dyn Blob>) -> Vec<u8> {
    blob.read(0, usize::try_from(blob.size()).expect("small"))
        .await
        .expect("readable")
}

async fn what_was_written_is_read_whole_and_in_parts(store: &impl BlobStore) {
    let written = bytes(1_000_003);
    let kept = put(store, &[&written]).await.expect("kept");
    assert_eq!(kept.size, 1_000_003);
    let blob = store.open(kept.digest).await.expect("there");
    assert_eq!(blob.size(), kept.size);
    assert!(all(&blob).await == written, "whole");
    for (offset, limit) in [
        (0, 1),
        (999_999, 10),
        (500_000, 300_000),
        (1_000_003, 5),
        (u64::MAX, 5),
        (7, 0),
    ] {
        let from = usize::try_from(offset)
            .unwrap_or(usize::MAX)
            .min(written.len());
        let expected = &written[from..(from + limit).min(written.len())];
        assert!(
            blob.read(offset, limit).await.expect("readable") == expected,
            "{limit} at {offset}"
        );
    }
}

async fn a_content_is_named_by_its_bytes_however_they_were_cut(store: &impl BlobStore) {
    let written = bytes(700_000);
    let (head, tail) = written.split_at(333_333);
    let once = put(store, &[&written]).await.expect("kept");
    let in_parts = put(store, &[head, &[], tail]).await.expect("kept");
    assert_eq!(once, in_parts);
    let other = put(store, &[tail, head]).await.expect("kept");
    assert_ne!(once.digest, other.digest);
    let abc = put(store, &[b"abc"])
        .await
        .expect("kept")
        .digest
        .to_string();
    assert_eq!(
        abc,
        "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    );
}

async fn an_empty_content_is_a_content(store: &impl BlobStore) {
    let kept = put(store, &[]).await.expect("kept");
    let blob = store.open(kept.digest).await.expect("there");
    assert_eq!(
        (kept.size, blob.size(), all(&blob).await),
        (0, 0, Vec::new())
    );
}

async fn what_was_never_written_is_missing(store: &impl BlobStore) {
    assert_eq!(
        store.open(ContentDigest([7; 32])).await.err(),
        Some(BlobError::Missing)
    );
}

async fn a_writer_that_is_dropped_leaves_nothing(store: &impl BlobStore) {
    let written = bytes(600_000);
    // More in all than the limit, so the room must be given back.
    for _ in 0..40 {
        let mut writer = store.create().await.expect("begun");
        writer.write(&written).await.expect("written");
    }
    let digest = put(store, &[&written]).await.expect("there is room").digest;
    assert!(store.open(digest).await.is_ok());
}

async fn beyond_its_limit_it_refuses_and_says_which(store: &impl BlobStore) {
    let first = put(store, &[&blocks(900)]).await.expect("kept");
    let mut writer = store.create().await.expect("begun");
    // A store that buffers may refuse only at the end.
    let refused = match writer.write(&blocks(101)).await {
        Ok(()) => writer.finish().await.map(drop),
        Err(error) => Err(error),
    };
    assert!(
        matches!(refused, Err(BlobError::Full { limit, .. }) if limit == 1_000 * BLOCK),
        "{refused:?}"
    );
    assert!(store.open(first.digest).await.is_ok(), "kept bytes stay");
    put(store, &[&blocks(100)])
        .await
        .expect("the rest can still be used");
}

async fn equal_contents_take_room_once(store: &impl BlobStore) {
    for _ in 0..5 {
        put(store, &[&blocks(400)]).await.expect("kept");
    }
    put(store, &[&blocks(600)]).await.expect("kept");
    assert!(
        put(store, &[&blocks(1)]).await.is_err(),
        "full to the last block"
    );
}

async fn writers_at_the_same_time_share_the_room(store: &impl BlobStore) {
    let one = blocks(600);
    let other = blocks(601);
    let mut first = store.create().await.expect("begun");
    let mut second = store.create().await.expect("begun");
    let written = (first.write(&one).await, second.write(&other).await);
    let ends = (
        first.finish().await.is_ok() && written.0.is_ok(),
        second.finish().await.is_ok() && written.1.is_ok(),
    );
    assert!(
        ends.0 != ends.1,
        "there is room for one of the two: {ends:?}"
    );
}
