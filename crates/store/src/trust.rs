//! Trust: the configuration files that the operator accepted, by path and content.
//!
//! `toolpost trust` writes the list, the host reads it at start. A file that changed by one byte is no longer trusted.
//! The list is read again for each check: it is short, the checks are few, and a host sees a change by a command at
//! once.

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

/// Why the list cannot be used. No file is trusted then.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    /// It does not parse.
    #[error(
        "trust list `{path}` is damaged, so nothing is trusted\nhint: delete it, then trust the files that you know again"
    )]
    Damaged {
        /// The list.
        path: PathBuf,
        /// The fault and its place.
        source: serde_json::Error,
    },
    /// Other users may have written it.
    #[error(
        "trust list `{path}` is accessible to other users, so nothing is trusted\nhint: delete it, then trust the files that you know again"
    )]
    NotPrivate {
        /// The list.
        path: PathBuf,
    },
    /// JSON cannot represent the path without loss, and a lossy path might be another file's.
    #[error("`{path}` is not valid UTF-8 and cannot be trusted\nhint: rename the file")]
    Path {
        /// The path, as far as it can be displayed.
        path: String,
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

/// A trusted file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrustEntry {
    /// The file, with links resolved.
    pub path: PathBuf,
    /// SHA-256 of the trusted content.
    pub digest: [u8; 32],
}

#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct TrustListBody {
    files: BTreeMap<String, TrustDigest>,
}

/// Written as 64 hexadecimal digits, to compare with `sha256sum` by eye.
#[derive(Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
struct TrustDigest([u8; 32]);

impl From<TrustDigest> for String {
    fn from(digest: TrustDigest) -> Self {
        const_hex::encode(digest.0)
    }
}

impl TryFrom<String> for TrustDigest {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let wrong = "a digest is 64 hexadecimal digits";
        if text.len() != 64 {
            return Err(wrong);
        }
        const_hex::decode_to_array(text)
            .map(Self)
            .map_err(|_| wrong)
    }
}

/// The list of trusted files of one data directory.
pub struct TrustStore {
    path: PathBuf,
    /// Locked for each change, because two commands may change the list at once.
    lock: PathBuf,
}

impl TrustStore {
    /// Reads the list once, so that damage is reported at the start.
    pub fn open(data_dir: &DataDir) -> Result<Self, TrustError> {
        let store = Self {
            path: data_dir.trust_path(),
            lock: data_dir.trust_path().with_extension("lock"),
        };
        store.load()?;
        Ok(store)
    }

    /// Trusts the file with exactly this content, and no longer with any other. The result survives a power cut.
    pub fn trust(&self, path: &Path, digest: &[u8; 32]) -> Result<(), TrustError> {
        let name = name_of(path)?;
        self.change(|files| {
            files.insert(name, TrustDigest(*digest));
            true
        })?;
        Ok(())
    }

    /// Whether the file is trusted with this content. An unreadable list trusts nothing.
    pub fn is_trusted(&self, path: &Path, digest: &[u8; 32]) -> bool {
        let trusted = self.load().and_then(|listing| {
            let name = name_of(path)?;
            Ok(listing
                .files
                .get(&name)
                .is_some_and(|kept| kept.0 == *digest))
        });
        trusted.unwrap_or_else(|error| {
            tracing::warn!(%error, "the trust list cannot be used");
            false
        })
    }

    /// Removes the trust in the file; false if it was not trusted.
    pub fn forget(&self, path: &Path) -> Result<bool, TrustError> {
        let name = name_of(path)?;
        self.change(|files| files.remove(&name).is_some())
    }

    /// The trusted files, by path.
    pub fn list(&self) -> Result<Vec<TrustEntry>, TrustError> {
        let entry = |(path, digest): (String, TrustDigest)| TrustEntry {
            path: path.into(),
            digest: digest.0,
        };
        Ok(self.load()?.files.into_iter().map(entry).collect())
    }

    fn change(
        &self,
        edit: impl FnOnce(&mut BTreeMap<String, TrustDigest>) -> bool,
    ) -> Result<bool, TrustError> {
        let _turn = FileLock::exclusive(&self.lock).map_err(failed("lock", &self.lock))?;
        let mut listing = self.load()?;
        let changed = edit(&mut listing.files);
        if changed {
            let text =
                serde_json::to_vec_pretty(&listing).map_err(|source| TrustError::Damaged {
                    path: self.path.clone(),
                    source,
                })?;
            disk::replace(&self.path, &text).map_err(failed("write", &self.path))?;
        }
        Ok(changed)
    }

    fn load(&self) -> Result<TrustListBody, TrustError> {
        let found = disk::read_small(&self.path).map_err(failed("read", &self.path))?;
        match found {
            None => Ok(TrustListBody::default()),
            Some((bytes, FilePrivacy::Private)) => {
                serde_json::from_slice(&bytes).map_err(|source| TrustError::Damaged {
                    path: self.path.clone(),
                    source,
                })
            }
            Some((_, FilePrivacy::OwnedBy(_) | FilePrivacy::OpenToOthers(_))) => {
                Err(TrustError::NotPrivate {
                    path: self.path.clone(),
                })
            }
        }
    }
}

/// A file has one name here, however the caller spelled its path.
fn name_of(path: &Path) -> Result<String, TrustError> {
    let resolved = disk::resolved(path).map_err(failed("find", path))?;
    resolved
        .into_os_string()
        .into_string()
        .map_err(|name| TrustError::Path {
            path: name.to_string_lossy().into_owned(),
        })
}

fn failed(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> TrustError {
    let path = path.to_path_buf();
    move |source| TrustError::Io {
        doing,
        path,
        source,
    }
}
