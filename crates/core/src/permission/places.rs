//! Resolving the paths of rules and arguments to the form that is compared.

use std::path::{Path, PathBuf};

/// The base folders for paths in rules and arguments. They are absolute, with links resolved.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PathBaseFolders {
    /// The base of relative paths.
    pub workspace: Option<PathBuf>,
    /// The folder of `~`.
    pub home: Option<PathBuf>,
    /// Further folders that tools may work in.
    pub roots: Vec<PathBuf>,
}

/// The longest path that is examined. Longer ones are opaque. Linux accepts 4,096 bytes.
const PATH_BYTES: usize = 16 * 1024;

/// An absolute path without `.`, `..`, doubled or trailing slashes, for comparison by components.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct PlainPath(String);

impl PlainPath {
    /// Normalizes an absolute path. `None` if it is not absolute.
    pub(super) fn of(path: &str) -> Option<Self> {
        path.starts_with('/').then(|| {
            let mut parts: Vec<&str> = Vec::new();
            for part in path.split('/') {
                match part {
                    "" | "." => {}
                    ".." => {
                        parts.pop();
                    }
                    part => parts.push(part),
                }
            }
            Self(format!("/{}", parts.join("/")))
        })
    }

    pub(super) fn of_path(path: &Path) -> Option<Self> {
        Self::of(&path.to_string_lossy())
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    /// The components, from the root on.
    pub(super) fn components(&self) -> impl Iterator<Item = &str> {
        self.0.split('/').filter(|part| !part.is_empty())
    }

    /// The path and all folders above it except the root, longest first.
    pub(super) fn and_above(&self) -> impl Iterator<Item = &str> {
        let mut rest = Some(self.0.as_str());
        std::iter::from_fn(move || {
            let found = rest?;
            rest = found.rfind('/').filter(|&at| at > 0).map(|at| &found[..at]);
            Some(found)
        })
    }

    /// A path in the same folder with the same extension, and a name that no rule has.
    pub(super) fn sibling(&self) -> Self {
        let (folder, name) = self.0.rsplit_once('/').unwrap_or_default();
        let kind = name.rsplit_once('.').map_or("", |(_, kind)| kind);
        Self(format!("{folder}/\u{1}any\u{1}.{kind}"))
    }

    /// The rest of the path beneath `folder`. Empty for the folder itself.
    pub(super) fn beneath(&self, folder: &Self) -> Option<&str> {
        let rest = self.0.strip_prefix(folder.0.trim_end_matches('/'))?;
        match rest.strip_prefix('/') {
            Some(rest) => Some(rest),
            None => rest.is_empty().then_some(""),
        }
    }
}

/// Why an argument cannot be resolved as a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UnclearPathReason {
    /// The path is relative, and its base is unknown.
    Relative,
    /// The path is too long.
    TooLong,
    /// The path holds a NUL, or a variable that a tool might expand.
    Written,
}

impl UnclearPathReason {
    pub(super) fn explain(self) -> &'static str {
        match self {
            Self::Relative => "is relative to a folder that is not known",
            Self::TooLong => "is too long to be read",
            Self::Written => "can be read in more than one way",
        }
    }
}

impl PathBaseFolders {
    /// The paths that an argument may mean, relative to `base` or the workspace. Links are not resolved here, because
    /// the code that opens a file does that. A `~` has two readings, because some tools expand it and some do not.
    pub(super) fn resolve(
        &self,
        written: &str,
        base: Option<&PlainPath>,
    ) -> Result<Vec<PlainPath>, UnclearPathReason> {
        if written.len() > PATH_BYTES {
            return Err(UnclearPathReason::TooLong);
        }
        if written.contains('\0') || holds_a_variable(written) {
            return Err(UnclearPathReason::Written);
        }
        if written.starts_with("file:") {
            let url = url::Url::parse(written).map_err(|_| UnclearPathReason::Written)?;
            let path = url
                .to_file_path()
                .map_err(|()| UnclearPathReason::Written)?;
            return Ok(PlainPath::of_path(&path).into_iter().collect());
        }
        let mut readings = Vec::new();
        if let Some(rest) = written.strip_prefix('~') {
            match (&self.home, rest.is_empty() || rest.starts_with('/')) {
                (Some(home), true) => {
                    readings.extend(PlainPath::of(&format!("{}/{rest}", home.to_string_lossy())));
                }
                (None, true) | (_, false) => return Err(UnclearPathReason::Written),
            }
        }
        let workspace = || self.workspace.as_deref().and_then(PlainPath::of_path);
        match (PlainPath::of(written), base.cloned().or_else(workspace)) {
            (Some(absolute), _) => readings.push(absolute),
            (None, Some(base)) => {
                readings.extend(PlainPath::of(&format!("{}/{written}", base.as_str())));
            }
            (None, None) if readings.is_empty() => return Err(UnclearPathReason::Relative),
            (None, None) => {}
        }
        Ok(readings)
    }

