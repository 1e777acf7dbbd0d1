//! The lexical rule: decides which path texts are accepted, before any I/O.
//!
//! It does not normalise `..`, because `link/..` is not `.` if `link` is a link. The text only has to stay inside when
//! read as if there were no links; `locate` finds the real place.

use std::{
    ffi::OsString,
    path::{Component, Path, PathBuf},
};

use toolpost_model::{ErrorClass, InputRefusal};

use crate::workspace::names::shown;

/// The longest path, in bytes. Linux cannot open longer ones in one piece either.
const MAX_BYTES: usize = 4096;
/// The deepest path. `locate` holds a descriptor per level.
pub(super) const MAX_DEPTH: usize = 128;

/// A path as a caller sent it, accepted by the lexical rule.
#[derive(Clone, Debug)]
pub struct RequestedPath {
    given: String,
    /// The index of the root that the steps begin at.
    root: usize,
    /// That root as a place: empty for the primary root.
    base: PathBuf,
    steps: Vec<PathStep>,
    names_directory: bool,
}

/// An accepted spelling of a root's path.
#[derive(Clone, Copy, Debug)]
pub(super) struct RootSpelling<'r> {
    /// The root's index in the workspace.
    pub(super) root: usize,
    /// Absolute.
    pub(super) path: &'r Path,
    /// The root as a place: relative to the primary root if it is beneath it, otherwise absolute.
    pub(super) base: &'r Path,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PathStep {
    /// Into the file of this name.
    Down(OsString),
    /// To the parent.
    Up,
}

/// Why a path was refused before any I/O.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum PathRefusal {
    #[error("the path is empty; give one relative to the workspace, such as `src/main.rs`")]
    Empty,
    #[error("`{}` contains a NUL character, which file names cannot have", shown(.given))]
    Nul { given: String },
    #[error("the path has {bytes} bytes, the limit is {MAX_BYTES}")]
    TooLong { bytes: usize },
    #[error("`{}` has more than {MAX_DEPTH} levels", shown(.given))]
    TooDeep { given: String },
    #[error("`{}` leaves the workspace; give a path inside it", shown(.given))]
    Leaves { given: String },
    #[error("`{}` lies outside the workspace `{}`; give a path inside it", shown(.given), shown(&.root.to_string_lossy()))]
    Outside { given: String, root: PathBuf },
    #[error("`{}` cannot be changed: the root `{}` is read-only", shown(.given), shown(&.root.to_string_lossy()))]
    ReadOnlyRoot { given: String, root: PathBuf },
}

impl PathRefusal {
    /// The class of the failure.
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::Empty | Self::Nul { .. } | Self::TooLong { .. } | Self::TooDeep { .. } => {
                ErrorClass::InvalidArguments
            }
            Self::Leaves { .. } | Self::Outside { .. } | Self::ReadOnlyRoot { .. } => {
                ErrorClass::SandboxViolation
            }
        }
    }

    /// The refusal as `check` reports it, for the argument `path` of most file tools.
    pub fn into_refusal(self) -> InputRefusal {
        self.into_refusal_at("/path")
    }

    /// The refusal for an argument of another name.
    pub fn into_refusal_at(self, at: &str) -> InputRefusal {
        InputRefusal {
            class: self.class(),
            at: at.to_owned(),
            message: self.to_string(),
        }
    }
}

