//! The files of a module as one digest. Any added, changed or removed file gives another digest.

use std::io::{self, Read};

use cap_std::fs::{Dir, MetadataExt as _};
use sha2::{Digest, Sha256};

/// The most files of a module.
const MOST_FILES: usize = 50_000;
const MOST_BYTES: u64 = 2 << 30;
/// The deepest nesting of folders.
const DEEPEST: usize = 64;

/// Why a tree is refused.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TreeError {
    #[error("its files cannot be read: {0}")]
    Io(#[from] io::Error),
    #[error("it holds more than {MOST_FILES} files")]
    TooMany,
    #[error("it holds more than {} MiB", MOST_BYTES >> 20)]
    TooLarge,
    #[error("its folders are nested too deeply")]
    TooDeep,
    #[error("`{0}` is neither a file nor a folder")]
    Odd(String),
}

/// SHA-256 over the names, kinds, modes and contents of everything in a folder, in hex.
pub(super) fn digest(dir: &Dir) -> Result<String, TreeError> {
    let mut walk = ModuleTreeHasher {
        hasher: Sha256::new(),
        files: 0,
        bytes: 0,
    };
    walk.folder(dir, "", 0)?;
    Ok(const_hex::encode(walk.hasher.finalize()))
}

struct ModuleTreeHasher {
    hasher: Sha256,
    files: usize,
    bytes: u64,
}

impl ModuleTreeHasher {
    fn folder(&mut self, dir: &Dir, path: &str, depth: usize) -> Result<(), TreeError> {
        if depth > DEEPEST {
            return Err(TreeError::TooDeep);
        }
        let names = dir.entries()?.map(|entry| Ok(entry?.file_name()));
        let mut names = names.collect::<io::Result<Vec<_>>>()?;
        names.sort();
        for name in names {
            self.files += 1;
            if self.files > MOST_FILES {
                return Err(TreeError::TooMany);
            }
            let inner = format!("{path}/{}", name.to_string_lossy());
            let metadata = dir.symlink_metadata(&name)?;
            if metadata.is_dir() {
                self.head(b'd', name.as_encoded_bytes(), 0);
                self.folder(&dir.open_dir(&name)?, &inner, depth + 1)?;
                self.hasher.update(b"u");
            } else if metadata.is_file() {
                self.bytes += metadata.len();
                if self.bytes > MOST_BYTES {
                    return Err(TreeError::TooLarge);
                }
                // Only the executable bit counts: the other bits depend on the machine.
                let kind = if metadata.mode() & 0o100 == 0 {
                    b'f'
                } else {
                    b'x'
                };
                self.head(kind, name.as_encoded_bytes(), metadata.len());
                self.content(dir.open(&name)?)?;
            } else {
                return Err(TreeError::Odd(inner));
            }
        }
        Ok(())
    }

    fn content(&mut self, mut file: impl Read) -> io::Result<()> {
        let mut buffer = [0; 16 << 10];
        let mut whole: u64 = 0;
        loop {
            let read = file.read(&mut buffer)?;
            if read == 0 {
                // The file may have grown since its length was read.
                self.hasher.update(whole.to_le_bytes());
                return Ok(());
            }
            whole += read as u64;
            self.hasher.update(&buffer[..read]);
        }
    }

    fn head(&mut self, kind: u8, name: &[u8], len: u64) {
        self.hasher.update([kind]);
        self.hasher.update((name.len() as u64).to_le_bytes());
        self.hasher.update(name);
        self.hasher.update(len.to_le_bytes());
    }
}