    /// Whether a path is inside the workspace or a root. Without both, each path counts as inside.
    pub(super) fn hold(&self, path: &PlainPath) -> bool {
        let mut folders = self.workspace.iter().chain(&self.roots).peekable();
        folders.peek().is_none()
            || folders
                .filter_map(|folder| PlainPath::of_path(folder))
                .any(|folder| path.beneath(&folder).is_some())
    }

    /// The path as a rule names it: relative to the workspace if it is inside.
    pub(super) fn named(&self, path: &PlainPath) -> String {
        let workspace = self.workspace.as_deref().and_then(PlainPath::of_path);
        match workspace
            .as_ref()
            .and_then(|workspace| path.beneath(workspace))
        {
            // A bare name would match each file of that name.
            Some(rest) if !rest.is_empty() && !rest.contains('/') => format!("ws:{rest}"),
            Some(rest) if !rest.is_empty() => rest.to_owned(),
            Some(_) | None => path.as_str().to_owned(),
        }
    }
}

/// Whether the text may hold a variable. Some tools expand variables, others take them as names.
fn holds_a_variable(written: &str) -> bool {
    let begins_one = |c: char| c.is_ascii_alphabetic() || matches!(c, '_' | '{' | '(');
    written
        .match_indices('$')
        .any(|(at, _)| written[at + 1..].starts_with(begins_one))
}

#[cfg(test)]
mod tests {
    use super::{PathBaseFolders, PlainPath};

    #[test]
    fn arguments_are_resolved_by_name() {
        let places = PathBaseFolders {
            workspace: Some("/w".into()),
            home: Some("/home/me".into()),
            roots: vec!["/data".into()],
        };
        for (written, expected) in [
            ("a.txt", &["/w/a.txt"][..]),
            ("./a//b/", &["/w/a/b"]),
            ("../etc/passwd", &["/etc/passwd"]),
            ("src/../../w/x", &["/w/x"]),
            ("/a/./b/../c", &["/a/c"]),
            ("/../..", &["/"]),
            ("~/x", &["/home/me/x", "/w/~/x"]),
            ("file:///etc/pass%77d", &["/etc/passwd"]),
            ("", &["/w"]),
        ] {
            let found = places.resolve(written, None).unwrap();
            assert_eq!(
                found.iter().map(PlainPath::as_str).collect::<Vec<_>>(),
                expected,
                "{written}"
            );
        }
        for unclear in ["~root/x", "a\0b", "${HOME}/x", "$HOME/x", "file://host/x"] {
            assert!(places.resolve(unclear, None).is_err(), "{unclear:?}");
        }
        assert!(PathBaseFolders::default().resolve("a", None).is_err());
    }

    #[test]
    fn what_lies_in_the_roots_is_inside() {
        let places = PathBaseFolders {
            workspace: Some("/w".into()),
            home: None,
            roots: vec!["/data".into()],
        };
        for (path, inside) in [
            ("/w", true),
            ("/w/a", true),
            ("/wx", false),
            ("/data/a", true),
            ("/etc/x", false),
        ] {
            assert_eq!(places.hold(&PlainPath::of(path).unwrap()), inside, "{path}");
        }
    }
}