impl RequestedPath {
    /// Applies the rule. `spellings` are the paths of the roots, the primary root's own path first.
    pub(super) fn parse(given: &str, spellings: &[RootSpelling<'_>]) -> Result<Self, PathRefusal> {
        let text = || given.to_owned();
        if given.is_empty() {
            return Err(PathRefusal::Empty);
        }
        if given.len() > MAX_BYTES {
            return Err(PathRefusal::TooLong { bytes: given.len() });
        }
        if given.contains('\0') {
            return Err(PathRefusal::Nul { given: text() });
        }
        let root = spellings
            .first()
            .map(|primary| primary.path.to_path_buf())
            .unwrap_or_default();
        let mut refusal = PathRefusal::Outside {
            given: text(),
            root,
        };
        // `/w/lib/../a` leaves the root `/w/lib` and stays inside the root `/w`.
        for (spelling, relative) in beneath(Path::new(given), spellings) {
            let steps = steps_of(relative);
            match stays_beneath(&steps, given) {
                Ok(()) => {
                    let names_directory = names_directory(given);
                    let root = spelling.root;
                    let base = spelling.base.to_owned();
                    return Ok(Self {
                        given: text(),
                        root,
                        base,
                        steps,
                        names_directory,
                    });
                }
                Err(error) => refusal = error,
            }
        }
        Err(refusal)
    }

    /// The text as it was sent.
    pub fn given(&self) -> &str {
        &self.given
    }

    /// Whether the text can only name a directory: `a/`, `a/.`, `a/..`.
    pub fn names_directory(&self) -> bool {
        self.names_directory
    }

    pub(super) fn root(&self) -> usize {
        self.root
    }

    pub(super) fn steps(&self) -> &[PathStep] {
        &self.steps
    }

    /// The path as if there were no links. It is enough to name a place that cannot be looked up.
    pub fn lexical(&self) -> PathBuf {
        let mut path = self.base.clone();
        for step in &self.steps {
            match step {
                PathStep::Down(name) => path.push(name),
                PathStep::Up => {
                    path.pop();
                }
            }
        }
        path
    }
}

/// The roots above `path` as written, deepest first, with the rest of the path. A relative path is beneath the primary
/// root.
pub(super) fn beneath<'p, 's>(
    path: &'p Path,
    spellings: &'s [RootSpelling<'s>],
) -> impl Iterator<Item = (&'s RootSpelling<'s>, &'p Path)> {
    let mut found: Vec<_> = match path.has_root() {
        false => spellings
            .first()
            .map(|primary| (primary, path))
            .into_iter()
            .collect(),
        true => spellings
            .iter()
            .filter_map(|spelling| Some((spelling, path.strip_prefix(spelling.path).ok()?)))
            .collect(),
    };
    found.sort_by_key(|(_, relative)| relative.components().count());
    found.into_iter()
}

fn stays_beneath(steps: &[PathStep], given: &str) -> Result<(), PathRefusal> {
    let mut depth = 0_usize;
    for step in steps {
        depth = match step {
            PathStep::Down(_) if depth == MAX_DEPTH => {
                return Err(PathRefusal::TooDeep {
                    given: given.to_owned(),
                });
            }
            PathStep::Down(_) => depth + 1,
            PathStep::Up => depth.checked_sub(1).ok_or_else(|| PathRefusal::Leaves {
                given: given.to_owned(),
            })?,
        };
    }
    Ok(())
}

/// The steps of a relative path.
pub(super) fn steps_of(relative: &Path) -> Vec<PathStep> {
    relative
        .components()
        .filter_map(|component| match component {
            Component::Normal(name) => Some(PathStep::Down(name.to_owned())),
            Component::ParentDir => Some(PathStep::Up),
            Component::CurDir | Component::RootDir | Component::Prefix(_) => None,
        })
        .collect()
}

