//! Paths that ask before they are changed, even if writing is allowed: files that run code, or open access, for people
//! who later work in the folder.
//!
//! The file tools turn a match into a caution of the call's effects. The launcher mounts existing protected paths
//! read-only.

mod places;
mod repository;

use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
    ffi::OsString,
    path::{Component, Path, PathBuf},
    sync::LazyLock,
};

use cap_std::fs::Dir;
use globset::{Glob, GlobBuilder, GlobSet, GlobSetBuilder};

pub(crate) use self::repository::{CONFIG, is_piece, is_repository};
pub use self::{places::PlaceEffect, repository::folders_in_the_making};
use self::{
    places::{PLACES, PlaceDepth, ProtectedPlace, REPOSITORIES, VERSION_CONTROL},
    repository::changed_repository,
};

/// How many names of a root are compared with patterns of protected names.
const NAMES_LOOKED_AT: usize = 10_000;

/// Why a place is protected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PlaceWarning {
    pub(crate) effect: PlaceEffect,
    /// One sentence for the operator who is asked.
    pub(crate) reason: Cow<'static, str>,
}

impl PlaceWarning {
    pub(super) fn runs_code(reason: impl Into<Cow<'static, str>>) -> Self {
        Self {
            effect: PlaceEffect::RunsCode,
            reason: reason.into(),
        }
    }
}

/// The paths that ask before they are changed.
#[derive(Clone, Debug, Default)]
pub struct PathProtection {
    standard: bool,
    repositories_open: bool,
    patterns: Vec<String>,
    globs: GlobSet,
    files: Vec<PathBuf>,
}

/// An invalid pattern.
#[derive(Debug, thiserror::Error)]
#[error("`{pattern}` is not a pattern of paths")]
pub struct ProtectionPatternError {
    /// The pattern as given.
    pub pattern: String,
    /// The error of the pattern.
    #[source]
    pub source: globset::Error,
}

impl PathProtection {
    /// Paths that run code or open access later: version control data, pipelines, hooks, settings of editors, agents
    /// and this host, start-up files of shells, keys.
    pub fn standard() -> Self {
        Self {
            standard: true,
            ..Self::default()
        }
    }

    /// No protection.
    pub fn none() -> Self {
        Self::default()
    }

    /// Adds patterns of paths relative to a root, such as `deploy/**`. `*` stays within one name.
    pub fn with<P: AsRef<str>>(
        mut self,
        patterns: impl IntoIterator<Item = P>,
    ) -> Result<Self, ProtectionPatternError> {
        self.patterns.extend(
            patterns
                .into_iter()
                .map(|pattern| pattern.as_ref().to_owned()),
        );
        let mut globs = GlobSetBuilder::new();
        for pattern in &self.patterns {
            // With `deploy/**` the directory itself, too: moving it away changes everything in it.
            for text in [Some(pattern.as_str()), pattern.strip_suffix("/**")]
                .into_iter()
                .flatten()
            {
                let glob = glob(text).map_err(|source| ProtectionPatternError {
                    pattern: pattern.clone(),
                    source,
                })?;
                globs.add(glob);
            }
        }
        let built = globs.build();
        self.globs = built.map_err(|source| ProtectionPatternError {
            pattern: self.patterns.join(" "),
            source,
        })?;
        Ok(self)
    }

    /// Adds a file by its absolute path, such as the configuration of this host, or a folder with everything in it,
    /// such as a module that it runs.
    #[must_use]
    pub fn with_file(mut self, absolute: PathBuf) -> Self {
        self.files.push(absolute);
        self
    }

    /// Leaves version control data unprotected, because commits write there.
    #[must_use]
    pub fn without_repositories(mut self) -> Self {
        self.repositories_open = true;
        self
    }

