//! Paths that ask before they are changed, even where writing is allowed: what runs code or opens doors for
//! whoever works in the folder later.
//!
//! The file tools turn a match into a caution of the call's effects; the launcher binds what exists read-only.

use std::path::{Component, Path, PathBuf};

use cap_std::fs::Dir;
use globset::{Glob, GlobBuilder, GlobSet, GlobSetBuilder};

/// Names in a row, wherever in a path; what lies beneath is protected with them.
struct Rule {
    names: &'static [&'static str],
    place: Place,
    reason: &'static str,
}

#[derive(PartialEq)]
enum Place {
    Anywhere,
    /// Only right in a root.
    Top,
}

const fn rule(names: &'static [&'static str], reason: &'static str) -> Rule {
    Rule { names, place: Place::Anywhere, reason }
}

const VERSION_CONTROL: &str = "hooks and settings of version control run commands";
const PIPELINE: &str = "a build pipeline runs what it says, often with secrets";
const HOOKS: &str = "hooks run commands at every commit";
const EDITOR: &str = "an editor runs what its project settings say";
const AGENT: &str = "it tells an agent what it may do";
const SHELL: &str = "a shell runs it when it starts";
const ACCOUNT: &str = "it decides where programs connect to, and as whom";
const KEYS: &str = "keys and who may use them";

const RULES: [Rule; 39] = [
    rule(&[".git"], VERSION_CONTROL),
    rule(&[".hg"], VERSION_CONTROL),
    rule(&[".svn"], VERSION_CONTROL),
    rule(&[".jj"], VERSION_CONTROL),
    rule(&[".gitconfig"], VERSION_CONTROL),
    rule(&[".github", "workflows"], PIPELINE),
    rule(&[".gitlab-ci.yml"], PIPELINE),
    rule(&[".husky"], HOOKS),
    rule(&[".pre-commit-config.yaml"], HOOKS),
    rule(&[".envrc"], SHELL),
    rule(&[".vscode", "tasks.json"], EDITOR),
    rule(&[".vscode", "settings.json"], EDITOR),
    rule(&[".vscode", "launch.json"], EDITOR),
    rule(&[".idea"], EDITOR),
    rule(&[".devcontainer"], EDITOR),
    rule(&[".claude"], AGENT),
    rule(&[".cursor"], AGENT),
    rule(&[".codex"], AGENT),
    rule(&[".mcp.json"], AGENT),
    Rule { names: &["toolpost.yaml"], place: Place::Top, reason: "it tells this host what is allowed" },
    rule(&[".bashrc"], SHELL),
    rule(&[".bash_profile"], SHELL),
    rule(&[".bash_login"], SHELL),
    rule(&[".bash_logout"], SHELL),
    rule(&[".profile"], SHELL),
    rule(&[".zshrc"], SHELL),
    rule(&[".zshenv"], SHELL),
    rule(&[".zprofile"], SHELL),
    rule(&[".zlogin"], SHELL),
    rule(&[".zlogout"], SHELL),
    rule(&[".kshrc"], SHELL),
    rule(&[".inputrc"], SHELL),
    rule(&[".cshrc"], SHELL),
    rule(&[".tcshrc"], SHELL),
    rule(&[".npmrc"], ACCOUNT),
    rule(&[".pypirc"], ACCOUNT),
    rule(&[".netrc"], ACCOUNT),
    rule(&[".ssh"], KEYS),
    rule(&[".gnupg"], KEYS),
];

/// The version control directories, which an operator can leave open.
const REPOSITORIES: [&str; 4] = [".git", ".hg", ".svn", ".jj"];

/// Which paths ask before they are changed.
#[derive(Clone, Debug, Default)]
pub struct Protection {
    standard: bool,
    repositories_open: bool,
    patterns: Vec<String>,
    globs: GlobSet,
    files: Vec<PathBuf>,
}

/// A pattern that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("`{pattern}` is not a pattern of paths")]
pub struct PatternError {
    /// As given.
    pub pattern: String,
    /// What is wrong with it.
    #[source]
    pub source: globset::Error,
}

impl Protection {
    /// What runs code or opens doors later: version control data, pipelines, hooks, settings of editors, agents and
    /// this host, start-up files of shells, keys.
    pub fn standard() -> Self {
        Self { standard: true, ..Self::default() }
    }

    /// Nothing.
    pub fn none() -> Self {
        Self::default()
    }

    /// Adds patterns of paths relative to a root, such as `deploy/**`. `*` stays within one name.
    pub fn with<P: AsRef<str>>(
        mut self,
        patterns: impl IntoIterator<Item = P>,
    ) -> Result<Self, PatternError> {
        self.patterns.extend(patterns.into_iter().map(|pattern| pattern.as_ref().to_owned()));
        let mut globs = GlobSetBuilder::new();
        for pattern in &self.patterns {
            // With `deploy/**` the directory itself too: moving it away changes all that is in it.
            for text in [Some(pattern.as_str()), pattern.strip_suffix("/**")].into_iter().flatten() {
                let glob = glob(text).map_err(|source| PatternError { pattern: pattern.clone(), source })?;
                globs.add(glob);
            }
        }
        let built = globs.build();
        self.globs = built.map_err(|source| PatternError { pattern: self.patterns.join(" "), source })?;
        Ok(self)
    }

