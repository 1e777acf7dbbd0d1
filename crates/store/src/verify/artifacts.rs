//! The artifacts that records name: found, and hashed again.

use std::{collections::HashMap, path::Path};

use jiff::Timestamp;
use sha2::{Digest, Sha256};
use toolpost_core::NamedContent;
use toolpost_model::ContentDigest;

use super::{ArtifactsPlace, JournalFlaw, check::JournalCheck};
use crate::disk;

/// Bytes of one read.
const PIECE: usize = 256 << 10;

/// The outcome of the check of artifacts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ArtifactCounts {
    /// The number of different blobs that the records name.
    pub named: u64,
    /// The number of blobs that exist and match their digest.
    pub intact: u64,
    /// The number of blobs that were removed after their lifetime.
    pub expired: u64,
    /// The number of hashed bytes.
    pub bytes: u64,
}

/// The named blobs by digest: many records may name the same one.
#[derive(Default)]
pub(super) struct ReferencedBlobs(HashMap<ContentDigest, BlobReference>);

struct BlobReference {
    /// The first record that names it.
    seq: u64,
    /// The last time that a record named it, and so the time of its last write.
    last: Timestamp,
    size: u64,
}

impl ReferencedBlobs {
    pub(super) fn add(&mut self, seq: u64, at: Timestamp, contents: &[NamedContent]) {
        for content in contents {
            let naming = BlobReference {
                seq,
                last: at,
                size: content.size,
            };
            let naming = self.0.entry(content.digest).or_insert(naming);
            naming.last = naming.last.max(at);
        }
    }
}

pub(super) fn check(
    place: &ArtifactsPlace,
    check: &mut JournalCheck,
    mut progress: impl FnMut(u64, u64),
) {
    let Some(ReferencedBlobs(named)) = check.named.take() else {
        return;
    };
    let total = named.values().map(|naming| naming.size).sum();
    check.counts().named = named.len() as u64;
    let mut done = 0;
    // In the order of the records, so that the first bad one is reported first.
    let mut named: Vec<(ContentDigest, BlobReference)> = named.into_iter().collect();
    named.sort_unstable_by_key(|(digest, naming)| (naming.seq, *digest));
    for (digest, naming) in named {
        match look_at(&place.folder, &digest, &naming, check) {
            Ok(BlobCondition::Intact) => check.counts().intact += 1,
            Ok(BlobCondition::Changed) => {
                check.found(naming.seq, JournalFlaw::ArtifactChanged(digest));
            }
            Ok(BlobCondition::Nothing) if naming.last < place.kept_since => {
                check.counts().expired += 1;
            }
            Ok(BlobCondition::Nothing) => {
                check.found(naming.seq, JournalFlaw::ArtifactMissing(digest));
            }
            Err(error) => {
                check.found(
                    naming.seq,
                    JournalFlaw::ArtifactUnreadable {
                        digest,
                        why: error.to_string(),
                    },
                );
            }
        }
        done += naming.size;
        progress(done, total);
    }
}

enum BlobCondition {
    Nothing,
    Intact,
    Changed,
}

fn look_at(
    folder: &Path,
    digest: &ContentDigest,
    naming: &BlobReference,
    check: &mut JournalCheck,
) -> std::io::Result<BlobCondition> {
    let hex = digest.to_hex();
    let path = folder.join(&hex[..2]).join(&hex);
    let mut hasher = Sha256::new();
    let read = disk::read_in_pieces(&path, PIECE, |piece| hasher.update(piece))?;
    let Some(bytes) = read else {
        return Ok(BlobCondition::Nothing);
    };
    check.counts().bytes += bytes;
    let is_it = bytes == naming.size && hasher.finalize()[..] == digest.0;
    Ok(if is_it {
        BlobCondition::Intact
    } else {
        BlobCondition::Changed
    })
}
