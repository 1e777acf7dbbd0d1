//! Collects the entries of a directory tree within limits.

use std::{
    ffi::{OsStr, OsString},
    path::{Component, Path, PathBuf},
};

use cap_std::fs::Dir;
use rustix::fs::{AtFlags, FileType, statat};
use schemars::JsonSchema;
use serde::Serialize;
use toolpost_model::ResourceAccess;
use toolpost_processes::{
    CallStopError, FileWorkInterruption, ReadableTarget, StopSign, Workspace, open_directory,
    read_link, relative,
};

use super::Arguments;
use crate::files::{entry_type::EntryType, read_error::FileReadError};

/// The most names that are read before the listing is incomplete. Names must be held to be sorted.
const SCANNED_NAMES: usize = 100_000;
/// The most bytes of names and link targets that are shown.
const LISTED_BYTES: usize = 1 << 20;

/// One thing in a directory.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Entry")]
pub(super) struct DirectoryEntry {
    /// Where it is, relative to the workspace.
    path: String,
    /// What it is.
    #[serde(rename = "type")]
    pub(super) entry_type: EntryType,
    /// Size of a file in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
    /// What a link says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) target: Option<String>,
    /// The name is not UTF-8; bytes of it were replaced in `path`.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schemars(default)]
    lossy_name: bool,
    /// The directory should have been listed too, but may not be read.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schemars(default)]
    pub(super) unreadable: bool,
    /// Relative to the directory that is listed, for the text.
    #[serde(skip)]
    pub(super) name: String,
}

/// The result of listing.
pub(super) struct DirectoryListing {
    /// The directory, relative to the workspace.
    pub(super) path: String,
    pub(super) entries: Vec<DirectoryEntry>,
    /// The number of all entries, if every listed directory could be counted.
    pub(super) total: Option<u64>,
    /// Whether entries are left out.
    pub(super) cut: bool,
    /// The number of entries that rules close to the call.
    pub(super) kept: u64,
}

/// Lists the directory that `arguments` name.
pub(super) fn list(
    workspace: &Workspace,
    arguments: &Arguments<'_>,
    stop: &StopSign,
) -> Result<DirectoryListing, FileReadError> {
    let (place, found) = stop.locate_readable(workspace, arguments.path)?;
    let ReadableTarget::Directory(dir) = found else {
        return Err(FileReadError::NotADirectory {
            given: arguments.path.to_owned(),
        });
    };
    let listing = DirectoryListing {
        path: relative(&place).0.into_owned(),
        entries: Vec::new(),
        total: Some(0),
        cut: false,
        kept: 0,
    };
    let mut collector = ListingCollector {
        listing,
        limit: arguments.limit,
        scanned: 0,
        listed: 0,
        workspace,
        stop,
    };
    let names = collector
        .names(&dir, &place)
        .map_err(|error| FileReadError::interrupted("list", arguments.path, error))?;
    let below = arguments.depth.saturating_sub(1);
    collector.add(
        &DirectoryToList {
            dir: &dir,
            at: &place,
            name: Path::new(""),
            below,
        },
        names,
    )?;
    Ok(collector.listing)
}

struct ListingCollector<'s> {
    listing: DirectoryListing,
    limit: usize,
    /// Names read so far, shown or not.
    scanned: usize,
    /// Bytes of the shown names.
    listed: usize,
    workspace: &'s Workspace,
    stop: &'s StopSign,
}

/// A directory of the listing.
struct DirectoryToList<'l> {
    dir: &'l Dir,
    /// Relative to the workspace's root.
    at: &'l Path,
    /// Relative to the directory of the call.
    name: &'l Path,
    /// How many further levels to show.
    below: u8,
}

/// The content of a subdirectory.
enum SubdirectoryContents {
    NotWanted,
    Unreadable,
    Names(Dir, Vec<OsString>),
}

