//! The repository for the checks: its files and the text of those that they read, loaded once.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;

use super::{examples, options, rust_code::RustCode};

pub(crate) struct Repo {
    pub(crate) root: PathBuf,
    /// The files that git tracks or would track, sorted by path.
    pub(crate) files: Vec<RepoFile>,
}

pub(crate) struct RepoFile {
    /// From the root, with `/`.
    pub(crate) path: String,
    /// Empty for files no check reads.
    pub(crate) text: String,
}

impl Repo {
    pub(crate) fn load(root: &Path) -> anyhow::Result<Repo> {
        let mut paths = match git_files(root) {
            Some(paths) => paths,
            None => walk(root)?,
        };
        // A file deleted but not yet committed is still listed by git.
        paths.retain(|path| root.join(path).is_file());
        paths.sort();
        let files = paths
            .into_iter()
            .map(|path| RepoFile::load(root, path))
            .collect::<anyhow::Result<_>>()?;
        Ok(Repo {
            root: root.to_owned(),
            files,
        })
    }

    pub(crate) fn file(&self, path: &str) -> Option<&RepoFile> {
        self.files.iter().find(|file| file.path == path)
    }

    pub(crate) fn rust_files(&self) -> impl Iterator<Item = &RepoFile> {
        self.files.iter().filter(|file| file.path.ends_with(".rs"))
    }

    #[cfg(test)]
    pub(crate) fn of(files: &[(&str, &str)]) -> Repo {
        let file = |(path, text): &(&str, &str)| RepoFile {
            path: (*path).to_owned(),
            text: (*text).to_owned(),
        };
        Repo {
            root: PathBuf::from("/nowhere"),
            files: files.iter().map(file).collect(),
        }
    }
}

impl RepoFile {
    fn load(root: &Path, path: String) -> anyhow::Result<RepoFile> {
        let is_read = [".rs", ".md", ".toml"]
            .iter()
            .any(|ending| path.ends_with(ending))
            || path.starts_with(examples::LISTINGS)
            || path == options::KEYS;
        let text = match is_read {
            true => fs::read_to_string(root.join(&path))
                .with_context(|| format!("cannot read `{path}`"))?,
            false => String::new(),
        };
        Ok(RepoFile { path, text })
    }

    pub(crate) fn code(&self) -> RustCode {
        RustCode::new(&self.text)
    }

    /// Integration tests, and unit tests that have a file of their own.
    pub(crate) fn is_test(&self) -> bool {
        self.path
            .split('/')
            .any(|part| part == "tests" || part == "tests.rs")
    }
}

/// `None` if git does not work here, as in an unpacked archive.
fn git_files(root: &Path) -> Option<Vec<String>> {
    // In CI, root seldom owns the checkout. Trusting it is harmless: this program came from it.
    let safe = format!("safe.directory={}", root.display());
    let output = Command::new("git")
        .current_dir(root)
        .args([
            "-c",
            &safe,
            "ls-files",
            "-co",
            "--exclude-standard",
            "--deduplicate",
            "-z",
        ])
        .output()
        .ok()
        .filter(|output| output.status.success())?;
    let listing = String::from_utf8(output.stdout).ok()?;
    let paths: Vec<String> = listing.split_terminator('\0').map(str::to_owned).collect();
    // An archive unpacked into a folder that another repository ignores has no files for git.
    (!paths.is_empty()).then_some(paths)
}

fn walk(root: &Path) -> anyhow::Result<Vec<String>> {
    let mut paths = Vec::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        let entries =
            fs::read_dir(&folder).with_context(|| format!("cannot list `{}`", folder.display()))?;
        for entry in entries {
            let entry = entry?;
            let path = entry.path();
            if !entry.file_type()?.is_dir() {
                paths.push(path.strip_prefix(root)?.display().to_string());
            } else if !matches!(entry.file_name().to_str(), Some(".git" | "target")) {
                folders.push(path);
            }
        }
    }
    Ok(paths)
}
