//! Keeps the newest of any number of hits in bounded memory.

use std::{
    cmp::Ordering,
    collections::BinaryHeap,
    path::{Path, PathBuf},
};

use rustix::fs::Stat;

/// The modification time of a file, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ModificationTime {
    seconds: i64,
    nanoseconds: i64,
}

impl ModificationTime {
    #[expect(
        clippy::unnecessary_cast,
        clippy::cast_possible_wrap,
        reason = "the fields' types differ between systems"
    )]
    pub(super) fn of(stat: &Stat) -> Self {
        Self {
            seconds: stat.st_mtime as i64,
            nanoseconds: stat.st_mtime_nsec as i64,
        }
    }

    /// The time as text; `None` for times that no calendar has.
    pub(super) fn timestamp(self) -> Option<jiff::Timestamp> {
        jiff::Timestamp::new(self.seconds, i32::try_from(self.nanoseconds).ok()?).ok()
    }
}

/// A matching file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SearchHit {
    pub(super) modified: ModificationTime,
    /// Relative to the workspace.
    pub(super) place: PathBuf,
    /// The number of matching lines.
    pub(super) lines: u64,
}

/// Newest first, then by name, so that pages do not overlap.
impl Ord for SearchHit {
    fn cmp(&self, other: &Self) -> Ordering {
        rank(self.modified, &self.place, other)
    }
}

impl PartialOrd for SearchHit {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

fn rank(modified: ModificationTime, place: &Path, other: &SearchHit) -> Ordering {
    let by_name = || place.as_os_str().cmp(other.place.as_os_str());
    other.modified.cmp(&modified).then_with(by_name)
}

/// The most bytes of paths in memory. With long paths, fewer hits are kept.
const HELD_BYTES: usize = 32 << 20;

/// At most `room` hits, the newest of all that were added.
pub(super) struct NewestHits {
    room: usize,
    /// Bytes of the paths in memory.
    bytes: usize,
    /// The oldest on top.
    kept: BinaryHeap<SearchHit>,
    files: u64,
    lines: u64,
}

impl NewestHits {
    pub(super) fn new(room: usize) -> Self {
        Self {
            room,
            bytes: 0,
            kept: BinaryHeap::new(),
            files: 0,
            lines: 0,
        }
    }

    pub(super) fn offer(&mut self, modified: ModificationTime, place: &Path, lines: u64) {
        self.files += 1;
        self.lines += lines;
        let bytes = place.as_os_str().len();
        while self.kept.len() == self.room || self.bytes + bytes > HELD_BYTES {
            match self.kept.peek() {
                Some(oldest) if rank(modified, place, oldest).is_lt() => {
                    self.bytes -= oldest.place.as_os_str().len();
                    self.kept.pop();
                }
                Some(_) | None => return,
            }
        }
        self.bytes += bytes;
        self.kept.push(SearchHit {
            modified,
            place: place.to_owned(),
            lines,
        });
    }

    pub(super) fn into_found(self) -> SearchHits {
        SearchHits {
            hits: self.kept.into_sorted_vec(),
            files: self.files,
            lines: self.lines,
        }
    }
}

/// The result of a search.
pub(super) struct SearchHits {
    /// The newest first, at most as many as requested.
    pub(super) hits: Vec<SearchHit>,
    /// The number of all matching files.
    pub(super) files: u64,
    /// The number of all matching lines.
    pub(super) lines: u64,
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use proptest::prelude::{prop, proptest};

    use super::{ModificationTime, NewestHits};

    proptest! {
        #[test]
        fn what_is_kept_is_the_head_of_all_in_order(
            ages in prop::collection::vec((0_i64..5, 0_u32..1000), 0..60),
            room in 1_usize..20,
        ) {
            let mut newest = NewestHits::new(room);
            let mut all: Vec<(i64, String)> = Vec::new();
            for (seconds, name) in ages {
                let name = format!("f{name}");
                newest.offer(ModificationTime { seconds, nanoseconds: 0 }, Path::new(&name), 2);
                all.push((-seconds, name));
            }
            all.sort();
            let found = newest.into_found();
            assert_eq!((found.files, found.lines), (all.len() as u64, 2 * all.len() as u64));
            let kept: Vec<(i64, String)> = found.hits.iter()
                .map(|hit| (-hit.modified.seconds, hit.place.to_string_lossy().into_owned())).collect();
            assert_eq!(kept, all.into_iter().take(room).collect::<Vec<_>>());
        }
    }
}
