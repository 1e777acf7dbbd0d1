//! What a configuration file last said when it could be read.
//!
//! A file that is broken by a slip of the keyboard must not stop to deny. Its last good text is kept here, so that
//! what it restricted stays restricted until it is mended. Written by whoever runs a host, after each good load.

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

/// Why a text cannot be kept or looked up.
#[derive(Debug, thiserror::Error)]
pub enum LastGoodError {
    /// It does not parse, or others may have written it.
    #[error(
        "`{path}`, which keeps the last good configuration, is damaged\nhint: delete it once the configuration can be read"
    )]
    Damaged {
        /// The file.
        path: PathBuf,
    },
    /// The system refused.
    #[error("cannot {doing} `{path}`")]
    Io {
        /// What was tried.
        doing: &'static str,
        /// On what.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct LastGoodTexts {
    /// By the path of the file, as it can be shown: two that look the same are taken for the same.
    files: BTreeMap<String, String>,
}

impl LastGood {
    /// The texts kept in a data directory.
    pub fn of(data_dir: &DataDir) -> Self {
        let path = data_dir.last_good_path();
        Self {
            lock: path.with_extension("lock"),
            path,
        }
    }

    /// What a file last said.
    pub fn text(&self, file: &Path) -> Result<Option<String>, LastGoodError> {
        Ok(self.load()?.files.remove(&name_of(file)))
    }

    /// Keeps what files say now, and forgets what is not named any more. Survives a loss of power once it returns.
    pub fn keep<'a>(
        &self,
        files: impl IntoIterator<Item = (&'a Path, &'a str)>,
    ) -> Result<(), LastGoodError> {
        let files = files
            .into_iter()
            .map(|(path, text)| (name_of(path), text.to_owned()))
            .collect();
        let _turn = FileLock::exclusive(&self.lock).map_err(self.failed("lock"))?;
        // A damaged one is replaced: what it kept is worth nothing, and what there is now can be read.
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