    /// Adds one file by its absolute path, such as the configuration this host was started with, or a folder with
    /// everything in it, such as a module that it runs.
    #[must_use]
    pub fn with_file(mut self, absolute: PathBuf) -> Self {
        self.files.push(absolute);
        self
    }

    /// Leaves version control data open: commits write there.
    #[must_use]
    pub fn without_repositories(mut self) -> Self {
        self.repositories_open = true;
        self
    }

    /// Why `place` is protected: a path relative to its root, or an absolute one for the files that were named.
    pub fn reason(&self, place: &Path) -> Option<String> {
        if place.has_root() {
            let named = self.files.iter().any(|file| place.starts_with(file));
            return named.then(|| "it tells this host what is allowed".to_owned());
        }
        let names: Vec<&str> = place
            .components()
            .filter_map(|component| match component {
                Component::Normal(name) => Some(name.to_str().unwrap_or_default()),
                Component::Prefix(_) | Component::RootDir | Component::CurDir | Component::ParentDir => None,
            })
            .collect();
        let rule = self.rules().find(|rule| rule.covers(&names));
        rule.map(|rule| rule.reason.to_owned()).or_else(|| {
            self.globs.is_match(place).then(|| "the operator's configuration protects it".to_owned())
        })
    }

    /// Protected paths that exist in `root`, which lies at `path`: known names and the fixed beginnings of patterns.
    pub(super) fn existing(&self, root: &Dir, path: &Path) -> Vec<PathBuf> {
        let known = self.rules().map(|rule| rule.names.iter().collect::<PathBuf>());
        let patterns = self.patterns.iter().filter_map(|pattern| fixed_beginning(pattern));
        let files = self.files.iter().filter_map(|file| Some(file.strip_prefix(path).ok()?.to_owned()));
        let exists = |place: &PathBuf| root.symlink_metadata(place).is_ok();
        known.chain(patterns).chain(files).filter(exists).map(|place| path.join(place)).collect()
    }

    fn rules(&self) -> impl Iterator<Item = &'static Rule> {
        let left_out = |rule: &Rule| self.repositories_open && REPOSITORIES.contains(&rule.names[0]);
        RULES.iter().filter(move |rule| self.standard && !left_out(rule))
    }
}

impl Rule {
    fn covers(&self, path: &[&str]) -> bool {
        match self.place {
            Place::Anywhere => path.windows(self.names.len()).any(|names| names == self.names),
            Place::Top => path.starts_with(self.names),
        }
    }
}

fn glob(pattern: &str) -> Result<Glob, globset::Error> {
    GlobBuilder::new(pattern).literal_separator(true).build()
}

/// What a pattern says before its first wildcard, by whole names; `None` where it begins with one.
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

    use super::{Protection, fixed_beginning};

    fn check(protection: &Protection, place: &str, protected: bool) {
        assert_eq!(protection.reason(Path::new(place)).is_some(), protected, "{place}");
    }

    #[test]
    fn what_runs_code_later_is_protected_wherever_it_lies() {
        let standard = Protection::standard();
        for place in [
            ".git",
            ".git/hooks/pre-commit",
            "vendor/lib/.git/config",
            ".github/workflows",
            "app/.github/workflows/ci.yml",
            ".vscode/tasks.json",
            "toolpost.yaml",
            "home/.bashrc",
            ".ssh/authorized_keys",
            ".envrc",
        ] {
            check(&standard, place, true);
            check(&Protection::none(), place, false);
        }
        for place in [
            "",
            "a.txt",
            ".gitignore",
            ".github/README.md",
            ".vscode/notes.json",
            "sub/toolpost.yaml",
            "git",
            ".gitx",
        ] {
            check(&standard, place, false);
        }
    }

    #[test]
    fn an_operator_adds_patterns_and_opens_repositories() {
        let own = Protection::none().with(["deploy/**", "*.lock", "keys/?.pem"]).unwrap();
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
        let open = Protection::standard().without_repositories();
        check(&open, ".git/config", false);
        check(&open, ".gitconfig", true);
        let file = Protection::none().with_file(PathBuf::from("/w/mine.yaml"));
        check(&file, "/w/mine.yaml", true);
        check(&file, "/w/mine.yaml.old", false);
        let folder = Protection::none().with_file(PathBuf::from("/w/module"));
        check(&folder, "/w/module/deep/inside.py", true);
        check(&folder, "/w/modules.py", false);
        check(&file, "mine.yaml", false);
        assert_eq!(Protection::none().with(["a["]).unwrap_err().pattern, "a[");
    }

    #[test]
    fn existing_paths_are_found_without_a_search() {
        let dir = cap_tempfile::tempdir(ambient_authority()).unwrap();
        for directory in [".git", ".github/workflows", "deploy/eu", "sub/.git"] {
            dir.create_dir_all(directory).unwrap();
        }
        dir.write(".envrc", "").unwrap();
        let protection = Protection::standard().with(["deploy/*/secret", "**/x"]).unwrap();
        let mut found = protection.existing(&dir, Path::new("/w"));
        found.sort();
        let expected = ["/w/.envrc", "/w/.git", "/w/.github/workflows", "/w/deploy"].map(PathBuf::from);
        assert_eq!(found, expected);
        assert_eq!(fixed_beginning("a/b/*.c"), Some(PathBuf::from("a/b")));
        assert_eq!(fixed_beginning("*/b"), None);
    }
}
