//! The last good text of each configuration file.
//!
//! A deny rule must not stop to apply because of a typing mistake in its file. The last good text is kept here, so its
//! restrictions hold until the file is repaired. Every command that runs a host writes it, after each good load.

use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use crate::{
    data_dir::DataDir,
    disk::{self, FileLock, FilePrivacy},
};

/// The texts of one data directory. Each is at most as large as a configuration file may be.
pub struct LastGood {
    path: PathBuf,
    lock: PathBuf,
}

/// Why a text cannot be stored or read.
#[derive(Debug, thiserror::Error)]
pub enum LastGoodError {
    /// The file does not parse, or other users may have written it.
    #[error(
        "the last good configuration in `{path}` is damaged\nhint: delete it once the configuration can be read"
    )]
    Damaged {
        /// The file.
        path: PathBuf,
    },
    /// The system refused an operation.
    #[error("cannot {doing} `{path}`")]
    Io {
        /// The operation.
        doing: &'static str,
        /// The path.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
}

#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct LastGoodTexts {
    /// By the displayed path of the file; two paths that display the same share an entry.
    files: BTreeMap<String, String>,
}

impl LastGood {
    /// The texts in a data directory.
    pub fn of(data_dir: &DataDir) -> Self {
        let path = data_dir.last_good_path();
        Self {
            lock: path.with_extension("lock"),
            path,
        }
    }

    /// The last good text of a file.
    pub fn text(&self, file: &Path) -> Result<Option<String>, LastGoodError> {
        Ok(self.load()?.files.remove(&name_of(file)))
    }

    /// Stores the present texts of the files, and removes the entries of other files. The result survives a power cut.
    pub fn keep<'a>(
        &self,
        files: impl IntoIterator<Item = (&'a Path, &'a str)>,
    ) -> Result<(), LastGoodError> {
        let files = files
            .into_iter()
            .map(|(path, text)| (name_of(path), text.to_owned()))
            .collect();
        let _turn = FileLock::exclusive(&self.lock).map_err(self.failed("lock"))?;
        // A damaged list is replaced: its texts are unusable, and the present ones are good.
        if self.load().is_ok_and(|known| known.files == files) {
            return Ok(());
        }
        let text = serde_json::to_vec(&LastGoodTexts { files })
            .map_err(|error| self.failed("write")(io::Error::other(error)))?;
        disk::replace(&self.path, &text).map_err(self.failed("write"))
    }

    fn load(&self) -> Result<LastGoodTexts, LastGoodError> {
        let damaged = || LastGoodError::Damaged {
            path: self.path.clone(),
        };
        match disk::read_small(&self.path).map_err(self.failed("read"))? {
            None => Ok(LastGoodTexts::default()),
            Some((bytes, FilePrivacy::Private)) => {
                serde_json::from_slice(&bytes).map_err(|_| damaged())
            }
            Some((_, FilePrivacy::OwnedBy(_) | FilePrivacy::OpenToOthers(_))) => Err(damaged()),
        }
    }

    fn failed(&self, doing: &'static str) -> impl FnOnce(io::Error) -> LastGoodError {
        let path = self.path.clone();
        move |source| LastGoodError::Io {
            doing,
            path,
            source,
        }
    }
}

fn name_of(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