impl ListingCollector<'_> {
    /// The names in a directory, sorted by bytes, without those that rules close to the call.
    fn names(&mut self, dir: &Dir, at: &Path) -> Result<Vec<OsString>, FileWorkInterruption> {
        self.stop.check()?;
        let mut names = Vec::new();
        for entry in dir.entries()? {
            if self.scanned == SCANNED_NAMES {
                (self.listing.total, self.listing.cut) = (None, true);
                break;
            }
            let name = entry?.file_name();
            self.scanned += 1;
            match self.may_show(dir, at, &name) {
                true => names.push(name),
                false => self.listing.kept += 1,
            }
        }
        self.listing.total = self.listing.total.map(|total| total + names.len() as u64);
        names.sort_unstable();
        Ok(names)
    }

    /// Whether an entry may be shown. A link's target must be readable, too, because the entry shows its name.
    fn may_show(&self, dir: &Dir, at: &Path, name: &OsStr) -> bool {
        if !self.stop.has_path_rules() {
            return true;
        }
        let place = at.join(name);
        if !self.stop.may(self.workspace, &place, ResourceAccess::Read) {
            return false;
        }
        let is_link = statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)
            .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Symlink);
        if !is_link {
            return true;
        }
        // A name that is not text cannot be followed from here, so its target is unknown.
        let Some(requested) = place
            .to_str()
            .and_then(|place| self.workspace.request(place).ok())
        else {
            return false;
        };
        match self.workspace.locate(&requested) {
            Ok(located) => {
                self.stop
                    .may(self.workspace, &located.whole_path(), ResourceAccess::Read)
            }
            // The link leads out of the roots, or in circles. Its target may still be a name that rules close.
            Err(_) => {
                let target = read_link(dir, name).map(|target| at.join(target));
                target.is_ok_and(|target| {
                    self.stop
                        .may(self.workspace, &lexical(&target), ResourceAccess::Read)
                })
            }
        }
    }

    fn add(
        &mut self,
        level: &DirectoryToList<'_>,
        names: Vec<OsString>,
    ) -> Result<(), CallStopError> {
        for name in names {
            if self.listing.entries.len() == self.limit || self.listed > LISTED_BYTES {
                self.listing.cut = true;
                // The directories among the remaining names are not opened, so the number of their entries is unknown.
                self.listing.total = self.listing.total.filter(|_| level.below == 0);
                break;
            }
            self.stop.check()?;
            let Some(mut entry) = describe(level, &name) else {
                continue;
            };
            let inner = self.look_into(level, &name, entry.entry_type)?;
            entry.unreadable = matches!(inner, SubdirectoryContents::Unreadable);
            self.listed +=
                entry.path.len() + entry.name.len() + entry.target.as_ref().map_or(0, String::len);
            self.listing.entries.push(entry);
            if let SubdirectoryContents::Names(dir, names) = inner {
                let at = level.at.join(&name);
                let name = level.name.join(&name);
                self.add(
                    &DirectoryToList {
                        dir: &dir,
                        at: &at,
                        name: &name,
                        below: level.below - 1,
                    },
                    names,
                )?;
            }
        }
        Ok(())
    }

    fn look_into(
        &mut self,
        level: &DirectoryToList<'_>,
        name: &OsStr,
        entry_type: EntryType,
    ) -> Result<SubdirectoryContents, CallStopError> {
        if entry_type != EntryType::Directory || level.below == 0 {
            return Ok(SubdirectoryContents::NotWanted);
        }
        let Ok(dir) = open_directory(level.dir, name) else {
            return Ok(SubdirectoryContents::Unreadable);
        };
        match self.names(&dir, &level.at.join(name)) {
            Ok(names) => Ok(SubdirectoryContents::Names(dir, names)),
            Err(FileWorkInterruption::Stopped(stopped)) => Err(stopped),
            Err(FileWorkInterruption::Io(_)) => Ok(SubdirectoryContents::Unreadable),
        }
    }
}

/// Removes `.` and `..` lexically.
fn lexical(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => {
                plain.pop();
            }
            Component::CurDir => {}
            other => plain.push(other),
        }
    }
    plain
}

/// Describes one name. `None` if it vanished in the meantime.
fn describe(level: &DirectoryToList<'_>, name: &OsStr) -> Option<DirectoryEntry> {
    let stat = statat(level.dir, name, AtFlags::SYMLINK_NOFOLLOW);
    let entry_type = match &stat {
        Ok(stat) => EntryType::of(FileType::from_raw_mode(stat.st_mode)),
        Err(rustix::io::Errno::NOENT) => return None,
        Err(_) => EntryType::Other,
    };
    let size = stat.ok().and_then(|stat| u64::try_from(stat.st_size).ok());
    let target = match entry_type {
        EntryType::Symlink => read_link(level.dir, name)
            .ok()
            .map(|target| target.to_string_lossy().into_owned()),
        EntryType::File | EntryType::Directory | EntryType::Other => None,
    };
    let path = level.at.join(name);
    let (path, lossy_name) = relative(&path);
    Some(DirectoryEntry {
        path: path.into_owned(),
        entry_type,
        size: size.filter(|_| entry_type == EntryType::File),
        target,
        lossy_name,
        unreadable: false,
        name: level.name.join(name).to_string_lossy().into_owned(),
    })
}
