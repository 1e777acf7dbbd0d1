//! Kept results are looked for where records name them, and hashed again.

use std::path::{Path, PathBuf};

use jiff::{Timestamp, ToSpan};
use sha2::{Digest, Sha256};
use toolpost_model::ContentDigest;
use toolpost_store::{ArtifactsPlace, JournalFlaw, JournalReader, VerifyOptions, VerifyReport};

use super::{Record, append, call, fill, open};

struct Kept {
    folder: tempfile::TempDir,
    written: Timestamp,
}

impl Kept {
    /// A journal whose last call names these contents, which lie where they belong.
    async fn of(contents: &[&[u8]]) -> (Self, Vec<ContentDigest>) {
        let folder = tempfile::tempdir().unwrap();
        let digests: Vec<ContentDigest> = contents
            .iter()
            .map(|content| ContentDigest(Sha256::digest(content).into()))
            .collect();
        let named = digests
            .iter()
            .zip(contents)
            .zip(1..)
            .map(|((digest, content), place)| {
                format!(
                    r#"{{"id":"art_{place}","digest":"{digest}","size":{}}}"#,
                    content.len()
                )
            });
        let named = named.collect::<Vec<_>>().join(",");
        let journal = open(&folder.path().join("journal.db"));
        fill(&journal).await;
        let [accepted, _, ended] = call();
        append(&journal, accepted).await.unwrap();
        let body = format!(
            r#"{{"tool_id":"files.write","result":{{"outcome":"succeeded","artifacts":[{named}]}}}}"#
        );
        let written = ended.at;
        append(&journal, Record { body, ..ended }).await.unwrap();
        let kept = Self { folder, written };
        for (digest, content) in digests.iter().zip(contents) {
            let path = kept.path(digest);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, content).unwrap();
        }
        (kept, digests)
    }

    fn blobs(&self) -> PathBuf {
        self.folder.path().join("blobs")
    }

    fn path(&self, digest: &ContentDigest) -> PathBuf {
        let hex = digest.to_hex();
        self.blobs().join(&hex[..2]).join(&hex)
    }

    fn verify(&self, kept_since: Timestamp) -> VerifyReport {
        let place = ArtifactsPlace {
            folder: self.blobs(),
            kept_since,
        };
        let options = VerifyOptions {
            artifacts: Some(place),
            ..VerifyOptions::default()
        };
        let journal: &Path = &self.folder.path().join("journal.db");
        JournalReader::open(journal)
            .unwrap()
            .verify_with(&options, |_| {})
            .unwrap()
    }
}

fn flaws(report: VerifyReport) -> Vec<(u64, JournalFlaw)> {
    report
        .problems
        .into_iter()
        .map(|problem| (problem.seq, problem.what))
        .collect()
}

#[tokio::test]
async fn contents_that_are_what_they_were_are_counted() {
    let large = vec![7; 1 << 20];
    let (kept, _) = Kept::of(&[b"one", b"two", &large, b""]).await;
    let report = kept.verify(kept.written);
    assert!(report.is_clean(), "{:?}", report.problems);
    let counts = report.artifacts;
    assert_eq!(
        (counts.named, counts.intact, counts.expired, counts.bytes),
        (4, 4, 0, (1 << 20) + 6)
    );
}

#[tokio::test]
async fn changed_cut_and_missing_contents_are_found_at_the_record_that_names_them() {
    let (kept, digests) =
        Kept::of(&[b"changed", b"cut off", b"missing", b"a folder", b"whole"]).await;
    std::fs::write(kept.path(&digests[0]), b"chAnged").unwrap();
    std::fs::write(kept.path(&digests[1]), b"cut").unwrap();
    std::fs::remove_file(kept.path(&digests[2])).unwrap();
    std::fs::remove_file(kept.path(&digests[3])).unwrap();
    std::fs::create_dir(kept.path(&digests[3])).unwrap();
    let report = kept.verify(kept.written);
    assert_eq!((report.artifacts.named, report.artifacts.intact), (5, 1));
    let found = flaws(report);
    assert_eq!(found.len(), 4, "{found:?}");
    for flaw in [
        JournalFlaw::ArtifactChanged(digests[0]),
        JournalFlaw::ArtifactChanged(digests[1]),
        JournalFlaw::ArtifactMissing(digests[2]),
        JournalFlaw::ArtifactUnreadable {
            digest: digests[3],
            why: "it is not a file".into(),
        },
    ] {
        assert!(found.contains(&(9, flaw)), "{found:?}");
    }
}

#[tokio::test]
async fn what_was_kept_long_enough_may_be_gone_but_not_be_changed() {
    let (kept, digests) = Kept::of(&[b"gone", b"changed"]).await;
    std::fs::remove_file(kept.path(&digests[0])).unwrap();
    std::fs::write(kept.path(&digests[1]), b"other").unwrap();
    let later = kept.written.checked_add(1.second()).unwrap();
    let report = kept.verify(later);
    assert_eq!(report.artifacts.expired, 1);
    assert_eq!(
        flaws(report),
        [(9, JournalFlaw::ArtifactChanged(digests[1]))]
    );
    assert_eq!(flaws(kept.verify(kept.written)).len(), 2);
}

#[tokio::test]
async fn nobody_looks_who_was_not_asked_to() {
    let (kept, digests) = Kept::of(&[b"gone"]).await;
    std::fs::remove_file(kept.path(&digests[0])).unwrap();
    let report = JournalReader::open(&kept.folder.path().join("journal.db"))
        .unwrap()
        .verify(|_, _| {})
        .unwrap();
    assert!(report.is_clean() && report.artifacts.named == 0);
}
