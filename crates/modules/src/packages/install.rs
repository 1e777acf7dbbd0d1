//! Installing into an environment: with uv if it is installed, otherwise with Python's own pip.

use std::{
    ffi::OsString,
    io,
    path::{Path, PathBuf},
};

use cap_std::fs::{Dir, MetadataExt as _};
use sha2::{Digest, Sha256};
use toolpost_model::SandboxProfile;

use crate::{
    running::{ModuleSetupCommand, RunError, run},
    supply::{ModuleSetupProgress, ModuleSupply, SetupProgressSink},
};

use super::{
    ModuleRequirements, TIME,
    python::{self, PythonInterpreter},
};

/// The environment in its folder.
const VENV: &str = "venv";

/// Modules without their packages, with the installer's message.
pub(super) type InstallFailures = Vec<(String, String)>;

/// Installs into one environment.
pub(super) struct Installer<'a> {
    supply: &'a ModuleSupply,
    python: &'a PythonInterpreter,
    folder: PathBuf,
    uv: Option<PathBuf>,
    /// Files that requirements refer to.
    files: Vec<PathBuf>,
}

/// The interpreter of an environment in its folder.
pub(super) fn python_in(folder: &Path) -> PathBuf {
    folder.join(VENV).join("bin/python")
}

impl<'a> Installer<'a> {
    pub(super) fn new(
        supply: &'a ModuleSupply,
        python: &'a PythonInterpreter,
        folder: PathBuf,
        needs: &[ModuleRequirements<'_>],
    ) -> Self {
        let files = needs
            .iter()
            .flat_map(|needs| needs.files.iter().cloned())
            .collect();
        Self {
            supply,
            python,
            folder,
            uv: python::on_path(supply, Path::new("uv")),
            files,
        }
    }

    /// Makes the environment and installs the packages of all modules. If that fails, each module is tried alone, so
    /// that one with impossible dependencies does not affect the others. Returns the installed packages, and the
    /// modules that failed.
    pub(super) async fn install(
        &self,
        all: &[String],
        needs: &[ModuleRequirements<'_>],
        progress: &mut SetupProgressSink<'_>,
    ) -> Result<(Vec<String>, InstallFailures), RunError> {
        progress(ModuleSetupProgress::Step(format!(
            "creating an environment with Python {}",
            self.python.version()
        )));
        self.make(progress).await?;
        progress(ModuleSetupProgress::Step(format!(
            "installing {}",
            all.join(", ")
        )));
        let mut failed = InstallFailures::new();
        if let Err(error) = self.add(all, progress).await {
            let several = needs
                .iter()
                .filter(|needs| !needs.requirements.is_empty())
                .count()
                > 1;
            // Amplifier's own library is needed by the whole set, so no module is blamed for it.
            let of_modules =
                |text: &String| needs.iter().any(|needs| needs.requirements.contains(text));
            let mut taken: Vec<String> = all
                .iter()
                .filter(|text| !of_modules(text))
                .cloned()
                .collect();
            if !several {
                return Err(error);
            }
            let wanting: Vec<&ModuleRequirements<'_>> = needs
                .iter()
                .filter(|needs| !needs.requirements.is_empty())
                .collect();
            failed = self.one_by_one(&mut taken, &wanting, progress).await;
            if failed.len() == wanting.len() {
                return Err(error);
            }
        }
        Ok((self.packages(progress).await?, failed))
    }

    /// Installs the missing packages of each of these modules, and adds them to `taken`. Returns the modules that
    /// failed.
    pub(super) async fn one_by_one(
        &self,
        taken: &mut Vec<String>,
        wanting: &[&ModuleRequirements<'_>],
        progress: &mut SetupProgressSink<'_>,
    ) -> InstallFailures {
        let mut failed = InstallFailures::new();
        for needs in wanting {
            progress(ModuleSetupProgress::Step(format!(
                "installing the packages of `{}`",
                needs.module.id
            )));
            // The requirements of the earlier modules are part of each list. An installer resolves only the list that
            // it gets, and with the new requirements alone it could replace a package by a version that an earlier
            // module does not accept.
            let with = [taken.as_slice(), &needs.requirements].concat();
            match self.add(&with, progress).await {
                Ok(()) => *taken = with,
                Err(error) => {
                    let message = format!(
                        "{} cannot be installed: {error}\nhint: try again with `toolpost modules fetch`",
                        needs.subject()
                    );
                    failed.push((needs.module.id.as_str().to_owned(), message));
                }
            }
        }
        failed
    }

    /// The installed packages, as `name==version`.
    pub(super) async fn packages(
        &self,
        progress: &mut SetupProgressSink<'_>,
    ) -> Result<Vec<String>, RunError> {
        let venv = python_in(&self.folder);
        let place = (venv.as_path(), self.folder.as_path());
        python::frozen(self.supply, place, self.python.prefixes.clone(), progress).await
    }

    async fn make(&self, progress: &mut SetupProgressSink<'_>) -> Result<(), RunError> {
        let base = self.python.executable.as_os_str();
        let words: Vec<OsString> = match &self.uv {
            Some(uv) => {
                let fixed = [
                    "venv",
                    "--quiet",
                    "--no-project",
                    "--no-config",
                    "--no-cache",
                    "--python",
                ];
                let mut words = vec![uv.as_os_str().to_owned()];
                words.extend(fixed.map(Into::into));
                words.extend([base.to_owned(), VENV.into()]);
                words
            }
            None => [
                base,
                "-I".as_ref(),
                "-m".as_ref(),
                "venv".as_ref(),
                "--without-pip".as_ref(),
                VENV.as_ref(),
            ]
            .map(ToOwned::to_owned)
            .to_vec(),
        };
        self.run(words, Vec::new(), SandboxProfile::WorkspaceWrite, progress)
            .await
    }

    /// Installs all of the requirements or none.
    async fn add(
        &self,
        requirements: &[String],
        progress: &mut SetupProgressSink<'_>,
    ) -> Result<(), RunError> {
        let venv = python_in(&self.folder).into_os_string();
        let mut words: Vec<OsString> = match &self.uv {
            Some(uv) => {
                let fixed = [
                    "pip",
                    "install",
                    "--quiet",
                    "--no-config",
                    "--no-cache",
                    "--compile-bytecode",
                    "--python",
                ];
                let mut words = vec![uv.as_os_str().to_owned()];
                words.extend(fixed.map(Into::into));
                words.push(venv);
                words
            }
            None => {
                let before = ["-I", "-m", "pip", "--python"].map(OsString::from);
                let behind = [
                    "install",
                    "--quiet",
                    "--no-input",
                    "--no-cache-dir",
                    "--prefer-binary",
                ];
                let mut words = vec![self.python.executable.as_os_str().to_owned()];
                words.extend(before);
                words.push(venv);
                words.extend(behind.map(OsString::from));
                words.push("--disable-pip-version-check".into());
                words
            }
        };
        // The words after this one are no options.
        words.push("--".into());
        words.extend(requirements.iter().map(Into::into));
        let readable = [self.files.as_slice(), &links(self.supply)].concat();
        self.run(words, readable, SandboxProfile::Network, progress)
            .await
    }

    async fn run(
        &self,
        argv: Vec<OsString>,
        mut readable: Vec<PathBuf>,
        profile: SandboxProfile,
        progress: &mut SetupProgressSink<'_>,
    ) -> Result<(), RunError> {
        readable.extend(self.python.prefixes.iter().cloned());
        let variables = vec![
            ("PYTHONDONTWRITEBYTECODE", String::new()),
            ("UV_PYTHON_DOWNLOADS", "never".to_owned()),
            ("UV_LINK_MODE", "copy".to_owned()),
            ("UV_NO_PROGRESS", "1".to_owned()),
            ("PIP_PROGRESS_BAR", "off".to_owned()),
        ];
        let errand = ModuleSetupCommand {
            argv,
            folder: self.folder.clone(),
            readable,
            variables,
            profile,
            time_limit: TIME,
        };
        run(self.supply, errand, progress).await.map(|_| ())
    }
}

/// Folders that the operator opened: any module may refer to package archives in them.
pub(super) fn opened(supply: &ModuleSupply) -> Vec<PathBuf> {
    [supply.readable.as_slice(), &links(supply)].concat()
}

/// Folders of packages in the variables of the host's own environment.
fn links(supply: &ModuleSupply) -> Vec<PathBuf> {
    let named = ["PIP_FIND_LINKS", "UV_FIND_LINKS"];
    let values = named.iter().filter_map(|name| supply.variables.get(*name));
    let words = values.flat_map(|value| value.split_whitespace());
    words
        .map(|word| PathBuf::from(word.strip_prefix("file://").unwrap_or(word)))
        .filter(|path| path.is_absolute())
        .collect()
}

/// The fingerprint of an environment: names, sizes, modes and times of all files, as one digest. Reading the files
/// themselves would make each start as slow as the largest package.
pub(super) fn look(dir: &Dir, inside: &str) -> io::Result<String> {
    let mut hasher = Sha256::new();
    let folder = dir.open_dir(inside)?;
    // Links of environments lead to the interpreter. Their text counts, not the files that they lead to.
    look_into(&folder.open_dir(VENV)?, &mut hasher, 0)?;
    Ok(const_hex::encode(hasher.finalize()))
}

fn look_into(dir: &Dir, hasher: &mut Sha256, depth: usize) -> io::Result<()> {
    if depth > 64 {
        return Err(io::Error::other("the folders are nested too deeply"));
    }
    let names = dir.entries()?.map(|entry| Ok(entry?.file_name()));
    let mut names = names.collect::<io::Result<Vec<_>>>()?;
    names.sort();
    for name in names {
        let metadata = dir.symlink_metadata(&name)?;
        hasher.update((name.len() as u64).to_le_bytes());
        hasher.update(name.as_encoded_bytes());
        hasher.update(metadata.mode().to_le_bytes());
        if metadata.is_dir() {
            hasher.update(b"d");
            look_into(&dir.open_dir(&name)?, hasher, depth + 1)?;
            hasher.update(b"u");
        } else if metadata.is_symlink() {
            hasher.update(
                dir.read_link_contents(&name)?
                    .as_os_str()
                    .as_encoded_bytes(),
            );
        } else {
            hasher.update(metadata.len().to_le_bytes());
            hasher.update(metadata.mtime().to_le_bytes());
            hasher.update(metadata.mtime_nsec().to_le_bytes());
        }
    }
    Ok(())
}