    /// The warning for `place`: a path relative to its root, or an absolute path for the files that were added.
    pub(super) fn warning(&self, place: &Path) -> Option<PlaceWarning> {
        if place.has_root() {
            let named = self.files.iter().any(|file| place.starts_with(file));
            return named
                .then(|| PlaceWarning::runs_code("it controls the permissions of this host"));
        }
        let known = self.standard.then(|| self.known_place(place)).flatten();
        let known = known.map(|known| PlaceWarning {
            effect: known.effect,
            reason: known.reason.into(),
        });
        match known {
            Some(warning) if warning.effect == PlaceEffect::RunsCode => Some(warning),
            steering => {
                let own = || PlaceWarning::runs_code("the operator's configuration protects it");
                self.globs.is_match(place).then(own).or(steering)
            }
        }
    }

    /// The folder that is a repository by its content, and not by its name, and that changes at these absolute paths
    /// affect. `exists` checks for existing files.
    pub(super) fn changed_repository<'c>(
        &self,
        changed: &'c [PathBuf],
        exists: impl Fn(&Path) -> bool,
    ) -> Option<&'c Path> {
        self.guards_repositories()
            .then(|| changed_repository(changed, exists))
            .flatten()
    }

    /// Whether version control data is protected.
    pub fn guards_repositories(&self) -> bool {
        self.standard && !self.repositories_open
    }

    /// Protected paths that exist in `root`, which is at `path`: known names and the fixed beginnings of patterns.
    pub fn existing(&self, root: &Dir, path: &Path) -> Vec<ProtectedPath> {
        let names = self.names_at_top(root);
        let exists = |place: &Path| {
            let first = place.iter().next().unwrap_or_default();
            names.as_ref().is_none_or(|names| names.contains(first))
                && root.symlink_metadata(place).is_ok()
        };
        let known = self.places().filter(|place| !place.path.contains('*'));
        let known = known.map(|place| (PathBuf::from(place.path), place.effect, place.reason));
        let own = self
            .patterns
            .iter()
            .filter_map(|pattern| fixed_beginning(pattern));
        let own = own.map(|place| {
            (
                place,
                PlaceEffect::RunsCode,
                "the operator's configuration protects it",
            )
        });
        let files = self
            .files
            .iter()
            .filter_map(|file| Some(file.strip_prefix(path).ok()?.to_owned()));
        let files = files.map(|place| {
            (
                place,
                PlaceEffect::RunsCode,
                "it controls the permissions of this host",
            )
        });
        let named = known
            .chain(own)
            .chain(files)
            .filter(|(place, ..)| exists(place));
        let found = named
            .chain(unfixed(names.as_ref()))
            .chain(self.of_bare_repository(root));
        found
            .map(|(place, effect, reason)| ProtectedPath {
                path: path.join(place),
                effect,
                reason,
            })
            .collect()
    }

    /// The names at the top of a root; `None` if there are too many, or if no pattern needs them.
    fn names_at_top(&self, root: &Dir) -> Option<HashSet<OsString>> {
        let entries = if self.standard {
            root.entries().ok()
        } else {
            None
        }?;
        let names: HashSet<OsString> = entries
            .take(NAMES_LOOKED_AT + 1)
            .flatten()
            .map(|entry| entry.file_name())
            .collect();
        (names.len() <= NAMES_LOOKED_AT).then_some(names)
    }

    /// The files that make a root itself a repository.
    fn of_bare_repository(&self, root: &Dir) -> Vec<(PathBuf, PlaceEffect, &'static str)> {
        let exists = |name: &str| {
            root.symlink_metadata(name)
                .is_ok_and(|found| name != CONFIG || !found.is_dir())
        };
        if !self.guards_repositories() || !is_repository(exists) {
            return Vec::new();
        }
        let names = repository::NAMES.into_iter().filter(|name| exists(name));
        names
            .map(|name| (PathBuf::from(name), PlaceEffect::RunsCode, VERSION_CONTROL))
            .collect()
    }

    fn places(&self) -> impl Iterator<Item = &'static ProtectedPlace> {
        PLACES
            .iter()
            .filter(move |place| self.standard && !self.leaves_out(place))
    }

    fn leaves_out(&self, place: &ProtectedPlace) -> bool {
        self.repositories_open && REPOSITORIES.contains(&place.path)
    }

    /// The listed place that a relative path is in. Of several, one that runs code.
    fn known_place(&self, place: &Path) -> Option<&'static ProtectedPlace> {
        let names: Vec<&str> = place
            .components()
            .filter_map(|component| match component {
                Component::Normal(name) => Some(name.to_str().unwrap_or_default()),
                Component::Prefix(_)
                | Component::RootDir
                | Component::CurDir
                | Component::ParentDir => None,
            })
            .collect();
        let found = (0..names.len()).flat_map(|at| INDEX.at(&names, at));
        found
            .filter(|place| !self.leaves_out(place))
            .min_by_key(|place| match place.effect {
                PlaceEffect::RunsCode => 0,
                PlaceEffect::SteersAgents => 1,
            })
    }
}

