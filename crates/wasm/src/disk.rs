//! Files: components, and the cache of compiled components.
#![expect(
    clippy::disallowed_methods,
    reason = "the module through which this crate reaches for files"
)]

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read as _, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

use sha2::{Digest as _, Sha256};

/// The largest component. Components that contain an interpreter have some twenty megabytes.
const LARGEST: u64 = 256 * 1024 * 1024;
const MAC: usize = 32;
const BLOCK: usize = 64;

pub(crate) fn read_component(path: &Path) -> io::Result<Vec<u8>> {
    read(path, LARGEST)
}

/// The canonical path of a folder.
pub(crate) fn folder(path: &Path) -> io::Result<PathBuf> {
    let real = fs::canonicalize(path)?;
    match fs::metadata(&real)?.is_dir() {
        true => Ok(real),
        false => Err(io::Error::from(io::ErrorKind::NotADirectory)),
    }
}

fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(most + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > most {
        true => Err(io::Error::other(format!("it has more than {most} bytes"))),
        false => Ok(bytes),
    }
}

/// Compiled components, each behind a MAC under a key that lies in the same folder.
///
/// The host runs this machine code without further checks, so a damaged file, or a file from elsewhere, must not be
/// loaded. The MAC shows both. It does not protect against the user of the host: a process that can read the key can
/// already do anything that this user can.
pub(crate) struct CompiledComponentCache {
    folder: PathBuf,
    key: [u8; MAC],
}

impl CompiledComponentCache {
    /// Opens the folder, and creates it if it is missing.
    pub(crate) fn open(folder: &Path) -> io::Result<Self> {
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)?;
        let path = folder.join("key");
        let key = match read(&path, MAC as u64) {
            Ok(key) => key,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let mut key = [0; MAC];
                getrandom::fill(&mut key).map_err(io::Error::other)?;
                put(folder, &path, &[&key])?;
                // Another process created the key first; its key is the valid one.
                read(&path, MAC as u64)?
            }
            Err(error) => return Err(error),
        };
        let key = key
            .try_into()
            .map_err(|_| io::Error::other("the file `key` has not 32 bytes"))?;
        Ok(Self {
            folder: folder.to_owned(),
            key,
        })
    }

    /// The content under a name, if its MAC is right.
    pub(crate) fn get(&self, name: &str) -> Option<Vec<u8>> {
        let mut bytes = read(&self.folder.join(name), u64::MAX - 1).ok()?;
        let content = bytes.split_off(MAC.min(bytes.len()));
        (bytes == self.code(name, &content)).then_some(content)
    }

    /// Stores content under a name atomically, and deletes the other files of the same `family`.
    pub(crate) fn put(&self, family: &str, name: &str, content: &[u8]) -> io::Result<()> {
        put(
            &self.folder,
            &self.folder.join(name),
            &[&self.code(name, content), content],
        )?;
        for entry in fs::read_dir(&self.folder)?.flatten() {
            let other = entry.file_name();
            let other = other.to_string_lossy();
            if other.starts_with(family) && other != name {
                // A file of another engine version, which this host cannot use.
                let _ = fs::remove_file(entry.path());
            }
        }
        Ok(())
    }

    /// HMAC with SHA-256. The name is part of the input, so that a file under another name is not valid.
    fn code(&self, name: &str, content: &[u8]) -> [u8; MAC] {
        let pad = |with: u8| {
            let mut block = [with; BLOCK];
            block
                .iter_mut()
                .zip(self.key)
                .for_each(|(byte, key)| *byte ^= key);
            Sha256::new().chain_update(block)
        };
        let inner = pad(0x36)
            .chain_update(name)
            .chain_update([0])
            .chain_update(content)
            .finalize();
        pad(0x5c).chain_update(inner).finalize().into()
    }
}

/// Writes a temporary file beside the target and renames it, so that readers see the old content or the new one.
fn put(folder: &Path, path: &Path, parts: &[&[u8]]) -> io::Result<()> {
    let mut random = [0; 8];
    getrandom::fill(&mut random).map_err(io::Error::other)?;
    let beside = folder.join(format!(".{:016x}", u64::from_ne_bytes(random)));
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&beside)?;
    let written = parts.iter().try_for_each(|part| file.write_all(part));
    let moved = written.and_then(|()| fs::rename(&beside, path));
    if moved.is_err() {
        let _ = fs::remove_file(&beside);
    }
    moved
}

#[cfg(test)]
mod tests {
    use super::CompiledComponentCache;

    #[test]
    fn what_was_put_is_found_whole_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("cache");
        let cache = CompiledComponentCache::open(&place).unwrap();
        assert_eq!(cache.get("a-1"), None);
        cache.put("a-", "a-1", b"content").unwrap();
        assert_eq!(
            CompiledComponentCache::open(&place)
                .unwrap()
                .get("a-1")
                .unwrap(),
            b"content"
        );

        let file = place.join("a-1");
        let whole = std::fs::read(&file).unwrap();
        for damaged in [
            &whole[..whole.len() - 1],
            &[whole.as_slice(), b"x"].concat(),
            b"",
            b"short",
        ] {
            std::fs::write(&file, damaged).unwrap();
            assert_eq!(cache.get("a-1"), None);
        }
        std::fs::write(place.join("b-1"), &whole).unwrap();
        assert_eq!(cache.get("b-1"), None, "a file passes for another");
        std::fs::write(&file, &whole).unwrap();
        std::fs::write(place.join("key"), [7; 32]).unwrap();
        assert_eq!(
            CompiledComponentCache::open(&place).unwrap().get("a-1"),
            None,
            "a file of somebody else is taken"
        );
    }

    #[test]
    fn a_newer_one_of_the_family_takes_the_place_of_the_older() {
        let folder = tempfile::tempdir().unwrap();
        let cache = CompiledComponentCache::open(folder.path()).unwrap();
        cache.put("a-", "a-1", b"one").unwrap();
        cache.put("b-", "b-1", b"other").unwrap();
        cache.put("a-", "a-2", b"two").unwrap();
        assert_eq!(
            (cache.get("a-1"), cache.get("a-2").as_deref()),
            (None, Some(&b"two"[..]))
        );
        assert!(cache.get("b-1").is_some());
    }

    #[test]
    fn only_the_owner_can_look() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("cache");
        CompiledComponentCache::open(&place)
            .unwrap()
            .put("a", "a", b"")
            .unwrap();
        let mode =
            |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(
            [
                mode(&place),
                mode(&place.join("key")),
                mode(&place.join("a"))
            ],
            [0o700, 0o600, 0o600]
        );
    }
}
