//! `files.list_directory`: what is in a directory, down to a few levels. Links are shown, not followed.

use std::{
    ffi::{OsStr, OsString},
    io,
    path::Path,
    sync::Arc,
};

use cap_std::fs::Dir;
use rustix::fs::{AtFlags, FileType, statat};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use toolpost_model::{
    Access, CallInput, Content, Declaration, Effects, Refusal, Tool, ToolCall, ToolFailure, ToolOutput,
    Truncation,
};

use super::{
    arguments, checked_arguments, declare,
    failure::{PathError, io_code},
    names::{escaped, relative, shown},
    read_effects,
    worker::{StopSign, Stopped, on_worker},
    workspace::{Found, Workspace, open_directory, read_link},
};

const MAX_DEPTH: u8 = 5;
const MAX_LIMIT: usize = 5000;
/// How many names are read in one call before the listing is called incomplete. Names must be held to be sorted.
const SCANNED_NAMES: usize = 100_000;

pub(super) struct ListDirectory {
    workspace: Arc<Workspace>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments<'a> {
    /// Path of the directory, relative to the workspace.
    #[serde(default = "root")]
    path: &'a str,
    /// How many levels to show.
    #[serde(default = "one_level")]
    #[schemars(range(min = 1, max = 5))]
    depth: u8,
    /// How many entries to show at most.
    #[serde(default = "default_limit")]
    #[schemars(range(min = 1, max = 5000))]
    limit: usize,
}

fn root<'a>() -> &'a str {
    "."
}

fn one_level() -> u8 {
    1
}

fn default_limit() -> usize {
    500
}

/// The structured result.
#[derive(Serialize, JsonSchema)]
struct ListResult {
    /// The directory, relative to the workspace and without links.
    path: String,
    /// What is in it, sorted by name, each directory followed by what is in it.
    entries: Vec<Entry>,
}

/// One thing in a directory.
#[derive(Serialize, JsonSchema)]
struct Entry {
    /// Where it is, relative to the workspace.
    path: String,
    /// What it is.
    #[serde(rename = "type")]
    entry_type: EntryType,
    /// Size of a file in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
    /// What a link says.
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<String>,
    /// The name is not UTF-8; bytes of it were replaced in `path`.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schemars(default)]
    lossy_name: bool,
    /// The directory should have been listed too, but may not be read.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schemars(default)]
    unreadable: bool,
    /// Relative to the directory that is listed, for the text.
    #[serde(skip)]
    name: String,
}

/// What sort of thing has a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum EntryType {
    File,
    Directory,
    Symlink,
    Other,
}

impl EntryType {
    pub(super) fn of(file_type: FileType) -> Self {
        match file_type {
            FileType::RegularFile => Self::File,
            FileType::Directory => Self::Directory,
            FileType::Symlink => Self::Symlink,
            FileType::Fifo
            | FileType::Socket
            | FileType::CharacterDevice
            | FileType::BlockDevice
            | FileType::Unknown => Self::Other,
        }
    }

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Directory => "directory",
            Self::Symlink => "symlink",
            Self::Other => "other",
        }
    }
}

