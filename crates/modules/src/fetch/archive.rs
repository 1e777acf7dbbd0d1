//! A file from the network or this machine: a zip archive is unpacked, any other file is kept as it is.

use std::{
    collections::HashSet,
    io::{self, Read, Seek, Write},
    path::{Component, Path},
    time::Duration,
};

use cap_std::{
    ambient_authority,
    fs::{Dir, File, OpenOptions, OpenOptionsExt as _},
};
use sha2::{Digest, Sha256};
use toolpost_processes::{DownloadError, download};
use zip::{ZipArchive, result::ZipError};

use crate::supply::{ModuleSetupProgress, ModuleSupply, SetupProgressSink};

/// The largest file that is fetched.
const ARCHIVE_BYTES: u64 = 256 << 20;
/// The limit of the unpacked bytes: a larger archive is a trap, or no module.
const UNPACKED_BYTES: u64 = 1 << 30;
const MOST_ENTRIES: usize = 20_000;
/// How long a download may take.
const TIME: Duration = Duration::from_secs(600);
/// How many bytes lie between two reports of progress.
const REPORT_EVERY: u64 = 256 << 10;
/// The download, beside the folder that it is unpacked into.
const DOWNLOAD: &str = "download";

/// Why an archive is refused.
#[derive(Debug, thiserror::Error)]
pub(super) enum ArchiveError {
    #[error(transparent)]
    Download(#[from] DownloadError),
    #[error("`{path}` cannot be read: {source}")]
    Unreadable { path: String, source: io::Error },
    #[error("the file is larger than {} MiB", ARCHIVE_BYTES >> 20)]
    TooLarge,
    #[error("the archive cannot be unpacked: {0}")]
    Zip(#[from] ZipError),
    #[error("the archive cannot be unpacked: {0}")]
    Io(#[from] io::Error),
    #[error("the archive holds more than {MOST_ENTRIES} files")]
    TooMany,
    #[error("the unpacked archive is larger than {} MiB", UNPACKED_BYTES >> 20)]
    Bomb,
    #[error("the archive holds `{0}`, which would lie outside of its folder")]
    Outside(String),
    #[error("the archive holds the link `{0}`, and links are not unpacked")]
    Link(String),
    #[error("the archive holds `{0}` twice")]
    Twice(String),
}

/// Fetches `url` into the empty folder `unpacked` of `staging`. Returns the SHA-256 of the download, in hex.
pub(super) async fn fetch(
    supply: &ModuleSupply,
    url: &str,
    (staging, unpacked): (&Dir, &str),
    progress: &mut SetupProgressSink<'_>,
) -> Result<String, ArchiveError> {
    let mut arriving = ArchiveDownload {
        file: staging.create(DOWNLOAD)?,
        hasher: Sha256::new(),
        done: 0,
        told: 0,
    };
    match url.strip_prefix("file://") {
        Some(path) => arriving.copy(path)?,
        None => {
            let mut sink = |piece: &[u8], total: Option<u64>| arriving.take(piece, total, progress);
            download(&supply.network, url, ARCHIVE_BYTES, TIME, &mut sink).await?;
        }
    }
    let digest = const_hex::encode(arriving.hasher.finalize());
    arriving.file.flush()?;
    drop(arriving.file);
    progress(ModuleSetupProgress::Step("unpacking".to_owned()));
    let staging = staging.try_clone()?;
    let unpacked = unpacked.to_owned();
    let name = file_name(url).to_owned();
    let work = tokio::task::spawn_blocking(move || unpack(&staging, &unpacked, &name));
    work.await.map_err(io::Error::other)??;
    Ok(digest)
}

struct ArchiveDownload {
    file: File,
    hasher: Sha256,
    done: u64,
    told: u64,
}

impl ArchiveDownload {
    fn take(
        &mut self,
        piece: &[u8],
        total: Option<u64>,
        progress: &mut SetupProgressSink<'_>,
    ) -> io::Result<()> {
        self.file.write_all(piece)?;
        self.hasher.update(piece);
        self.done += piece.len() as u64;
        if self.done >= self.told + REPORT_EVERY {
            self.told = self.done;
            progress(ModuleSetupProgress::Bytes {
                done: self.done,
                total,
            });
        }
        Ok(())
    }

    fn copy(&mut self, path: &str) -> Result<(), ArchiveError> {
        let unreadable = |source| ArchiveError::Unreadable {
            path: path.to_owned(),
            source,
        };
        let file = File::open_ambient(path, ambient_authority()).map_err(unreadable)?;
        if !file.metadata().map_err(unreadable)?.is_file() {
            return Err(unreadable(io::Error::other("it is not a file")));
        }
        let mut file = file.take(ARCHIVE_BYTES + 1);
        let mut buffer = vec![0; 64 << 10];
        loop {
            let read = file.read(&mut buffer).map_err(unreadable)?;
            if read == 0 {
                return Ok(());
            }
            self.take(&buffer[..read], None, &mut |_| ())?;
            if self.done > ARCHIVE_BYTES {
                return Err(ArchiveError::TooLarge);
            }
        }
    }
}

/// The file name in a URL.
fn file_name(url: &str) -> &str {
    let path = url.split(['?', '#']).next().unwrap_or_default();
    let name = path.rsplit('/').next().unwrap_or_default();
    if name.is_empty() || name == "." || name == ".." {
        "module"
    } else {
        name
    }
}

fn unpack(staging: &Dir, unpacked: &str, name: &str) -> Result<(), ArchiveError> {
    let into = staging.open_dir(unpacked)?;
    let mut file = staging.open(DOWNLOAD)?;
    let mut first = [0; 4];
    let is_zip = file.read_exact(&mut first).is_ok() && first.starts_with(b"PK");
    if !is_zip {
        staging.rename(DOWNLOAD, &into, name)?;
        return Ok(());
    }
    file.rewind()?;
    unzip(file, &into)?;
    staging.remove_file(DOWNLOAD)?;
    Ok(())
}

fn unzip(file: File, into: &Dir) -> Result<(), ArchiveError> {
    let mut archive = ZipArchive::new(file)?;
    if archive.len() > MOST_ENTRIES {
        return Err(ArchiveError::TooMany);
    }
    let mut left = UNPACKED_BYTES;
    let mut seen = HashSet::new();
    for index in 0..archive.len() {
        let mut entry = archive.by_index(index)?;
        let name = entry.name()?.into_owned();
        let shown = || name.escape_debug().to_string();
        let path = Path::new(&name);
        let inside = path.components().all(|part| match part {
            Component::Normal(_) | Component::CurDir => true,
            Component::Prefix(_) | Component::RootDir | Component::ParentDir => false,
        });
        if !inside || name.contains(['\\', '\0']) {
            return Err(ArchiveError::Outside(shown()));
        }
        if entry.is_symlink() {
            return Err(ArchiveError::Link(shown()));
        }
        if entry.is_dir() {
            into.create_dir_all(path)?;
            continue;
        }
        if !seen.insert(path.components().collect::<std::path::PathBuf>()) {
            return Err(ArchiveError::Twice(shown()));
        }
        if let Some(folder) = path
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty())
        {
            into.create_dir_all(folder)?;
        }
        let run = entry.unix_mode().is_some_and(|mode| mode & 0o100 != 0);
        let mut options = OpenOptions::new();
        options
            .write(true)
            .create_new(true)
            .mode(if run { 0o700 } else { 0o600 });
        let mut out = into.open_with(path, &options)?;
        // The size in the entry's header is only a claim, so the copy itself is limited.
        let copied = io::copy(&mut (&mut entry).take(left + 1), &mut out)?;
        left = left.checked_sub(copied).ok_or(ArchiveError::Bomb)?;
    }
    Ok(())
}
