//! Pins: the accepted definitions of outside tools, as `pins/NAME.json` in the data directory.
//!
//! A pin decides which definitions reach a model. A file that is damaged, or that other users could have written, is
//! therefore ignored and left unchanged: the source reports it, and an operator decides.

use std::{
    io,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use toolpost_core::{PinStore, PinStoreError};

use crate::{
    data_dir::DataDir,
    disk::{self, FilePrivacy},
};

/// Room for the definitions of thousands of tools.
const LONGEST: u64 = 64 << 20;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PinFileBody {
    /// The source of the definitions: a file that was renamed to another source's name is not accepted for it.
    source: String,
    /// The digest of the manifest, to detect a file that was cut short or edited.
    sha256: String,
    manifest: String,
}

/// The accepted definitions of one data directory.
pub struct PinFiles {
    folder: PathBuf,
}

impl PinFiles {
    /// The definitions in this data directory. Nothing is read yet.
    pub fn new(data_dir: &DataDir) -> Self {
        Self {
            folder: data_dir.path().join("pins"),
        }
    }

    /// The path of a source's file.
    pub fn path(&self, source: &str) -> PathBuf {
        let legal = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        let plain = !source.is_empty() && source.len() <= 64 && source.bytes().all(legal);
        let name = if plain {
            source.to_owned()
        } else {
            format!("~{}", hex(source.as_bytes()))
        };
        self.folder.join(format!("{name}.json"))
    }

    /// Removes the pins of a source. Returns whether there were any.
    pub fn forget(&self, source: &str) -> Result<bool, PinStoreError> {
        let path = self.path(source);
        let failed = |error| failed(source, "forgotten", &path, &error);
        let there = !matches!(disk::look(&path).map_err(failed)?, disk::PathKind::Nothing);
        disk::remove(&path).map_err(failed)?;
        Ok(there)
    }
}

impl PinStore for PinFiles {
    fn load(&self, source: &str) -> Result<Option<String>, PinStoreError> {
        let path = self.path(source);
        let unreliable = |why: &str| PinStoreError {
            origin: source.to_owned(),
            attempt: "read",
            reason: format!(
                "`{}` {why}; check it, then repair or delete it",
                path.display()
            ),
        };
        let read = disk::read_bounded(&path, LONGEST)
            .map_err(|error| failed(source, "read", &path, &error))?;
        let bytes = match read {
            None => return Ok(None),
            Some((bytes, FilePrivacy::Private)) => bytes,
            Some((_, FilePrivacy::OwnedBy(_) | FilePrivacy::OpenToOthers(_))) => {
                return Err(unreliable("is accessible to other users"));
            }
        };
        let pinned: PinFileBody =
            serde_json::from_slice(&bytes).map_err(|_| unreliable("is damaged"))?;
        if pinned.source != source {
            return Err(unreliable("contains the pins of another source"));
        }
        if pinned.sha256 != hex(pinned.manifest.as_bytes()) {
            return Err(unreliable("is damaged"));
        }
        Ok(Some(pinned.manifest))
    }

    fn keep(&self, source: &str, manifest: &str) -> Result<(), PinStoreError> {
        let path = self.path(source);
        let failed = |error: io::Error| failed(source, "kept", &path, &error);
        let pinned = PinFileBody {
            source: source.to_owned(),
            sha256: hex(manifest.as_bytes()),
            manifest: manifest.to_owned(),
        };
        let text = serde_json::to_vec(&pinned).map_err(|error| failed(io::Error::other(error)))?;
        if text.len() as u64 > LONGEST {
            return Err(failed(io::Error::other(
                "its definitions are too large to be stored",
            )));
        }
        disk::create_private_directories(&self.folder).map_err(failed)?;
        disk::replace(&path, &text).map_err(failed)
    }
}

fn failed(source: &str, attempt: &'static str, path: &Path, error: &io::Error) -> PinStoreError {
    PinStoreError {
        origin: source.to_owned(),
        attempt,
        reason: format!("`{}`: {error}", path.display()),
    }
}

fn hex(bytes: &[u8]) -> String {
    const_hex::encode(Sha256::digest(bytes))
}