/// Why a directory was not listed.
#[derive(Debug, thiserror::Error)]
enum ListError {
    #[error(transparent)]
    Path(#[from] PathError),
    #[error(transparent)]
    Stopped(#[from] Stopped),
    #[error("`{}` is not a directory", shown(.given))]
    NotADirectory { given: String },
    #[error("cannot list `{}`: {source}", shown(.given))]
    Io { given: String, source: io::Error },
}

impl ListError {
    fn into_failure(self) -> ToolFailure {
        let message = self.to_string();
        match self {
            Self::Path(error) => error.into_failure(),
            Self::Stopped(stopped) => stopped.into_failure(),
            Self::NotADirectory { .. } => ToolFailure::new(message)
                .code("not_a_directory")
                .hint("`read_file` shows what is in a file"),
            Self::Io { source, .. } => ToolFailure::new(message).code(io_code(&source)),
        }
        .untouched()
    }
}

impl ListDirectory {
    pub(super) fn new(workspace: Arc<Workspace>) -> Self {
        Self { workspace }
    }
}

impl Tool for ListDirectory {
    fn declaration(&self) -> Declaration {
        let mut declaration = declare::<Arguments<'_>, ListResult>(
            "list_directory",
            "Lists what is in a directory, sorted by name, `depth` levels down. Directories end in `/`; links show \
             where they point and are not followed.",
            Access::Read,
        );
        declaration.title = Some("List directory".to_owned());
        declaration.search_hint = "ls dir tree folder files browse".to_owned();
        declaration.input.examples = vec![json!({}), json!({ "path": "src", "depth": 2 })];
        declaration
    }

    fn check(&self, input: &CallInput) -> Result<(), Refusal> {
        let arguments: Arguments<'_> = checked_arguments(input)?;
        if !(1..=MAX_DEPTH).contains(&arguments.depth) {
            let message = format!(
                "`{}` is out of range, 1 to {MAX_DEPTH} levels can be shown",
                arguments.depth
            );
            return Err(Refusal::invalid("/depth", message));
        }
        if !(1..=MAX_LIMIT).contains(&arguments.limit) {
            let message = format!(
                "`{}` is out of range, 1 to {MAX_LIMIT} entries can be shown",
                arguments.limit
            );
            return Err(Refusal::invalid("/limit", message));
        }
        self.workspace
            .request(arguments.path)
            .map(|_| ())
            .map_err(|refusal| refusal.into_refusal())
    }

    fn effects(&self, input: &CallInput) -> Option<Effects> {
        read_effects(&self.workspace, input.arguments().str("path").unwrap_or(root()))
    }

    async fn execute(&self, call: ToolCall) -> Result<ToolOutput, ToolFailure> {
        let workspace = self.workspace.clone();
        let input = call.input;
        on_worker(call.context, move |stop| {
            let arguments: Arguments<'_> =
                arguments(&input).map_err(|error| ToolFailure::invalid(error.to_string()))?;
            let (path, listing) = list(&workspace, &arguments, stop).map_err(ListError::into_failure)?;
            Ok(output(path, listing)?)
        })
        .await
    }
}

fn list<'s>(
    workspace: &Workspace,
    arguments: &Arguments<'_>,
    stop: &'s StopSign,
) -> Result<(String, Listing<'s>), ListError> {
    let given = || arguments.path.to_owned();
    let located = workspace.locate(&workspace.request(arguments.path).map_err(PathError::from)?)?;
    let dir = match located.found {
        Found::Directory(dir) => dir,
        Found::Entry { .. } => return Err(ListError::NotADirectory { given: given() }),
        Found::Missing { parent, rest } => {
            return Err(PathError::not_found(given(), &parent, &located.path, &rest).into());
        }
    };
    let mut listing = Listing {
        entries: Vec::new(),
        limit: arguments.limit,
        scanned: 0,
        total: Some(0),
        cut: false,
        stop,
    };
    let names = listing.names(&dir).map_err(|error| match error {
        NamesError::Stopped(stopped) => ListError::Stopped(stopped),
        NamesError::Io(source) => ListError::Io {
            given: given(),
            source,
        },
    })?;
    listing.add(
        &Level {
            dir: &dir,
            at: &located.path,
            name: Path::new(""),
            below: arguments.depth - 1,
        },
        names,
    )?;
    Ok((relative(&located.path).0.into_owned(), listing))
}

/// What was found so far.
struct Listing<'s> {
    entries: Vec<Entry>,
    limit: usize,
    scanned: usize,
    /// How many entries there are in all, while every directory that was wanted could be counted.
    total: Option<u64>,
    /// There is something that is not shown.
    cut: bool,
    stop: &'s StopSign,
}

/// A directory that is being listed.
struct Level<'l> {
    dir: &'l Dir,
    /// From the workspace's root.
    at: &'l Path,
    /// From the directory the caller named.
    name: &'l Path,
    /// How many more levels to show.
    below: u8,
}

enum NamesError {
    Stopped(Stopped),
    Io(io::Error),
}