/// A protected path that exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProtectedPath {
    /// The absolute path.
    pub path: PathBuf,
    /// The effect of a change there.
    pub effect: PlaceEffect,
    /// The reason for the operator who is asked.
    pub reason: &'static str,
}

/// The list by first names, because every changed path is looked up.
static INDEX: LazyLock<PlaceIndex> = LazyLock::new(PlaceIndex::of_all);

struct PlaceIndex {
    by_first_name: HashMap<&'static str, Vec<(&'static ProtectedPlace, Vec<&'static str>)>>,
    /// By the beginning and the end of a name.
    unfixed: Vec<(&'static ProtectedPlace, &'static str, &'static str)>,
}

impl PlaceIndex {
    fn of_all() -> Self {
        let mut index = Self {
            by_first_name: HashMap::new(),
            unfixed: Vec::new(),
        };
        for place in PLACES {
            if let Some((beginning, end)) = place.path.split_once('*') {
                index.unfixed.push((place, beginning, end));
                continue;
            }
            let mut names = place.path.split('/');
            let first = names.next().unwrap_or_default();
            index
                .by_first_name
                .entry(first)
                .or_default()
                .push((place, names.collect()));
        }
        index
    }

    /// The places that begin at one of the names of a path.
    fn at<'n>(
        &'n self,
        names: &'n [&'n str],
        at: usize,
    ) -> impl Iterator<Item = &'static ProtectedPlace> + 'n {
        let name = names[at];
        let beneath = &names[at + 1..];
        let fixed = self.by_first_name.get(name).into_iter().flatten();
        let fixed = fixed
            .filter(move |(_, rest)| beneath.starts_with(rest))
            .map(|(place, _)| *place);
        let found = fixed.chain(self.unfixed(name));
        found.filter(move |place| match place.depth {
            PlaceDepth::Anywhere => true,
            PlaceDepth::Top => at == 0,
        })
    }

    fn unfixed(&self, name: &str) -> Option<&'static ProtectedPlace> {
        let fits = |(_, beginning, end): &&(_, &str, &str)| {
            name.len() > beginning.len() + end.len()
                && name.starts_with(beginning)
                && name.ends_with(end)
        };
        self.unfixed.iter().find(fits).map(|(place, ..)| *place)
    }
}

/// The names in a root that are protected by their beginning or end.
fn unfixed(
    names: Option<&HashSet<OsString>>,
) -> impl Iterator<Item = (PathBuf, PlaceEffect, &'static str)> {
    names.into_iter().flatten().filter_map(|name| {
        let place = INDEX.unfixed(name.to_str()?)?;
        Some((PathBuf::from(name), place.effect, place.reason))
    })
}

fn glob(pattern: &str) -> Result<Glob, globset::Error> {
    GlobBuilder::new(pattern).literal_separator(true).build()
}

