//! System files that this user may read and others may not. A command of root has no capabilities but still owns root's
//! files, so password hashes and host keys must be masked by name.

use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Places where systems keep secrets among public files.
const PLACES: &[&str] = &["/etc", "/opt", "/usr/local/etc"];
const DEEPEST: usize = 5;
/// Read once, at start. A larger tree is read in part, upper levels first.
const MOST_ENTRIES: usize = 20_000;

/// The topmost secrets; everything beneath them is hidden with them.
pub(crate) fn system_secrets() -> Vec<PathBuf> {
    let groups: HashSet<u32> = rustix::process::getgroups()
        .unwrap_or_default()
        .into_iter()
        .chain([rustix::process::getegid()])
        .map(rustix::process::Gid::as_raw)
        .collect();
    let user = rustix::process::geteuid().as_raw();
    let mut left = MOST_ENTRIES;
    let mut secrets = Vec::new();
    let mut level: Vec<PathBuf> = PLACES.iter().map(PathBuf::from).collect();
    for _ in 0..DEEPEST {
        let mut deeper = Vec::new();
        for directory in level {
            for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
                let Some(rest) = left.checked_sub(1) else {
                    return secrets;
                };
                left = rest;
                let Ok(metadata) = entry.metadata() else {
                    continue;
                };
                if metadata.is_symlink() {
                    continue;
                }
                if is_secret(&metadata, user, &groups) {
                    secrets.push(entry.path());
                } else if metadata.is_dir() {
                    deeper.push(entry.path());
                }
            }
        }
        level = deeper;
    }
    secrets.retain(|path| !is_empty_file(path));
    secrets
}

fn is_secret(metadata: &fs::Metadata, user: u32, groups: &HashSet<u32>) -> bool {
    let mode = metadata.mode();
    let ours = metadata.uid() == user && mode & 0o400 != 0;
    let our_groups = groups.contains(&metadata.gid()) && mode & 0o040 != 0;
    (ours || our_groups) && mode & 0o004 == 0
}

/// Lock files and the like: they contain nothing to hide, and every masked path costs time at every start.
fn is_empty_file(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|metadata| metadata.is_file() && metadata.len() == 0)
}
