//! The lexical rule: which path texts are accepted at all, before any I/O.
//!
//! `..` is not normalised away here: `link/..` is not `.` when `link` is a link. The text only has to stay
//! inside when read as if there were no links; where it really leads is for `locate` to find.

use std::{
    ffi::OsString,
    path::{Component, Path, PathBuf},
};

use toolpost_model::{ErrorClass, Refusal};

use crate::native::files::names::shown;

/// Longest path taken, in bytes; no longer one could be opened on Linux in one piece either.
const MAX_BYTES: usize = 4096;
/// Deepest path taken. `locate` holds a descriptor per level while it looks.
pub(super) const MAX_DEPTH: usize = 128;

/// A path as a caller sent it, accepted by the lexical rule.
#[derive(Clone, Debug)]
pub(crate) struct RequestedPath {
    given: String,
    steps: Vec<Step>,
    names_directory: bool,
}

/// One step of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Into what has this name.
    Down(OsString),
    /// To the parent.
    Up,
}

/// Why a path was refused before any I/O.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PathRefusal {
    #[error("the path is empty; give one relative to the workspace, such as `src/main.rs`")]
    Empty,
    #[error("`{}` holds a NUL character, which no file name can", shown(.given))]
    Nul { given: String },
    #[error("the path has {bytes} bytes, the limit is {MAX_BYTES}")]
    TooLong { bytes: usize },
    #[error("`{}` has more than {MAX_DEPTH} levels", shown(.given))]
    TooDeep { given: String },
    #[error("`{}` leaves the workspace; give a path inside it", shown(.given))]
    Leaves { given: String },
    #[error("`{}` lies outside the workspace `{}`; give a path inside it", shown(.given), .root.display())]
    Outside { given: String, root: PathBuf },
}

impl PathRefusal {
    pub(crate) fn class(&self) -> ErrorClass {
        match self {
            Self::Empty | Self::Nul { .. } | Self::TooLong { .. } | Self::TooDeep { .. } => {
                ErrorClass::InvalidArguments
            }
            Self::Leaves { .. } | Self::Outside { .. } => ErrorClass::SandboxViolation,
        }
    }

    /// As `check` reports it; all file tools call the argument `path`.
    pub(crate) fn into_refusal(self) -> Refusal {
        Refusal { class: self.class(), at: "/path".to_owned(), message: self.to_string() }
    }
}

impl RequestedPath {
    /// Applies the rule. `roots` are the accepted spellings of the workspace's own path, the canonical first.
    pub(super) fn parse(given: &str, roots: &[&Path]) -> Result<Self, PathRefusal> {
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
        let Some(relative) = beneath(Path::new(given), roots) else {
            let root = roots.first().map(|root| root.to_path_buf()).unwrap_or_default();
            return Err(PathRefusal::Outside { given: text(), root });
        };
        let mut depth = 0_usize;
        let steps = steps_of(relative);
        for step in &steps {
            depth = match step {
                Step::Down(_) if depth == MAX_DEPTH => return Err(PathRefusal::TooDeep { given: text() }),
                Step::Down(_) => depth + 1,
                Step::Up => depth.checked_sub(1).ok_or_else(|| PathRefusal::Leaves { given: text() })?,
            };
        }
        Ok(Self { given: text(), steps, names_directory: names_directory(given) })
    }

    /// The text as it was sent.
    pub(crate) fn given(&self) -> &str {
        &self.given
    }

    /// Whether the text can only name a directory: `a/`, `a/.`, `a/..`.
    pub(crate) fn names_directory(&self) -> bool {
        self.names_directory
    }

    pub(super) fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// Where the path would lead if there were no links. Good enough to name a place that cannot be looked at.
    pub(crate) fn lexical(&self) -> PathBuf {
        let mut path = PathBuf::new();
        for step in &self.steps {
            match step {
                Step::Down(name) => path.push(name),
                Step::Up => {
                    path.pop();
                }
            }
        }
        path
    }
}

/// `path` relative to the root: as it is where it is relative, else without the root's own path in front.
/// `None`: it is absolute and not beneath any spelling of the root.
pub(super) fn beneath<'p>(path: &'p Path, roots: &[&Path]) -> Option<&'p Path> {
    match path.has_root() {
        false => Some(path),
        true => roots.iter().find_map(|root| path.strip_prefix(root).ok()),
    }
}

/// The steps of a relative path.
pub(super) fn steps_of(relative: &Path) -> Vec<Step> {
    relative
        .components()
        .filter_map(|component| match component {
            Component::Normal(name) => Some(Step::Down(name.to_owned())),
            Component::ParentDir => Some(Step::Up),
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

    use super::{PathRefusal, RequestedPath};

    fn parse(given: &str) -> Result<RequestedPath, PathRefusal> {
        RequestedPath::parse(given, &[Path::new("/real/w"), Path::new("/w")])
    }

    fn check(given: &str, expected: Result<&str, &str>) {
        match (parse(given), expected) {
            (Ok(path), Ok(lexical)) => assert_eq!(path.lexical(), PathBuf::from(lexical), "{given:?}"),
            (Err(refusal), Err(part)) => assert!(refusal.to_string().contains(part), "{given:?}: {refusal}"),
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
        check("a\0b", Err("`a\\0b` holds a NUL"));
        check(&"a".repeat(4097), Err("4097 bytes, the limit is 4096"));
        check(&"a/".repeat(129), Err("more than 128 levels"));
    }

    fn texts() -> impl Strategy<Value = String> {
        let piece = prop::sample::select(vec![
            "..", ".", "", "a", "b", "w", "real", "/", "//", "\0", "...", "..a", "a..", "\\", "~", "é", "\n",
        ]);
        prop::collection::vec((piece, prop::bool::ANY), 0..12).prop_map(|pieces| {
            pieces.iter().map(|(p, slash)| format!("{p}{}", if *slash { "/" } else { "" })).collect()
        })
    }

    proptest! {
        /// The check is on the accepted steps themselves: at no point do they stand above the root.
        #[test]
        fn accepted_paths_never_climb_above_the_root(given in texts()) {
            if let Ok(path) = parse(&given) {
                let mut depth = 0_i64;
                for step in path.steps() {
                    depth += if *step == super::Step::Up { -1 } else { 1 };
                    assert!(depth >= 0, "{given:?} climbs out");
                }
                assert!(!path.lexical().has_root());
                assert!(!given.contains('\0'));
                assert!(!given.starts_with('/') || Path::new(&given).starts_with("/w")
                    || Path::new(&given).starts_with("/real/w"), "{given:?}");
            }
        }

        /// A refusal for leaving is never given to a text without `..` or a leading `/`.
        #[test]
        fn plain_names_are_never_called_an_escape(given in "[a-z./]{1,20}") {
            if let Err(refusal) = parse(&given) {
                assert!(given.contains("..") || given.starts_with('/'), "{given:?}: {refusal}");
            }
        }
    }
}