pub(super) fn names_directory(text: &str) -> bool {
    matches!(text.rsplit('/').next(), Some("" | "." | ".."))
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use proptest::prelude::{Strategy, prop, proptest};

    use super::{PathRefusal, RequestedPath, RootSpelling};

    fn parse(given: &str) -> Result<RequestedPath, PathRefusal> {
        let spelling = |root: usize, path: &'static str, base: &'static str| RootSpelling {
            root,
            path: Path::new(path),
            base: Path::new(base),
        };
        let spellings = [
            spelling(0, "/real/w", ""),
            spelling(0, "/w", ""),
            spelling(1, "/real/w/sub", "sub"),
            spelling(2, "/lib", "/lib"),
        ];
        RequestedPath::parse(given, &spellings)
    }

    fn check(given: &str, expected: Result<&str, &str>) {
        match (parse(given), expected) {
            (Ok(path), Ok(lexical)) => {
                assert_eq!(path.lexical(), PathBuf::from(lexical), "{given:?}");
            }
            (Err(refusal), Err(part)) => {
                assert!(refusal.to_string().contains(part), "{given:?}: {refusal}");
            }
            (got, want) => panic!("{given:?}: got {got:?}, want {want:?}"),
        }
    }

    #[test]
    fn texts_that_stay_inside_are_accepted_and_others_say_why_not() {
        check("a.txt", Ok("a.txt"));
        check("./a//b/./c/", Ok("a/b/c"));
        check("a/../b", Ok("b"));
        check("a/..", Ok(""));
        check(".", Ok(""));
        check("...", Ok("..."));
        check("/w/a", Ok("a"));
        check("/real/w/a", Ok("a"));
        check("//w//a", Ok("a"));
        check("/w", Ok(""));
        check("/lib/a/../b", Ok("/lib/b"));
        check("/lib", Ok("/lib"));
        check("/real/w/sub/a", Ok("sub/a"));
        check("/real/w/sub/../a", Ok("a"));
        check("/real/w/sub/../../x", Err("leaves the workspace"));
        check("/lib/../w/a", Err("leaves the workspace"));
        check("/library", Err("outside the workspace"));
        check("../lib/a", Err("leaves the workspace"));
        check("", Err("is empty"));
        check("..", Err("leaves the workspace"));
        check("../w/a", Err("leaves the workspace"));
        check("a/../../x", Err("leaves the workspace"));
        check("/w/../etc/passwd", Err("leaves the workspace"));
        check("/real/w/a/../../../x", Err("leaves the workspace"));
        check("/", Err("outside the workspace `/real/w`"));
        check("/etc/passwd", Err("outside the workspace"));
        check("/wide", Err("outside the workspace"));
        check("/real/wide", Err("outside the workspace"));
        check("/etc/../w/a", Err("outside the workspace"));
        check("a\0b", Err("`a\\u{0}b` contains a NUL"));
        check(&"a".repeat(4097), Err("4097 bytes, the limit is 4096"));
        check(&"a/".repeat(129), Err("more than 128 levels"));
    }

    fn texts() -> impl Strategy<Value = String> {
        let piece = prop::sample::select(vec![
            "..", ".", "", "a", "b", "w", "real", "lib", "sub", "/", "//", "\0", "...", "..a",
            "a..", "\\", "~", "é", "\n",
        ]);
        prop::collection::vec((piece, prop::bool::ANY), 0..12).prop_map(|pieces| {
            pieces
                .iter()
                .map(|(p, slash)| format!("{p}{}", if *slash { "/" } else { "" }))
                .collect()
        })
    }

    proptest! {
        /// Checks the accepted steps themselves: they never go above the root.
        #[test]
        fn accepted_paths_never_climb_above_the_root(given in texts()) {
            if let Ok(path) = parse(&given) {
                let mut depth = 0_i64;
                for step in path.steps() {
                    depth += if *step == super::PathStep::Up { -1 } else { 1 };
                    assert!(depth >= 0, "{given:?} climbs out");
                }
                assert!(!path.lexical().has_root() || path.root() == 2);
                assert!(!given.contains('\0'));
                let starts = |root: &str| Path::new(&given).starts_with(root);
                assert!(!given.starts_with('/') || ["/w", "/real/w", "/lib"].into_iter().any(starts), "{given:?}");
            }
        }

        /// A text without `..` or a leading `/` is never refused for leaving the root.
        #[test]
        fn plain_names_are_never_called_an_escape(given in "[a-z./]{1,20}") {
            if let Err(refusal) = parse(&given) {
                assert!(given.contains("..") || given.starts_with('/'), "{given:?}: {refusal}");
            }
        }
    }
}