/// The part of a pattern before its first wildcard, by whole names; `None` if it begins with one.
fn fixed_beginning(pattern: &str) -> Option<PathBuf> {
    let fixed: PathBuf = pattern
        .split('/')
        .take_while(|name| !name.contains(['*', '?', '[', '{', '\\']))
        .filter(|name| !matches!(*name, "" | "." | ".."))
        .collect();
    (!fixed.as_os_str().is_empty()).then_some(fixed)
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use cap_std::ambient_authority;

    use super::{PathProtection, fixed_beginning};

    fn check(protection: &PathProtection, place: &str, protected: bool) {
        assert_eq!(
            protection.warning(Path::new(place)).is_some(),
            protected,
            "{place}"
        );
    }

    #[test]
    fn what_runs_code_later_is_protected_wherever_it_lies() {
        let standard = PathProtection::standard();
        for place in [
            ".git",
            ".git/hooks/pre-commit",
            "vendor/lib/.git/config",
            ".github/workflows",
            "app/.github/workflows/ci.yml",
            ".vscode/tasks.json",
            "toolpost.yaml",
            "home/.bashrc",
            ".vscode/mcp.json",
            "me.code-workspace",
            "sub/mise.local.toml",
            ".cargo/config.toml",
            "crates/a/.cargo/config",
            ".config/systemd/user/x.service",
            "AGENTS.md",
            "docs/CLAUDE.md",
            ".github/prompts/x.md",
            ".ssh/authorized_keys",
            ".envrc",
        ] {
            check(&standard, place, true);
            check(&PathProtection::none(), place, false);
        }
        for place in [
            "",
            "a.txt",
            ".gitignore",
            ".github/README.md",
            "sub/toolpost.yaml",
            "git",
            ".gitx",
            "package.json",
            "Makefile",
            "build.rs",
            "src/main.rs",
            ".gitattributes",
            ".editorconfig",
            ".env",
            ".cargo/audit.toml",
            ".config/app.toml",
            ".code-workspace",
            "agents.md.txt",
        ] {
            check(&standard, place, false);
        }
    }

    #[test]
    fn an_operator_adds_patterns_and_opens_repositories() {
        let own = PathProtection::none()
            .with(["deploy/**", "*.lock", "keys/?.pem"])
            .unwrap();
        for (place, protected) in [
            ("deploy", true),
            ("deploy/a/b", true),
            ("deployment", false),
            ("Cargo.lock", true),
            ("sub/Cargo.lock", false),
            ("keys/a.pem", true),
            ("keys/ab.pem", false),
            (".git/config", false),
        ] {
            check(&own, place, protected);
        }
        let open = PathProtection::standard().without_repositories();
        check(&open, ".git/config", false);
        check(&open, ".gitconfig", true);
        let file = PathProtection::none().with_file(PathBuf::from("/w/mine.yaml"));
        check(&file, "/w/mine.yaml", true);
        check(&file, "/w/mine.yaml.old", false);
        let folder = PathProtection::none().with_file(PathBuf::from("/w/module"));
        check(&folder, "/w/module/deep/inside.py", true);
        check(&folder, "/w/modules.py", false);
        check(&file, "mine.yaml", false);
        assert_eq!(
            PathProtection::none().with(["a["]).unwrap_err().pattern,
            "a["
        );
    }

    #[test]
    fn existing_paths_are_found_without_a_search() {
        let dir = cap_tempfile::tempdir(ambient_authority()).unwrap();
        for directory in [".git", ".github/workflows", "deploy/eu", "sub/.git"] {
            dir.create_dir_all(directory).unwrap();
        }
        dir.write(".envrc", "").unwrap();
        let protection = PathProtection::standard()
            .with(["deploy/*/secret", "**/x"])
            .unwrap();
        dir.write("me.code-workspace", "").unwrap();
        dir.write("AGENTS.md", "").unwrap();
        let found = protection.existing(&dir, Path::new("/w"));
        let mut found: Vec<PathBuf> = found.into_iter().map(|place| place.path).collect();
        found.sort();
        let expected = [
            "/w/.envrc",
            "/w/.git",
            "/w/.github/workflows",
            "/w/AGENTS.md",
            "/w/deploy",
            "/w/me.code-workspace",
        ]
        .map(PathBuf::from);
        assert_eq!(found, expected);
        assert_eq!(fixed_beginning("a/b/*.c"), Some(PathBuf::from("a/b")));
        assert_eq!(fixed_beginning("*/b"), None);
    }
}
