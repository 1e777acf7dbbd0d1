//! The rules of ignore files: `.gitignore` and `.ignore` of a directory and all above it up to the root.
//!
//! The files are read through descriptors and have limits of their own, because a program that can write to the
//! workspace can create a thousand of them. Rules also apply outside of git repositories, as agents expect.

use std::{ffi::CStr, io::Read as _, path::Path, sync::Arc};

use ignore::{
    Match,
    gitignore::{Gitignore, GitignoreBuilder},
};
use rustix::fd::BorrowedFd;

use super::{open::open_file, path_of};

/// How much of one ignore file is read.
const FILE_BYTES: u64 = 64 << 10;
/// The most rules for one place, from all files above it.
const CHAIN_RULES: usize = 5_000;

/// The rules of one directory that has some, and those above it.
#[derive(Debug)]
pub(in crate::search) struct IgnoreRules {
    above: Option<Arc<IgnoreRules>>,
    /// Takes precedence over `git` at any level.
    plain: Gitignore,
    git: Gitignore,
    /// The position in a place's path where names in this directory begin.
    start: usize,
    /// The number of rules of this directory and those above.
    count: usize,
}

/// The result of matching a name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum IgnoreRuleMatch {
    Nothing,
    LeaveOut,
    /// Matched with `!`, which also includes hidden names.
    Keep,
}

impl IgnoreRules {
    /// The rules for names in `dir` at `place`. Equal to those above if it has no ignore files.
    pub(in crate::search) fn in_directory(
        dir: BorrowedFd<'_>,
        place: &[u8],
        above: Option<&Arc<Self>>,
    ) -> Option<Arc<Self>> {
        let count = above.map_or(0, |rules| rules.count);
        let plain = read(dir, c".ignore", CHAIN_RULES.saturating_sub(count));
        let git = read(
            dir,
            c".gitignore",
            CHAIN_RULES.saturating_sub(count + plain.len()),
        );
        if plain.is_empty() && git.is_empty() {
            return above.cloned();
        }
        Some(Arc::new(Self {
            above: above.cloned(),
            count: count + plain.len() + git.len(),
            plain,
            git,
            start: if place.is_empty() { 0 } else { place.len() + 1 },
        }))
    }

    pub(super) fn verdict(&self, place: &[u8], is_dir: bool) -> IgnoreRuleMatch {
        match self.first(place, is_dir, |rules| &rules.plain) {
            IgnoreRuleMatch::Nothing => self.first(place, is_dir, |rules| &rules.git),
            said => said,
        }
    }

    /// The deepest file with a matching rule decides.
    fn first(
        &self,
        place: &[u8],
        is_dir: bool,
        of_kind: impl Fn(&Self) -> &Gitignore,
    ) -> IgnoreRuleMatch {
        let mut level = Some(self);
        while let Some(rules) = level {
            let within = path_of(place.get(rules.start..).unwrap_or_default());
            match of_kind(rules).matched(within, is_dir) {
                Match::None => level = rules.above.as_deref(),
                Match::Ignore(_) => return IgnoreRuleMatch::LeaveOut,
                Match::Whitelist(_) => return IgnoreRuleMatch::Keep,
            }
        }
        IgnoreRuleMatch::Nothing
    }
}

/// Reads at most `most` rules. An unreadable file or rule is ignored, as in git.
fn read(dir: BorrowedFd<'_>, name: &CStr, most: usize) -> Gitignore {
    let Ok((file, _)) = open_file(dir, name) else {
        return Gitignore::empty();
    };
    let mut text = Vec::new();
    if file.take(FILE_BYTES).read_to_end(&mut text).is_err() {
        return Gitignore::empty();
    }
    let text = String::from_utf8_lossy(&text);
    let mut builder = GitignoreBuilder::new(Path::new(""));
    for line in text.trim_start_matches('\u{feff}').lines().take(most) {
        // An invalid rule is skipped like an empty line.
        let _ = builder.add_line(None, line);
    }
    builder.build().unwrap_or_else(|_| Gitignore::empty())
}