impl Listing<'_> {
    /// The names in a directory, sorted by their bytes.
    fn names(&mut self, dir: &Dir) -> Result<Vec<OsString>, NamesError> {
        self.stop.check().map_err(NamesError::Stopped)?;
        let mut names = Vec::new();
        for entry in dir.entries().map_err(NamesError::Io)? {
            if self.scanned == SCANNED_NAMES {
                (self.total, self.cut) = (None, true);
                break;
            }
            names.push(entry.map_err(NamesError::Io)?.file_name());
            self.scanned += 1;
        }
        self.total = self.total.map(|total| total + names.len() as u64);
        names.sort_unstable();
        Ok(names)
    }

    fn add(&mut self, level: &Level<'_>, names: Vec<OsString>) -> Result<(), Stopped> {
        for name in names {
            if self.entries.len() == self.limit {
                self.cut = true;
                // Directories among the names that are left will not be opened, so nobody counts what they hold.
                self.total = self.total.filter(|_| level.below == 0);
                break;
            }
            self.stop.check()?;
            let Some(mut entry) = describe(level, &name) else {
                continue;
            };
            let inner = match entry.entry_type {
                EntryType::Directory if level.below > 0 => self.open(level.dir, &name)?,
                EntryType::Directory | EntryType::File | EntryType::Symlink | EntryType::Other => {
                    Inner::NotWanted
                }
            };
            entry.unreadable = matches!(inner, Inner::Unreadable);
            self.entries.push(entry);
            if let Inner::Names(dir, names) = inner {
                let (at, name) = (level.at.join(&name), level.name.join(&name));
                self.add(
                    &Level {
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

    fn open(&mut self, parent: &Dir, name: &OsStr) -> Result<Inner, Stopped> {
        let Ok(dir) = open_directory(parent, name) else {
            return Ok(Inner::Unreadable);
        };
        match self.names(&dir) {
            Ok(names) => Ok(Inner::Names(dir, names)),
            Err(NamesError::Stopped(stopped)) => Err(stopped),
            Err(NamesError::Io(_)) => Ok(Inner::Unreadable),
        }
    }
}

enum Inner {
    NotWanted,
    Unreadable,
    Names(Dir, Vec<OsString>),
}

/// Looks at one name. `None`: it vanished meanwhile.
fn describe(level: &Level<'_>, name: &OsStr) -> Option<Entry> {
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
    Some(Entry {
        path: path.into_owned(),
        entry_type,
        size: size.filter(|_| entry_type == EntryType::File),
        target,
        lossy_name,
        unreadable: false,
        name: level.name.join(name).to_string_lossy().into_owned(),
    })
}

fn output(path: String, listing: Listing<'_>) -> Result<ToolOutput, serde_json::Error> {
    let shown_entries = listing.entries.len() as u64;
    let truncated = listing.cut.then(|| Truncation {
        shown: shown_entries,
        total: listing.total,
        unit: "entries".to_owned(),
        hint: Some("list a directory further down, or raise `limit`".to_owned()),
    });
    let text: String = listing.entries.iter().map(line).collect();
    let summary = match shown_entries {
        0 => format!("{} is empty", shown(&path)),
        count => {
            let more = if truncated.is_some() {
                ", there are more"
            } else {
                ""
            };
            format!(
                "{count} {} in {}{more}",
                if count == 1 { "entry" } else { "entries" },
                shown(&path)
            )
        }
    };
    let result = ListResult {
        path,
        entries: listing.entries,
    };
    Ok(ToolOutput {
        content: vec![Content::text(text)],
        structured: Some(serde_json::to_value(&result)?),
        summary: Some(summary),
        truncated,
        ..ToolOutput::default()
    })
}

/// One line of the text.
fn line(entry: &Entry) -> String {
    let name = escaped(&entry.name);
    match (entry.entry_type, &entry.target, entry.unreadable) {
        (EntryType::Directory, _, true) => format!("{name}/ (cannot be read)\n"),
        (EntryType::Directory, _, false) => format!("{name}/\n"),
        (EntryType::Symlink, Some(target), _) => format!("{name} -> {}\n", escaped(target)),
        (EntryType::Symlink | EntryType::File | EntryType::Other, _, _) => format!("{name}\n"),
    }
}
